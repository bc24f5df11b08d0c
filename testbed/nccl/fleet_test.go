// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ncclsim"
)

// fleet is a collector on each host of a run, and the one where they meet.
type fleet struct {
	t     *testing.T
	run   *ncclsim.Run
	hosts []*host
	// takes logs and metrics of the hosts
	logs    connector.Logs
	metrics connector.Metrics
	stop    []func()

	mu     sync.Mutex
	events []event
	counts []map[string]uint64 // records, by operation, of each host
}

// host is one with its files, and what is read of each.
type host struct {
	name, folder string
	logs         connector.Logs
	metrics      connector.Metrics
	files        map[string]*tail
}

// event is one that was sent.
type event struct {
	name, state, communicator, host, stall string
	rank                                   int64
	at                                     time.Time
}

// made is one instance of the connector: logs and metrics in, both out.
func made(t *testing.T, scope, node string, logs consumer.Logs, metrics consumer.Metrics) (connector.Logs, connector.Metrics, func()) {
	factory := ncclconnector.NewFactory()
	cfg := factory.CreateDefaultConfig().(*ncclconnector.Config)
	cfg.Scope, cfg.NodeName = scope, node
	set := connectortest.NewNopSettings(factory.Type())
	toLogs, err := factory.CreateLogsToLogs(t.Context(), set, cfg, logs)
	require.NoError(t, err)
	toMetrics, err := factory.CreateLogsToMetrics(t.Context(), set, cfg, metrics)
	require.NoError(t, err)
	from, err := factory.CreateMetricsToLogs(t.Context(), set, cfg, logs)
	require.NoError(t, err)
	for _, c := range []interface {
		Start(context.Context, componentHost) error
	}{toLogs, toMetrics, from} {
		require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	}
	return toLogs, from, func() {
		for _, c := range []interface{ Shutdown(context.Context) error }{from, toMetrics, toLogs} {
			require.NoError(t, c.Shutdown(context.Background()))
		}
	}
}

func newFleet(t *testing.T, run *ncclsim.Run) *fleet {
	f := &fleet{t: t, run: run}
	ignore, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { return nil })
	require.NoError(t, err)
	events, err := consumer.NewLogs(func(_ context.Context, ld plog.Logs) error { f.take(ld); return nil })
	require.NoError(t, err)
	var stop func()
	f.logs, f.metrics, stop = made(t, ncclconnector.ScopeCommunicator, "", events, ignore)
	f.stop = append(f.stop, stop)
	f.counts = make([]map[string]uint64, run.Hosts)
	for n := range run.Hosts {
		samples, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
			for _, rl := range ld.ResourceLogs().All() {
				f.identify(rl.Resource().Attributes(), n)
			}
			return f.logs.ConsumeLogs(ctx, ld)
		})
		require.NoError(t, err)
		metrics, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error { f.count(n, md); return nil })
		require.NoError(t, err)
		h := &host{name: run.Host(n), folder: filepath.Join(run.Dir, run.Host(n), run.Folder(n)), files: map[string]*tail{}}
		h.logs, h.metrics, stop = made(t, ncclconnector.ScopeRank, h.name, samples, metrics)
		f.hosts = append(f.hosts, h)
		f.stop = append(f.stop, stop)
	}
	return f
}

// identify adds what other components of an agent know.
func (f *fleet) identify(attrs pcommon.Map, n int) {
	attrs.PutStr("service.name", "train")
	if f.run.Slurm {
		attrs.PutStr("slurm.cluster.name", "hpc")
		attrs.PutStr("slurm.job.id", "41")
		return
	}
	attrs.PutStr("k8s.namespace.name", "ml")
	attrs.PutStr("k8s.pod.name", fmt.Sprintf("train-%d", n))
}

// devices is the telemetry of a host's devices, of which each process has one. Those of a job that
// hangs spin.
func (f *fleet) devices(n int, now time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	tensor := 0.5
	if !f.run.Hang.IsZero() && now.After(f.run.Hang) {
		tensor = 0
	}
	for i := range f.run.PerHost {
		rm := md.ResourceMetrics().AppendEmpty()
		f.identify(rm.Resource().Attributes(), n)
		rm.Resource().Attributes().PutStr("hw.id", fmt.Sprintf("GPU-%d-%d", n, i))
		metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
		for _, p := range []struct {
			name, key, value string
			v                float64
		}{{"gpu.allocation", "", "", 1}, {"hw.gpu.utilization", "hw.gpu.task", "general", 1}, {"gpu.pipe.active", "gpu.pipe", "tensor", tensor}} {
			m := metrics.AppendEmpty()
			m.SetName(p.name)
			dp := m.SetEmptyGauge().DataPoints().AppendEmpty()
			dp.SetDoubleValue(p.v)
			if p.key != "" {
				dp.Attributes().PutStr(p.key, p.value)
			}
		}
	}
	return md
}

// read has the collectors read what the files have now.
func (f *fleet) read(now time.Time) {
	for n, h := range f.hosts {
		require.NoError(f.t, h.metrics.ConsumeMetrics(f.t.Context(), f.devices(n, now)))
		require.NoError(f.t, f.metrics.ConsumeMetrics(f.t.Context(), f.devices(n, now)))
		paths, err := filepath.Glob(filepath.Join(h.folder, "*.log"))
		require.NoError(f.t, err)
		ld := plog.NewLogs()
		records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
		for _, path := range paths {
			if h.files[path] == nil {
				h.files[path] = &tail{}
			}
			lines, err := h.files[path].lines(path)
			require.NoError(f.t, err)
			for _, line := range lines {
				r := records.AppendEmpty()
				r.Body().SetStr(line)
				r.Attributes().PutStr("log.file.path", path)
			}
		}
		require.NoError(f.t, h.logs.ConsumeLogs(f.t.Context(), ld))
	}
}

// take keeps the events of ld.
func (f *fleet) take(ld plog.Logs) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rl := range ld.ResourceLogs().All() {
		r := rl.ScopeLogs().At(0).LogRecords().At(0)
		text := func(key string) string {
			if v, has := r.Attributes().Get(key); has {
				return v.AsString()
			}
			return ""
		}
		e := event{name: r.EventName(), state: text("gpu.event.state"), communicator: text("nccl.communicator"), host: text("nccl.host"), stall: text("nccl.stall.state"), rank: -1, at: r.Timestamp().AsTime()}
		if v, has := r.Attributes().Get("nccl.rank"); has {
			e.rank = v.Int()
		}
		f.events = append(f.events, e)
	}
}

// count keeps how many records the metrics of a host have.
func (f *fleet) count(n int, md pmetric.Metrics) {
	all := map[string]uint64{}
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			if m.Type() != pmetric.MetricTypeHistogram {
				continue
			}
			for _, dp := range m.Histogram().DataPoints().All() {
				operation, _ := dp.Attributes().Get("nccl.operation")
				all[operation.Str()] += dp.Count()
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[n] = all
}

// tail reads a file as file_log does: whole lines, and from the beginning where the file was
// truncated, which its first bytes show.
type tail struct {
	first  []byte
	offset int64
	rest   []byte
}

func (t *tail) lines(path string) (all []string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	first := make([]byte, 1000)
	n, err := file.ReadAt(first, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if first = first[:n]; !bytes.HasPrefix(first, t.first) {
		*t = tail{}
	}
	t.first = first
	text, err := io.ReadAll(io.NewSectionReader(file, t.offset, 1<<40))
	if err != nil {
		return nil, err
	}
	t.offset += int64(len(text))
	text = append(t.rest, text...)
	for {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			t.rest = bytes.Clone(text)
			return all, nil
		}
		all = append(all, string(line))
		text = rest
	}
}
