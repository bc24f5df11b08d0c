// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMost(t *testing.T) {
	for what, first := range map[string]float64{"goroutines": 150, "files": 40, "heap": 20 * mib, "otelcol_gpu_events_subjects": 10, "otelcol_gpu_pod_series": 400} {
		assert.Less(t, first, most(what, first))
		// One more with each of an hour's rounds is too much, and so is a third of a
		// MiB of memory.
		leak := 150.
		if what == "heap" {
			leak = 150 * mib / 2
		}
		if what != "otelcol_gpu_pod_series" {
			assert.Greater(t, first+leak, most(what, first), what)
		}
	}
}
