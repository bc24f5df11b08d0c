// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package reserved // import "github.com/otelcol-gpu/otelcol-gpu/internal/reserved"

import (
	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// The shipped configurations translate names with suffixes (docs/decisions/0006).
// A backend behind OTLP may do it without.
var (
	namer = otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	plain = otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithoutSuffixes)
)

// Name returns the name that Prometheus will give to the family of a metric. The
// error is that of a name without a letter or digit.
func Name(m pmetric.Metric) (string, error) {
	return namer.Build(prometheusremotewrite.TranslatorMetricFromOtelMetric(m))
}

// Metric returns the name that Prometheus will give to a metric, and the owner of
// that name or, if it has none, of the one without suffixes.
func Metric(m pmetric.Metric) (name string, owner Owner, err error) {
	name, err = Name(m)
	if err != nil {
		return "", Free, err
	}
	if owner = Of(name); owner != Free {
		return name, owner, nil
	}
	if short, err := plain.Build(otlptranslator.Metric{Name: m.Name()}); err == nil {
		owner = Of(short)
	}
	return name, owner, nil
}
