// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

// fakeExporters answers instead of a network, in a test's own time.
type fakeExporters struct {
	page  string
	takes time.Duration
	codes []int // of the answers, one after the other; then 200

	mu    sync.Mutex
	asked []time.Time
}

func (e *fakeExporters) RoundTrip(r *http.Request) (*http.Response, error) {
	e.mu.Lock()
	e.asked = append(e.asked, time.Now())
	code := http.StatusOK
	if len(e.codes) > 0 {
		code, e.codes = e.codes[0], e.codes[1:]
	}
	e.mu.Unlock()
	select {
	case <-time.After(e.takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Body: io.NopCloser(strings.NewReader(e.page)), ContentLength: -1}, nil
}

func (e *fakeExporters) times() []time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.asked)
}

// newTestTargets scrapes fake exporters every 15 s, without a receiver.
func newTestTargets(t *testing.T, exporters *fakeExporters, limit int, next func(pmetric.Metrics)) (*targets, *componenttest.Telemetry) {
	telemetry := componenttest.NewTelemetry()
	set := receivertest.NewNopSettings(component.MustNewType("acme"))
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	sink, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		next(md)
		return nil
	})
	require.NoError(t, err)
	cfg := defaultConfig()
	r, err := NewReceiver(&acme, set, &cfg, own(t, telemetry), "acme", sink)
	require.NoError(t, err)
	r.scraper.fetcher = &fetcher{client: &http.Client{Transport: exporters}, timeout: 10 * time.Second, limit: 1 << 20}
	ctx, stop := context.WithCancel(t.Context())
	ts := newTargets(ctx, r.scraper, 15*time.Second, limit, "acme")
	t.Cleanup(func() {
		stop()
		require.NoError(t, ts.wait(context.Background()))
		require.NoError(t, telemetry.Shutdown(context.Background()))
	})
	return ts, telemetry
}

func at(t *testing.T, endpoint, pod string) location {
	u, err := url.Parse(endpoint)
	require.NoError(t, err)
	l := locate(u, "acme")
	l.exporter.Pod = pod
	return l
}

func devices(t *testing.T, telemetry *componenttest.Telemetry) int64 {
	m, err := telemetry.GetMetric("acme_devices")
	require.NoError(t, err)
	return m.Data.(metricdata.Sum[int64]).DataPoints[0].Value
}

// pass lets time go by, and what is due then end.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestInterval: scrapes keep their moments; those that a slow exporter misses are
// left out.
func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exporters := &fakeExporters{page: goodPage, takes: 4 * time.Second}
		ts, _ := newTestTargets(t, exporters, 0, func(pmetric.Metrics) { time.Sleep(8 * time.Second) })
		start := time.Now()
		ts.set([]location{at(t, "http://a:9400/metrics", "")})
		pass(61 * time.Second)
		moments := exporters.times()
		require.GreaterOrEqual(t, len(moments), 4)
		assert.Less(t, moments[0].Sub(start), 15*time.Second)
		for i := 1; i < 4; i++ {
			assert.Equal(t, 15*time.Second, moments[i].Sub(moments[i-1]))
		}
		exporters.mu.Lock()
		exporters.takes = 9 * time.Second
		exporters.mu.Unlock()
		pass(120 * time.Second)
		moments = exporters.times()
		last := len(moments) - 1
		assert.Equal(t, 30*time.Second, moments[last].Sub(moments[last-1]))
	})
}

// TestLeave: a target that is gone is scraped no more and its devices count no
// more. One that is back within two intervals goes on as if it had not been away.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exporters := &fakeExporters{page: goodPage + "acme_energy{UUID=\"A-0\"} 5000\n"}
		var mu sync.Mutex
		starts := map[string]time.Time{} // of the counter of energy, by exporter
		ts, telemetry := newTestTargets(t, exporters, 0, func(md pmetric.Metrics) {
			mu.Lock()
			defer mu.Unlock()
			exporter, _ := md.ResourceMetrics().At(0).Resource().Attributes().Get(names.ServerAddress)
			for _, rm := range md.ResourceMetrics().All() {
				for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
					if m.Name() == names.HwEnergy.Name {
						starts[exporter.Str()] = m.Sum().DataPoints().At(0).StartTimestamp().AsTime()
					}
				}
			}
		})
		a, b := at(t, "http://a:9400/metrics", "a-1"), at(t, "http://b:9400/metrics", "b-1")
		ts.set([]location{a, b})
		pass(31 * time.Second)
		first := starts["a"]
		assert.Equal(t, int64(2), devices(t, telemetry))

		ts.set(nil)
		assert.Zero(t, devices(t, telemetry))
		asked := len(exporters.times())
		pass(20 * time.Second)
		assert.Len(t, exporters.times(), asked)

		a.exporter.Pod = "a-2" // the pod of an exporter on the host's network
		ts.set([]location{a})
		pass(16 * time.Second)
		assert.Equal(t, int64(1), devices(t, telemetry))
		assert.Equal(t, first, starts["a"], "its counters go on")
		assert.Len(t, ts.rested, 1)

		ts.set(nil)
		pass(31 * time.Second)
		ts.set([]location{a})
		assert.Empty(t, ts.rested, "forgotten after two intervals")
		ended := time.Now()
		pass(16 * time.Second)
		assert.False(t, starts["a"].Before(ended), "its counters begin again")
	})
}

// TestGone: the series about an exporter end with it, behind its last scrape, and do
// not where another pod answers in its place.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := 0
		ts, _ := newTestTargets(t, &fakeExporters{page: goodPage}, 0, func(md pmetric.Metrics) {
			metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
			if p := metrics.At(0).Sum().DataPoints().At(0); p.Flags().NoRecordedValue() {
				ended += metrics.Len()
				assert.Equal(t, names.ExporterUp.Name, metrics.At(0).Name())
				assert.Equal(t, 1, md.ResourceMetrics().Len(), "its devices may go on")
			}
		})
		a := at(t, "http://10.0.0.1:9400/metrics", "a")
		ts.set([]location{a})
		ts.set(nil)
		pass(time.Second)
		assert.Zero(t, ended, "it was never scraped")
		ts.set([]location{a})
		pass(31 * time.Second)
		ts.set([]location{at(t, "http://10.0.0.1:9400/metrics", "b")})
		pass(31 * time.Second)
		assert.Zero(t, ended)
		ts.set(nil)
		pass(time.Second)
		assert.Equal(t, 4, ended, "the page has no energy: there is no gpu.exporter.frozen")
	})
}

// TestMoved: another pod at the same address takes over without a gap.
func TestMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exporters := &fakeExporters{page: strings.ReplaceAll(goodPage, `gpu="0"`, `gpu="0",Hostname="b"`)}
		host := ""
		ts, telemetry := newTestTargets(t, exporters, 0, func(md pmetric.Metrics) {
			host = ""
			if v, ok := md.ResourceMetrics().At(1).Resource().Attributes().Get(names.HostName); ok {
				host = v.Str()
			}
		})
		ts.set([]location{at(t, "http://10.0.0.1:9400/metrics", "a")})
		pass(16 * time.Second)
		assert.Equal(t, "b", host)
		ts.set([]location{at(t, "http://10.0.0.1:9400/metrics", "b")})
		pass(16 * time.Second)
		assert.Empty(t, host, "it is the name of the exporter's own pod")
		assert.Equal(t, int64(1), devices(t, telemetry))
		moments := exporters.times()
		for i := 1; i < len(moments); i++ {
			assert.Equal(t, 15*time.Second, moments[i].Sub(moments[i-1]))
		}
	})
}

// TestMovedLogs: a target that was left logs how its last metrics fared while
// the one in its place does the same (go test -race).
func TestMovedLogs(t *testing.T) {
	old := &target{}
	old.logPipeline(zap.NewNop(), errors.New("full"))
	moved := old.moved(location{})
	moved.logPipeline(zap.NewNop(), nil)
	now := time.Now()
	assert.False(t, old.pipeline.shouldLog("refused", now), "it is the last that was logged")
	assert.True(t, old.pipeline.shouldLog(fetch.OK, now), "what the new one logged is its own")
	assert.False(t, moved.pipeline.shouldLog("refused", now), "what was logged is not logged again")
}

// TestTargetLimit: too many targets fail until there are few enough.
func TestTargetLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exporters := &fakeExporters{page: goodPage}
		ts, telemetry := newTestTargets(t, exporters, 1, func(pmetric.Metrics) {})
		a, b := at(t, "http://a:9400/metrics", ""), at(t, "http://b:9400/metrics", "")
		ts.set([]location{a, b})
		pass(16 * time.Second)
		assert.Empty(t, exporters.times())
		ts.set([]location{b})
		pass(16 * time.Second)
		assert.Equal(t, int64(1), devices(t, telemetry))
	})
}

// TestStopDuringScrape: a scrape that is cut off by the shutdown emits nothing.
func TestStopDuringScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exporters := &fakeExporters{page: goodPage, takes: 9 * time.Second}
		handed := 0
		ctx, stop := context.WithCancel(t.Context())
		ts, _ := newTestTargets(t, exporters, 0, func(pmetric.Metrics) { handed++ })
		ts.ctx = ctx
		ts.set([]location{at(t, "http://a:9400/metrics", "")})
		for len(exporters.times()) == 0 {
			pass(time.Second)
		}
		stop()
		require.NoError(t, ts.wait(context.Background()))
		assert.Zero(t, handed)
	})
}

// TestShutdownWaits: metrics that the next component has are not cut off, but the
// shutdown waits no longer than it may.
func TestShutdownWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exporters := &fakeExporters{page: goodPage}
		var busy atomic.Bool
		ctx, stop := context.WithCancel(t.Context())
		ts, _ := newTestTargets(t, exporters, 0, func(pmetric.Metrics) {
			busy.Store(true)
			time.Sleep(time.Minute)
			busy.Store(false)
		})
		ts.ctx = ctx
		ts.set([]location{at(t, "http://a:9400/metrics", "")})
		pass(16 * time.Second)
		stop()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := ts.wait(short)
		assert.True(t, errors.Is(err, context.DeadlineExceeded), err)
		assert.True(t, busy.Load())
		require.NoError(t, ts.wait(context.Background()))
		assert.False(t, busy.Load())
	})
}
