// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/claims"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/otlp"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

// Evaluation is what the gateway reported about a service at one time.
type Evaluation struct {
	Service string
	At      time.Time
	Arrived time.Time
	Pods    map[string]float64 // by state
	Partial *float64           // nil: it was not reported
	values  map[string]float64 // of averages, by their key, those that were reported
}

// Event is one event as the gateway forwarded it.
type Event struct {
	ID, Key, Name, State string
	Severity             int
	Device, Code         string
	At                   time.Time
	Arrived, Again       time.Time // first and last
	Posts                int       // how often it was forwarded
}

// Service is the service that an event is about.
func (e *Event) Service() string { return e.Key[strings.LastIndex(e.Key, "/")+1:] }

// Seen is when a device was last reported, and its owner then.
type Seen struct {
	At    time.Time
	Owner ownership.Owner
}

// Recorder is an OTLP/gRPC server that takes what the agents send beside the
// gateway, what the gateway forwards, and its events.
type Recorder struct {
	*otlp.Server

	mu          sync.Mutex
	points      []ownership.Point // about devices, not judged yet
	evaluations []Evaluation
	latest      map[string]Evaluation // by service
	devices     map[string]Seen       // by node/device
	events      map[string]*Event     // by id
	order       []*Event
	states      [][]claims.StatePoint // of batches, not judged yet
	notFrozen   []claims.NotFrozen    // likewise
	refuses     bool                  // what the gateway sends
}

// FromGateway marks what the gateway sends, beside the agents.
const FromGateway = "x-chaos-gateway"

// Refuse lets the recorder refuse what the gateway sends, or take it again.
func (r *Recorder) Refuse(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses = on
}

// claimed returns what was reported about states and frozen exporters since the last call.
func (r *Recorder) claimed() (states [][]claims.StatePoint, notFrozen []claims.NotFrozen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	states, notFrozen = r.states, r.notFrozen
	r.states, r.notFrozen = nil, nil
	return states, notFrozen
}

// Record starts a recorder on a free port. Close ends it.
func Record() (*Recorder, error) {
	r := newRecorder()
	var err error
	r.Server, err = otlp.Serve(collector.Address(0), otlp.Handler{Metrics: r.takeMetrics, Logs: r.takeLogs})
	return r, err
}

func newRecorder() *Recorder {
	return &Recorder{latest: map[string]Evaluation{}, devices: map[string]Seen{}, events: map[string]*Event{}}
}

// judged are the metrics with points of judged owners; the others of a
// resource have the same.
var judged = []string{names.GPUUtilization.Name, names.GPUMemoryUsage.Name, names.HwPower.Name, names.GPUAllocation.Name}

// takeMetrics keeps points about devices from agents and evaluations from the gateway.
func (r *Recorder) takeMetrics(ctx context.Context, received pmetric.Metrics) error {
	now := time.Now()
	md, _ := metadata.FromIncomingContext(ctx)
	r.mu.Lock()
	refused := r.refuses && len(md.Get(FromGateway)) > 0
	r.mu.Unlock()
	if refused {
		return status.Error(codes.Unavailable, "the queue is full")
	}
	var points []ownership.Point
	var states []claims.StatePoint
	var notFrozen []claims.NotFrozen
	evaluations := map[evaluationKey]*Evaluation{}
	for _, rm := range received.ResourceMetrics().All() {
		resource := rm.Resource().Attributes()
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				switch {
				case text(resource, names.K8sNamespaceName) == "hostile":
					// What the test sends through the agents is not theirs.
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
		if p.Metric != names.GPUAllocation.Name && !p.Ended && p.Time.After(r.devices[key].At) {
			r.devices[key] = Seen{p.Time, p.Owner}
		}
	}
	r.points = append(r.points, points...)
	r.notFrozen = append(r.notFrozen, notFrozen...)
	if len(states) > 0 {
		r.states = append(r.states, states)
	}
	for key, e := range evaluations {
		r.evaluations = append(r.evaluations, *e)
		if e.At.After(r.latest[key.service].At) {
			r.latest[key.service] = *e
		}
	}
	return nil
}

// takeLogs keeps events.
func (r *Recorder) takeLogs(_ context.Context, ld plog.Logs) error {
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
					e = &Event{
						ID: id, Key: text(a, names.GPUEventKey), State: text(a, names.GPUEventState), Name: record.EventName(),
						Severity: int(record.SeverityNumber()), Code: text(a, names.GPUXIDCode), Device: text(rl.Resource().Attributes(), names.HwID),
						At: record.Timestamp().AsTime(), Arrived: now,
					}
					r.events[id] = e
					r.order = append(r.order, e)
				}
				e.Posts, e.Again = e.Posts+1, now
			}
		}
	}
	return nil
}

// ripe takes the points and evaluations that arrived before a time, in the order
// of their arrival.
func (r *Recorder) ripe(before time.Time) (points []ownership.Point, evaluations []Evaluation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for n < len(r.points) && r.points[n].Arrived.Before(before) {
		n++
	}
	points, r.points = r.points[:n:n], slices.Clone(r.points[n:])
	n = 0
	for n < len(r.evaluations) && r.evaluations[n].Arrived.Before(before) {
		n++
	}
	evaluations, r.evaluations = r.evaluations[:n:n], slices.Clone(r.evaluations[n:])
	return points, evaluations
}

// Newest are the newest evaluation of each service and the newest report of each
// device, by node and device with a blank between.
func (r *Recorder) Newest() (map[string]Evaluation, map[string]Seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.latest), maps.Clone(r.devices)
}

// Events are those of all time, in the order in which they came first.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Event, 0, len(r.order))
	for _, e := range r.order {
		out = append(out, *e)
	}
	return out
}
