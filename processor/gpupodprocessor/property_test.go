// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

// world is a node with random owners of its devices: what gpu_allocation
// and an exporter report at one time, and the true owners.
type world struct {
	allocations, telemetry []string // of one resource each
	truth                  map[string]string
}

func randomWorld(r *rand.Rand, at int) world {
	w := world{truth: map[string]string{}}
	pod := func() string { return fmt.Sprintf("p-%d", r.IntN(6)) }
	allocate := func(line string) { w.allocations = append(w.allocations, snapshot(at, line)) }
	observe := func(id, attrs, owner string) {
		w.truth[id] = owner
		w.telemetry = append(w.telemetry, inputs(at, id, attrs+" namespace=ml pod=stale-0"))
	}
	for i := range 8 {
		id, p, q := fmt.Sprintf("GPU-%d", i), pod(), pod()
		switch r.IntN(7) {
		case 0: // free
			allocate("- 0 hw.id=" + id)
			observe(id, "", "")
		case 1: // held
			allocate("ml/" + p + "/main 1 hw.id=" + id)
			observe(id, "", "ml/"+p+"/main")
		case 2: // time-slicing
			observe(id, "", "")
			for n := range 1 + r.IntN(4) {
				part := fmt.Sprintf("%s::%d", id, n)
				if owner := pod(); r.IntN(3) > 0 {
					allocate(fmt.Sprintf("ml/%s/main 0.25 gpu.sharing=time_slicing hw.id=%s", owner, part))
					w.truth[part] = "ml/" + owner + "/main"
				} else {
					allocate("- 0 gpu.sharing=time_slicing hw.id=" + part)
				}
			}
		case 3: // MIG, the instances named by their own ids
			observe(id, "", "")
			for gi := range 2 {
				uuid := fmt.Sprintf("MIG-c4529c8d-69c4-b61d-e0bc-7b24600960%d%d", i, gi)
				allocate("ml/" + p + "/main 1 hw.id=n1/" + uuid)
				observe(deviceid.MIG(id, fmt.Sprint(gi)), "hw.parent="+id+" gpu.mig.uuid="+uuid, "ml/"+p+"/main")
			}
		case 4: // contested
			if p == q {
				q += "x"
			}
			allocate("ml/" + p + "/main 1 hw.id=" + id)
			allocate("ml/" + q + "/main 1 hw.id=" + id)
			observe(id, "", "")
		case 5: // two compute instances of one MIG instance
			observe(id, "", "")
			observe(id+"/7", "hw.parent="+id, "")
			allocate("ml/" + p + "/main 0.5 hw.id=" + id + "/7")
			allocate("ml/" + q + "x/main 0.5 hw.id=" + id + "/7")
		case 6: // GKE; labels that contradict would decide
			allocate(fmt.Sprintf("ml/stale-0/main 1 hw.id=n1/nvidia%d", i))
			observe(id, fmt.Sprintf("k8s.node.name=n1 gpu.index=%d", i), "ml/stale-0/main")
		}
	}
	return w
}

// batches puts the resources into batches in a random order.
func batches(r *rand.Rand, resources []string) (out []string) {
	r.Shuffle(len(resources), func(i, j int) { resources[i], resources[j] = resources[j], resources[i] })
	for len(resources) > 0 {
		n := 1 + r.IntN(len(resources))
		out = append(out, strings.Join(resources[:n], "\n"))
		resources = resources[n:]
	}
	return out
}

// overOTLP is what comes out at the other end of OTLP.
func overOTLP(t *testing.T, md pmetric.Metrics) pmetric.Metrics {
	wire, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	require.NoError(t, err)
	req := pmetricotlp.NewExportRequest()
	require.NoError(t, req.UnmarshalProto(wire))
	return req.Metrics()
}

// attributed is the owner of each device with live points.
func attributed(md pmetric.Metrics, into map[string]string) {
	for _, rm := range md.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		if id := str(attrs, names.HwID); id != "" && points.CountLive(rm) > 0 {
			h := owner.Of(attrs)
			into[id] = h.String()
		}
	}
}

// Whatever the order and grouping of what arrives, once a snapshot and telemetry
// after it are there every device has its true owner; the sum over physical
// devices is the truth; a second gpu_pod behind the first, in the same process
// or behind OTLP, changes nothing.
func TestAttributionDoesNotDependOnOrder(t *testing.T) {
	for i := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(i, 1))
			first, second := start(t, noService), start(t, noService)
			store := backend{}
			pass := func(in string) pmetric.Metrics {
				out := first.feed(parse(in))
				store.write(t, out)
				before := format(out)
				again := second.feed(overOTLP(t, out))
				require.Empty(t, difference(before, format(again)), "seed %d: a second gpu_pod changes something", i)
				return again
			}
			for at := 10; at <= 40; at += 10 {
				w := randomWorld(r, at)
				for _, in := range batches(r, slices.Concat(w.allocations, w.telemetry)) {
					pass(in)
				}
				time.Sleep(ownership.Together)
				got, sum := map[string]string{}, 0.0
				for _, in := range batches(r, later(w.telemetry, at)) {
					sum += physical(parse(in), names.HwPower.Name)
					attributed(pass(in), got)
				}
				require.Equal(t, w.truth, got, "seed %d at %d", i, at)
				require.InDelta(t, sum, store.sumPhysical(names.HwPower.Name), 0, "seed %d at %d", i, at)
				time.Sleep(9 * time.Second)
			}
		})
	}
}

// later is telemetry one second later.
func later(telemetry []string, at int) (out []string) {
	for _, text := range telemetry {
		out = append(out, strings.ReplaceAll(text, fmt.Sprintf("@%d", at), fmt.Sprintf("@%d", at+1)))
	}
	return out
}

// physical adds up a metric over devices that have no parent.
func physical(md pmetric.Metrics, metric string) (sum float64) {
	for _, rm := range md.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		if str(attrs, names.HwParent) != "" || deviceid.Parent(str(attrs, names.HwID)) != "" {
			continue
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() == metric {
					for _, p := range numbers(m).All() {
						sum += p.DoubleValue()
					}
				}
			}
		}
	}
	return sum
}

func (b backend) sumPhysical(metric string) (sum float64) {
	for series, v := range maps.All(b) {
		id, _, _ := strings.Cut(strings.TrimPrefix(series, metric+" "), " ")
		if strings.HasPrefix(series, metric+" ") && deviceid.Parent(id) == "" {
			sum += v
		}
	}
	return sum
}

// difference is the lines that only one of a and b has.
func difference(a, b string) (lines []string) {
	count := map[string]int{}
	for line := range strings.Lines(a) {
		count[line]++
	}
	for line := range strings.Lines(b) {
		count[line]--
	}
	for line, n := range count {
		if n != 0 {
			lines = append(lines, fmt.Sprint(-n, " ", line))
		}
	}
	return lines
}
