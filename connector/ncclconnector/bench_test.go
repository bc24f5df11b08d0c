// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ncclconnector

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/inspector"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/wire"
)

func benchmarked(b *testing.B, scope string) worker {
	cfg := createDefaultConfig().(*Config)
	cfg.Scope = scope
	set := connectortest.NewNopSettings(metadata.Type)
	tel, err := newTelemetry(set.TelemetrySettings, func() int { return 0 })
	require.NoError(b, err)
	w, err := newWorker(cfg, set, tel)
	require.NoError(b, err)
	return w
}

// heap is what is live, in MiB.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// BenchmarkRanks is a second of a node: 8 ranks with 500 lines each, and a tenth of an evaluation.
// ns/op divided by 1e9 is the part of a core.
func BenchmarkRanks(b *testing.B) {
	w, before := benchmarked(b, ScopeRank), heap()
	now := time.Now()
	n := 0
	for b.Loop() {
		b.StopTimer()
		ld := plog.NewLogs()
		records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
		for i := range 500 {
			for rank := range 8 {
				r := records.AppendEmpty()
				r.Attributes().PutStr("log.file.path", fmt.Sprintf("/var/lib/nccl-inspector/ml_worker-0/node-pid%d.log", rank))
				r.Body().SetStr(fmt.Sprintf(`{"header":{"id":"0x7f8c496ae9f661","rank":%d,"n_ranks":4096,"nnodes":512},"metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%d,"hostname":"node","pid":%d},"coll_perf":{"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":17179869184,"coll_exec_time_us":61974,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":277.210914,"coll_busbw_gbs":485.119099}}`,
					rank, now.UnixMicro(), rank, n*500+i))
			}
		}
		b.StartTimer()
		w.logs(b.Context(), ld, now)
		if n++; n%10 == 0 {
			w.evaluate(b.Context(), now)
		}
		now = now.Add(time.Second)
	}
	b.ReportMetric(heap()-before, "MiB")
	runtime.KeepAlive(w)
}

// BenchmarkGateway is an interval of ten seconds of 4,096 ranks of one communicator, of which each
// sends 20 samples of an operation. ns/op divided by 1e10 is the part of a core.
func BenchmarkGateway(b *testing.B) {
	const ranks = 4096
	w, before := benchmarked(b, ScopeCommunicator), heap()
	now := time.Now()
	n := uint64(0)
	for b.Loop() {
		b.StopTimer()
		var nodes []plog.Logs
		for rank := range ranks {
			if rank%8 == 0 {
				ld := plog.NewLogs()
				attrs := ld.ResourceLogs().AppendEmpty().Resource().Attributes()
				attrs.PutStr("k8s.namespace.name", "ml")
				attrs.PutStr("service.name", "llama")
				attrs.PutStr("k8s.node.name", fmt.Sprint("node-", rank/8))
				ld.ResourceLogs().At(0).ScopeLogs().AppendEmpty()
				nodes = append(nodes, ld)
			}
			batch := wire.Batch{Key: inspector.Key{ID: "0x7f8c496ae9f661", Ranks: ranks, Nodes: ranks / 8}, Rank: rank, Newest: now, Operation: inspector.AllReduce}
			for i := range uint64(20) {
				batch.Sequences, batch.Durations = append(batch.Sequences, n*20+i), append(batch.Durations, time.Duration(4_000_000+rank*100))
			}
			batch.Write(nodes[rank/8].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().AppendEmpty())
		}
		b.StartTimer()
		for _, ld := range nodes {
			w.logs(b.Context(), ld, now)
		}
		w.evaluate(b.Context(), now)
		n++
		now = now.Add(10 * time.Second)
	}
	b.ReportMetric(heap()-before, "MiB")
	runtime.KeepAlive(w)
}
