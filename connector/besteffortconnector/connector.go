// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package besteffortconnector

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pipeline"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/connector/besteffortconnector/internal/branch"
	"github.com/otelcol-gpu/otelcol-gpu/connector/besteffortconnector/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// signal is what differs between metrics, logs and traces.
type signal[T any] struct {
	count func(T) int
	copy  func(T) T
}

// way is the way into a pipeline.
type way[T any] struct {
	consume func(context.Context, T) error
	dropped func(T) // may be nil
}

// forwarder forwards to each pipeline behind it.
type forwarder[T any] struct {
	config    Config
	signal    signal[T]
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	outputs   []*output[T]
}

// output is one pipeline.
type output[T any] struct {
	*branch.Branch[T]
	logger  *zap.Logger
	name    metric.MeasurementOption
	dropped func(T) // what never reached the pipeline
	refused metric.MeasurementOption
	busy    metric.MeasurementOption
	causes  logonce.Causes
}

func newForwarder[T any](set connector.Settings, config *Config, s signal[T]) (*forwarder[T], error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &forwarder[T]{config: *config, signal: s, logger: set.Logger, telemetry: telemetry}, nil
}

// behind adds the pipelines behind the connector, each by itself: one that is
// stuck does not hold the others either.
func behind[T any, C any, R interface {
	Consumer(...pipeline.ID) (C, error)
	PipelineIDs() []pipeline.ID
}](f *forwarder[T], router R, way func(C) way[T]) error {
	ids := router.PipelineIDs()
	slices.SortFunc(ids, func(a, b pipeline.ID) int { return cmp.Compare(a.String(), b.String()) })
	for _, id := range ids {
		next, err := router.Consumer(id)
		if err != nil {
			return err
		}
		f.outputs = append(f.outputs, f.newOutput(id.String(), way(next)))
	}
	return nil
}

func (f *forwarder[T]) newOutput(name string, to way[T]) *output[T] {
	with := func(reason string) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(attribute.String("pipeline", name), attribute.String("reason", reason)))
	}
	return &output[T]{
		Branch:  branch.New(to.consume, f.config.Timeout, f.config.MaxInFlight),
		logger:  f.logger.With(zap.String("pipeline", name)),
		name:    metric.WithAttributeSet(attribute.NewSet(attribute.String("pipeline", name))),
		dropped: to.dropped,
		refused: with("refused"),
		busy:    with("busy"),
	}
}

// Capabilities implements consumer. It changes nothing; the Collector adds what
// the pipelines behind it do.
func (f *forwarder[T]) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// Start implements component.Component.
func (f *forwarder[T]) Start(context.Context, component.Host) error { return nil }

// Shutdown implements component.Component.
func (f *forwarder[T]) Shutdown(context.Context) error {
	for _, o := range f.outputs {
		if !o.Shutdown() {
			o.logger.Warn("a pipeline has not returned, and the telemetry that it was given last may be lost")
		}
	}
	f.telemetry.Shutdown()
	return nil
}

// forward gives v to every pipeline.
func (f *forwarder[T]) forward(ctx context.Context, v T) {
	// A pipeline may change what it is given, and may do so in the background.
	items := int64(f.signal.count(v))
	given := make([]T, len(f.outputs))
	for i := range f.outputs {
		if given[i] = v; i > 0 {
			given[i] = f.signal.copy(v)
		}
	}
	for i, o := range f.outputs {
		f.forwardTo(context.WithoutCancel(ctx), o, given[i], items)
	}
}

func (f *forwarder[T]) forwardTo(ctx context.Context, o *output[T], v T, items int64) {
	late := o.Forward(ctx, v, func(err error) {
		switch {
		case err == nil:
		case errors.Is(err, branch.ErrBusy):
			f.telemetry.ConnectorBestEffortDropped.Add(ctx, items, o.busy)
			if o.dropped != nil {
				o.dropped(v)
			}
			o.log("a pipeline has not returned from earlier calls, and its data is dropped", err)
		default:
			f.telemetry.ConnectorBestEffortDropped.Add(ctx, items, o.refused)
			o.log("a pipeline refused data, and it is dropped", err)
		}
	})
	if late {
		f.telemetry.ConnectorBestEffortLate.Add(ctx, 1, o.name)
		o.log("a pipeline takes longer than the timeout, and goes on in the background", errLate)
	}
}

// longestCause bounds the text of an error in the log, in runes.
const longestCause = 256

var errLate = errors.New("timeout exceeded")

func (o *output[T]) log(message string, err error) {
	text := safetext.Strip(err.Error(), longestCause)
	if o.causes.First(text, time.Now()) {
		o.logger.Warn(message+"; further ones with this cause are only counted", zap.String("error", text))
	}
}
