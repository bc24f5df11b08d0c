// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package communicator

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/inspector"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/straggler"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/wire"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// run is a job of eight ranks on two nodes, of which each has its device; every 15 s its agents
// send 40 collectives of 4 ms.
type run struct {
	t        *testing.T
	state    *State
	now      time.Time
	next     uint64
	identity map[string]string
	late     int // the rank that is 3 ms late; -1: none
	silent   bool
	free     bool
	tensor   float64
	throttle float64
	events   []string // state, severity and text of each
	last     map[string]float64
	ended    []string
}

func start(t *testing.T) *run {
	return &run{
		t: t, late: -1, now: time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC), tensor: 0.5, last: map[string]float64{},
		identity: map[string]string{names.K8sClusterName: "east", names.K8sNamespaceName: "ml", names.ServiceName: "llama"},
		state: New(Config{
			Straggler: straggler.Config{
				Window: time.Minute, Least: 20, Share: 0.5, Cost: 0.05, Windows: 3, TTL: 15 * time.Minute,
				MaxCommunicators: 100, MaxRanks: 64, MaxWaiting: 1 << 20,
			},
			StallAfter: 5 * time.Minute, MaxDevices: 100,
		}),
	}
}

func (r *run) resource(attrs pcommon.Map, rank int) {
	for k, v := range r.identity {
		attrs.PutStr(k, v)
	}
	if r.identity[names.SlurmJobID] == "" {
		attrs.PutStr(names.K8sPodName, fmt.Sprint("llama-", rank))
	}
	attrs.PutStr(names.K8sNodeName, fmt.Sprint("node-", rank/4))
}

// devices is the telemetry of the boards.
func (r *run) devices() pmetric.Metrics {
	md := pmetric.NewMetrics()
	for rank := range 8 {
		rm := md.ResourceMetrics().AppendEmpty()
		attrs := rm.Resource().Attributes()
		held := 1.0
		if r.free {
			held = 0
			attrs.PutStr(names.K8sClusterName, "east")
		} else {
			r.resource(attrs, rank)
		}
		attrs.PutStr(names.HwID, fmt.Sprint("GPU-", rank))
		metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
		point := func(m names.Metric, v float64, attributes ...string) {
			dp := m.Init(metrics.AppendEmpty()).AppendEmpty()
			dp.SetDoubleValue(v)
			for i := 0; i < len(attributes); i += 2 {
				dp.Attributes().PutStr(attributes[i], attributes[i+1])
			}
		}
		point(names.GPUAllocation, held)
		point(names.GPUUtilization, 1, names.HwGPUTask, "general")
		point(names.GPUUtilization, 0, names.HwGPUTask, "decoder")
		point(names.GPUPipeActive, r.tensor, names.GPUPipe, "tensor")
		point(names.GPUPipeActive, 0.3, names.GPUPipe, "fp16")
		point(names.GPUNVLinkThroughput, r.tensor*1e9, names.NetworkDirection, "transmit")
		point(names.GPUThrottleActive, r.throttle, names.GPUThrottleReason, names.ThrottleHWThermal)
		point(names.GPUThrottleActive, 0, names.GPUThrottleReason, names.ThrottleSWThermal)
		point(names.GPUXIDLast, 0)
	}
	return md
}

func (r *run) samples() plog.Logs {
	logs := plog.NewLogs()
	for rank := range 8 {
		rl := logs.ResourceLogs().AppendEmpty()
		r.resource(rl.Resource().Attributes(), rank)
		b := wire.Batch{
			Key: inspector.Key{ID: "0x7f", Ranks: 8, Nodes: 2, Name: "DP"}, Rank: rank, Host: fmt.Sprint("llama-", rank),
			Device: fmt.Sprint("GPU-", rank), Newest: r.now, Operation: inspector.AllReduce,
		}
		for i := range uint64(40) {
			took := 4 * time.Millisecond
			if r.late >= 0 && rank != r.late {
				took += 3*time.Millisecond - time.Duration(rank)*10*time.Microsecond
			}
			b.Sequences, b.Durations = append(b.Sequences, r.next+i), append(b.Durations, took)
		}
		b.Write(rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
	}
	r.next += 40
	return logs
}

// lasts lets the job run for as long.
func (r *run) lasts(d time.Duration) *run {
	for until := r.now.Add(d); r.now.Before(until); r.now = r.now.Add(15 * time.Second) {
		r.state.Metrics(r.devices(), r.now)
		if !r.silent {
			r.state.Logs(r.samples(), r.now)
		}
		md, events := r.state.Evaluate(r.now, func(pcommon.InstrumentationScope) {})
		r.read(md)
		for i := range events {
			logs := plog.NewLogs()
			require.NoError(r.t, events[i].Write(logs, 0, "nccl", ""))
			record := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
			r.events = append(r.events, fmt.Sprint(events[i].State, " ", record.SeverityText(), " ", record.Body().Str(), " ", logs.ResourceLogs().At(0).Resource().Attributes().AsRaw()))
		}
	}
	return r
}

func (r *run) read(md pmetric.Metrics) {
	r.last, r.ended = map[string]float64{}, nil
	for _, rm := range md.ResourceMetrics().All() {
		for k, v := range r.identity {
			got, _ := rm.Resource().Attributes().Get(k)
			require.Equal(r.t, v, got.Str(), k)
		}
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			var dps pmetric.NumberDataPointSlice
			if m.Type() == pmetric.MetricTypeGauge {
				dps = m.Gauge().DataPoints()
			} else {
				dps = m.Sum().DataPoints()
			}
			for _, dp := range dps.All() {
				key := m.Name()
				for _, k := range slices.Sorted(maps.Keys(dp.Attributes().AsRaw())) {
					v, _ := dp.Attributes().Get(k)
					key += " " + v.AsString()
				}
				if dp.Flags().NoRecordedValue() {
					assert.Equal(r.t, 1, dps.Len(), "an end is a Metric of its own")
					r.ended = append(r.ended, key)
				} else if _, twice := r.last[key]; assert.False(r.t, twice, key) {
					r.last[key] = dp.DoubleValue() + float64(dp.IntValue())
				}
			}
		}
	}
}

func TestStraggler(t *testing.T) {
	r := start(t).lasts(4 * time.Minute)
	assert.Empty(t, r.events)
	assert.Equal(t, map[string]float64{
		"nccl.communicator.ranks DP reporting": 8, "nccl.communicator.ranks DP silent": 0, "nccl.communicator.stalled DP": 0,
		"nccl.communicator.wait.ratio DP": 0,
	}, r.last)
	r.late, r.throttle = 6, 1
	r.lasts(5 * time.Minute)
	assert.InDelta(t, 1, r.last["nccl.rank.late.ratio DP node-1 6"], 1e-9)
	assert.InDelta(t, 0.00297, r.last["nccl.rank.lateness DP node-1 6"], 1e-4)
	assert.InDelta(t, 0.394, r.last["nccl.communicator.wait.ratio DP"], 0.001)
	require.Len(t, r.events, 1)
	assert.Contains(t, r.events[0], "raised WARN Communicator DP of service ml/llama waits for rank 6 on node-1: it came last to 100 % of")
	assert.Contains(t, r.events[0], "Its GPU GPU-6 is throttled (hw_thermal).")
	assert.Contains(t, r.events[0], "map[hw.id:GPU-6 k8s.cluster.name:east k8s.namespace.name:ml k8s.node.name:node-1 k8s.pod.name:llama-6 service.name:llama]")
	r.late = -1
	r.lasts(2 * time.Minute)
	require.Len(t, r.events, 2)
	assert.Contains(t, r.events[1], "cleared INFO Communicator DP of service ml/llama no longer waits for rank 6 on node-1.")
	assert.Contains(t, start(t).with(func(r *run) { r.late = 2 }).lasts(5 * time.Minute).events[0], "Its GPU GPU-2 is not throttled and had no XID.")
}

func (r *run) with(f func(*run)) *run { f(r); return r }

// Silence while the devices are held is a stall, and confirmed while they spin; silence without
// devices is the end.
func TestStall(t *testing.T) {
	r := start(t).lasts(5 * time.Minute)
	r.silent = true
	r.lasts(5 * time.Minute)
	assert.Empty(t, r.events)
	assert.InDelta(t, 8, r.last["nccl.communicator.ranks DP silent"], 0)
	r.lasts(time.Minute)
	require.Len(t, r.events, 1)
	assert.Contains(t, r.events[0], "raised WARN No rank of service ml/llama has ended a collective operation for 5 minutes, and it still holds 8 GPUs.")
	assert.InDelta(t, 1, r.last["nccl.communicator.stalled DP"], 0)
	r.tensor = 0
	r.lasts(time.Minute)
	require.Len(t, r.events, 2)
	assert.Contains(t, r.events[1], "raised ERROR No rank of service ml/llama has ended a collective operation for 6 minutes. It holds 8 GPUs: all are busy")
	r.silent = false
	r.lasts(time.Minute)
	require.Len(t, r.events, 3)
	assert.Contains(t, r.events[2], "cleared INFO Collective operations of service ml/llama end again.")

	over := start(t).lasts(5 * time.Minute)
	over.silent, over.free = true, true
	over.lasts(14 * time.Minute)
	assert.Empty(t, over.events)
	assert.NotContains(t, over.last, "nccl.communicator.stalled DP", "whether it stalls is not known")
	over.lasts(time.Minute)
	over.lasts(15 * time.Second)
	assert.ElementsMatch(t, []string{"nccl.communicator.ranks DP reporting", "nccl.communicator.ranks DP silent"}, over.ended)
	comms, _ := over.state.Tracked()
	assert.Zero(t, comms)
	over.lasts(15 * time.Second)
	assert.Empty(t, over.ended, "once")
	assert.Empty(t, over.state.known)
}

// A time for which this process did not run is no silence of a job, and no end of a stall.
func TestAPauseIsNoStall(t *testing.T) {
	for name, silent := range map[string]bool{"a job that runs": false, "a job that stalls": true} {
		t.Run(name, func(t *testing.T) {
			r := start(t).lasts(5 * time.Minute)
			if r.silent = silent; silent {
				r.lasts(6 * time.Minute)
				require.Len(t, r.events, 1)
				r.events = nil
			}
			const away = 8 * time.Minute
			r.now = r.now.Add(away)
			r.state.Resume(r.now, away)
			r.silent = true // its agents are not connected yet
			r.lasts(2 * time.Minute)
			assert.Empty(t, r.events)
			r.silent = silent
			r.lasts(time.Minute)
			assert.Empty(t, r.events)
		})
	}
}

func TestJobOfSlurm(t *testing.T) {
	r := start(t)
	r.identity = map[string]string{names.SlurmClusterName: "hpc", names.SlurmJobID: "4711", names.ServiceNamespace: "physics", names.ServiceName: "ada/train"}
	r.late = 1
	r.lasts(5 * time.Minute)
	require.Len(t, r.events, 1)
	assert.Contains(t, r.events[0], "of job 4711 waits for rank 1 on node-0")
	assert.Contains(t, r.events[0], "service.namespace:physics slurm.cluster.name:hpc slurm.job.id:4711")
}

// A job whose service becomes known later: what was of the pods ends.
func TestServiceIsKnownLater(t *testing.T) {
	r := start(t)
	r.identity = map[string]string{names.K8sNamespaceName: "ml"}
	r.lasts(2 * time.Minute)
	assert.NotEmpty(t, r.last)
	r.identity = map[string]string{names.K8sNamespaceName: "ml", names.ServiceName: "llama"}
	r.state.Logs(r.samples(), r.now)
	md, _ := r.state.Evaluate(r.now, func(pcommon.InstrumentationScope) {})
	ends := 0
	for _, rm := range md.ResourceMetrics().All() {
		if _, pod := rm.Resource().Attributes().Get(names.K8sPodName); pod {
			ends++
		}
	}
	assert.Positive(t, ends)
	assert.Len(t, r.state.jobs, 1)
}

func TestRefused(t *testing.T) {
	r := start(t)
	logs := r.samples()
	record := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	record.Attributes().PutInt("nccl.rank", 8)
	logs.ResourceLogs().At(1).ScopeLogs().At(0).LogRecords().At(0).Attributes().Clear()
	r.state.Logs(logs, r.now)
	assert.Equal(t, 1, r.state.Counts().Malformed)
	r.state.fleet.most = 3
	r.state.Metrics(r.devices(), r.now)
	_, devices := r.state.Tracked()
	assert.Equal(t, 3, devices)
	assert.Equal(t, 5*9, r.state.Counts().LimitDevices)
}
