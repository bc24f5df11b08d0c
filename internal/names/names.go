// Package names is the vocabulary of otelcol-gpu: every metric and attribute
// name that more than one component writes or reads, with kind and unit.
//
// Official OpenTelemetry semantic conventions (hw.*, k8s.*, service.*, gen_ai.*) are
// used where they exist; what is about devices and their owners lives in the namespace
// gpu.*, what is about requests to models in inference.*.
package names

import (
	"strings"

	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Kind is the OpenTelemetry instrument kind of a metric.
type Kind uint8

const (
	// Gauge is a value that is not summed over time.
	Gauge Kind = iota
	// UpDownCounter is a cumulative, non-monotonic sum: values of several
	// series may be added. States that are 0 or 1 use it too, so that
	// Prometheus names get no _ratio suffix.
	UpDownCounter
	// Counter is a cumulative, monotonic sum with a start time.
	Counter
	// Histogram is a cumulative histogram with a start time.
	Histogram
)

func (k Kind) String() string {
	switch k {
	case UpDownCounter:
		return "updowncounter"
	case Counter:
		return "counter"
	case Histogram:
		return "histogram"
	default:
		return "gauge"
	}
}

// Metric describes one metric: the single source for code, tests and docs.
type Metric struct {
	Name        string
	Unit        string // UCUM
	Kind        Kind
	Description string
}

// Int reports whether values of the metric are whole numbers: bytes, counts of
// things, and states. The share of a device that is held is a fraction, and money and
// rates have fractions.
func (m *Metric) Int() bool {
	if strings.HasPrefix(m.Unit, "{currency}") {
		return false
	}
	thing := strings.HasPrefix(m.Unit, "{") && strings.HasSuffix(m.Unit, "}")
	return m.Unit == "By" || thing || m.Kind == UpDownCounter && m.Name != GPUAllocation.Name
}

// Prometheus is the name that the metric has in Prometheus under translation_strategy
// UnderscoreEscapingWithSuffixes, which all shipped configurations and the embedded
// store use. It panics where the metric has no name.
func (m Metric) Prometheus() string {
	kind := map[Kind]otlptranslator.MetricType{
		Gauge: otlptranslator.MetricTypeGauge, UpDownCounter: otlptranslator.MetricTypeNonMonotonicCounter, Counter: otlptranslator.MetricTypeMonotonicCounter, Histogram: otlptranslator.MetricTypeHistogram,
	}[m.Kind]
	namer := otlptranslator.MetricNamer{WithMetricSuffixes: true}
	name, err := namer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: kind})
	if err != nil {
		panic(err)
	}
	return name
}

// Generic reports whether the metric is one of the conventions' hw.* metrics that
// all kinds of hardware share: their points carry hw.type.
func (m *Metric) Generic() bool {
	return strings.HasPrefix(m.Name, "hw.") && !strings.HasPrefix(m.Name, "hw.gpu.")
}

// Init writes name, unit, description and kind into dst, and returns the empty
// slice for its points. A Histogram has none of this type: see InitHistogram.
func (m *Metric) Init(dst pmetric.Metric) pmetric.NumberDataPointSlice {
	dst.SetName(m.Name)
	dst.SetUnit(m.Unit)
	dst.SetDescription(m.Description)
	if m.Kind == Gauge {
		return dst.SetEmptyGauge().DataPoints()
	}
	sum := dst.SetEmptySum()
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	sum.SetIsMonotonic(m.Kind == Counter)
	return sum.DataPoints()
}

// InitHistogram writes name, unit and description into dst, and returns the empty
// slice for its points, which are cumulative.
func (m *Metric) InitHistogram(dst pmetric.Metric) pmetric.HistogramDataPointSlice {
	dst.SetName(m.Name)
	dst.SetUnit(m.Unit)
	dst.SetDescription(m.Description)
	histogram := dst.SetEmptyHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	return histogram.DataPoints()
}

// devicePrefixes begin the metrics of devices and their exporters: names of this package,
// and the prefix of each vendor's families without one.
var devicePrefixes = [...]string{"gpu.", "hw.", DCGMPrefix, AMDPrefix, GaudiPrefix, IntelPrefix}

// OfDevices reports whether a metric is about devices or their exporters, by its name.
func OfDevices(metric string) bool {
	for _, prefix := range devicePrefixes {
		if strings.HasPrefix(metric, prefix) {
			return true
		}
	}
	return false
}
