// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStalenessFollowsTheMedianGap(t *testing.T) {
	const s, m = time.Second, time.Minute
	for _, tt := range []struct {
		name    string
		initial time.Duration
		devices [][]time.Duration // gaps between the points of each device
		want    time.Duration
	}{
		{"no points yet", 15 * s, nil, 45 * s},
		{"two gaps are not enough", 15 * s, [][]time.Duration{{60 * s, 60 * s}}, 45 * s},
		{"initial_interval until then", 60 * s, [][]time.Duration{{15 * s, 15 * s}}, 150 * s},
		{"three gaps", 15 * s, [][]time.Duration{{60 * s, 60 * s, 60 * s}}, 150 * s},
		{"three gaps of three devices", 15 * s, [][]time.Duration{{60 * s}, {60 * s}, {60 * s}}, 150 * s},
		{"never below 45 s", 60 * s, [][]time.Duration{{s, s, s}}, 45 * s},
		{"exactly where 45 s ends", 15 * s, [][]time.Duration{{20 * s, 20 * s, 20 * s}}, 50 * s},
		{"median, not mean", 15 * s, [][]time.Duration{{30 * s, 30 * s, 5 * m, 30 * s, 30 * s}}, 75 * s},
		{"median of an even number", 15 * s, [][]time.Duration{{20 * s, 30 * s, 40 * s, 50 * s}}, 87500 * time.Millisecond},
		{"the last five of a device", 15 * s, [][]time.Duration{{5 * m, 5 * m, 5 * m, 5 * m, 30 * s, 30 * s, 30 * s, 30 * s, 30 * s}}, 75 * s},
		{"a gap over 6m is an outage", 15 * s, [][]time.Duration{{30 * s, 6*m + 1, 30 * s, 6*m + 1, 30 * s}}, 75 * s},
		{"and no gap at all", 15 * s, [][]time.Duration{{30 * s, 6*m + 1, 30 * s}}, 45 * s},
		{"a gap of 6m is an interval", 15 * s, [][]time.Duration{{6 * m, 6 * m, 6 * m}}, 15 * m},
		{"over all devices", 15 * s, [][]time.Duration{{20 * s, 20 * s, 20 * s}, {40 * s, 40 * s, 40 * s, 40 * s}}, 100 * s},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.InitialInterval, c.ServiceTTL = tt.initial, 2*time.Hour })
			for i, gaps := range tt.devices {
				w.now = t0
				dev := fmt.Sprint("GPU-", i)
				w.util(fmt.Sprint("pod-", i/2), dev, 0.5)
				for _, gap := range gaps {
					w.now = w.now.Add(gap)
					w.util(fmt.Sprint("pod-", i/2), dev, 0.5)
				}
			}
			svc := w.s.services[serviceKey{"", "shop", "api"}]
			if svc == nil {
				svc = &service{}
			}
			for _, p := range svc.pods {
				p.expected = true
			}
			require.Equal(t, tt.want, time.Duration(judgeOf(w.s).stalenessOf(svc, new(Evaluation))))

			w.s.cfg.Staleness = 100 * time.Second
			require.Equal(t, 100*time.Second, time.Duration(judgeOf(w.s).stalenessOf(svc, new(Evaluation))), "a configured staleness is not computed")
		})
	}
}

func TestOnlyUtilizationMakesTheInterval(t *testing.T) {
	w := newWorld(t)
	for range 12 { // power every 15 s, utilization every minute
		w.pass(45*time.Second, func() {
			w.read(reading{pod: "a", device: "GPU-0", fields: map[field]float64{power: 100}})
		})
		w.pass(15*time.Second, func() { w.util("a", "GPU-0", 0.5) })
	}
	w.now = w.now.Add(150 * time.Second)
	w.evaluate().state(t, "a", "reporting")
	w.now = w.now.Add(1)
	w.evaluate().state(t, "a", "missing")
}

func TestRecentKeepsTheNewestWhateverTheOrder(t *testing.T) {
	want := recent{90, 80, 70, 60, 50, 40}
	for _, order := range [][]int64{
		{10, 20, 30, 40, 50, 60, 70, 80, 90},
		{90, 80, 70, 60, 50, 40, 30, 20, 10},
		{50, 90, 10, 70, 30, 40, 80, 20, 60, 50, 90, 10},
	} {
		var r recent
		for _, at := range order {
			r.add(at)
		}
		require.Equal(t, want, r)
	}
	var r recent
	r.add(7)
	require.Empty(t, r.appendGaps(nil))
}

// A staleness that does not reach to the next point but one lets pods go missing in
// between: that is noted when the interval is known, and of the worst service.
func TestFlapping(t *testing.T) {
	for name, tt := range map[string]struct {
		staleness time.Duration
		points    int
		want      Flapping
	}{
		"too short":         {29 * time.Second, 4, Flapping{"shop", "api", 15 * time.Second}},
		"long enough":       {30 * time.Second, 4, Flapping{}},
		"computed":          {0, 4, Flapping{}},
		"not known to be":   {29 * time.Second, 3, Flapping{}},
		"that of the worst": {time.Second, 4, Flapping{"shop", "api", 15 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Staleness = tt.staleness })
			for range tt.points {
				w.util("a", "GPU-0", 0.5)
				w.now = w.now.Add(5 * time.Second)
				w.read(reading{service: "quick", pod: "q", device: "GPU-1", fields: map[field]float64{utilization: 0.5}})
				w.now = w.now.Add(5 * time.Second)
				w.read(reading{service: "quick", pod: "q", device: "GPU-1", fields: map[field]float64{utilization: 0.5}})
				w.now = w.now.Add(5 * time.Second)
			}
			e := w.s.Evaluate(w.now)
			require.Equal(t, tt.want, e.Flapping)
		})
	}
}

// judgeOf is the judge of an evaluation of s.
func judgeOf(s *Summary) *judge { return &judge{cfg: &s.cfg, scratch: &s.scratch} }
