// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// t0 is the time of the first page in every test.
var t0 = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

const interval = 15 * time.Second

var otel = devicemap.Options{OTel: true, ScopeName: "test", FrozenAfter: 5, FrozenFor: time.Minute}

var here = devicemap.Exporter{Address: "node-a", Port: 9400}

// scrape reads a page with Prometheus' parser. A series that is duplicated gives
// two rows, which the receiver's reader does not let through.
func scrape(text string, at time.Time) (*devicemap.Page, error) {
	page := &devicemap.Page{Time: pcommon.NewTimestampFromTime(at), Up: true, Duration: 0.25}
	families := map[string]*devicemap.Family{}
	family := func(name string) *devicemap.Family {
		if families[name] == nil {
			families[name] = Vendor.NewFamily(name)
		}
		return families[name]
	}
	known := map[string]*devicemap.Labels{}
	parser := textparse.NewPromParser([]byte(text), labels.NewSymbolTable(), false)
	samples := samplesOf(text)
	for {
		entry, err := parser.Next()
		if err == io.EOF {
			return page, nil
		}
		if err != nil {
			return nil, err
		}
		switch entry {
		case textparse.EntryHelp:
			name, text := parser.Help()
			family(string(name)).Help = string(text)
		case textparse.EntryType:
			name, typ := parser.Type()
			family(string(name)).Type = map[model.MetricType]devicemap.Type{
				model.MetricTypeCounter: devicemap.Counter, model.MetricTypeHistogram: devicemap.Histogram, model.MetricTypeSummary: devicemap.Summary,
			}[typ]
		case textparse.EntrySeries:
			page.Samples++
			series, _, v := parser.Series()
			var ls labels.Labels
			parser.Labels(&ls)
			if label, twice := ls.HasDuplicateLabelNames(); twice {
				return nil, fmt.Errorf("label %s is there twice", label) // the receiver's reader refuses the line
			}
			name := ls.Get(model.MetricNameLabel)
			var pairs [][2]string
			ls.Range(func(l labels.Label) {
				if l.Name != model.MetricNameLabel && l.Value != "" {
					pairs = append(pairs, [2]string{l.Name, l.Value})
				}
			})
			if known[fmt.Sprint(pairs)] == nil {
				known[fmt.Sprint(pairs)] = Vendor.NewLabels(pairs)
			}
			var whole *devicemap.Family
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if of, ok := strings.CutSuffix(name, suffix); ok {
					whole = family(of)
				}
			}
			page.Rows = append(page.Rows, devicemap.Row{Series: devicemap.NewSeries(family(name), known[fmt.Sprint(pairs)], whole), Value: v, Decimal: decimal(samples, page.Samples-1, string(series))})
		}
	}
}

// samplesOf are the lines of a page that are samples.
func samplesOf(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimLeft(line, " \t"); strings.TrimSpace(line) != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

// decimal reports whether a sample's value has a decimal point. Lines of a page that only
// the fuzzer makes up may not be where they are expected.
func decimal(samples []string, i int, series string) bool {
	if i >= len(samples) {
		return false
	}
	rest, found := strings.CutPrefix(samples[i], series)
	fields := strings.Fields(rest)
	return found && len(fields) > 0 && strings.Contains(fields[0], ".")
}

// failed is a scrape that gave nothing.
func failed(at time.Time) *devicemap.Page {
	return &devicemap.Page{Time: pcommon.NewTimestampFromTime(at), Duration: 0.25}
}

// exporter is an exporter that is scraped at an interval, for tests that need
// several pages.
type exporter struct {
	t      testing.TB
	target *devicemap.Target
	now    time.Time
}

func newExporter(t testing.TB, opts devicemap.Options) *exporter {
	return &exporter{t: t, target: newTarget(opts), now: t0.Add(-interval)}
}

func (e *exporter) scrape(lines ...string) devicemap.Result {
	e.t.Helper()
	e.now = e.now.Add(interval)
	md, err := scrape(strings.Join(lines, "\n")+"\n", e.now)
	require.NoError(e.t, err)
	return e.target.Map(md, here)
}

func mapOnce(t testing.TB, opts devicemap.Options, lines ...string) devicemap.Result {
	t.Helper()
	return newExporter(t, opts).scrape(lines...)
}

// gpu0 are labels that every page of an exporter has.
const gpu0 = `gpu="0",UUID="GPU-0",modelName="NVIDIA H100"`

// onGPU is a line of the page about GPU-0, or with its own labels.
func onGPU(family string, v any, more ...string) string {
	return fmt.Sprintf("%s{%s} %v", family, strings.Join(append([]string{gpu0}, more...), ","), v)
}

// onMIG is a line about an instance of GPU-0.
func onMIG(instance int, family string, v any) string {
	return onGPU(family, v, fmt.Sprintf(`GPU_I_ID="%d",GPU_I_PROFILE="1g.10gb"`, instance))
}

// points renders the points of one device as "metric{attributes} value", without
// hw.id and hw.type, sorted.
func points(r devicemap.Result, device string) []string {
	lines := []string{}
	each(r.Metrics, func(res pcommon.Map, m pmetric.Metric, p pmetric.NumberDataPoint) {
		if id, ok := res.Get(names.HwID); ok && id.Str() == device {
			lines = append(lines, render(m, p))
		}
	})
	slices.Sort(lines)
	return lines
}

// exporterPoints renders the points that are about no device.
func exporterPoints(r devicemap.Result) []string {
	lines := []string{}
	each(r.Metrics, func(res pcommon.Map, m pmetric.Metric, p pmetric.NumberDataPoint) {
		if _, ok := res.Get(names.HwID); !ok {
			lines = append(lines, render(m, p))
		}
	})
	slices.Sort(lines)
	return lines
}

// only renders the points of one metric of GPU-0.
func only(r devicemap.Result, metric string) []string {
	return slices.DeleteFunc(points(r, "GPU-0"), func(line string) bool {
		name, _, _ := strings.Cut(line, "{")
		return name != metric
	})
}

func resource(r devicemap.Result, device string) map[string]any {
	for _, rm := range r.Metrics.ResourceMetrics().All() {
		if id, ok := rm.Resource().Attributes().Get(names.HwID); ok && id.Str() == device {
			return rm.Resource().Attributes().AsRaw()
		}
	}
	return nil
}

func refused(r devicemap.Result) map[string]int {
	got := map[string]int{}
	for reason, n := range r.Refused {
		if n > 0 {
			got[Vendor.Reason(devicemap.Reason(reason))] = n
		}
	}
	return got
}

func each(md pmetric.Metrics, f func(pcommon.Map, pmetric.Metric, pmetric.NumberDataPoint)) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for _, p := range numberPoints(m).All() {
					f(rm.Resource().Attributes(), m, p)
				}
			}
		}
	}
}

// numberPoints are the points of a metric, which is a gauge or a sum.
func numberPoints(m pmetric.Metric) pmetric.NumberDataPointSlice {
	if m.Type() == pmetric.MetricTypeSum {
		return m.Sum().DataPoints()
	}
	return m.Gauge().DataPoints()
}

func render(m pmetric.Metric, p pmetric.NumberDataPoint) string {
	var attrs []string
	for k, v := range p.Attributes().All() {
		if k != names.HwID && k != names.HwType && k != names.ServerAddress && k != names.ServerPort {
			attrs = append(attrs, k+"="+v.AsString())
		}
	}
	slices.Sort(attrs)
	return fmt.Sprintf("%s{%s} %s", m.Name(), strings.Join(attrs, ","), number(pointValue(p)))
}

func number(v float64) string { return fmt.Sprintf("%.10g", v) }

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

func newTarget(opts devicemap.Options) *devicemap.Target { return devicemap.NewTarget(&Vendor, opts) }
