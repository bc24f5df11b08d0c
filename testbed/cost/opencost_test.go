// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/costreport"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/disk"
)

// bill is an hour of a pod, or of what no pod has.
type bill struct{ hours, cost string }

func billOf(hours, cost float64) bill {
	return bill{fmt.Sprintf("%.4f", hours), fmt.Sprintf("%.4f", cost)}
}

const noMoney = "absent"

// The same hour in OpenCost's metrics and in the rows of gpu_cost. docs/cost.md has a row
// for each difference.
func TestBesideOpenCost(t *testing.T) {
	theirs, ours := readOpenCost(t), readOurs(t)
	for name, want := range map[string]struct {
		theirs, ours bill
		why          string // what the documentation calls it; empty: there is no difference
	}{
		"whole-0":    {billOf(2, 5.9), billOf(2, 5.9), ""},
		"sliced-0":   {billOf(0.25, 0.7375), billOf(0.25, 0.7375), ""},
		"mig-0":      {bill{}, billOf(3./7, 2.95*3/7), "MIG instances"},
		"hami-0":     {billOf(1, 2.95), billOf(0.25, 0.7375), "four pods with a quarter of a board each"},
		"hami-3":     {billOf(1, 2.95), billOf(0.25, 0.7375), "four pods with a quarter of a board each"},
		"unpriced-0": {billOf(1, 0.95), bill{"1.0000", noMoney}, "a board without a price"},
		// Two whole boards, three quarters of one; less the three that hami's pods are charged too much.
		"idle": {billOf(2+0.75-3, 2.95*(2.75-3)), billOf(2.75, 2.75*2.95), "what nothing uses"},
		// OpenCost has no such state: four sevenths of the board with MIG.
		usage.Stranded: {bill{}, billOf(4./7, 2.95*4/7), "stranded"},
	} {
		assert.Equal(t, want.theirs, theirs[name], "OpenCost, %s", name)
		assert.Equal(t, want.ours, ours[name], "gpu_cost, %s", name)
		if want.why == "" {
			assert.Equal(t, theirs[name], ours[name])
			continue
		}
		assert.NotEqual(t, theirs[name], ours[name])
		text, err := os.ReadFile("../../docs/cost.md")
		require.NoError(t, err)
		_, section, found := strings.Cut(string(text), "\n### Beside OpenCost\n")
		require.True(t, found)
		section, _, _ = strings.Cut(section, "\n## ")
		assert.Contains(t, section, "| "+want.why+" |", "a difference is documented")
	}
}

// readOpenCost computes GPUHours and GPUCost of pods as OpenCost does, and what is idle: the
// nodes less the pods.
func readOpenCost(t *testing.T) map[string]bill {
	file, err := os.Open("testdata/opencost.prom")
	require.NoError(t, err)
	defer file.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(file)
	require.NoError(t, err)
	label := func(m *dto.Metric, name string) string {
		i := slices.IndexFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == name })
		return m.GetLabel()[i].GetValue()
	}
	price, bills, idleHours, idleCost := map[string]float64{}, map[string]bill{}, 0.0, 0.0
	for _, m := range families["node_gpu_hourly_cost"].GetMetric() {
		price[label(m, "node")] = m.GetGauge().GetValue()
	}
	for _, m := range families["node_gpu_count"].GetMetric() {
		if node := label(m, "node"); node != "unpriced" {
			idleHours += m.GetGauge().GetValue()
			idleCost += m.GetGauge().GetValue() * price[node]
		}
	}
	for _, m := range families["container_gpu_allocation"].GetMetric() {
		hours, node := m.GetGauge().GetValue(), label(m, "node")
		bills[label(m, "pod")] = billOf(hours, hours*price[node])
		if node != "unpriced" {
			idleHours -= hours
			idleCost -= hours * price[node]
		}
	}
	bills["idle"] = billOf(idleHours, idleCost)
	return bills
}

// granted is a device that the kubelet reports.
type granted struct {
	node, id, pod string
	share         float64 // of a board, by a scheduler's annotation
	profile       string
}

// cluster is what the pods of the fixture were granted.
func cluster() []granted {
	all := []granted{
		{node: "whole", id: "GPU-w0", pod: "whole-0"}, {node: "whole", id: "GPU-w1", pod: "whole-0"}, {node: "whole", id: "GPU-w2"}, {node: "whole", id: "GPU-w3"},
		{node: "mig", id: "GPU-m/1", pod: "mig-0", profile: "3g.40gb"}, {node: "unpriced", id: "GPU-u", pod: "unpriced-0"},
		{node: "sliced", id: "GPU-s::0", pod: "sliced-0"},
	}
	for i := 1; i < 4; i++ {
		all = append(all, granted{node: "sliced", id: fmt.Sprintf("GPU-s::%d", i)})
	}
	for i := range 4 {
		all = append(all, granted{node: "hami", id: fmt.Sprintf("GPU-h::%d", i), pod: fmt.Sprintf("hami-%d", i), share: 0.25})
	}
	return all
}

// readOurs lets an hour pass.
func readOurs(t *testing.T) map[string]bill {
	into := newLedger()
	synctest.Test(t, func(t *testing.T) {
		g := start(t, into, map[string]any{
			"per": "pod", "storage": disk.ID.String(), "prices": []any{map[string]any{"match": map[string]any{"hw.model": "NVIDIA H100*"}, "gpu_hour": "2.95"}},
		})
		for end := time.Now().Add(time.Hour + 2*poll); time.Now().Before(end); time.Sleep(poll) {
			g.take(t, snapshotOf(cluster(), time.Now()))
			synctest.Wait()
		}
		g.stop(t, false)
	})
	require.Empty(t, into.wrong)
	// The hour itself: what begins the next one is of another row.
	first := slices.MinFunc(slices.Collect(maps.Values(into.rows)), func(x, y usage.Row) int { return x.Hour.Compare(y.Hour) }).Hour
	r := costreport.Build(slices.Collect(maps.Values(into.rows)), costreport.Options{By: costreport.ByRow, From: first, To: first.Add(time.Hour)})
	bills := map[string]bill{}
	for i := range r.Lines {
		l := &r.Lines[i]
		name := l.Group.Pod
		switch {
		case l.Time == 0:
			continue
		case l.State == usage.Free:
			name = "idle"
		case l.State != usage.Held:
			name = l.State
		}
		b := billOf(float64(l.Time)/3.6e6, l.Cost.Float())
		if !r.Money(&l.Amounts) {
			b.cost = noMoney
		}
		if before, found := bills[name]; found { // of another model
			hours, cost := 0.0, 0.0
			_, err := fmt.Sscan(before.hours, &hours)
			require.NoError(t, err)
			_, err = fmt.Sscan(before.cost, &cost)
			require.NoError(t, err)
			b = billOf(hours+float64(l.Time)/3.6e6, cost+l.Cost.Float())
		}
		bills[name] = b
	}
	return bills
}

// snapshotOf is gpu.allocation of all nodes, and their boards.
func snapshotOf(all []granted, at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for _, d := range all {
		add := func(m names.Metric, value float64) (resource, point pcommon.Map) {
			rm := md.ResourceMetrics().AppendEmpty()
			resource = rm.Resource().Attributes()
			resource.PutStr(names.K8sNodeName, d.node)
			p := m.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
			p.SetTimestamp(pcommon.NewTimestampFromTime(at))
			p.SetDoubleValue(value)
			return resource, p.Attributes()
		}
		board, _, _ := strings.Cut(strings.ReplaceAll(d.id, "::", "/"), "/")
		resource, _ := add(names.HwPower, 300)
		resource.PutStr(names.HwID, board)
		resource.PutStr(names.HwType, names.HwTypeGPU)
		resource.PutStr(names.HwModel, map[bool]string{true: "own", false: "NVIDIA H100 80GB HBM3"}[d.node == "unpriced"])
		value := 0.0
		if d.pod != "" {
			if value = 1; d.share > 0 {
				value = d.share
			}
		}
		resource, point := add(names.GPUAllocation, value)
		if d.pod != "" {
			resource.PutStr(names.K8sNamespaceName, "ml")
			resource.PutStr(names.K8sPodName, d.pod)
			resource.PutStr(names.K8sContainerName, "main")
			resource.PutStr(names.ServiceName, d.pod)
		}
		point.PutStr(names.HwID, d.id)
		point.PutStr(names.K8sNodeName, d.node)
		point.PutBool(names.GPUAllocationResolved, true)
		if d.profile != "" {
			point.PutStr(names.HwParent, board)
			point.PutStr(names.GPUMIGProfile, d.profile)
		}
		if d.share > 0 {
			point.PutStr(names.GPUAttributionSource, names.SourceAnnotation)
			point.PutDouble(names.GPUAllocationShare, d.share)
		}
	}
	return md
}
