// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor"
)

// translator is the processor with what it has passed on.
type translator struct {
	processor.Metrics
	sink   *consumertest.MetricsSink
	fault  fault
	config map[string]any
}

// fault changes what the processor gets, or what it made, as if it had one.
type fault struct{ before, after func(pmetric.ResourceMetrics) }

func newTranslator(f fault, config map[string]any) (*translator, error) {
	factory := inferenceprocessor.NewFactory()
	cfg := factory.CreateDefaultConfig()
	if err := confmap.NewFromStringMap(config).Unmarshal(cfg); err != nil {
		return nil, err
	}
	t := &translator{sink: &consumertest.MetricsSink{}, fault: f, config: config}
	var err error
	t.Metrics, err = factory.CreateMetrics(context.Background(), processortest.NewNopSettings(factory.Type()), cfg, t.sink)
	if err != nil {
		return nil, err
	}
	return t, t.Start(context.Background(), host{componenttest.NewNopHost()})
}

// restart is another one, which knows nothing.
func (t *translator) restart() (*translator, error) {
	if err := t.Shutdown(context.Background()); err != nil {
		return nil, err
	}
	return newTranslator(t.fault, t.config)
}

type host struct{ component.Host }

// pass is what the processor makes of a page.
func (t *translator) pass(md pmetric.Metrics) (pmetric.ResourceMetrics, error) {
	t.sink.Reset()
	if t.fault.before != nil {
		t.fault.before(md.ResourceMetrics().At(0))
	}
	if err := t.ConsumeMetrics(context.Background(), md); err != nil {
		return pmetric.ResourceMetrics{}, err
	}
	rm := t.sink.AllMetrics()[0].ResourceMetrics().At(0)
	if t.fault.after != nil {
		t.fault.after(rm)
	}
	return rm, nil
}
