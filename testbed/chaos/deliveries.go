// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/collectors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/judge"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/delivery"
)

// deliveries compares what the gateway forwarded, what the receivers saw, and
// what the audit log reports, with testbed/delivery's judge.
type deliveries struct {
	collectors *collectors.Collectors
	recorder   *judge.Recorder
	webhooks   []*delivery.Receiver
	audit      string // path
	verdict    *judge.Verdict
	journal    *judge.Journal
}

// wait waits until nothing waits to be delivered and no connection was made for a while.
func (d *deliveries) wait(ctx context.Context) error {
	last, since, began := -1, time.Now(), time.Now()
	for time.Since(since) < 4*time.Second || d.waiting(ctx) > 0 {
		if time.Since(began) > 90*time.Second {
			d.verdict.Violate("deliveries", "%g still wait", d.waiting(ctx))
			break
		}
		n := 0
		for _, r := range d.webhooks {
			n += r.Connections()
		}
		if n != last {
			last, since = n, time.Now()
		}
		if !pace.Pause(ctx, 200*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

// waiting is how many deliveries are still to be made.
func (d *deliveries) waiting(ctx context.Context) float64 {
	n, _ := d.collectors.Gateway.Metric(ctx, "otelcol_exporter_webhook_queue_length")
	return n
}

// judge judges the deliveries of a run that is over.
func (d *deliveries) judge() error {
	records, kinds, err := delivery.ReadAudit(d.audit)
	if err != nil {
		return err
	}
	g := gatewayLife{ends: d.collectors.GatewayEnds(), resumed: d.collectors.GatewayResumed()}
	facts := delivery.Facts{
		Wants: map[string]func(delivery.Event) bool{}, Connections: map[string]int{}, Records: records,
		Events: g.forwarded(d.recorder.Events(), records),
	}
	for _, at := range g.ends {
		facts.LastKill = at
	}
	for _, r := range d.webhooks {
		facts.Wants[r.Name] = r.Wants
		facts.Connections[r.Name] = r.Connections()
		facts.Requests = append(facts.Requests, r.Requests()...)
	}
	v := delivery.Judge(facts)
	d.journal.Logf("webhooks: %s; %d records, %d checkpoints, %d torn lines", v.Summary(), len(records), kinds["checkpoint"], kinds["torn"])
	for _, finding := range v.Findings() {
		d.verdict.Violate("deliveries", "%s", finding)
	}
	if kinds["unreadable"] > kinds["torn"] {
		d.verdict.Violate("audit", "%d lines cannot be read, but only %d are reported as torn", kinds["unreadable"], kinds["torn"])
	}
	return nil
}

// gatewayLife is when the gateway ended and when it went on after a SIGSTOP: what it
// forwarded around such a moment may be forwarded again, or be lost.
type gatewayLife struct{ ends, resumed []time.Time }

// nearEnd is how long before the gateway's end an event may have been forwarded
// and not be stored yet.
const nearEnd = 3 * time.Second

// resent is how often an agent sends again what a gateway that is stopped has not
// answered: every 5 s, for as long as such a fault lasts. It takes all of them when
// it goes on, and its exporter to the recorder may find that the agent has given up.
const resent = 3

// forwarded are the events as the judge of deliveries takes them, with those that are in
// the audit log alone.
func (g gatewayLife) forwarded(events []judge.Event, records []delivery.Record) (out []delivery.Event) {
	known, raised := map[string]bool{}, map[string]int{}
	for i := range events {
		e := &events[i]
		known[e.ID] = true
		// An endpoint that wants a raising gets its clearing, which is info.
		severity := e.Severity
		if e.State == names.EventRaised {
			raised[e.Key] = severity
		} else {
			severity = max(severity, raised[e.Key])
		}
		again, lost := g.around(e)
		out = append(out, delivery.Event{ID: e.ID, Name: e.Name, Severity: severity, Acknowledged: !lost, Posts: e.Posts + again})
	}
	// What the gateway accepted in the moment before its end may have reached the
	// webhooks and not the recorder.
	for _, record := range records {
		for _, id := range record.EventIDs {
			if known[id] {
				continue
			}
			known[id] = true
			near := false
			for _, at := range g.ends {
				near = near || record.Time.After(at.Add(-nearEnd))
			}
			if near {
				out = append(out, delivery.Event{ID: id, Name: "unknown", Posts: 1})
			}
		}
	}
	return out
}

// around returns how often an event may have been forwarded again, unseen by the
// recorder, and whether the gateway may have ended before it was stored.
func (g gatewayLife) around(e *judge.Event) (again int, lost bool) {
	until := e.Again.Add(nearEnd)
	for _, at := range g.ends {
		if !at.Before(e.Arrived.Add(-time.Second)) && !at.After(until) {
			again++
		}
		lost = lost || !at.Before(e.Again) && !at.After(until)
	}
	for _, at := range g.resumed {
		if !at.Before(e.Arrived.Add(-nearEnd)) && !at.After(until) {
			again += resent
		}
	}
	return again, lost
}
