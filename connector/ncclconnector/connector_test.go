// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ncclconnector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	zapobserver "go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/inspector"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/metadatatest"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/wire"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// sink takes metrics and logs, or refuses them.
type sink struct {
	mu      sync.Mutex
	refuses error
	metrics []pmetric.Metrics
	logs    []plog.Logs
}

func (s *sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (s *sink) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metrics = append(s.metrics, md)
	return s.refuses
}

func (s *sink) ConsumeLogs(_ context.Context, logs plog.Logs) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses == nil {
		s.logs = append(s.logs, logs)
	}
	return s.refuses
}

func (s *sink) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses = err
}

// has reports whether a metric has arrived, and the attributes of the newest resource with it.
func (s *sink) has(metric string) (found bool, of map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, md := range s.metrics {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				if m.Name() == metric {
					found, of = true, rm.Resource().Attributes().AsRaw()
				}
			}
		}
	}
	return found, of
}

// part is one scope with all its kinds of input and output.
type part struct {
	tel              *componenttest.Telemetry
	log              *zapobserver.ObservedLogs
	lines            connector.Logs // logs to metrics
	metrics          connector.Metrics
	inputs           []component.Component
	toMetrics, toLog *sink
}

func newPart(t *testing.T, scope string, toLogs consumer.Logs) *part {
	p := &part{tel: componenttest.NewTelemetry(), toMetrics: &sink{}, toLog: &sink{}}
	core, log := zapobserver.New(zap.WarnLevel)
	p.log = log
	cfg := createDefaultConfig().(*Config)
	cfg.Scope, cfg.NodeName, cfg.ClusterName, cfg.Straggler.Windows = scope, "node-7", "east", 1
	set := connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = p.tel.NewTelemetrySettings()
	set.Logger = zap.New(core)
	if toLogs == nil {
		toLogs = p.toLog
	}
	f := NewFactory()
	var err error
	p.lines, err = f.CreateLogsToMetrics(t.Context(), set, cfg, p.toMetrics)
	require.NoError(t, err)
	samples, err := f.CreateLogsToLogs(t.Context(), set, cfg, toLogs)
	require.NoError(t, err)
	p.metrics, err = f.CreateMetricsToMetrics(t.Context(), set, cfg, p.toMetrics)
	require.NoError(t, err)
	last, err := f.CreateMetricsToLogs(t.Context(), set, cfg, toLogs)
	require.NoError(t, err)
	p.inputs = []component.Component{last, p.metrics, p.lines, samples}
	for _, c := range p.inputs {
		require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	}
	assert.False(t, samples.Capabilities().MutatesData)
	// The Collector gives each of them everything.
	p.lines = both{p.lines, samples}
	return p
}

func (p *part) shutdown(t *testing.T) {
	for _, c := range p.inputs {
		require.NoError(t, c.Shutdown(t.Context()))
	}
	require.NoError(t, p.tel.Shutdown(context.WithoutCancel(t.Context())))
}

type both struct {
	connector.Logs
	second connector.Logs
}

func (b both) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	return errors.Join(b.Logs.ConsumeLogs(ctx, logs), b.second.ConsumeLogs(ctx, logs))
}

// line is an operation of a rank of four, of which the last one comes 6 ms late.
func line(rank, sequence int) string {
	took := 10_000
	if rank == 3 {
		took = 4_000
	}
	return fmt.Sprintf(`{"header":{"id":"0x7f","rank":%d,"n_ranks":4,"nnodes":1,"comm_name":"DP"},"metadata":{"inspector_output_format_version":"v4.0","dump_timestamp_us":%d,"hostname":"h","pid":%d},"coll_perf":{"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":1048576,"coll_exec_time_us":%d,"coll_timing_source":"kernel_gpu"}}`,
		rank, time.Now().UnixMicro(), rank, sequence, took)
}

func logs(path string, lines ...string) plog.Logs {
	all := plog.NewLogs()
	records := all.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, text := range lines {
		r := records.AppendEmpty()
		r.Body().SetStr(text)
		if path != "" {
			r.Attributes().PutStr(pathAttribute, path)
		}
	}
	return all
}

// allocation is what the job has: one board.
func allocation() pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	for k, v := range map[string]string{names.SlurmJobID: "7", names.SlurmJobUser: "ada", names.K8sNodeName: "node-7"} {
		rm.Resource().Attributes().PutStr(k, v)
	}
	p := names.GPUAllocation.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
	p.SetDoubleValue(1)
	p.Attributes().PutStr(names.HwID, "GPU-1")
	return md
}

func states(key string, counts map[string]int64) (all []metricdata.DataPoint[int64]) {
	for state, n := range counts {
		all = append(all, metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String(key, state))})
	}
	return all
}

// Lines of four ranks go through both scopes: metrics of the ranks, of their communicator, and an
// event that names the late one, which is kept until it is taken. Every line counts once, however
// many pipelines there are.
func TestBothScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gateway := newPart(t, ScopeCommunicator, nil)
		node := newPart(t, ScopeRank, gateway.lines)
		gateway.toLog.refuse(errors.New("later"))
		for second := range 100 {
			require.NoError(t, node.metrics.ConsumeMetrics(t.Context(), allocation()))
			for rank := range 4 {
				require.NoError(t, node.lines.ConsumeLogs(t.Context(), logs(fmt.Sprintf("/n/7/pid%d.log", rank), line(rank, second))))
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		gateway.toLog.refuse(nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()

		for _, metric := range []string{names.NCCLOperationDuration.Name, names.NCCLDataAge.Name} {
			found, of := node.toMetrics.has(metric)
			require.True(t, found, metric)
			assert.Equal(t, map[string]any{names.SlurmJobID: "7", names.SlurmJobUser: "ada", names.K8sNodeName: "node-7", names.K8sClusterName: "east"}, of)
		}
		for _, metric := range []string{names.NCCLWaitRatio.Name, names.NCCLRankLate.Name, names.NCCLRanks.Name} {
			found, _ := gateway.toMetrics.has(metric)
			assert.True(t, found, metric)
		}
		var events []string
		gateway.toLog.mu.Lock()
		taken := slices.Clone(gateway.toLog.logs)
		gateway.toLog.mu.Unlock()
		for _, l := range taken {
			for _, rl := range l.ResourceLogs().All() {
				for _, r := range rl.ScopeLogs().At(0).LogRecords().All() {
					rank, _ := r.Attributes().Get(names.NCCLRank)
					events = append(events, fmt.Sprint(r.EventName(), " ", points.Str(r.Attributes(), names.GPUEventState), " ", rank.AsString()))
				}
			}
		}
		assert.Equal(t, []string{"nccl.straggler raised 3"}, events)

		at := metricdatatest.IgnoreTimestamp()
		metadatatest.AssertEqualNcclRecords(t, node.tel, states("state", map[string]int64{"used": 400}), at)
		metadatatest.AssertEqualNcclCommunicatorsTracked(t, gateway.tel, []metricdata.DataPoint[int64]{{Value: 1}}, at)
		assert.NotZero(t, gateway.log.FilterMessage("the next component refused an evaluation").Len())
		node.shutdown(t)
		gateway.shutdown(t)
	})
}

// Lines that cannot be used are counted by cause and logged once with the remedy; so are refused
// samples, each time.
func TestWhatIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, gateway := newPart(t, ScopeRank, nil), newPart(t, ScopeCommunicator, nil)
		const path = "/n/7/x.log"
		odd := logs(path, "", "{}", line(9, 1), line(0, 1))
		odd.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().AppendEmpty().Attributes().PutStr(pathAttribute, path)
		for range 3 {
			require.NoError(t, node.lines.ConsumeLogs(t.Context(), odd))
			require.NoError(t, node.lines.ConsumeLogs(t.Context(), logs("", line(0, 1))))
		}
		at := metricdatatest.IgnoreTimestamp()
		metadatatest.AssertEqualNcclRecords(t, node.tel, states("state", map[string]int64{"used": 3, "torn": 3, "unknown": 6, "rank": 3, "no_path": 3}), at)
		var messages []string
		for _, e := range node.log.All() {
			messages = append(messages, e.Message)
		}
		slices.Sort(messages)
		assert.Equal(t, []string{
			"lines of Inspector are left out: NCCL states a rank that cannot be",
			"lines of Inspector are left out: set include_file_path of file_log to true",
			"lines of Inspector are left out: they are not those of Inspector: let file_log read its folder alone",
		}, messages)

		big := wireOf(5000)
		for range 3 {
			require.NoError(t, gateway.lines.ConsumeLogs(t.Context(), big))
			require.NoError(t, gateway.lines.ConsumeLogs(t.Context(), logs("", "of an application")))
		}
		metadatatest.AssertEqualNcclSamplesRefused(t, gateway.tel, states("reason", map[string]int64{"max_ranks": 3}), at)
		assert.Equal(t, 1, gateway.log.FilterMessage("samples of ranks are left out: raise max_ranks").Len())
		node.shutdown(t)
		gateway.shutdown(t)
	})
}

// wireOf is what a node sends of a rank of so many.
func wireOf(ranks int) plog.Logs {
	all := plog.NewLogs()
	b := wire.Batch{Key: inspector.Key{ID: "0x1", Ranks: ranks, Nodes: 1}, Newest: time.Now(), Operation: inspector.AllReduce, Sequences: []uint64{1}, Durations: []time.Duration{time.Second}}
	b.Write(all.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
	return all
}
