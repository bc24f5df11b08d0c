// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/devicerules"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Every rule about a flag is raised by its metric and cleared by it alone, also after a
// restart. Each has a story: -update writes that of a new one.
func TestFlags(t *testing.T) {
	flags := 0
	for _, r := range devicerules.Conditions {
		if len(r.Reads) > 1 || r.Reads[0].Attribute != "" || r.Reads[0].Links {
			continue // its story is in a test of its own
		}
		flags++
		t.Run(r.Event, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDisk()
				s := newStory(d.boot(t, deviceSet))
				flag := func(v float64) gpu {
					return gpu{pod: "chat-0", values: map[*names.Metric]float64{r.Reads[0].Metric: v}}
				}
				for _, step := range []struct {
					narrate string
					gpu     gpu
				}{
					{"the flag is 0", flag(0)}, {"it is 1", flag(1)}, {"its metric is absent", gpu{pod: "chat-0"}},
					{"a restart, and it is 1", flag(1)}, {"it is -1, which is no flag", flag(-1)}, {"it is 0", flag(0)},
				} {
					s.narrate("%s", step.narrate)
					if step.narrate == "a restart, and it is 1" {
						s.stop()
						s.bench = d.boot(t, deviceSet)
					}
					s.every(interval, 2, one(step.gpu))
				}
				s.golden(r.Event)
				s.stop()
			})
		})
	}
	require.Positive(t, flags)
}
