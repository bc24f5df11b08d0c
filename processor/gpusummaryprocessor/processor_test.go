// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	zapobserver "go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/metadatatest"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

// call is one call of the next consumer.
type call struct {
	at time.Time
	md pmetric.Metrics
}

// recorder is a next consumer that remembers the calls with a summary, and answers
// with err.
type recorder struct {
	consumertest.Consumer
	mu        sync.Mutex
	passed    int
	summaries []call
	err       error
}

func (r *recorder) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	scope := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Scope().Name()
	if scope != metadata.ScopeName {
		r.passed++
		return nil
	}
	r.summaries = append(r.summaries, call{time.Now(), md})
	return r.err
}

// all are the calls until now.
func (r *recorder) all() []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.summaries)
}

// start starts a processor with these settings before next; it is shut down at the
// end of the test, and has then left no goroutine (TestMain).
func start(t *testing.T, set processor.Settings, cfg *Config, next consumer.Metrics) processor.Metrics {
	p, err := NewFactory().CreateMetrics(t.Context(), set, cfg, next)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, p.Shutdown(context.Background())) })
	return p
}

func utilBatch(pods ...string) pmetric.Metrics { return utilBatchAt(time.Now(), pods...) }

func TestSummaryGoesOnInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &recorder{}
		p := start(t, processortest.NewNopSettings(metadata.Type), createDefaultConfig().(*Config), next)
		began := time.Now()
		time.Sleep(time.Second)
		for range 12 { // three minutes
			require.NoError(t, p.ConsumeMetrics(t.Context(), utilBatch("a", "b", "c")))
			time.Sleep(15 * time.Second)
		}
		time.Sleep(3 * time.Minute) // nothing arrives
		synctest.Wait()

		require.Equal(t, 12, next.passed)
		require.Len(t, next.summaries, 24, "one call for each evaluation, with data and without")
		for i, c := range next.summaries {
			at := began.Add(time.Duration(i+1) * 15 * time.Second)
			require.Equal(t, at, c.at)
			reported := flatten(t, c.md, at) // one timestamp throughout
			switch age := at.Sub(began); {
			case age < 45*time.Second:
				reported.lacks(t, "partial")
			case age < 90*time.Second:
				reported.lacks(t, "partial") // pods may have fallen silent before the start
				reported.has(t, map[string]float64{"pods warming": 3})
			case age >= 105*time.Second && age <= 180*time.Second:
				reported.lacks(t, "partial")
				reported.has(t, map[string]float64{"pods reporting": 3, "utilization": 0.5})
			case age >= 225*time.Second:
				reported.has(t, map[string]float64{"partial": 1, "pods missing": 3})
				reported.lacks(t, averages...)
			}
		}
	})
}

func TestNothingIsSentWhileNothingIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &recorder{}
		start(t, processortest.NewNopSettings(metadata.Type), createDefaultConfig().(*Config), next)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, next.summaries)
	})
}

func TestEverythingPassesThroughUnchanged(t *testing.T) {
	sink := new(consumertest.MetricsSink)
	p := start(t, processortest.NewNopSettings(metadata.Type), createDefaultConfig().(*Config), sink)
	require.False(t, p.Capabilities().MutatesData)

	md := utilBatch("a", "b")
	other := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	other.SetName("http.server.request.duration")
	other.SetEmptyExponentialHistogram().DataPoints().AppendEmpty().SetCount(3)
	md.ResourceMetrics().AppendEmpty().Resource().Attributes().PutStr(names.K8sPodName, "no points")
	want := pmetric.NewMetrics()
	md.CopyTo(want)
	want.MarkReadOnly()
	md.MarkReadOnly()

	require.NoError(t, p.ConsumeMetrics(t.Context(), md))
	require.Len(t, sink.AllMetrics(), 1)
	require.Equal(t, want, sink.AllMetrics()[0])
}

func TestErrorOfNextComesBackAndThePointsCount(t *testing.T) {
	boom := errors.New("queue is full")
	p := start(t, processortest.NewNopSettings(metadata.Type), createDefaultConfig().(*Config), consumertest.NewErr(boom))
	require.ErrorIs(t, p.ConsumeMetrics(t.Context(), utilBatch("a")), boom)
	pods, services, _ := p.(*summaryProcessor).tracked()
	require.Equal(t, []int{1, 1}, []int{pods, services})
}

// blocker is a next consumer that holds every summary until its context ends.
type blocker struct{ consumertest.Consumer }

func (blocker) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	if md.ResourceMetrics().At(0).ScopeMetrics().At(0).Scope().Name() == metadata.ScopeName {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func TestSlowNextHoldsUpNoOneElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, processortest.NewNopSettings(metadata.Type), createDefaultConfig().(*Config), blocker{})
		for range 8 {
			require.NoError(t, p.ConsumeMetrics(t.Context(), utilBatch("a")))
			time.Sleep(10 * time.Second)
			synctest.Wait()
		}
		require.NoError(t, p.Shutdown(context.Background()), "the call that hangs is cancelled")
	})
}

func TestSameComponentInTwoPipelinesIsRefused(t *testing.T) {
	set := processortest.NewNopSettings(metadata.Type)
	cfg := createDefaultConfig().(*Config)
	create := func(set processor.Settings, cfg *Config) processor.Metrics {
		p, err := NewFactory().CreateMetrics(t.Context(), set, cfg, consumertest.NewNop())
		require.NoError(t, err)
		return p
	}
	host := componenttest.NewNopHost()

	// A Collector creates both, starts one after the other, and shuts both down.
	first, second := create(set, cfg), create(set, cfg)
	require.NoError(t, first.Start(t.Context(), host))
	err := second.Start(t.Context(), host)
	require.ErrorContains(t, err, "is named in more than one pipeline")
	require.ErrorContains(t, err, set.ID.String())
	require.NoError(t, second.Shutdown(t.Context()))
	require.Error(t, create(set, cfg).Start(t.Context(), host), "the one refused has not set the first one's claim free")

	// Another Collector in the process has the same ID, and a configuration of its own.
	other := create(set, createDefaultConfig().(*Config))
	require.NoError(t, other.Start(t.Context(), host))
	require.NoError(t, other.Shutdown(t.Context()))

	// Two components of this type are two summaries.
	named := set
	named.ID = component.NewIDWithName(metadata.Type, "east")
	east := create(named, cfg)
	require.NoError(t, east.Start(t.Context(), host))
	require.NoError(t, east.Shutdown(t.Context()))

	// One that is created and never started, as when a pipeline fails to build,
	// holds nothing; and what is shut down can be started again.
	require.NoError(t, first.Shutdown(t.Context()))
	again := create(set, cfg)
	require.NoError(t, again.Start(t.Context(), host))
	require.NoError(t, again.Shutdown(t.Context()))
}

func TestOwnTelemetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel := componenttest.NewTelemetry()
		defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
		core, logs := zapobserver.New(zap.WarnLevel)
		set := metadatatest.NewSettings(tel)
		set.Logger = zap.New(core)
		next := &recorder{err: errors.New("no")}
		cfg := createDefaultConfig().(*Config)
		cfg.MaxPods = 2
		p := start(t, set, cfg, next)

		time.Sleep(time.Second)
		require.NoError(t, p.ConsumeMetrics(t.Context(), utilBatch("a", "b", "c"))) // c is over the limit
		early := utilBatch("a")
		time.Sleep(time.Second)
		require.NoError(t, p.ConsumeMetrics(t.Context(), early)) // a duplicate
		for range 3 {
			md := utilBatch("a", "b")
			md.ResourceMetrics().At(0).Resource().Attributes().Remove(names.ServiceName)
			md.ResourceMetrics().At(1).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).SetTimestamp(1 << 62)
			require.NoError(t, p.ConsumeMetrics(t.Context(), md))
			time.Sleep(5 * time.Second)
		}
		synctest.Wait()

		ignore := metricdatatest.IgnoreTimestamp()
		point := func(n int64, attrs ...attribute.KeyValue) metricdata.DataPoint[int64] {
			return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attrs...)}
		}
		one := func(n int64) []metricdata.DataPoint[int64] { return []metricdata.DataPoint[int64]{point(n)} }
		metadatatest.AssertEqualGpuSummaryPointsAccepted(t, tel, one(5), ignore)
		metadatatest.AssertEqualGpuSummaryPointsFuture(t, tel, one(3), ignore)
		metadatatest.AssertEqualGpuSummaryPointsRefused(t, tel, []metricdata.DataPoint[int64]{
			point(1, attribute.String("reason", "duplicate")),
			point(3, attribute.String("reason", "no_service")),
		}, ignore)
		metadatatest.AssertEqualGpuSummaryLimitRefusals(t, tel, []metricdata.DataPoint[int64]{
			point(1, attribute.String("limit", "pods")),
		}, ignore)
		metadatatest.AssertEqualGpuSummaryPodsTracked(t, tel, one(2), ignore)
		metadatatest.AssertEqualGpuSummaryServicesTracked(t, tel, one(1), ignore)
		metadatatest.AssertEqualGpuSummaryEvaluationsFailed(t, tel, one(1), ignore)
		metadatatest.AssertEqualGpuSummaryEvaluationDuration(t, tel,
			[]metricdata.HistogramDataPoint[float64]{{}}, ignore, metricdatatest.IgnoreValue())

		var lines []string
		for _, l := range logs.All() {
			lines = append(lines, l.Message)
		}
		slices.Sort(lines)
		require.Equal(t, []string{
			"Points are left out of the summary: " + summary.LimitPods.Remedy(),
			"Points are left out of the summary: " + "the resource has a pod without service.name: run gpu_pod or k8s_attributes, which compute it, before gpu_summary",
			"Points lie in the future and count as arriving now: check the clock of their machine",
			"The next component refused an evaluation",
		}, lines, "each cause once")

		time.Sleep(10 * time.Minute)
		md := utilBatch("a")
		md.ResourceMetrics().At(0).Resource().Attributes().Remove(names.ServiceName)
		require.NoError(t, p.ConsumeMetrics(t.Context(), md))
		require.Len(t, logs.FilterField(zap.String("reason", "no_service")).All(), 2, "and again after ten minutes")
	})
}

func TestConcurrentUse(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	p := start(t, processortest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop()).(*summaryProcessor)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				require.NoError(t, p.ConsumeMetrics(context.Background(), utilBatch("a", "b", "c")))
				p.evaluate(context.Background())
				p.tracked()
			}
		})
	}
	wg.Wait()
	pods, _, _ := p.tracked()
	require.Equal(t, 3, pods)
}

// A staleness that is too short for what arrives is logged once, with a sufficient value.
func TestShortStalenessIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := zapobserver.New(zap.WarnLevel)
		set := processortest.NewNopSettings(metadata.Type)
		set.Logger = zap.New(core)
		cfg := createDefaultConfig().(*Config)
		cfg.Staleness = 5 * time.Second
		p := start(t, set, cfg, &recorder{})
		for range 20 {
			require.NoError(t, p.ConsumeMetrics(t.Context(), utilBatch("a")))
			time.Sleep(15 * time.Second)
		}
		require.Equal(t, 1, logs.Len())
		require.Equal(t, map[string]any{
			"staleness": 5 * time.Second, "interval": 15 * time.Second, "least": 30 * time.Second, "namespace": "shop", "service": "api",
		}, logs.All()[0].ContextMap())
	})
}
