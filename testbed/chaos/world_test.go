// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

func newNode(t *testing.T, config gpusim.Node) *node {
	t.Helper()
	fleet, err := gpusim.New(gpusim.Config{Nodes: []gpusim.Node{config}}, time.Now)
	require.NoError(t, err)
	ports, err := delivery.FreePorts(1)
	require.NoError(t, err)
	api, err := kubeapi.Serve(kubeapi.New(""), address(ports[0]))
	require.NoError(t, err)
	t.Cleanup(api.Close)
	w := &world{}
	n := &node{
		name: config.Name, fleet: fleet, kubelet: kubelet.New(kubelet.Options{}), api: api, ledger: ownership.NewLedger(),
		looking: &w.looking, history: &w.history, replicas: 1,
	}
	require.NoError(t, n.change(n.announce))
	return n
}

// held is who has each device by the ledger, and by the simulated GPUs.
func held(n *node) (ledger, simulated map[string]string) {
	ledger, simulated = map[string]string{}, map[string]string{}
	for id, s := range n.ledger.Now() {
		if len(s.Owners) == 1 {
			ledger[id] = s.Owners[0].Pod
		}
	}
	for _, node := range n.fleet.TruthAt(time.Now()).Nodes {
		for _, d := range node.Devices {
			if d.Pod != "" && len(d.Sharers) == 0 {
				simulated[d.ID] = d.Pod
			}
			for _, s := range d.Sharers {
				simulated[kubelet.ReplicaID(d.ID, s.Replica)] = s.Pod
			}
		}
	}
	return ledger, simulated
}

// Kubelet, GPUs, API server, ledger and history agree, whatever is changed.
func TestNode(t *testing.T) {
	n := newNode(t, gpusim.Node{Name: "a", Version: "4.6", Model: "A100-SXM4-80GB", Devices: 2, MIG: map[string][]string{"1": layouts[0]}})
	pod1 := &pod{name: "one", uid: newUID(), service: "s", resource: gpuResource, count: 1, load: gpusim.Training}
	pod2 := &pod{name: "two", uid: newUID(), service: "s", resource: "nvidia.com/mig-3g.40gb", count: 1, load: gpusim.Training}
	agree := func(pods ...string) {
		t.Helper()
		ledger, simulated := held(n)
		assert.Equal(t, ledger, simulated)
		var got []string
		for _, pod := range ledger {
			got = append(got, pod)
		}
		assert.ElementsMatch(t, pods, got)
		assert.Equal(t, len(pods), n.history.services()["s"])
		for _, pod := range pods {
			assert.True(t, n.api.Has("pods", namespace, pod), pod)
		}
	}
	require.NoError(t, n.place(pod1))
	require.NoError(t, n.place(pod2))
	agree("one", "two")
	assert.Zero(t, n.free(gpuResource))
	assert.Equal(t, 2, n.free("nvidia.com/mig-1g.10gb"))
	require.NoError(t, n.replace("one", &pod{name: "three", uid: newUID(), service: "s", resource: gpuResource, count: 1, load: gpusim.Idle}))
	agree("three", "two")
	for _, layout := range layouts {
		require.NoError(t, n.reshape(0, func() error { return n.fleet.SetMIG("a", 1, layout) }))
		agree("three", "two")
	}
}

func TestNodeWithShares(t *testing.T) {
	n := newNode(t, gpusim.Node{Name: "a", Version: "4.6", Model: "H100", Devices: 2})
	require.NoError(t, n.reshape(0, func() error { n.replicas = 2; return nil }))
	for i := range 3 {
		require.NoError(t, n.place(&pod{name: "p" + strconv.Itoa(i), uid: newUID(), service: "s", resource: gpuResource, count: 1, load: gpusim.Training}))
	}
	ledger, simulated := held(n)
	assert.Equal(t, ledger, simulated)
	assert.Len(t, ledger, 3)
	assert.Equal(t, 1, n.free(gpuResource))
	assert.ErrorContains(t, n.place(&pod{name: "big", uid: newUID(), service: "s", resource: gpuResource, count: 2, load: gpusim.Idle}), "are free")
}

func TestRecorder(t *testing.T) {
	r := &recorder{latest: map[string]evaluation{}, devices: map[string]seen{}, events: map[string]*event{}}
	now := time.Now()
	md := pmetric.NewMetrics()
	add := func(namespace string, metric names.Metric, value float64, set func(pmetric.NumberDataPoint)) {
		rm := md.ResourceMetrics().AppendEmpty()
		a := rm.Resource().Attributes()
		a.PutStr(names.K8sNodeName, "a")
		a.PutStr(names.K8sNamespaceName, namespace)
		a.PutStr(names.K8sPodName, "p")
		a.PutStr(names.ServiceName, "s")
		out := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		out.SetName(metric.Name)
		dp := out.SetEmptyGauge().DataPoints().AppendEmpty()
		dp.SetTimestamp(pcommon.NewTimestampFromTime(now))
		dp.SetDoubleValue(value)
		set(dp)
	}
	on := func(p pmetric.NumberDataPoint) { p.Attributes().PutStr(names.HwID, "GPU-1") }
	add(namespace, names.GPUUtilization, .5, on)
	add("hostile", names.GPUUtilization, .5, on)
	add(namespace, names.GPUUtilization, .5, func(p pmetric.NumberDataPoint) { on(p); p.Attributes().PutStr(names.HwGPUTask, "encoder") })
	add(namespace, names.ServicePartial, 1, func(pmetric.NumberDataPoint) {})
	add(namespace, names.ServicePods, 3, func(p pmetric.NumberDataPoint) { p.Attributes().PutStr(names.GPUPodState, "missing") })
	add(namespace, names.ServiceUtilization, .7, func(p pmetric.NumberDataPoint) { p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)) })
	add(namespace, names.ServicePipeActive, .2, func(p pmetric.NumberDataPoint) { p.Attributes().PutStr(names.GPUPipe, "fp16") })
	require.NoError(t, r.takeMetrics(t.Context(), md))

	points, evaluations := r.ripe(now)
	assert.Empty(t, points, "they came later")
	assert.Empty(t, evaluations)
	points, evaluations = r.ripe(now.Add(time.Hour))
	require.Len(t, points, 1)
	assert.Equal(t, ownership.Owner{Namespace: namespace, Pod: "p"}, points[0].Owner)
	require.Len(t, evaluations, 1)
	assert.Equal(t, 1., *evaluations[0].partial)
	assert.Equal(t, map[string]float64{names.ServicePipeActive.Name + " fp16": .2}, evaluations[0].values, "the others have ended")
	assert.Equal(t, 3., evaluations[0].pods["missing"])
	latest, devices := r.newest()
	assert.Equal(t, "p", devices["a GPU-1"].owner.Pod)
	assert.Contains(t, latest, "s")

	ld := plog.NewLogs()
	record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName(names.EventServicePartial)
	record.Attributes().PutStr(names.GPUEventID, "1")
	record.Attributes().PutStr(names.GPUEventKey, "gpu.service.partial/c/n/s")
	record.Attributes().PutStr(names.GPUEventState, names.EventRaised)
	for range 2 {
		require.NoError(t, r.takeLogs(t.Context(), ld))
	}
	require.Len(t, r.Events(), 1, "by its id")
	assert.Equal(t, 2, r.Events()[0].posts)
}

// What was partial for a while and was not reported is a violation.
func TestJudgePartialEvents(t *testing.T) {
	for name, tc := range map[string]struct {
		times, earlier  int
		raised, restart bool
		violations      int
	}{
		"raised": {times: 5, raised: true}, "not raised": {times: 5, violations: 1}, "a moment": {times: 2},
		"of the round before": {earlier: 5}, "the gateway was killed": {times: 5, restart: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, out, now := judgeWorld()
			w.recorder = &recorder{events: map[string]*event{}}
			for i := range tc.times {
				w.verdict.partials["chat"] = append(w.verdict.partials["chat"], now.Add(time.Duration(i+1)*time.Millisecond))
			}
			for range tc.earlier {
				w.verdict.partials["chat"] = append(w.verdict.partials["chat"], now.Add(-time.Second))
			}
			if tc.raised {
				w.recorder.order = []*event{{name: names.EventServicePartial, state: names.EventRaised, key: "gpu.service.partial/c/n/chat", arrived: now.Add(time.Second)}}
			}
			if tc.restart {
				w.history.disturb(gatewayPlace)
			}
			w.judgePartialEvents(now)
			assert.Equal(t, tc.violations, w.verdict.Violations(), out.String())
			assert.Empty(t, w.verdict.partials, "each is judged once")
		})
	}
}
