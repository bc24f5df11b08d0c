// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// charted is what a device measures on every chart.
func charted(w *world, l tags, from, until time.Duration, utilization float64) {
	w.gpu(gpu{tags: l, values: map[string]float64{"utilization": utilization, "used": 10 * gib, "total": 80 * gib, "power": 300, "temperature": 55}, from: from, until: until})
	w.write(queries.Clock, l.with(tags{queries.ClockDomain: "sm"}), from, until, constant(1.98e9))
	w.write(queries.Clock, l.with(tags{queries.ClockDomain: "memory"}), from, until, constant(2.6e9))
	w.write(queries.PowerLimit, l.with(tags{queries.LimitKind: "enforced"}), from, until, constant(700))
	for reason, v := range map[string]float64{"hw_thermal": 0, "power_cap": 1, "gpu_idle": 1} {
		w.write(queries.Throttle, l.with(tags{queries.Reason: reason}), from, until, constant(v))
	}
}

func TestDeviceRange(t *testing.T) {
	w := newWorld(t)
	host := tags{queries.Host: "box", queries.Model: "NVIDIA H100"}
	zero := host.with(tags{queries.Device: uuid + "0", queries.Index: "0"})
	before, after := zero.with(held("ml", "old", "old-0")), zero.with(held("ml", "new", "new-0"))
	// The owner, and with it the series, changes between two samples, after a
	// silence of ten minutes.
	charted(w, before, 40*time.Minute, 20*time.Minute, 0.9)
	charted(w, before, 10*time.Minute, 5*time.Minute, 0.9)
	for _, name := range []string{"utilization", "used"} {
		metric, more := figure(name)
		w.end(metric, before.with(more), 5*time.Minute-interval)
	}
	charted(w, after, 5*time.Minute-interval, 0, 0.2)
	one := host.with(tags{queries.Device: uuid + "1", queries.Index: "1"})
	charted(w, one, 40*time.Minute, 0, 0)
	w.gpu(gpu{tags: one.with(tags{queries.Device: uuid + "1/3", queries.Parent: uuid + "1", queries.MIGProfile: "1g.10gb", queries.MIGInstance: "3"}), values: map[string]float64{"utilization": 0.4}})
	w.gpu(gpu{tags: zero.with(tags{queries.Device: uuid + "0::1", queries.Parent: uuid + "0"}), values: map[string]float64{"utilization": 0.2}})
	charted(w, device("other", uuid+"2", 0, nil), 40*time.Minute, 0, 0.5)

	c := serveAPI(t, w.store, w.now, nil)
	ask := func(pairs ...string) consoleapi.DeviceRangeAnswer {
		return ok[consoleapi.DeviceRangeAnswer](c, "device_range", values(pairs...))
	}
	r := ask("node", "box", "window", "1h")
	require.Len(t, r.Devices, 3, "a replica has no line")
	assert.Equal(t, consoleapi.DeviceLine{ID: uuid + "1/3", Parent: pointer(uuid + "1"), Index: pointer("1"), MIGProfile: pointer("1g.10gb"), MIGInstance: pointer("3")}, r.Devices[2])
	assert.Equal(t, w.now.UTC(), r.End)
	assert.Equal(t, w.now.UTC(), *r.Freshness.DataTime)
	latest := map[string]struct {
		chart consoleapi.Chart
		unit  string
		want  float64
		limit float64
	}{
		"utilization": {r.Charts.Utilization, "1", 0.2, 0}, "memory": {r.Charts.Memory, "By", 10 * gib, 80 * gib}, "power": {r.Charts.Power, "W", 300, 700},
		"temperature": {r.Charts.Temperature, "Cel", 55, 0}, "clock": {r.Charts.Clock, "Hz", 1.98e9, 0}, "throttle": {r.Charts.Throttle, "1", 1, 0},
	}
	for name, want := range latest {
		require.Len(t, want.chart.Series, 3, name)
		assert.Equal(t, want.unit, want.chart.Unit, name)
		for i, d := range r.Devices {
			assert.Equal(t, d.ID, want.chart.Series[i].Name, name)
			assert.Len(t, want.chart.Series[i].Values, r.Points)
		}
		line := want.chart.Series[0].Values
		assert.Equal(t, want.want, *line[r.Points-1], name)
		for _, ago := range []time.Duration{19 * time.Minute, 11 * time.Minute} {
			i := r.Points - 1 - int(ago.Seconds()/r.Step)
			assert.Nil(t, line[i], "%s: a gap is a gap", name)
		}
		for ago := 9 * time.Minute; ago >= 0; ago -= interval {
			assert.NotNil(t, line[r.Points-1-int(ago.Seconds()/r.Step)], "%s: a change of owner is no gap", name)
		}
		if want.limit != 0 {
			assert.Equal(t, want.limit, *want.chart.Limit[r.Points-1], name)
		} else {
			assert.Nil(t, want.chart.Limit, name)
		}
	}
	line := r.Charts.Utilization.Series[0].Values
	changed := r.Points - 1 - int((5*time.Minute-interval).Seconds()/r.Step)
	assert.Equal(t, 0.9, *line[changed-1])
	assert.Equal(t, 0.2, *line[changed], "what the former owner did is over at once")
	assert.Nil(t, r.Charts.Clock.Series[2].Values[r.Points-1], "an instance has no clock of its own: no data, not zero")
	assert.Zero(t, *r.Charts.Utilization.Series[1].Values[r.Points-1], "zero is data")

	assert.Len(t, ask("device", uuid+"1", "window", "5m").Devices, 2, "with its instances")
	assert.Len(t, ask("device", uuid+"0::1", "window", "5m").Devices, 1, "a replica that is named")
	day := ask("device", uuid+"0", "node", "box", "window", "24h")
	assert.InDelta(t, 0.2, *day.Charts.Utilization.Series[0].Values[day.Points-1], 1e-12)
	assert.InDelta(t, (0.9+0.2)/2, *day.Charts.Utilization.Series[0].Values[day.Points-3], 1e-12, "the two minutes in which the owner changed: of all samples")

	for _, unknown := range [][]string{{"node", "box", "cluster", "c1"}, {"node", "nobox"}, {"device", "GPU-x"}, {"node", "box", "device", uuid + "2"}} {
		got := c.get("device_range", values(append(unknown, "window", "5m")...))
		assert.Equal(t, http.StatusNotFound, got.status, unknown)
	}
	few := serveAPI(t, w.store, w.now, func(c *Config) { c.MaxSeriesPerRange, c.MaxPointsPerSeries = 1, 10 })
	limited := ok[consoleapi.DeviceRangeAnswer](few, "device_range", values("node", "box", "window", "1h"))
	assert.Len(t, limited.Charts.Power.Series, 1)
	assert.Equal(t, 2, limited.Truncated)
	assert.LessOrEqual(t, limited.Points, 10)

	// A node or a device by its name alone, not by a part of it.
	nodes := func(pairs ...string) int { return ok[consoleapi.NodesAnswer](c, "nodes", values(pairs...)).Total }
	assert.Equal(t, []int{1, 0, 1, 1, 0}, []int{nodes("node", "box"), nodes("node", "bo"), nodes("device", uuid+"0"), nodes("device", uuid+"2", "cluster", "c1"), nodes("device", uuid+"2")})
}
