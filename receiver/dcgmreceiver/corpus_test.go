// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/metadata"
)

// own are invented pages in the forms of real ones, with their expectations. Where real
// pages are beside the checkout, those of testdata/corpus are checked, too.
const (
	own     = "testdata/corpus/own"
	samples = "../../../shared/data/dcgm"
)

// expectation is one file of testdata/corpus, written by hand from a page.
type expectation struct {
	Page    string         `yaml:"page"`
	Why     string         `yaml:"why"`
	Up      int            `yaml:"up"`
	Refused map[string]int `yaml:"refused"`
	Devices []struct {
		Resource map[string]any `yaml:"resource"`
		Points   []struct {
			Metric     string         `yaml:"metric"`
			Attributes map[string]any `yaml:"attributes"`
			Value      float64        `yaml:"value"`
		} `yaml:"points"`
	} `yaml:"devices"`
}

// TestCorpus sends every page through the whole receiver over HTTP.
func TestCorpus(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(own, "*.prom"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	real, err := filepath.Glob(filepath.Join(samples, "*"))
	require.NoError(t, err)
	for _, page := range append(pages, real...) {
		name := filepath.Base(page)
		expectations := filepath.Join("testdata", "corpus")
		if filepath.Dir(page) == own {
			expectations = own
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile(page)
			require.NoError(t, err)
			text, err := os.ReadFile(filepath.Join(expectations, name+".yaml"))
			require.NoError(t, err, "every page has an expectation")
			var want expectation
			require.NoError(t, yaml.Unmarshal(text, &want))

			got := scrapeOnce(t, body)

			assert.Equal(t, want.Up, got.up)
			if want.Refused == nil {
				want.Refused = map[string]int{}
			}
			for reason, n := range want.Refused {
				if n == 0 {
					delete(want.Refused, reason)
				}
			}
			assert.Equal(t, want.Refused, got.refused)
			assert.Equal(t, want.lines(), got.lines)
		})
	}
}

// lines renders the expected devices: a line a resource, a line a point.
func (e *expectation) lines() []string {
	var lines []string
	for _, d := range e.Devices {
		id := fmt.Sprint(d.Resource[names.HwID])
		lines = append(lines, "resource "+render(d.Resource))
		for _, p := range d.Points {
			attrs := map[string]any{names.HwID: id}
			for k, v := range p.Attributes {
				attrs[k] = v
			}
			if strings.HasPrefix(p.Metric, "hw.") && !strings.HasPrefix(p.Metric, "hw.gpu.") {
				attrs[names.HwType] = names.HwTypeGPU
			}
			lines = append(lines, fmt.Sprintf("%s %s %s", p.Metric, render(attrs), number(p.Value)))
		}
	}
	sort.Strings(lines)
	return lines
}

func render(attrs map[string]any) string {
	var parts []string
	for k, v := range attrs {
		parts = append(parts, fmt.Sprintf("%s=%v", k, v))
	}
	sort.Strings(parts)
	return "{" + strings.Join(parts, ", ") + "}"
}

// number renders with ten digits: enough to distinguish values, and blind to the
// last bits of a division.
func number(v float64) string { return fmt.Sprintf("%.10g", v) }

type scraped struct {
	up      int
	refused map[string]int
	lines   []string // devices alone
	metrics pmetric.Metrics
}

// scrapeOnce serves body, runs the receiver until it has scraped once, and
// returns what that scrape gave.
func scrapeOnce(t *testing.T, body []byte, change ...func(*Config)) scraped {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(body)
	}))
	defer server.Close()
	cfg := createDefaultConfig().(*Config)
	cfg.Endpoints = []string{server.URL + "/metrics"}
	cfg.CollectionInterval = time.Second
	for _, f := range change {
		f(cfg)
	}
	require.NoError(t, cfg.Validate())

	telemetry := componenttest.NewTelemetry()
	defer func() { require.NoError(t, telemetry.Shutdown(context.Background())) }()
	set := receivertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	first := make(chan pmetric.Metrics, 1)
	sink, err := consumertestFunc(func(md pmetric.Metrics) {
		select {
		case first <- md:
		default:
		}
	})
	require.NoError(t, err)
	r, err := NewFactory().CreateMetrics(t.Context(), set, cfg, sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	var md pmetric.Metrics
	select {
	case md = <-first:
	case <-time.After(30 * time.Second):
		t.Error("no scrape within 30 s")
		md = pmetric.NewMetrics()
	}
	require.NoError(t, r.Shutdown(context.Background()))
	got := describe(md)
	got.refused = map[string]int{}
	if m, err := telemetry.GetMetric("otelcol_dcgm_receiver_rows_refused"); err == nil {
		scrapes := scrapeCount(t, telemetry)
		for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
			reason, _ := p.Attributes.Value("reason")
			// A further scrape may have come in before the shutdown.
			got.refused[reason.AsString()] = int(p.Value) / scrapes
		}
	}
	return got
}

func scrapeCount(t *testing.T, telemetry *componenttest.Telemetry) int {
	m, err := telemetry.GetMetric("otelcol_dcgm_receiver_scrapes")
	require.NoError(t, err)
	n := 0
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		n += int(p.Value)
	}
	return n
}

func describe(md pmetric.Metrics) scraped {
	got := scraped{up: -1, metrics: md}
	for _, rm := range md.ResourceMetrics().All() {
		_, device := rm.Resource().Attributes().Get(names.HwID)
		if device {
			got.lines = append(got.lines, "resource "+render(rm.Resource().Attributes().AsRaw()))
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				eachPoint(m, func(p pmetric.NumberDataPoint) {
					if m.Name() == names.ExporterUp.Name {
						got.up = int(p.IntValue())
					}
					if device {
						got.lines = append(got.lines, fmt.Sprintf("%s %s %s", m.Name(), render(p.Attributes().AsRaw()), number(pointValue(p))))
					}
				})
			}
		}
	}
	sort.Strings(got.lines)
	return got
}

func eachPoint(m pmetric.Metric, f func(pmetric.NumberDataPoint)) {
	points := pmetric.NewNumberDataPointSlice()
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		points = m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		points = m.Sum().DataPoints()
	}
	for _, p := range points.All() {
		f(p)
	}
}

func pointValue(p pmetric.NumberDataPoint) float64 {
	switch p.ValueType() {
	case pmetric.NumberDataPointValueTypeInt:
		return float64(p.IntValue())
	case pmetric.NumberDataPointValueTypeDouble:
		return p.DoubleValue()
	default:
		return math.NaN()
	}
}
