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
// twice and with every source of pods: once every reading arrives alone and in order, once what arrives between
// two evaluations is shuffled, cut into points and put into batches by chance. All
// evaluations are equal to the last bit, order of resources and points included.
func TestOrderAndGroupingChangeNothing(t *testing.T) {
	for name, source := range map[string]Source{"seen": Seen, "allocation": Allocation, "kubernetes": Kubernetes} {
		for seed := range uint64(40) {
			t.Run(fmt.Sprint(name, "/", seed), func(t *testing.T) { compareOrders(t, source, seed) })
		}
	}
}

func compareOrders(t *testing.T, source Source, seed uint64) {
	fleet := rand.New(rand.NewPCG(seed, 1))
	chance := rand.New(rand.NewPCG(seed, 2))
	cfg := defaults()
	cfg.Expected = source
	cfg.ServiceTTL, cfg.IdleFor, cfg.Warmup, cfg.AllocationTTL = 4*time.Minute, 2*time.Minute, time.Minute, 3*time.Minute
	inOrder, shuffled := New(cfg, t0), New(cfg, t0)
	live := 0
	for tick := 1; tick <= 80; tick++ {
		now := t0.Add(time.Duration(tick) * 15 * time.Second)
		if tick%7 == 1 {
			pods := randomPods(fleet, tick)
			require.Equal(t, inOrder.SetPods(pods, now), shuffled.SetPods(pods, now))
		}
		readings := randomReadings(fleet, tick, now)
		allocations := randomAllocations(fleet, tick, now)
		for _, r := range readings {
			md := pmetric.NewMetrics()
			r.appendTo(md)
			inOrder.Observe(md, now)
		}
		for _, md := range allocations {
			inOrder.Observe(md, now)
		}
		batches := append(randomBatches(chance, readings), allocations...)
		chance.Shuffle(len(batches), func(i, j int) { batches[i], batches[j] = batches[j], batches[i] })
		for _, md := range batches {
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
}

// randomPods is what a cluster has of the fleet's pods.
func randomPods(r *rand.Rand, tick int) *Pods {
	pods := &Pods{}
	for pod := range 6 {
		if r.IntN(6) == 0 {
			continue
		}
		p := running(fmt.Sprint("pod-", pod), t0.Add(time.Duration(r.IntN(tick+1))*15*time.Second))
		p.Service, p.Devices = fmt.Sprint("svc-", pod%3), 1+r.IntN(2)
		p.Deleted, p.Up = r.IntN(10) == 0, r.IntN(10) > 0
		pods.List = append(pods.List, p)
	}
	return pods
}

// randomAllocations is what agents announce within one interval, one batch a point.
func randomAllocations(r *rand.Rand, tick int, now time.Time) []pmetric.Metrics {
	var out []pmetric.Metrics
	for dev := range 12 {
		if (tick/20+dev)%6 == 0 {
			continue // its agent is down
		}
		for n := 1 + r.IntN(2); n > 0; n-- {
			pod := dev / 2
			c := claimed{
				namespace: "shop", service: fmt.Sprint("svc-", pod%3), pod: fmt.Sprint("pod-", pod), device: fmt.Sprint("GPU-", dev),
				container: fmt.Sprint("c-", r.IntN(2)), value: 1, at: now.Add(-time.Duration(r.IntN(60)) * time.Second / 2),
				ends: r.IntN(12) == 0, unresolved: dev%4 == 3,
			}
			if c.unresolved {
				c.device = "node/" + c.device
			}
			out = append(out, c.batch())
		}
	}
	return out
}

// randomReadings is what a fleet of 12 devices reports within one interval: pods that
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
			pod = 0 // forwarded
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
