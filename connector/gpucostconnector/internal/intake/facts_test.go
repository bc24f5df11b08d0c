// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

func TestTenants(t *testing.T) {
	s := newStory(t, func(c *Config) {
		c.Tenant = []string{"k8s.namespace.label.team", "k8s.pod.label.queue", "never", "k8s.namespace.name"}
	})
	long := strings.Repeat("x", 300)
	tenants := []attrs{
		{"k8s.namespace.label.team": "ml", "k8s.pod.label.queue": "q"},
		{"k8s.namespace.label.team": "", "k8s.pod.label.queue": "q"},
		{"k8s.namespace.label.team": " ", "k8s.pod.label.queue": 7},
		{"k8s.namespace.label.team": long},
		{"k8s.namespace.label.team": long + "y"},
		{"k8s.namespace.label.team": "a\u202eb\nc"},
		{"k8s.namespace.label.team": "\u202e\x07 ", "k8s.pod.label.queue": "q"}, // nothing that can be seen
	}
	var unused []string
	every(t0, t0+2*hour, 15*second, func(at int64) {
		b := newBatch()
		for n, of := range tenants {
			name := string(rune('a' + n))
			b.holds("n", at, on("n", pod(name), of), gpu(n), 1)
		}
		s.read(at, b)
		unused = append(unused, s.UnusedTenantKeys(time.UnixMilli(at))...)
	})
	assert.Equal(t, []string{"never"}, unused, "once")
	got := map[string]string{}
	for _, r := range s.ledger.Totals() {
		if r.Key.State == ledger.Held {
			got[r.Key.Service] = r.Key.Tenant
		}
	}
	assert.Len(t, got["d"], 256)
	assert.NotEqual(t, got["d"], got["e"])
	delete(got, "d")
	delete(got, "e")
	assert.Equal(t, map[string]string{"a": "ml", "b": "q", "c": "ns", "f": "ab c", "g": "q"}, got)
}

// A label that changes counts from the next point on.
func TestTenantThatChanges(t *testing.T) {
	s := newStory(t, nil)
	every(t0, t0+20*minute+30*second, 15*second, func(at int64) {
		owner := pod("a")
		if at >= t0+10*minute {
			owner["k8s.namespace.label.team"] = "other"
		}
		s.read(at, newBatch().holds("n", at, owner, gpu(0), 1))
	})
	times := map[string]int64{}
	for _, r := range s.ledger.Totals() {
		times[r.Key.Tenant] += r.Time
	}
	assert.Equal(t, map[string]int64{"team-a": 10 * minute, "other": 10 * minute}, times)
}

func TestPricesOfNodes(t *testing.T) {
	rules := []prices.RuleConfig{
		{Match: map[string]string{"hw.model": "*", "gpu.mig.profile": "1g.10gb"}, GPUHour: "0.70"},
		{Match: map[string]string{"host.type": "of-four"}, InstanceHour: "8", GPUs: 4},
		{Match: map[string]string{"node.label.pool": "own", "node.label.rack": "r*"}, GPUHour: "1.10"},
		{Match: map[string]string{"gpu.capacity.type": "spot"}, GPUHour: "1.50", Kind: prices.KindContracted},
		{Match: map[string]string{"cloud.region": "later"}, GPUHour: "9", ValidFrom: "2200-01-01"},
	}
	s := newStory(t, nil, rules...)
	facts := map[string]attrs{
		"labels": {"node.label.pool": "own", "node.label.rack": "r7", "node.label.other": "x", "gpu.node.pool": "p1"},
		"bad":    {"node.label.pool": "own,x=y", "node.label.rack": "r7"},
		"spot":   {"gpu.capacity.type": "spot", "host.type": "any"},
		"four":   {"host.type": "of-four"},
		"later":  {"cloud.region": "later"},
		"mig":    {"gpu.capacity.type": "spot"},
	}
	nodes := []string{"labels", "bad", "spot", "four", "later", "mig"}
	every(t0, t0+hour+30*second, 15*second, func(at int64) {
		b := newBatch()
		for n, node := range nodes {
			id := gpu(n)
			if node == "mig" {
				id += "/1"
				b.busy(device(node, id, h100, instanceOf(gpu(n), "1g.10gb")), at, .5)
			} else {
				b.busy(device(node, id, h100), at, .5)
			}
			b.holds(node, at, pod(node), id, 1).info(node, at, facts[node])
			b.point(on(node), names.GPUNodeInfo, at, nil, attrs{"host.type": "before"})
		}
		s.read(at, b)
	})
	cost := map[string]float64{}
	for _, node := range nodes {
		total := s.total(node)
		cost[node] = -1
		if r := total.Key.Rate; r.Known() {
			cost[node] = float64(r.Cost(total.Time)) / 1e9
		}
	}
	assert.InDelta(t, .70, cost["mig"], 1e-6)
	delete(cost, "mig")
	assert.Equal(t, map[string]float64{"labels": 1.10, "bad": -1, "spot": 1.50, "four": -1, "later": -1}, cost)
	assert.Equal(t, prices.KindContracted, s.total("spot").Key.Kind)
	assert.Equal(t, "pool=own,rack=r7", s.total("labels").Key.Labels)
	assert.Equal(t, "p1", s.total("labels").Key.Pool)
	mismatches := s.prices.Mismatches()
	require.Len(t, mismatches, 1, "once")
	assert.Equal(t, [2]any{"four", int64(1)}, [2]any{mismatches[0].Node, mismatches[0].Boards})
}
