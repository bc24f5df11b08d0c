// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/process"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/delivery"
)

// counter reads what a fault's metric reports, and of which life of the process.
func (w *world) counter(ctx context.Context, f *fault) (float64, time.Time) {
	if f.counts.name == "" {
		return 0, time.Time{}
	}
	p := w.gateway
	if f.node != nil {
		p = f.node.agent
	}
	_, since := p.Running()
	value, _ := p.Metric(ctx, f.counts.name, f.counts.labels...)
	return value, since
}

// counted checks that what a fault made a collector refuse was counted.
func (w *world) counted(ctx context.Context, f *fault) {
	if f.counts.name == "" {
		return
	}
	if after, since := w.counter(ctx, f); since.Equal(f.countedLife) && after <= f.counted {
		w.verdict.violate("counters", "%s %v is %g after %s, as before", f.counts.name, f.counts.labels, after, f)
	}
}

// judgePartialEvents checks that partial states since a time were sent as events.
func (w *world) judgePartialEvents(since time.Time) {
	w.verdict.mu.Lock()
	partials := w.verdict.partials
	w.verdict.partials = map[string][]time.Time{}
	w.verdict.mu.Unlock()
	if w.history.wasDisturbed(gatewayPlace, since, time.Now()) {
		return // it may have ended between the two
	}
	raised := map[string]bool{}
	for _, e := range w.recorder.Events() {
		if e.name == names.EventServicePartial && e.state == names.EventRaised && e.arrived.After(since) {
			raised[e.key[strings.LastIndex(e.key, "/")+1:]] = true
		}
	}
	for service, times := range partials {
		// Those of the round before were checked then.
		times = slices.DeleteFunc(times, func(at time.Time) bool { return !at.After(since) })
		if len(times) > 2 && !raised[service] {
			w.verdict.violate("events", "%s was reported as partial %d times, and no event of it was raised", service, len(times))
		}
	}
}

// gauges are what collectors report of what they hold.
var gauges = []string{
	"otelcol_gpu_summary_pods_tracked", "otelcol_gpu_summary_services_tracked", "otelcol_gpu_pod_series", "otelcol_gpu_pod_devices",
	"otelcol_gpu_events_subjects", "otelcol_exporter_webhook_queue_length", "otelcol_exporter_queue_size",
}

// measured is what a life of a collector took, when it was first measured and
// last.
type measured struct {
	process     string
	life        time.Time
	first, last time.Time
	from, to    map[string]float64
}

const (
	warmEnough = 20 * time.Second // until a life is measured: it has seen everything once
	mib        = 1 << 20
)

// most is what something may be when it was so much in the beginning: enough for
// what comes and goes, and less than what an hour of leaks adds up to.
func most(what string, first float64) float64 {
	switch what {
	case "goroutines":
		return 1.25*first + 40
	case "files":
		return first + 30
	case "heap":
		return 2*first + 48*mib
	case "otelcol_gpu_pod_series":
		return 2.5*first + 1500 // it remembers for ten minutes what is gone
	case "otelcol_exporter_queue_size":
		return 2 * mib // bytes of a batch on its way
	}
	return 2.5*first + 100
}

// measure measures all collectors and compares with the beginning of their life.
func (w *world) measure(ctx context.Context) {
	for _, p := range w.processes() {
		c, since := p.Running()
		if c == nil || time.Since(since) < warmEnough {
			continue
		}
		now, err := w.sizes(ctx, p)
		if err != nil {
			w.verdict.violate("measure", "%s: %v", p.Name, err)
			continue
		}
		var life *measured
		for _, known := range w.measures {
			if known.process == p.Name && known.life.Equal(since) {
				life = known
			}
		}
		if life == nil {
			life = &measured{process: p.Name, life: since, first: time.Now(), from: now}
			w.measures = append(w.measures, life)
		}
		life.last, life.to = time.Now(), now
		w.verdict.count(func() { w.verdict.measured++ })
		for what, value := range now {
			if _, known := life.from[what]; !known {
				life.from[what] = value
			}
			bound := most(what, life.from[what])
			// What is on its way at the moment is no leak.
			for tries := 0; value > bound && tries < 5 && pause(ctx, interval/2); tries++ {
				if again, err := w.sizes(ctx, p); err == nil {
					value = min(value, again[what])
				}
			}
			if value > bound {
				w.verdict.violate("leaks", "%s of %s is %.0f when all is quiet, and was %.0f %.0f s ago; at most %.0f",
					what, p.Name, value, life.from[what], time.Since(life.first).Seconds(), bound)
			}
		}
	}
}

// sizes are what a collector takes and holds.
func (w *world) sizes(ctx context.Context, p *process.Process) (map[string]float64, error) {
	u, err := p.Usage(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{"heap": u.Heap, "goroutines": u.Goroutines, "files": u.Files}
	for _, gauge := range gauges {
		if value, ok := p.Metric(ctx, gauge); ok {
			out[gauge] = value
		}
	}
	return out, nil
}

// listen reads the logs, and asks the store and the console whether they agree
// that all is well.
func (w *world) listen(ctx context.Context) {
	w.outcries()
	if _, status, err := process.Fetch(ctx, "http://"+address(w.gateway.Ports.Console)+"/"); err != nil || status != 200 {
		w.verdict.violate("console", "it answers %d: %v", status, err)
	}
	query := "http://" + address(w.gateway.Ports.Store) + "/api/v1/query?query=" + url.QueryEscape(`gpu_service_partial{k8s_namespace_name="`+namespace+`"}`)
	body, status, err := process.Fetch(ctx, query)
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(body), &answer)
	}
	if err != nil || status != 200 {
		w.verdict.violate("store", "it answers %d: %v: %.200s", status, err, body)
		return
	}
	partial := map[string]string{}
	for _, r := range answer.Data.Result {
		partial[r.Metric["service_name"]] = fmt.Sprint(r.Value[1])
	}
	for service := range w.history.services() {
		if partial[service] != "0" {
			w.verdict.violate("store", "%s is whole, and the store has partial %q", service, partial[service])
		}
	}
	if w.verdict.rounds%5 == 0 {
		w.verify(ctx)
	}
}

// outcries looks for panics in the logs, each life's once it was read.
func (w *world) outcries() {
	for _, p := range w.processes() {
		line, err := p.Outcry(max(1, w.read[p.Name]))
		if err != nil {
			w.verdict.violate("logs", "%s: %v", p.Name, err)
		}
		if line != "" {
			w.verdict.violate("logs", "%s", line)
		}
		w.read[p.Name] = p.Lives()
	}
}

// verify lets gpuctl check the audit log.
func (w *world) verify(ctx context.Context) {
	w.verdict.count(func() { w.verdict.verified++ })
	if out, err := w.gpuctl(ctx, "audit", "verify", "--public-key-file", w.checkpointKey()+".pub", w.audit()); err != nil {
		w.verdict.violate("audit", "gpuctl audit verify: %v: %s", err, out)
	}
	if aside, err := delivery.SetAside(w.audit()); err != nil || len(aside) > 0 {
		w.verdict.violate("audit", "a start did not continue what it found: %q %v", aside, err)
	}
}

// finish waits until all events are delivered, ends the collectors in good order, and
// compares the accounts of deliveries.
func (w *world) finish(ctx context.Context) error {
	w.logf("the last round is over; waiting until everything was delivered")
	last, since, began := -1, time.Now(), time.Now()
	for time.Since(since) < 4*time.Second || w.waiting(ctx) > 0 {
		if time.Since(began) > 90*time.Second {
			w.verdict.violate("deliveries", "%g still wait", w.waiting(ctx))
			break
		}
		n := 0
		for _, r := range w.receivers {
			n += r.Connections()
		}
		if n != last {
			last, since = n, time.Now()
		}
		if !pause(ctx, 200*time.Millisecond) {
			return ctx.Err()
		}
	}
	for i := len(w.nodes) - 1; i >= 0; i-- {
		w.terminate(w.nodes[i].agent)
	}
	w.terminate(w.gateway)
	w.outcries()
	w.verify(ctx)
	return w.deliveries()
}

func (w *world) terminate(p *process.Process) {
	if err := p.Terminate(); err != nil {
		w.verdict.violate("end", "%s was asked to end, and: %v", p.Name, err)
	}
}

// waiting is how many deliveries are still to be made.
func (w *world) waiting(ctx context.Context) float64 {
	n, _ := w.gateway.Metric(ctx, "otelcol_exporter_webhook_queue_length")
	return n
}

// nearEnd is how long before the gateway's end an event may have been forwarded
// and not be stored yet.
const nearEnd = 3 * time.Second

// resent is how often an agent sends again what a gateway that is stopped has not
// answered: every 5 s, for as long as such a fault lasts. It takes all of them when
// it goes on, and who hands events on to the recorder may find that the agent has
// given up.
const resent = 3

// deliveries compares what the gateway forwarded, what the receivers saw, and
// what the audit log reports, with testbed/delivery's judge.
func (w *world) deliveries() error {
	records, kinds, err := delivery.ReadAudit(w.audit())
	if err != nil {
		return err
	}
	facts := delivery.Facts{Wants: map[string]func(delivery.Event) bool{}, Connections: map[string]int{}, Records: records}
	for _, at := range w.ends {
		facts.LastKill = at
	}
	known, raised := map[string]bool{}, map[string]int{}
	for _, e := range w.recorder.Events() {
		known[e.id] = true
		near := 0
		last := false
		for _, at := range w.ends {
			if !at.Before(e.arrived.Add(-time.Second)) && !at.After(e.again.Add(nearEnd)) {
				near++
			}
			last = last || !at.Before(e.again) && !at.After(e.again.Add(nearEnd))
		}
		for _, at := range w.resumed {
			if !at.Before(e.arrived.Add(-nearEnd)) && !at.After(e.again.Add(nearEnd)) {
				near += resent
			}
		}
		// An endpoint that wants a raising gets its clearing, which is info.
		severity := e.severity
		if e.state == names.EventRaised {
			raised[e.key] = severity
		} else {
			severity = max(severity, raised[e.key])
		}
		facts.Events = append(facts.Events, delivery.Event{
			ID: e.id, Name: e.name, Severity: severity, Acknowledged: !last, Posts: e.posts + near,
		})
	}
	for _, r := range w.receivers {
		facts.Wants[r.Name] = r.Wants
		facts.Connections[r.Name] = r.Connections()
		facts.Requests = append(facts.Requests, r.Requests()...)
	}
	// What the gateway accepted in the moment before its end may have reached the
	// webhooks and not to the recorder.
	for _, record := range records {
		for _, id := range record.EventIDs {
			if known[id] {
				continue
			}
			known[id] = true
			near := false
			for _, at := range w.ends {
				near = near || record.Time.After(at.Add(-nearEnd))
			}
			if near {
				facts.Events = append(facts.Events, delivery.Event{ID: id, Name: "unknown", Posts: 1})
			}
		}
	}
	v := delivery.Judge(facts)
	w.logf("webhooks: %s; %d records, %d checkpoints, %d torn lines", v.Summary(), len(records), kinds["checkpoint"], kinds["torn"])
	for _, finding := range v.Findings() {
		w.verdict.violate("deliveries", "%s", finding)
	}
	if kinds["unreadable"] > kinds["torn"] {
		w.verdict.violate("audit", "%d lines cannot be read, but only %d are reported as torn", kinds["unreadable"], kinds["torn"])
	}
	return nil
}
