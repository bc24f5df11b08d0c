// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/gpustoreexporter"

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheusremotewrite"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/multierr"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/gpustoreexporter/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/reserved"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// translation is how the shipped configurations have prometheus_remote_write
// write.
var translation = prometheusremotewrite.Settings{
	TranslationStrategy: "UnderscoreEscapingWithSuffixes",
	AddMetricSuffixes:   true,
	DisableTargetInfo:   true,
	DisableScopeInfo:    true,
}

// metricsExporter writes metrics.
type metricsExporter struct {
	config       *Config
	logger       *zap.Logger
	telemetry    *metadata.TelemetryBuilder
	untranslated sync.Once
	logged       sync.Map // reasons
	store        store.Store
}

func newMetricsExporter(set exporter.Settings, cfg *Config) (*metricsExporter, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &metricsExporter{config: cfg, logger: set.Logger, telemetry: telemetry}, nil
}

func (e *metricsExporter) start(_ context.Context, host component.Host) error {
	s, err := store.Find(host, "store", e.config.Store)
	if err != nil {
		return err
	}
	if s.Info().ReadOnly {
		return fmt.Errorf("store: the extension %q has the engine %s, which takes no samples; write metrics to that server with prometheus_remote_write, and take this exporter out of pipelines of metrics (events and their log it takes)", e.config.Store, s.Info().Engine)
	}
	if room := s.Info().MaxSeries; e.config.MaxSeries > 0 && room > 0 && e.config.MaxSeries >= room {
		return fmt.Errorf("max_series: %d: the extension %q has room for %d series (its own max_series); set the share of applications to a part of that, so that GPU telemetry has the rest", e.config.MaxSeries, e.config.Store, room)
	}
	e.store = s
	return nil
}

func (e *metricsExporter) shutdown(context.Context) error {
	e.telemetry.Shutdown()
	return nil
}

func (e *metricsExporter) push(ctx context.Context, md pmetric.Metrics) error {
	converted, err := prometheusremotewrite.FromMetrics(md, translation)
	if err != nil {
		e.telemetry.ExporterGpuStoreTranslationFailures.Add(ctx, int64(len(multierr.Errors(err))))
		e.untranslated.Do(func() {
			e.logger.Warn("skipping metrics that Prometheus cannot represent; logged once, counted in exporter_gpu_store_translation_failures", zap.Error(err))
		})
	}
	if families, err := prometheusremotewrite.OtelMetricsToMetadata(md, translation); err == nil {
		e.store.Describe(describe(families, e.config.MaxSeries > 0))
	}
	if e.config.MaxSeries > 0 {
		return e.pushShare(ctx, seriesOf(converted))
	}
	if _, err := e.store.Append(ctx, seriesOf(converted)); err != nil {
		return consumererror.NewPermanent(err)
	}
	return nil
}

// pushShare writes series of applications.
func (e *metricsExporter) pushShare(ctx context.Context, series []store.Series) error {
	foreign := 0
	series = slices.DeleteFunc(series, func(s store.Series) bool {
		if reserved.ForApplications(s.Labels.Get(model.MetricNameLabel)) {
			return false
		}
		foreign += len(s.Samples) + len(s.Histograms)
		return true
	})
	e.refused(ctx, "reserved", foreign, "they have names of GPU telemetry, of recording rules or of the Collector; put app_guard in front")
	appended, err := e.store.AppendWithin(ctx, series, e.config.MaxSeries)
	if err != nil {
		return consumererror.NewPermanent(err)
	}
	e.refused(ctx, "max_series", appended.Refused[store.ShareLimit], "the share of applications is used up; raise max_series here and in the store, or send fewer series")
	return nil
}

// refused counts samples of applications, and logs once why.
func (e *metricsExporter) refused(ctx context.Context, reason string, n int, meaning string) {
	if n == 0 {
		return
	}
	e.telemetry.ExporterGpuStoreRefusedSamples.Add(ctx, int64(n), metric.WithAttributes(attribute.String("reason", reason)))
	if _, logged := e.logged.LoadOrStore(reason, true); !logged {
		e.logger.Warn("samples of applications are not stored; logged once, exporter_gpu_store_refused_samples counts them",
			zap.String("reason", reason), zap.String("meaning", meaning))
	}
}

// seriesOf copies what was converted, oldest samples first.
func seriesOf(converted map[string]*prompb.TimeSeries) []store.Series {
	out := make([]store.Series, 0, len(converted))
	builder := labels.NewScratchBuilder(16)
	for _, ts := range converted {
		s := store.Series{Labels: ts.ToLabels(&builder, nil)}
		if len(ts.Samples) > 0 {
			s.Samples = make([]store.Sample, 0, len(ts.Samples))
		}
		for _, sample := range ts.Samples {
			s.Samples = append(s.Samples, store.Sample{Time: sample.Timestamp, Value: sample.Value})
		}
		slices.SortStableFunc(s.Samples, func(a, b store.Sample) int { return cmp.Compare(a.Time, b.Time) })
		for _, h := range ts.Histograms {
			converted := store.Histogram{Time: h.Timestamp}
			if h.IsFloatHistogram() {
				converted.Float = h.ToFloatHistogram()
			} else {
				converted.Integer = h.ToIntHistogram()
			}
			s.Histograms = append(s.Histograms, converted)
		}
		slices.SortStableFunc(s.Histograms, func(a, b store.Histogram) int { return cmp.Compare(a.Time, b.Time) })
		out = append(out, s)
	}
	return out
}

// maxHelp bounds a description, in runes.
const maxHelp = 512

func describe(families []*prompb.MetricMetadata, ofApplications bool) map[string]store.Metadata {
	out := make(map[string]store.Metadata, len(families))
	for _, f := range families {
		if ofApplications && !reserved.ForApplications(f.MetricFamilyName) {
			continue
		}
		out[f.MetricFamilyName] = store.Metadata{Type: strings.ToLower(f.Type.String()), Unit: f.Unit, Help: safetext.Strip(f.Help, maxHelp)}
	}
	return out
}
