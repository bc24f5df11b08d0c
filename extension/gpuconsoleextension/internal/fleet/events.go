// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/conditions"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/age"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// wholeLog is more than any log holds.
const wholeLog = 1 << 30

// EventQuery selects events; zero fields select all.
type EventQuery struct {
	Name        string
	MinSeverity string
	Service     *Key   // only events about it
	Text        string // only events with it in their sentence, name or subject
	Active      bool   // only conditions that are raised, and notices that count
}

// Events are all events that match, newest first.
type Events struct {
	list     []*consoleapi.Event
	reported map[string][]*store.Delivery
	Raised   int // conditions that match and are raised
	Notices  int // notices that match and count
	judge    *age.Judge
}

var severities = []string{"trace", "debug", "info", "warn", "error", "fatal"}

// Log is the store's log of events and deliveries.
type Log struct {
	store      store.Store
	now        func() time.Time
	staleAfter time.Duration
}

// Events reads the log of events and deliveries. It asks the metric store nothing.
func (l Log) Events(q EventQuery) *Events {
	now := l.now()
	out := &Events{reported: map[string][]*store.Delivery{}, judge: age.NewJudge(now, l.staleAfter, nil)}
	log := l.store.Events(store.EventQuery{Limit: wholeLog})
	deliveries := l.store.Deliveries(store.DeliveryQuery{Limit: wholeLog})
	all := make([]*consoleapi.Event, 0, len(log))
	known := make(map[string]bool, len(log))
	acknowledged := conditions.Acknowledgements{}
	for _, e := range log {
		known[e.ID] = true
		at := acknowledged.When(e)
		if e.State == names.EventAcknowledged {
			continue
		}
		one := convertEvent(e)
		if one.Notice {
			one.Acknowledged = at
		}
		all = append(all, one)
	}
	active := activeIn(log, now)
	for _, e := range all {
		e.Active = active[e.ID]
	}
	for _, d := range slices.Backward(deliveries) { // oldest first
		for _, id := range d.EventIDs {
			if !known[id] {
				known[id] = true
				all = append(all, onlyDelivered(id, d))
			}
			out.reported[id] = append(out.reported[id], d)
		}
	}
	out.list = matching(all, q)
	for _, e := range out.list {
		switch {
		case e.Active && e.Notice:
			out.Notices++
		case e.Active && e.Name == names.EventHealth && q.Name == "":
			// It sums up what other conditions are the causes of: one fault counts once.
		case e.Active:
			out.Raised++
		}
	}
	slices.SortStableFunc(out.list, func(a, b *consoleapi.Event) int { return b.Time.Compare(a.Time) })
	for _, e := range all {
		out.judge.Used(e.Time)
	}
	return out
}

// activeIn are the ids of the conditions that are raised, and of the notices that
// count.
func activeIn(log []*store.Event, now time.Time) map[string]bool {
	state, active := conditions.Read(log, now), map[string]bool{}
	for _, e := range state.Raised {
		active[e.ID] = true
	}
	for _, e := range state.Notices {
		active[e.ID] = conditions.Counts(e, now, nil)
	}
	return active
}

// matching keeps the events that a query selects: those severe enough, and what
// clears them.
func matching(all []*consoleapi.Event, q EventQuery) []*consoleapi.Event {
	least := slices.Index(severities, q.MinSeverity)
	severe := func(e *consoleapi.Event) bool { return slices.Index(severities, optional.Value(e.Severity)) >= least }
	raised := map[string]bool{}
	if least > 0 {
		for _, e := range all {
			if e.Key != "" && severe(e) {
				raised[e.Key] = true
			}
		}
	}
	kept := make([]*consoleapi.Event, 0, len(all))
	for _, e := range all {
		switch {
		case q.Name != "" && e.Name != q.Name:
		case least > 0 && !severe(e) && !(raised[e.Key] && optional.Value(e.State) == names.EventCleared):
		case q.Service != nil && !about(e.Subject, *q.Service):
		case q.Active && !e.Active:
		case q.Text != "" && !mentions(e, q.Text):
		default:
			kept = append(kept, e)
		}
	}
	return kept
}

// mentions reports whether an event's sentence, name or subject contains a text in
// lower case.
func mentions(e *consoleapi.Event, text string) bool {
	s := &e.Subject
	return contains(text, e.Name, optional.Value(e.Body), optional.Value(s.Cluster), optional.Value(s.Namespace), optional.Value(s.Service), optional.Value(s.Pod), optional.Value(s.Node), optional.Value(s.Device), optional.Value(s.Job), optional.Value(s.SlurmCluster))
}

func about(s consoleapi.Subject, k Key) bool {
	return optional.Value(s.Service) == k.Service && optional.Value(s.Namespace) == k.Namespace && optional.Value(s.Cluster) == k.Cluster && optional.Value(s.SlurmCluster) == k.Slurm
}

// Freshness of the log: its newest event.
func (e *Events) Freshness() consoleapi.Freshness {
	f := e.judge.Freshness()
	// What happened stays true however long ago it was.
	f.Stale = false
	return f
}

// Len is how many match.
func (e *Events) Len() int { return len(e.list) }

// Key distinguishes one from all others.
func (e *Events) Key(i int) string { return e.list[i].ID }

// Page returns some of them with their deliveries.
func (e *Events) Page(from, to int) []consoleapi.Event {
	out := make([]consoleapi.Event, 0, to-from)
	for _, one := range e.list[from:to] {
		event := *one
		event.Deliveries = make([]consoleapi.Delivery, 0, len(e.reported[one.ID]))
		for _, d := range e.reported[one.ID] {
			event.Deliveries = append(event.Deliveries, convertDelivery(d))
		}
		out = append(out, event)
	}
	return out
}

// Errors of Acknowledge: what was asked for cannot be acknowledged.
var (
	ErrNoSuchEvent = errors.New("the log has no event with this id")
	ErrNoNotice    = errors.New("it is no notice: a condition is over when what raised it is")
)

// Acknowledge keeps in the log that a notice was seen, and returns it as it is
// then. It and those before it with the same key count no more; a later one does.
// Once acknowledged, nothing changes. An error beside those above is the log's,
// which could not be written.
func (l Log) Acknowledge(ctx context.Context, id string) (*consoleapi.Event, error) {
	one := l.event(id)
	switch {
	case one == nil:
		return nil, ErrNoSuchEvent
	case !one.Notice || one.Key == "":
		return nil, ErrNoNotice
	case one.Acknowledged != nil:
		return one, nil
	}
	now := l.now()
	record := fmt.Sprintf("%s/%s/%d", names.EventAcknowledged, id, now.UnixMilli())
	notice := &store.Event{ID: id, Name: one.Name, Key: one.Key}
	if err := l.store.AppendEvents(ctx, []*store.Event{conditions.Acknowledgement(record, notice, now)}); err != nil {
		return nil, err
	}
	return l.event(id), nil
}

// event is one event of the log; nil if it has none with this id.
func (l Log) event(id string) *consoleapi.Event {
	all := l.Events(EventQuery{})
	for i, e := range all.list {
		if e.ID == id {
			return &all.Page(i, i+1)[0]
		}
	}
	return nil
}

// subjects are the attributes of the subject.
var subjects = []string{names.K8sClusterName, names.K8sNamespaceName, names.ServiceName, names.K8sPodName, names.K8sNodeName, names.HwID, names.SlurmClusterName, names.SlurmJobID}

func convertEvent(e *store.Event) *consoleapi.Event {
	attribute := func(key string) *string {
		for _, attributes := range []map[string]any{e.Attributes, e.Resource} {
			if s, ok := attributes[key].(string); ok && s != "" {
				return &s
			}
		}
		return nil
	}
	out := &consoleapi.Event{
		ID: e.ID, Name: e.Name, Key: e.Key, Notice: names.EventIsNotice(e.Name), Time: e.Time.UTC(), Body: &e.Message, Attributes: map[string]any{},
		Subject: consoleapi.Subject{
			Cluster: attribute(names.K8sClusterName), Namespace: attribute(names.K8sNamespaceName), Service: attribute(names.ServiceName),
			Pod: attribute(names.K8sPodName), Node: cmp.Or(attribute(names.K8sNodeName), attribute(names.HostName)), Device: attribute(names.HwID),
		},
	}
	if out.Subject.Namespace == nil {
		if out.Subject.SlurmCluster = attribute(names.SlurmClusterName); out.Subject.SlurmCluster != nil {
			out.Subject.Namespace = attribute(names.ServiceNamespace)
		}
	}
	out.Subject.Job = attribute(names.SlurmJobID)
	if e.State == names.EventRaised || e.State == names.EventCleared {
		out.State = &e.State
	}
	if slices.Contains(severities, e.Severity) {
		out.Severity = &e.Severity
	}
	maps.Copy(out.Attributes, e.Resource)
	maps.Copy(out.Attributes, e.Attributes)
	for _, key := range append([]string{names.GPUEventID, names.GPUEventKey, names.GPUEventState}, subjects...) {
		delete(out.Attributes, key)
	}
	return out
}

// onlyDelivered is an event of which the log has its deliveries alone: a test, or
// one older than the log.
func onlyDelivered(id string, d *store.Delivery) *consoleapi.Event {
	e := &consoleapi.Event{ID: id, Name: d.EventName, Time: d.Time.UTC(), Attributes: map[string]any{}}
	if d.Trigger == audit.TriggerTest {
		e.Body = optional.Pointer("A test of webhook endpoint " + d.Receiver + ", asked for with gpuctl webhook test.")
	}
	return e
}

func convertDelivery(d *store.Delivery) consoleapi.Delivery {
	out := consoleapi.Delivery{
		ID: d.ID, Time: d.Time.UTC(), Receiver: d.Receiver, URLHost: d.Host, Format: d.Format, Attempt: max(0, d.Attempt), MaxAttempts: max(0, d.Attempts),
		Outcome: string(d.Outcome), Duration: max(0, d.Duration.Seconds()), Trigger: cmp.Or(string(d.Trigger), "event"),
	}
	if d.Status != 0 {
		out.Status = &d.Status
	}
	if d.ErrorType != "" {
		out.ErrorType = optional.Pointer(string(d.ErrorType))
	}
	if !d.NextAttempt.IsZero() {
		out.NextAttempt = optional.Pointer(d.NextAttempt.UTC())
	}
	return out
}
