// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/metadata"
)

func consumertestFunc(f func(pmetric.Metrics)) (consumer.Metrics, error) {
	return consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		f(md)
		return nil
	})
}

// patience bounds waits for something that does happen; nothing is measured.
const patience = 30 * time.Second

// run is a receiver that scrapes once a second, with all of its telemetry.
type run struct {
	t         *testing.T
	receiver  receiver.Metrics
	id        string
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs

	mu      sync.Mutex
	scrapes []pmetric.Metrics
	refuse  error // what the next component answers
}

// start runs a receiver until the test ends.
func start(t *testing.T, endpoints []string, change ...func(*Config)) *run {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.Endpoints = endpoints
	cfg.CollectionInterval = time.Second
	for _, f := range change {
		f(cfg)
	}
	require.NoError(t, cfg.Validate())

	r := &run{t: t, telemetry: componenttest.NewTelemetry()}
	set := receivertest.NewNopSettings(metadata.Type)
	r.id = set.ID.String()
	set.TelemetrySettings = r.telemetry.NewTelemetrySettings()
	var core zapcore.Core
	core, r.logs = observer.New(zap.DebugLevel)
	set.Logger = zap.New(core)
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.scrapes = append(r.scrapes, md)
		return r.refuse
	})
	require.NoError(t, err)
	r.receiver, err = NewFactory().CreateMetrics(t.Context(), set, cfg, next)
	require.NoError(t, err)
	require.NoError(t, r.receiver.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		require.NoError(t, r.receiver.Shutdown(context.Background()))
		require.NoError(t, r.telemetry.Shutdown(context.Background()))
	})
	return r
}

// await waits until the receiver has counted n scrapes with an outcome.
func (r *run) await(o fetch.Outcome, n int64) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.count("scrapes")["outcome="+string(o)] >= n }, patience, 20*time.Millisecond,
		"%d scrapes with outcome %s", n, o)
}

// awaitTarget waits until a server's target has been scraped n times.
func (r *run) awaitTarget(server *httptest.Server, n int, name string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		of := 0
		for _, md := range r.scrapes {
			if serverPort(md) == port(server) {
				of++
			}
		}
		return of >= n
	}, patience, 20*time.Millisecond, "%d scrapes of %s", n, name)
}

// count reads own telemetry: values by their reason or outcome.
func (r *run) count(name string) map[string]int64 {
	values := map[string]int64{}
	m, err := r.telemetry.GetMetric("otelcol_dcgm_receiver_" + name)
	if err != nil {
		return values // nothing was counted yet
	}
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		var key string
		for _, kv := range p.Attributes.ToSlice() {
			if kv.Key != "exporter" && kv.Key != "receiver" {
				key = string(kv.Key) + "=" + kv.Value.AsString()
			}
		}
		values[key] += p.Value
	}
	return values
}

func (r *run) refuseWith(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = err
}

// last is the newest value that a server's target or device had of a metric.
func (r *run) last(server *httptest.Server, metric string) (float64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.scrapes) - 1; i >= 0; i-- {
		if serverPort(r.scrapes[i]) != port(server) {
			continue
		}
		for _, rm := range r.scrapes[i].ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				if m.Name() == metric {
					v, found := 0.0, false
					eachPoint(m, func(p pmetric.NumberDataPoint) { v, found = pointValue(p), true })
					return v, found
				}
			}
		}
	}
	return 0, false
}

// serverPort is the port of the target that a scrape was of.
func serverPort(md pmetric.Metrics) int64 {
	if md.ResourceMetrics().Len() == 0 {
		return 0
	}
	v, ok := md.ResourceMetrics().At(0).Resource().Attributes().Get(names.ServerPort)
	if !ok {
		return 0
	}
	return v.Int()
}

func port(server *httptest.Server) int64 {
	u, err := url.Parse(server.URL)
	if err != nil {
		return 0
	}
	p, _ := strconv.ParseInt(u.Port(), 10, 64)
	return p
}

// warnings are the log's lines of level warn and above, with their fields.
func (r *run) warnings() []string {
	var lines []string
	for _, e := range r.logs.FilterLevelExact(zap.WarnLevel).All() {
		lines = append(lines, logLine(e))
	}
	for _, e := range r.logs.FilterLevelExact(zap.ErrorLevel).All() {
		lines = append(lines, logLine(e))
	}
	return lines
}

func logLine(e observer.LoggedEntry) string {
	line := e.Message
	for _, f := range e.Context {
		line += " " + f.Key + "=" + f.String
		if err, ok := f.Interface.(error); ok {
			line += err.Error()
		}
	}
	return line
}

// serve is an exporter that answers with a page.
func serve(t *testing.T, page string) *httptest.Server {
	t.Helper()
	return serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write([]byte(page))
	})
}

func serveFunc(t *testing.T, f http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return server
}

const goodPage = `# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0",modelName="NVIDIA H100"} 50
# TYPE DCGM_FI_DEV_MEMORY_TEMP gauge
DCGM_FI_DEV_MEMORY_TEMP{gpu="0",UUID="GPU-0",modelName="NVIDIA H100"} 0
`

func contains(lines []string, parts ...string) int {
	n := 0
	for _, line := range lines {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			n++
		}
	}
	return n
}
