// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// TestOrderAndGroupingChangeNothing lets random fleets live for twenty minutes,
// twice: once every reading arrives alone and in order, once what arrives between
// two evaluations is shuffled, cut into points and put into batches by chance. All
// evaluations are equal to the last bit, order of resources and points included.
func TestOrderAndGroupingChangeNothing(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			fleet := rand.New(rand.NewPCG(seed, 1))
			chance := rand.New(rand.NewPCG(seed, 2))
			cfg := defaults()
			cfg.ServiceTTL, cfg.IdleFor, cfg.Warmup = 4*time.Minute, 2*time.Minute, time.Minute
			inOrder, shuffled := New(cfg, t0), New(cfg, t0)
			live := 0
			for tick := 1; tick <= 80; tick++ {
				now := t0.Add(time.Duration(tick) * 15 * time.Second)
				readings := randomReadings(fleet, tick, now)
				for _, r := range readings {
					md := pmetric.NewMetrics()
					r.appendTo(md)
					inOrder.Observe(md, now)
				}
				for _, md := range randomBatches(chance, readings) {
					shuffled.Observe(md, now)
				}
				want, got := inOrder.Evaluate(now), shuffled.Evaluate(now)
				require.Equal(t, want, got, "at evaluation %d", tick)
				for _, svc := range want.services {
					if svc.present.has(serUtilization) {
						live++
					}
				}
			}
			require.Positive(t, live, "a fleet without averages would prove nothing")
		})
	}
}

// randomReadings is what a fleet of 12 devices says within one interval: pods that
// come, go, share services, change service or hand devices on, devices that fall
// silent, series that end, points that come late, twice, or from the future.
func randomReadings(r *rand.Rand, tick int, now time.Time) []reading {
	var out []reading
	for dev := range 12 {
		if (tick/10+dev)%5 == 0 || r.IntN(8) == 0 {
			continue // silent
		}
		pod := dev / 2
		if tick > 40 && dev == 3 {
			pod = 0 // handed on
		}
		service := pod % 3
		if tick > 55 && pod == 4 {
			service = 2
		}
		rd := reading{
			namespace: "shop", service: fmt.Sprint("svc-", service), pod: fmt.Sprint("pod-", pod), device: fmt.Sprint("GPU-", dev),
		}
		if pod == 5 {
			rd.uid = fmt.Sprint("uid-", tick/50)
		}
		for n := 1 + r.IntN(3); n > 0; n-- {
			rd.at = now.Add(-time.Duration(r.IntN(30)) * time.Second / 2)
			switch r.IntN(20) {
			case 0:
				rd.at = now.Add(time.Hour)
			case 1:
				rd.at = now.Add(-time.Duration(r.IntN(600)) * time.Second)
			}
			if rd.uid != "" { // a pod's successor does not speak of the time before it
				rd.at = now.Add(-time.Duration(r.IntN(15)) * time.Second)
			}
			rd.ends = r.IntN(30) == 0 && rd.uid == ""
			rd.fields = map[field]float64{}
			for f := range numFields {
				switch r.IntN(10) {
				case 0:
				case 1:
					if rd.uid == "" { // the exception that state names
						rd.fields[f] = math.NaN()
					}
				default:
					rd.fields[f] = r.Float64() * float64(r.IntN(2))
				}
			}
			out = append(out, rd)
			if r.IntN(10) == 0 {
				out = append(out, rd)
			}
		}
	}
	return out
}

// randomBatches cuts readings into one for each field, shuffles them, and groups
// them into batches of random size.
func randomBatches(r *rand.Rand, readings []reading) []pmetric.Metrics {
	var single []reading
	for _, rd := range readings {
		for f, v := range rd.fields {
			one := rd
			one.fields = map[field]float64{f: v}
			single = append(single, one)
		}
	}
	r.Shuffle(len(single), func(i, j int) { single[i], single[j] = single[j], single[i] })
	var out []pmetric.Metrics
	for i, rd := range single {
		if i == 0 || r.IntN(5) == 0 {
			out = append(out, pmetric.NewMetrics())
		}
		rd.appendTo(out[len(out)-1])
	}
	return out
}
