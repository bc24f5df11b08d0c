// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/simkubelet"
)

// spent is a report of gpuctl.
type spent struct {
	Currency *string
	Total    spentLine
	Lines    []spentLine
}

type spentLine struct {
	State      *string
	Group      struct{ Service *string }
	Time       float64
	Cost       *float64
	PricedCost *float64 `json:"priced_cost"`
}

// Without prices there are hours and no money anywhere. A collector that is killed goes on
// counting where its state ends, with prices from when they are configured.
func TestCost(t *testing.T) {
	t.Parallel()
	pod := func(service, device string, load gpusim.Load) gpusim.Pod {
		return gpusim.Pod{Namespace: "ml", Name: service + "-0", Container: "main", Labels: map[string]string{"app": service}, Devices: []string{device}, Load: load}
	}
	sim, _, endpoints := fleet(t, gpusim.Config{Seed: 1, Nodes: []gpusim.Node{{
		Name: "n", Version: "4.6", Model: "H100", Devices: 3, PodLabels: true,
		Pods: []gpusim.Pod{pod("chat", "0", gpusim.Inference), pod("train", "1", gpusim.Training)},
	}}})
	dir := t.TempDir()
	kubelets, err := simkubelet.Start(sim, dir, time.Now)
	require.NoError(t, err)
	t.Cleanup(kubelets.Stop)
	state := []string{"STATE_DIRECTORY=" + filepath.Join(dir, "state")}
	run := func(cost m) *collector.Collector {
		cost["flush_interval"] = "10s"
		return start(t, m{
			"receivers": m{
				"dcgm":           m{"endpoints": endpoints, "collection_interval": "5s", "node_name": "n"},
				"gpu_allocation": m{"socket": kubelets.Socket("n"), "node_name": "n"},
			},
			"connectors": m{"gpu_cost": cost},
		}, state, config("standalone.yaml"))
	}
	ctl := func(c *collector.Collector, args ...string) (string, error) {
		out, err := exec.Command(binary(t, "gpuctl"), append([]string{"cost", "--endpoint", "http://" + collector.Address(c.Ports.Console)}, args...)...).CombinedOutput()
		return string(out), err
	}
	report := func(c *collector.Collector, until func(*spent) bool) (s spent) {
		t.Helper()
		var text string
		require.Eventually(t, func() bool {
			var err error
			s = spent{}
			text, err = ctl(c, "-o", "json", "--by", "service", "--since", "1h")
			return err == nil && json.Unmarshal([]byte(text), &s) == nil && until(&s)
		}, patience, time.Second, "%s", &text)
		return s
	}

	c := run(m{})
	first := report(c, func(s *spent) bool { return s.Total.Time >= 30 })
	assert.Nil(t, first.Currency)
	for _, l := range append(first.Lines, first.Total) {
		assert.Nil(t, l.Cost)
		assert.Nil(t, l.PricedCost)
	}
	table, err := ctl(c)
	require.NoError(t, err, table)
	assert.Contains(t, table, "Nothing has a price")
	for _, line := range lines(table, "ml ") {
		assert.Equal(t, "-", strings.Fields(line)[5], line)
	}
	families := eventually(t, c, "the time of both pods and of the fleet", func(f map[string]*dto.MetricFamily) bool {
		return len(heldSeconds(f)) == 2 && f["gpu_capacity_time_seconds_total"] != nil
	})
	for name := range families {
		assert.False(t, strings.Contains(name, "cost") && strings.HasPrefix(name, "gpu_") || strings.HasPrefix(name, "gpu_price"), "%s: nothing has a price", name)
	}
	before := heldSeconds(families)

	require.NoError(t, syscall.Kill(c.PID(), syscall.SIGKILL))
	<-c.Exited()
	c = run(m{"prices": []any{m{"match": m{"hw.model": "*H100*"}, "gpu_hour": "3600"}}}) // one a second
	second := report(c, func(s *spent) bool {
		return s.Total.PricedCost != nil && *s.Total.PricedCost > 0 && s.Total.Time >= first.Total.Time+30
	})
	now := time.Now()
	families = eventually(t, c, "cost and price", func(f map[string]*dto.MetricFamily) bool {
		return f["gpu_usage_cost_total"] != nil && f["gpu_price_per_hour"] != nil && len(heldSeconds(f)) == 2
	})
	for service, seconds := range before {
		assert.GreaterOrEqual(t, heldSeconds(families)[service], seconds, "%s: no counter falls", service)
	}
	assert.Less(t, *second.Total.PricedCost, second.Total.Time, "what was before the prices has none")
	assert.Nil(t, second.Total.Cost)

	// The same rows as files, and with other prices.
	table, err = ctl(c, "-o", "csv", "--since", "1h")
	require.NoError(t, err, table)
	assert.True(t, strings.HasPrefix(table, "period_start,period_end,state,tenant,gpu_seconds,"), table)
	assert.Len(t, lines(table, ",held,ml,"), 1)
	table, err = ctl(c, "-o", "focus", "--since", "1h")
	require.NoError(t, err, table)
	assert.True(t, strings.HasPrefix(table, "BilledCost,"), table)
	list := filepath.Join(dir, "prices.yaml")
	require.NoError(t, os.WriteFile(list, []byte("- {match: {hw.model: '*H100*'}, gpu_hour: '7200'}\n"), 0o600))
	table, err = ctl(c, "-o", "json", "--since", "1h", "--prices", list, "--currency", "EUR")
	require.NoError(t, err, table)
	var other spent
	require.NoError(t, json.Unmarshal([]byte(table), &other), table)
	assert.Equal(t, "EUR", *other.Currency)
	require.NotNil(t, other.Total.PricedCost)
	// Boards have no model before their first page, and then no price.
	assert.InDelta(t, 2*other.Total.Time, *other.Total.PricedCost, 2*3*15)

	// What is accounted for is never more than what was, and not much later.
	usage, err := sim.UsageOf(0, now.Sub(sim.Start()))
	require.NoError(t, err)
	truth := map[string]float64{}
	for _, u := range usage {
		truth[u.Service] += float64(u.Seconds)
	}
	for _, l := range second.Lines {
		if l.Group.Service != nil {
			assert.LessOrEqual(t, l.Time, truth[*l.Group.Service]+1)
			assert.Positive(t, l.Time)
		} else if *l.State == "unknown" {
			assert.Zero(t, l.Time, "the same pods had them before and after")
		}
	}
}

func heldSeconds(families map[string]*dto.MetricFamily) map[string]float64 {
	sums := map[string]float64{}
	for _, metric := range find(families["gpu_usage_held_seconds_total"]) {
		sums[collector.Label(metric, "service_name")] += metric.GetCounter().GetValue()
	}
	return sums
}
