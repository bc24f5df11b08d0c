// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/claims"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/otlp"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

// evaluation is what the gateway reported about a service at one time.
type evaluation struct {
	service string
	at      time.Time
	arrived time.Time
	pods    map[string]float64 // by state
	partial *float64           // nil: it was not reported
	values  map[string]float64 // of averages, by their key, those that were reported
}

// event is one event as the gateway handed it on.
type event struct {
	id, key, name, state string
	severity             int
	device, code         string
	at                   time.Time
	arrived, again       time.Time // first and last
	posts                int       // how often it was forwarded
}

// seen is when a device was last reported, and its owner then.
type seen struct {
	at    time.Time
	owner ownership.Owner
}

// recorder is an OTLP/gRPC server that takes what the agents send beside the
// gateway, what the gateway forwards, and its events.
type recorder struct {
	*otlp.Server

	mu          sync.Mutex
	points      []ownership.Point // about devices, not judged yet
	evaluations []evaluation
	latest      map[string]evaluation // by service
	devices     map[string]seen       // by node/device
	events      map[string]*event     // by id
	order       []*event
	states      [][]claims.StatePoint // of batches, not judged yet
	notFrozen   []claims.NotFrozen    // likewise
	refuses     bool                  // what the gateway sends
}

// fromGateway marks what the gateway sends, beside the agents.
const fromGateway = "x-chaos-gateway"

// refuse lets the recorder refuse what the gateway sends, or take it again.
func (r *recorder) refuse(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses = on
}

// claimed takes the words about states and frozen exporters.
func (r *recorder) claimed() (states [][]claims.StatePoint, notFrozen []claims.NotFrozen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	states, notFrozen = r.states, r.notFrozen
	r.states, r.notFrozen = nil, nil
	return states, notFrozen
}

// record starts a recorder on a free port. Close ends it.
func record() (*recorder, error) {
	r := &recorder{latest: map[string]evaluation{}, devices: map[string]seen{}, events: map[string]*event{}}
	var err error
	r.Server, err = otlp.Serve(address(0), otlp.Handler{Metrics: r.takeMetrics, Logs: r.takeLogs})
	return r, err
}

// judged are the metrics with points of judged owners; the others of a
// resource have the same.
var judged = []string{names.GPUUtilization.Name, names.GPUMemoryUsage.Name, names.HwPower.Name, names.GPUAllocation.Name}

// takeMetrics keeps points about devices from agents and evaluations from the gateway.
func (r *recorder) takeMetrics(ctx context.Context, received pmetric.Metrics) error {
	now := time.Now()
	md, _ := metadata.FromIncomingContext(ctx)
	r.mu.Lock()
	refused := r.refuses && len(md.Get(fromGateway)) > 0
	r.mu.Unlock()
	if refused {
		return status.Error(codes.Unavailable, "the queue is full")
	}
	var points []ownership.Point
	var states []claims.StatePoint
	var notFrozen []claims.NotFrozen
	evaluations := map[evaluationKey]*evaluation{}
	for _, rm := range received.ResourceMetrics().All() {
		resource := rm.Resource().Attributes()
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				switch {
				case text(resource, names.K8sNamespaceName) == "hostile":
					// What the test sends through the agents is no word of theirs.
				case slices.Contains(judged, metric.Name()):
					points = appendPoints(points, resource, metric, now)
				case metric.Name() == names.PodState.Name:
					states = appendStates(states, resource, metric)
				case metric.Name() == names.ExporterFrozen.Name:
					for _, dp := range numbers(metric).All() {
						if !dp.Flags().NoRecordedValue() && number(dp) == 0 {
							notFrozen = append(notFrozen, claims.NotFrozen{Node: text(resource, names.K8sNodeName), At: dp.Timestamp().AsTime()})
						}
					}
				default:
					evaluate(evaluations, resource, metric, now)
				}
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range points {
		p := &points[i]
		key := p.Node + " " + p.Device
		if p.Metric != names.GPUAllocation.Name && !p.Ended && p.Time.After(r.devices[key].at) {
			r.devices[key] = seen{p.Time, p.Owner}
		}
	}
	r.points = append(r.points, points...)
	r.notFrozen = append(r.notFrozen, notFrozen...)
	if len(states) > 0 {
		r.states = append(r.states, states)
	}
	for key, e := range evaluations {
		r.evaluations = append(r.evaluations, *e)
		if e.at.After(r.latest[key.service].at) {
			r.latest[key.service] = *e
		}
	}
	return nil
}

func text(attributes pcommon.Map, key string) string {
	if v, ok := attributes.Get(key); ok {
		return v.AsString()
	}
	return ""
}

func numbers(metric pmetric.Metric) pmetric.NumberDataPointSlice {
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		return metric.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		return metric.Sum().DataPoints()
	}
	return pmetric.NewNumberDataPointSlice()
}

func number(p pmetric.NumberDataPoint) float64 {
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(p.IntValue())
	}
	return p.DoubleValue()
}

func appendPoints(to []ownership.Point, resource pcommon.Map, metric pmetric.Metric, now time.Time) []ownership.Point {
	for _, dp := range numbers(metric).All() {
		if task := text(dp.Attributes(), names.HwGPUTask); task != "" && task != "general" {
			continue
		}
		to = append(to, ownership.Point{
			Arrived: now, Time: dp.Timestamp().AsTime(), Metric: metric.Name(),
			Node: text(resource, names.K8sNodeName), Device: text(dp.Attributes(), names.HwID), Value: number(dp),
			Owner: ownership.Owner{
				Namespace: text(resource, names.K8sNamespaceName), Pod: text(resource, names.K8sPodName),
				Container: text(resource, names.K8sContainerName), UID: text(resource, names.K8sPodUID),
			},
			Service: text(resource, names.ServiceName), Ended: dp.Flags().NoRecordedValue(),
		})
	}
	return to
}

func appendStates(to []claims.StatePoint, resource pcommon.Map, metric pmetric.Metric) []claims.StatePoint {
	if text(resource, names.K8sNamespaceName) != namespace {
		return to
	}
	for _, dp := range numbers(metric).All() {
		to = append(to, claims.StatePoint{
			Service: text(resource, names.ServiceName), Pod: text(dp.Attributes(), names.K8sPodName), State: text(dp.Attributes(), names.GPUPodState),
			At: dp.Timestamp().AsTime(), Value: number(dp), Ended: dp.Flags().NoRecordedValue(),
		})
	}
	return to
}

type evaluationKey struct {
	service string
	at      pcommon.Timestamp
}

// evaluate adds the values of a metric, if it is about a service.
func evaluate(to map[evaluationKey]*evaluation, resource pcommon.Map, metric pmetric.Metric, now time.Time) {
	average := averaged[metric.Name()]
	if !average && metric.Name() != names.ServicePods.Name && metric.Name() != names.ServicePartial.Name {
		return
	}
	for _, dp := range numbers(metric).All() {
		if dp.Flags().NoRecordedValue() || text(resource, names.K8sNamespaceName) != namespace {
			continue
		}
		key := evaluationKey{text(resource, names.ServiceName), dp.Timestamp()}
		e := to[key]
		if e == nil {
			e = &evaluation{service: key.service, at: dp.Timestamp().AsTime(), arrived: now, pods: map[string]float64{}, values: map[string]float64{}}
			to[key] = e
		}
		v := number(dp)
		switch {
		case average:
			e.values[averageKey(metric.Name(), text(dp.Attributes(), names.GPUPipe))] = v
		case metric.Name() == names.ServicePods.Name:
			e.pods[text(dp.Attributes(), names.GPUPodState)] = v
		default:
			e.partial = &v
		}
	}
}

// takeLogs keeps events.
func (r *recorder) takeLogs(_ context.Context, ld plog.Logs) error {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				a := record.Attributes()
				id := text(a, names.GPUEventID)
				e := r.events[id]
				if e == nil {
					e = &event{
						id: id, key: text(a, names.GPUEventKey), state: text(a, names.GPUEventState), name: record.EventName(),
						severity: int(record.SeverityNumber()), code: text(a, names.GPUXIDCode), device: text(rl.Resource().Attributes(), names.HwID),
						at: record.Timestamp().AsTime(), arrived: now,
					}
					r.events[id] = e
					r.order = append(r.order, e)
				}
				e.posts, e.again = e.posts+1, now
			}
		}
	}
	return nil
}

// ripe takes the points and evaluations that arrived before a time, in the order
// of their arrival.
func (r *recorder) ripe(before time.Time) (points []ownership.Point, evaluations []evaluation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for n < len(r.points) && r.points[n].Arrived.Before(before) {
		n++
	}
	points, r.points = r.points[:n:n], slices.Clone(r.points[n:])
	n = 0
	for n < len(r.evaluations) && r.evaluations[n].arrived.Before(before) {
		n++
	}
	evaluations, r.evaluations = r.evaluations[:n:n], slices.Clone(r.evaluations[n:])
	return points, evaluations
}

// newest are the newest evaluation of each service and the newest word on each
// device, by node and device with a blank between.
func (r *recorder) newest() (map[string]evaluation, map[string]seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	evaluations, devices := map[string]evaluation{}, map[string]seen{}
	for k, v := range r.latest {
		evaluations[k] = v
	}
	for k, v := range r.devices {
		devices[k] = v
	}
	return evaluations, devices
}

// Events are those of all time, in the order in which they came first.
func (r *recorder) Events() []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]event, 0, len(r.order))
	for _, e := range r.order {
		out = append(out, *e)
	}
	return out
}
