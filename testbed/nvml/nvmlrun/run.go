// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package nvmlrun runs the nvml receiver, with the real helper, in a laboratory.
package nvmlrun

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver"
	nvmllab "github.com/otelcol-gpu/otelcol-gpu/testbed/nvml"
)

// patience is how long Await waits.
const patience = 2 * time.Minute

// Run is a receiver that runs.
type Run struct {
	Logs *observer.ObservedLogs

	t         testing.TB
	telemetry *componenttest.Telemetry
	receiver  receiver.Metrics
	stopped   bool

	mu      sync.Mutex
	scrapes []pmetric.Metrics
}

// Keys are the receiver's keys in a laboratory, and others on top.
func Keys(lab *nvmllab.Lab, more map[string]any) map[string]any {
	keys := map[string]any{
		"collection_interval": "1s", "library": lab.Library, "helper": lab.Helper(), "root_path": lab.Root, "node_name": lab.Node,
	}
	for k, v := range more {
		keys[k] = v
	}
	return keys
}

// Start starts a receiver with some keys, which stops at the end of the test.
func Start(t testing.TB, keys map[string]any) *Run {
	t.Helper()
	factory := nvmlreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(keys).Unmarshal(cfg))
	require.NoError(t, cfg.(interface{ Validate() error }).Validate())
	r := &Run{t: t, telemetry: componenttest.NewTelemetry()}
	set := receivertest.NewNopSettings(component.MustNewType("nvml"))
	set.TelemetrySettings = r.telemetry.NewTelemetrySettings()
	core, logs := observer.New(zap.InfoLevel)
	set.Logger, r.Logs = zap.New(core), logs
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		kept := pmetric.NewMetrics()
		md.CopyTo(kept)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.scrapes = append(r.scrapes, kept)
		return nil
	})
	require.NoError(t, err)
	r.receiver, err = factory.CreateMetrics(t.Context(), set, cfg, next)
	require.NoError(t, err)
	require.NoError(t, r.receiver.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(r.Stop)
	return r
}

// Stop stops the receiver.
func (r *Run) Stop() {
	if r.stopped {
		return
	}
	r.stopped = true
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(r.t, r.receiver.Shutdown(ctx))
	require.NoError(r.t, r.telemetry.Shutdown(context.Background()))
}

// Scrapes are what the receiver has sent so far.
func (r *Run) Scrapes() []pmetric.Metrics {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.scrapes[:len(r.scrapes):len(r.scrapes)]
}

// Await waits for a scrape after those of now that meets a condition, and returns its values
// by Values.
func (r *Run) Await(what string, meets func(map[string]float64) bool) map[string]float64 {
	r.t.Helper()
	from := len(r.Scrapes())
	var last map[string]float64
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for _, md := range r.Scrapes()[from:] {
			from++
			if last = Values(md); meets(last) {
				return last
			}
		}
	}
	require.FailNow(r.t, "no scrape with "+what, "the last one: %v\nlog:\n%s", last, r.Log())
	return nil
}

// Log is what was logged, a line each.
func (r *Run) Log() string {
	text := ""
	for _, e := range r.Logs.All() {
		text += fmt.Sprintln(e.Level, e.Message, e.ContextMap())
	}
	return text
}

// Count is the sum of one of the receiver's own metrics, of the points with a value of an
// attribute; an empty value is any.
func (r *Run) Count(name, value string) (sum float64) {
	m, err := r.telemetry.GetMetric("otelcol_nvml_receiver_" + name)
	if err != nil {
		return 0 // nothing was counted yet
	}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			for _, kv := range p.Attributes.ToSlice() {
				if kv.Value.AsString() == value {
					sum += float64(p.Value)
				}
			}
			if value == "" {
				sum += float64(p.Value)
			}
		}
	case metricdata.Sum[float64]:
		for _, p := range data.DataPoints {
			sum += p.Value
		}
	}
	return sum
}

// Values are all points of a scrape by "hw.id metric attributes", the id being "-" where
// there is none, and attributes the values of those that are not the resource's.
func Values(md pmetric.Metrics) map[string]float64 {
	out := map[string]float64{}
	for _, rm := range md.ResourceMetrics().All() {
		id := "-"
		if v, ok := rm.Resource().Attributes().Get("hw.id"); ok {
			id = v.Str()
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				points := pmetric.NewNumberDataPointSlice()
				if m.Type() == pmetric.MetricTypeGauge {
					points = m.Gauge().DataPoints()
				} else if m.Type() == pmetric.MetricTypeSum {
					points = m.Sum().DataPoints()
				}
				for _, p := range points.All() {
					key := id + " " + m.Name()
					for k, v := range p.Attributes().All() {
						if _, shared := rm.Resource().Attributes().Get(k); !shared {
							key += " " + v.AsString()
						}
					}
					out[key] = p.DoubleValue()
					if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
						out[key] = float64(p.IntValue())
					}
				}
			}
		}
	}
	return out
}
