// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// The node of the documentation's example: eight boards at 23.60 an hour for all. A has two
// whole boards at 50 %, B three of four replicas of one, C two instances of one, D one at
// 1 %; three are free.
func TestWorkedExample(t *testing.T) {
	for _, refresh := range []int64{15 * second, 30 * second, minute} { // of the exporter
		t.Run(fmt.Sprint(refresh/second), func(t *testing.T) { workedExample(t, refresh) })
	}
}

func workedExample(t *testing.T, refresh int64) {
	s := newStory(t, nil, prices.RuleConfig{
		Match: map[string]string{"host.type": "gpu-h100-sxm_8gpu-*"}, InstanceHour: "23.60", GPUs: 8, ValidFrom: "2026-05-01", Source: "list",
	})
	board := gpu(3)
	node := func(at int64) batch {
		b := newBatch()
		// Owners before what is known of the node and of devices.
		b.holds("n", at, pod("a"), gpu(0), 1).holds("n", at, pod("a"), gpu(1), 1)
		for n := range 3 {
			b.holds("n", at, pod("b"), fmt.Sprintf("%s::%d", gpu(2), n), .25, attrs{"gpu.sharing": "time_slicing"})
		}
		b.free("n", at, gpu(2)+"::3", attrs{"gpu.sharing": "time_slicing"})
		b.holds("n", at, pod("c"), board+"/1", 1).holds("n", at, pod("c"), board+"/2", 1).free("n", at, board+"/3")
		b.holds("n", at, pod("d"), gpu(4), 1)
		for n := 5; n < 8; n++ {
			b.free("n", at, gpu(n))
		}
		b.info("n", at, attrs{"host.type": "gpu-h100-sxm_8gpu-128vcpu-1600gb", "cloud.region": "eu-north1"})
		read := at / refresh * refresh
		for n := range 8 {
			b.burnt(device("n", gpu(n), h100), at, float64(read-t0)/2)
		}
		for id, v := range map[string]float64{gpu(0): .5, gpu(1): .5, gpu(4): .01} {
			b.busy(device("n", id, h100), at, v)
		}
		for id, profile := range map[string]string{board + "/1": "3g.40gb", board + "/2": "1g.10gb", board + "/3": "1g.10gb"} {
			b.busy(device("n", id, h100, instanceOf(board, profile)), at, 1)
			b.burnt(device("n", id, h100, instanceOf(board, profile)), at, float64(read-t0)*1000)
		}
		return b
	}
	for at := t0; at <= t0+hour; at += 15 * second {
		s.read(at, node(at))
	}
	s.read(t0+hour+1, node(t0+hour+1))

	type row struct{ time, used, idle float64 }
	times, cost, energy, carbon := map[string]row{}, map[string]int64{}, int64(0), int64(0)
	all, joules := int64(0), map[string]int64{}
	for _, r := range s.ledger.Totals() {
		name := r.Key.Service
		if r.Key.State != ledger.Held {
			name = r.Key.State.String() + r.Key.Profile
		}
		sum := times[name]
		times[name] = row{sum.time + float64(r.Time)/1000, sum.used + float64(r.Used)/1000, sum.idle + float64(r.Idle)/1000}
		cost[name] += r.Key.Rate.Cost(r.Time)
		all += r.Time
		for _, mj := range r.Energy {
			energy += mj
			joules[name] += mj
		}
		carbon += r.Carbon
		assert.Equal(t, prices.KindList, r.Key.Kind)
	}
	assert.Equal(t, map[string]row{
		"a": {7200, 3600, 0}, "b": {2700, 0, 0}, "c": {2057.143, 2057.143, 0}, "d": {3600, 36, 3600},
		"free": {11700, 0, 0}, "free1g.10gb": {514.286, 0, 0}, "stranded": {1028.571, 0, 0},
	}, times)
	assert.Equal(t, int64(28_800_000), all)
	sum := int64(0)
	for name, want := range map[string]string{
		"a": "5.9000", "b": "2.2125", "c": "1.6857", "d": "2.9500", "free": "9.5875", "free1g.10gb": "0.4214", "stranded": "0.8429",
	} {
		assert.Equal(t, want, fmt.Sprintf("%.4f", float64(cost[name])/1e9), name)
		sum += cost[name]
	}
	assert.Equal(t, "23.6000", fmt.Sprintf("%.4f", float64(sum)/1e9))
	// 1.8 MJ for each board, of which the instances are parts and nothing more.
	assert.InDelta(t, 8*1_800_000_000, energy, 1000)
	assert.InDelta(t, 1_028_571_429, joules["c"], 1000)
	assert.InDelta(t, 8*228_000_000, carbon, 1000)
	assert.Zero(t, s.Counts())
	assert.Empty(t, s.prices.Mismatches())
	require.Equal(t, "team-a", s.total("a").Key.Tenant)
}
