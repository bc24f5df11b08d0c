// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/pricing"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// t0 is the start of the tests' time, a full hour.
const t0 = 500_000 * hour

const h100 = "NVIDIA H100 80GB HBM3"

// gpu is the hw.id of a board.
func gpu(n int) string { return fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", n) }

type attrs = map[string]any

// batch is metrics in the making.
type batch struct{ md pmetric.Metrics }

func newBatch() batch { return batch{pmetric.NewMetrics()} }

// point adds a point of a metric of a resource. A nil value is the end of a series.
func (b batch) point(resource attrs, m names.Metric, at int64, value any, point attrs) batch {
	rm := b.md.ResourceMetrics().AppendEmpty()
	if err := rm.Resource().Attributes().FromRaw(resource); err != nil {
		panic(err)
	}
	p := m.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
	p.SetTimestamp(pcommon.Timestamp(at * 1e6))
	switch v := value.(type) {
	case nil:
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	case int:
		p.SetIntValue(int64(v))
	case float64:
		p.SetDoubleValue(v)
	}
	if err := p.Attributes().FromRaw(point); err != nil {
		panic(err)
	}
	return b
}

func on(node string, more ...attrs) attrs {
	all := attrs{"k8s.cluster.name": "c", "k8s.node.name": node}
	for _, m := range more {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

// pod is the resource attributes of an owner.
func pod(name string) attrs {
	return attrs{
		"k8s.namespace.name": "ns", "k8s.pod.name": name, "k8s.container.name": "main", "k8s.pod.uid": "uid-" + name,
		"service.name": name, "k8s.namespace.label.team": "team-" + name,
	}
}

// held and free are points of gpu.allocation.
func held(id string, of float64, more ...attrs) (value any, point attrs) {
	point = attrs{"hw.id": id, "k8s.resource.name": "nvidia.com/gpu", "gpu.attribution.source": "pod_resources", "gpu.sharing": "none", "gpu.allocation.resolved": true}
	for _, m := range more {
		for k, v := range m {
			point[k] = v
		}
	}
	return of, point
}

// holds adds that a pod holds a device, or that it is free where pod is nil.
func (b batch) holds(node string, at int64, pod attrs, id string, of float64, more ...attrs) batch {
	value, point := held(id, of, more...)
	return b.point(on(node, pod), names.GPUAllocation, at, value, point)
}

func (b batch) free(node string, at int64, id string, more ...attrs) batch {
	return b.holds(node, at, nil, id, 0, more...)
}

// device is the resource of a device's telemetry.
func device(node, id, model string, more ...attrs) attrs {
	return on(node, append([]attrs{{"hw.id": id, "hw.type": "gpu", "hw.model": model}}, more...)...)
}

func instanceOf(parent, profile string) attrs {
	return attrs{"hw.parent": parent, "gpu.mig.profile": profile}
}

func (b batch) busy(resource attrs, at int64, value float64) batch {
	return b.point(resource, names.GPUUtilization, at, value, attrs{"hw.id": resource["hw.id"], "hw.gpu.task": "general"})
}

func (b batch) burnt(resource attrs, at int64, joules float64) batch {
	return b.point(resource, names.HwEnergy, at, joules, attrs{"hw.id": resource["hw.id"], "hw.type": "gpu"})
}

func (b batch) info(node string, at int64, facts attrs) batch {
	return b.point(on(node), names.GPUNodeInfo, at, 1, facts)
}

// story is an intake with its ledger.
type story struct {
	t *testing.T
	*Intake
	prices *pricing.Pricing
}

func config() Config {
	return Config{
		Tenant:   []string{"k8s.namespace.label.team", "k8s.namespace.name"},
		MIGShare: share.ByCompute, VGPUShare: share.VGPUByMemory, MaxDevices: 100,
	}
}

func ledgerConfig(p *pricing.Pricing) ledger.Config {
	return ledger.Config{
		AllocationTTL: 5 * minute, Bridge: hour, CloseAfter: day, UnavailableFor: 7 * day,
		IdleThreshold: 50_000, IdleFor: 15 * minute, MaxRows: 5000, MaxBoards: 1000, Price: p.Price, Carbon: p.Carbon,
	}
}

func newStory(t *testing.T, change func(*Config), rules ...prices.RuleConfig) *story {
	book, err := prices.New("USD", rules)
	require.NoError(t, err)
	carbon, err := prices.NewCarbon(prices.CarbonConfig{PUE: 1.2, Intensity: []prices.IntensityConfig{{Region: "*", GramsPerKWh: 380, Kind: "average"}}})
	require.NoError(t, err)
	p := pricing.New(book, carbon)
	cfg := config()
	cfg.NodeLabels = book.Labels()
	if change != nil {
		change(&cfg)
	}
	return &story{t, New(cfg, ledger.New(ledgerConfig(p), t0), time.UnixMilli(t0)), p}
}

// read reads a batch that arrives at a time.
func (s *story) read(at int64, b batch) {
	s.Read(b.md, time.UnixMilli(at))
}

// rows sums the totals by service, and by state what has no owner, in seconds.
func (s *story) rows() map[string]float64 {
	sums := map[string]float64{}
	for _, total := range s.ledger.Totals() {
		name := total.Key.Service
		if total.Key.State != ledger.Held {
			name = "(" + total.Key.State.String() + ")"
		}
		if total.Time != 0 {
			sums[name] += float64(total.Time) / 1000
		}
		if total.Unplaced != 0 {
			sums[name+" unplaced"] += float64(total.Unplaced) / 1000
		}
	}
	return sums
}

// total is the only row of a service.
func (s *story) total(service string) (found ledger.Total) {
	s.t.Helper()
	rows := 0
	for _, total := range s.ledger.Totals() {
		if total.Key.Service == service && total.Key.State == ledger.Held {
			found = total
			rows++
		}
	}
	assert.Equal(s.t, 1, rows, "rows of %s", service)
	return found
}
