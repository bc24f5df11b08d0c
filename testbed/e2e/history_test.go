// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// history is what one output reported, in Prometheus' own storage.
type history struct {
	name   string
	db     *teststorage.TestStorage
	engine *promql.Engine

	mu       sync.Mutex
	request  int
	seen     map[string]stored // by series and time
	problems []string          // what Prometheus would refuse
}

type point struct {
	labels labels.Labels
	at     time.Time
	value  float64 // stale where the series ended
}

// stored is the value that came in a request.
type stored struct {
	bits    uint64
	request int
}

var stale = math.Float64frombits(value.StaleNaN)

func newHistory(t *testing.T, name string) *history {
	t.Helper()
	return &history{
		name: name, db: teststorage.New(t), seen: map[string]stored{},
		engine: promql.NewEngine(promql.EngineOpts{
			MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{}),
		}),
	}
}

// add stores the points of one request, as a Prometheus server does: what it
// would refuse is kept for refused, and so are samples that come twice. Only
// gpu.allocation may repeat a snapshot, with its time, where the kubelet was not
// asked again in between.
func (h *history) add(points []point) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.request++
	app := h.db.Appender(context.Background())
	for _, p := range points {
		key := fmt.Sprintf("%s at %d", p.labels, p.at.UnixNano())
		now := stored{math.Float64bits(p.value), h.request}
		if before, ok := h.seen[key]; ok {
			repeated := p.labels.Get("__name__") == "gpu_allocation" && before.bits == now.bits && before.request != now.request
			if !repeated {
				h.problems = append(h.problems, fmt.Sprintf("%s: %s twice, %d requests apart", h.name, key, now.request-before.request))
			}
		}
		h.seen[key] = now
		if _, err := app.Append(0, p.labels, p.at.UnixMilli(), p.value); err != nil {
			h.problems = append(h.problems, fmt.Sprintf("%s: %s = %v: %v", h.name, key, p.value, err))
		}
	}
	if err := app.Commit(); err != nil {
		h.problems = append(h.problems, fmt.Sprintf("%s: %v", h.name, err))
	}
}

// refused returns what was wrong with what arrived until now.
func (h *history) refused() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.problems)
}

// query evaluates PromQL at a time: series to value.
func (h *history) query(t *testing.T, q string, at time.Time) map[string]float64 {
	t.Helper()
	query, err := h.engine.NewInstantQuery(t.Context(), h.db, nil, q, at)
	require.NoError(t, err, q)
	defer query.Close()
	vector, err := query.Exec(t.Context()).Vector()
	require.NoError(t, err, "%s: %s", h.name, q)
	found := map[string]float64{}
	for _, s := range vector {
		found[s.Metric.String()] = s.F
	}
	return found
}

// sum evaluates a query that gives one value; NaN where it gives none.
func (h *history) sum(t *testing.T, q string, at time.Time) float64 {
	t.Helper()
	for _, v := range h.query(t, q, at) {
		return v
	}
	return math.NaN()
}

// series are all that ever were, sorted.
func (h *history) series(t *testing.T) []string {
	t.Helper()
	q, err := h.db.Querier(math.MinInt64, math.MaxInt64)
	require.NoError(t, err)
	defer q.Close()
	var found []string
	set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+"))
	for set.Next() {
		found = append(found, set.At().Labels().String())
	}
	require.NoError(t, set.Err())
	return found
}

// remoteWrite is a remote write receiver (1.0).
func (h *history) remoteWrite(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		body, err = snappy.Decode(nil, body)
	}
	var req prompb.WriteRequest
	if err == nil {
		err = req.Unmarshal(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var points []point
	b := labels.NewScratchBuilder(0)
	for i := range req.Timeseries {
		series := &req.Timeseries[i]
		for _, s := range series.Samples {
			points = append(points, point{series.ToLabels(&b, nil), time.UnixMilli(s.Timestamp), s.Value})
		}
	}
	h.add(points)
	w.WriteHeader(http.StatusNoContent)
}

// scrape reads the Prometheus exporter every so often until the context ends, as
// Prometheus does: a series that is no longer on the page has ended.
func (h *history) scrape(ctx context.Context, c *collector.Collector, every time.Duration) {
	before := map[string]labels.Labels{}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		families, err := c.Metrics(ctx)
		if err == nil {
			now, points, page := time.Now(), []point(nil), map[string]labels.Labels{}
			for name, f := range families {
				for _, metric := range f.GetMetric() {
					b := labels.NewBuilder(labels.EmptyLabels()).Set("__name__", name)
					for _, l := range metric.GetLabel() {
						b.Set(l.GetName(), l.GetValue())
					}
					ls := b.Labels()
					page[ls.String()] = ls
					points = append(points, point{ls, now, collector.Value(metric)})
				}
			}
			for key, ls := range before {
				if _, ok := page[key]; !ok {
					points = append(points, point{ls, now, stale})
				}
			}
			before = page
			h.add(points)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// otlpHistory keeps OTLP requests, and their points as series named like those of
// Prometheus without unit.
type otlpHistory struct {
	*history
	got []pmetric.Metrics
}

func (h *otlpHistory) take(_ context.Context, md pmetric.Metrics) error {
	var points []point
	each(md, func(resource pcommon.Map, name string, dp pmetric.NumberDataPoint) {
		b := labels.NewBuilder(labels.EmptyLabels()).Set("__name__", underscores(name))
		for k, v := range resource.All() {
			b.Set(underscores(k), v.AsString())
		}
		for k, v := range dp.Attributes().All() {
			b.Set(underscores(k), v.AsString())
		}
		p := point{b.Labels(), dp.Timestamp().AsTime(), number(dp)}
		points = append(points, p)
	})
	h.add(points)
	h.mu.Lock()
	h.got = append(h.got, md)
	h.mu.Unlock()
	return nil
}

// requests are those that arrived until now.
func (h *otlpHistory) requests() []pmetric.Metrics {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got)
}

// each calls f for every number of md.
func each(md pmetric.Metrics, f func(resource pcommon.Map, name string, dp pmetric.NumberDataPoint)) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				points := metric.Gauge().DataPoints
				if metric.Type() == pmetric.MetricTypeSum {
					points = metric.Sum().DataPoints
				}
				for _, dp := range points().All() {
					f(rm.Resource().Attributes(), metric.Name(), dp)
				}
			}
		}
	}
}

func number(dp pmetric.NumberDataPoint) float64 {
	switch {
	case dp.Flags().NoRecordedValue():
		return stale
	case dp.ValueType() == pmetric.NumberDataPointValueTypeInt:
		return float64(dp.IntValue())
	default:
		return dp.DoubleValue()
	}
}

func underscores(name string) string { return strings.NewReplacer(".", "_", "/", "_").Replace(name) }
