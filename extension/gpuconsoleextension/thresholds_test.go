// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// Where gpu_summary publishes its thresholds they are used, and not the console's own.
func TestThresholds(t *testing.T) {
	const day = 24 * time.Hour
	fill := func(t *testing.T, published map[string]float64) *world {
		w := newWorld(t)
		w.exporter("n", 1, 0)
		w.gpu(gpu{tags: device("n", uuid+"0", 0, nil), values: busy(0.3), from: time.Hour})
		for metric, value := range published {
			w.write(metric, tags{queries.Cluster: "c1"}, 5*time.Minute, 0, constant(value))
			w.write(metric, tags{queries.Cluster: "c2"}, 5*time.Minute, 0, constant(value/2))
		}
		return w
	}
	all := map[string]float64{
		queries.SummaryWarmup: 30, queries.SummaryPartialThreshold: 0.5, queries.SummaryIdleThreshold: 0.4, queries.SummaryIdleFor: 600,
	}
	own := func(c *Config) {
		c.Warmup, c.PartialThreshold, c.IdleThreshold, c.IdleFor = 2*time.Minute, 0.1, 0.2, day
	}
	for name, tt := range map[string]struct {
		published map[string]float64
		want      consoleapi.Config
		idle      bool
	}{
		"published": {all, consoleapi.Config{
			Warmup: 30, PartialThreshold: 0.5, IdleThreshold: 0.4, IdleFor: 600, ThresholdsFrom: consoleapi.FromSummary,
		}, true},
		"not published": {nil, consoleapi.Config{
			Warmup: 120, PartialThreshold: 0.1, IdleThreshold: 0.2, IdleFor: day.Seconds(), ThresholdsFrom: consoleapi.FromConsole,
		}, false},
		"published in part": {map[string]float64{queries.SummaryIdleThreshold: 0.4}, consoleapi.Config{
			Warmup: 120, PartialThreshold: 0.1, IdleThreshold: 0.2, IdleFor: day.Seconds(), ThresholdsFrom: consoleapi.FromConsole,
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := fill(t, tt.published)
			c := serveAPI(t, w.store, w.now, own)
			got := ok[consoleapi.StatusAnswer](c, "status", nil).Config
			assert.Equal(t, tt.want, consoleapi.Config{
				Warmup: got.Warmup, PartialThreshold: got.PartialThreshold, IdleThreshold: got.IdleThreshold, IdleFor: got.IdleFor, ThresholdsFrom: got.ThresholdsFrom,
			})
			nodes := ok[consoleapi.NodesAnswer](c, "nodes", nil).Nodes
			require.Len(t, nodes, 1)
			idle := nodes[0].Devices[0].Idle
			assert.Equal(t, tt.idle, idle != nil && *idle)
		})
	}
}
