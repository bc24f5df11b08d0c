// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuschedulingreceiver

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/capacity"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/durations"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/metadata"
)

// telemetry is what the receiver reports about itself. It is safe for concurrent use.
type telemetry struct {
	builder *metadata.TelemetryBuilder
	logger  *zap.Logger
	logged  logonce.Causes
}

func newTelemetry(set component.TelemetrySettings, r *schedulingReceiver) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		builder.RegisterGpuSchedulingAPIAgeCallback(func(_ context.Context, o metric.Float64Observer) error {
			now := time.Now()
			for object, at := range r.asOf(now) {
				o.Observe(now.Sub(at).Seconds(), with("object", object))
			}
			return nil
		}),
		builder.RegisterGpuSchedulingNodesTrackedCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(r.nodes.Load())
			return nil
		}),
		builder.RegisterGpuSchedulingPodsTrackedCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(r.pods.Load())
			return nil
		}),
	)
	if err != nil {
		builder.Shutdown()
		return nil, err
	}
	return &telemetry{builder: builder, logger: set.Logger}, nil
}

func with(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}

// Asked counts a request to the Kubernetes API.
func (t *telemetry) Asked(ctx context.Context, object, result string) {
	t.builder.GpuSchedulingAPIRequests.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(
		attribute.String("object", object), attribute.String("result", result))))
}

// Refused counts pods, and claims of pods, that max_pods left out.
func (t *telemetry) Refused(ctx context.Context, pods int) {
	t.limit(ctx, "pods", pods, "max_pods leaves out pods, or claims of pods: devices that these may hold are not known to be free, and have no figures until it is raised")
}

// NodesRefused counts nodes, and ResourceSlices, that max_nodes left out.
func (t *telemetry) NodesRefused(ctx context.Context, nodes int) {
	t.limit(ctx, "nodes", nodes, "max_nodes leaves out nodes, or their ResourceSlices: their devices are missing until it is raised")
}

func (t *telemetry) limit(ctx context.Context, limit string, n int, message string) {
	if n == 0 {
		return
	}
	t.builder.GpuSchedulingLimitRefusals.Add(ctx, int64(n), with("limit", limit))
	if t.logged.Due("limit "+limit, time.Now()) {
		t.logger.Warn(message, zap.Int("left_out", n))
	}
}

func (t *telemetry) problem(ctx context.Context, problem string, n int, message string, fields ...zap.Field) {
	if n == 0 {
		return
	}
	t.builder.GpuSchedulingInconsistencies.Add(ctx, int64(n), with("problem", problem))
	if t.logged.Due(problem, time.Now()) {
		t.logger.Warn(message, append(fields, zap.Int("count", n))...)
	}
}

// evaluated reports what was wrong with the objects of an evaluation.
func (t *telemetry) evaluated(ctx context.Context, took time.Duration, f *capacity.Figures, unplaced int) {
	t.builder.GpuSchedulingEvaluationDuration.Record(ctx, took.Seconds())
	t.problem(ctx, "quantity", f.Quantities, "nodes have quantities of devices that are no whole number: they are left out; check their device plugins")
	t.problem(ctx, "unknown_node", f.UnknownNodes, "pods are bound to nodes that are not there: they hold no device of any other; delete the pods if the nodes do not return")
	t.problem(ctx, "overcommitted", f.Overcommitted, "pods request more devices of a node than it has: devices were lost, or left out by the device plugin",
		zap.String("node", f.Example.Node), zap.String("resource", f.Example.Resource),
		zap.Int("requested", f.Example.Requested), zap.Int("allocatable", f.Example.Allocatable))
	t.problem(ctx, "absurd_request", f.Absurd, "pods request more devices than any node could ever have: their devices count nowhere; correct or delete the pods", zap.String("pod", f.AbsurdPod))
	t.negative(ctx, f.Negative)
	t.limit(ctx, "queues", unplaced, "max_queues has no room for more pairs of namespace and queue, of which one namespace has a tenth: further pods are counted without their queue; raise it")
	t.limit(ctx, "ended", f.Forgotten, "more pods ended within request_window than max_pods: what is usual is computed without the oldest")
}

func (t *telemetry) negative(ctx context.Context, n int) {
	t.problem(ctx, "negative_duration", n, "pods did something before what it follows: their times are left out; check the clocks of this machine, the API server and the nodes")
}

// observed reports what was not recorded of the transitions of pods.
func (t *telemetry) observed(ctx context.Context, seen *durations.Seen) {
	for is, n := range seen.Missed {
		if n > 0 {
			t.builder.GpuSchedulingTransitionsMissed.Add(ctx, int64(n), with("transition", durations.Transition(is).String()))
		}
	}
	t.negative(ctx, seen.Negative)
}
