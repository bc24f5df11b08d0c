// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-gpu/otelcol-gpu/internal/prompage"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/pages"
)

// What internal/prompage makes of pages is what the Prometheus receiver makes of them
// over HTTP: the same families, types, points, starts and markers.
func TestReaderIsTheReceiver(t *testing.T) {
	t.Parallel()
	all := simulated(t)
	for name, list := range fromFiles(t) {
		all[name] = list
	}
	scrapeAll(t, all)
}

// simulated are pages of every engine, one after the other: nil is one that fails.
func simulated(t *testing.T) map[string][][]byte {
	all := map[string][][]byte{}
	for seed := range uint64(3) {
		d := rand.New(rand.NewPCG(seed, 7))
		w, err := newWorld(d, 50*time.Second)
		require.NoError(t, err)
		for i := range 6 {
			w.advance(time.Duration(i+1) * 10 * time.Second)
			for _, name := range pages.Names() {
				key := fmt.Sprintf("%s/%d", name, seed)
				if next, ok := successor[name]; ok && i >= 4 {
					name = next // it has other bounds
				}
				text, err := printed(name, w, i == 3-int(seed), i == 2)
				require.NoError(t, err)
				all[key] = append(all[key], text)
			}
		}
	}
	return all
}

// fromFiles are the pages that the processor's goldens and other tests have: whole, without
// every third line, whole again, another page, and whole.
func fromFiles(t *testing.T) map[string][][]byte {
	var paths []string
	for _, pattern := range []string{"../../processor/inferenceprocessor/testdata/*/*.prom", "../../internal/prompage/testdata/*.prom", "../kubernetes/inference/testdata/*.prom"} {
		some, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, some, pattern)
		paths = append(paths, some...)
	}
	// The receiver loses points of a family that has another type than before: this one
	// has no family of the others.
	other, err := os.ReadFile("../../internal/prompage/testdata/odd.prom")
	require.NoError(t, err)
	all := map[string][][]byte{}
	for _, path := range paths {
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		var some []byte
		for i, line := range bytes.SplitAfter(page, []byte("\n")) {
			if i%3 > 0 || bytes.HasPrefix(line, []byte("#")) {
				some = append(some, line...)
			}
		}
		all[path] = [][]byte{page, some, page, other, page}
	}
	return all
}

// scraped is a target of the receiver, which is scraped until each of its pages has been
// read.
type scraped struct {
	pages  [][]byte
	next   int
	reader prompage.Target
}

func (s *scraped) page() []byte { return s.pages[min(s.next, len(s.pages)-1)] }

// scrapeAll compares what the receiver makes of the pages of targets with what the reader
// makes of them.
func scrapeAll(t *testing.T, all map[string][][]byte) {
	var mu sync.Mutex
	targets, left, done := map[string]*scraped{}, len(all), make(chan struct{})
	for name, list := range all {
		targets["/"+name] = &scraped{pages: list}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		page := targets[r.URL.Path].page()
		mu.Unlock()
		if page == nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(page)
	}))
	defer server.Close()
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		mu.Lock()
		defer mu.Unlock()
		for _, rm := range md.ResourceMetrics().All() {
			instance, _ := rm.Resource().Attributes().Get("service.instance.id")
			s := targets[instance.Str()]
			if s == nil || s.next == len(s.pages) {
				continue
			}
			if compareScrape(t, instance.Str(), s, rm); s.next == len(s.pages) {
				if left--; left == 0 {
					close(done)
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	var paths []string
	for path := range targets {
		paths = append(paths, path)
	}
	factory := prometheusreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"config": map[string]any{"scrape_configs": []any{scrapeConfig(t, server.Listener.Addr().String(), paths)}}}).Unmarshal(cfg))
	r, err := factory.CreateMetrics(t.Context(), receivertest.NewNopSettings(factory.Type()), cfg, next)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Error("not every page has been read")
	}
	require.NoError(t, r.Shutdown(context.Background()))
}

// scrapeConfig is that of config/inference.yaml for targets of a server.
func scrapeConfig(t *testing.T, address string, paths []string) map[string]any {
	text, err := os.ReadFile("../../config/inference.yaml")
	require.NoError(t, err)
	var file struct {
		Receivers map[string]struct {
			Config struct {
				ScrapeConfigs []map[string]any `yaml:"scrape_configs"`
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	c := file.Receivers["prometheus/inference"].Config.ScrapeConfigs[0]
	for _, key := range []string{"kubernetes_sd_configs", "relabel_configs", "metric_relabel_configs", "tls_config"} {
		require.Contains(t, c, key)
		delete(c, key)
	}
	c["scrape_interval"] = "250ms"
	var static []any
	for _, path := range paths {
		static = append(static, map[string]any{"targets": []any{address}, "labels": map[string]any{"__metrics_path__": path, "instance": path}})
	}
	c["static_configs"] = static
	return c
}

// compareScrape compares a scrape with the reader's, of the page that the server had then
// or of none, if the receiver did not get it in time.
func compareScrape(t *testing.T, name string, s *scraped, rm pmetric.ResourceMetrics) {
	var got []string
	var at time.Time
	page := s.page()
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			if m.Name() == "up" {
				p := m.Gauge().DataPoints().At(0)
				at = p.Timestamp().AsTime()
				if p.DoubleValue() == 0 {
					page = nil
				}
			}
			if !strings.HasPrefix(m.Name(), "scrape_") {
				got = append(got, lines(m)...)
			}
		}
	}
	md, err := s.reader.Scrape(page, at)
	if !assert.NoError(t, err) {
		return
	}
	var want []string
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		want = append(want, lines(m)...)
	}
	slices.Sort(got)
	slices.Sort(want)
	assert.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"), "%s, page %d", name, s.next)
	if page != nil || s.page() == nil {
		s.next++
	}
}

// lines are a metric and its points.
func lines(m pmetric.Metric) []string {
	out := []string{fmt.Sprintf("%s: %s, unit %q, %v: %s", m.Name(), m.Type(), m.Unit(), m.Metadata().AsRaw(), m.Description())}
	add := func(attributes pcommon.Map, start, at pcommon.Timestamp, flags pmetric.DataPointFlags, values ...any) {
		var pairs []string
		for k, v := range attributes.All() {
			pairs = append(pairs, fmt.Sprintf("%s=%q", k, v.AsString()))
		}
		slices.Sort(pairs)
		out = append(out, fmt.Sprintf("%s{%s} from %d at %d, flags %d: %v", m.Name(), strings.Join(pairs, ","), start, at, flags, values))
	}
	numbers := func(points pmetric.NumberDataPointSlice) {
		for _, p := range points.All() {
			add(p.Attributes(), p.StartTimestamp(), p.Timestamp(), p.Flags(), p.ValueType(), p.DoubleValue(), p.Exemplars().Len())
		}
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		numbers(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		out[0] += fmt.Sprint(" ", m.Sum().IsMonotonic(), m.Sum().AggregationTemporality())
		numbers(m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		out[0] += fmt.Sprint(" ", m.Histogram().AggregationTemporality())
		for _, p := range m.Histogram().DataPoints().All() {
			add(p.Attributes(), p.StartTimestamp(), p.Timestamp(), p.Flags(), p.Count(), p.HasSum(), p.Sum(), p.ExplicitBounds().AsRaw(), p.BucketCounts().AsRaw())
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			add(p.Attributes(), p.StartTimestamp(), p.Timestamp(), p.Flags(), p.Count(), p.Sum(), p.Scale())
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			var quantiles []float64
			for _, q := range p.QuantileValues().All() {
				quantiles = append(quantiles, q.Quantile(), q.Value())
			}
			add(p.Attributes(), p.StartTimestamp(), p.Timestamp(), p.Flags(), p.Count(), p.Sum(), quantiles)
		}
	}
	return out
}
