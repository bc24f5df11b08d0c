// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/collectors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/history"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/judge"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/process"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// inspector asks collectors that are left alone: what they take, their logs, the
// console, the store and the audit log.
type inspector struct {
	collectors *collectors.Collectors
	history    *history.History
	files      collectors.Files
	verdict    *judge.Verdict
	journal    *judge.Journal

	measures []*measured
	read     map[string]int // the life of each collector up to which its log was read
}

func newInspector(w *world) *inspector {
	return &inspector{
		collectors: w.collectors, history: w.fleet.History, files: w.files, verdict: w.verdict, journal: w.journal, read: map[string]int{},
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

func (m *measured) lasted() time.Duration { return m.last.Sub(m.first) }

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
func (i *inspector) measure(ctx context.Context) {
	for _, p := range i.collectors.All() {
		c, since := p.Running()
		if c == nil || time.Since(since) < warmEnough {
			continue
		}
		now, err := sizes(ctx, p)
		if err != nil {
			i.verdict.Violate("measure", "%s: %v", p.Name, err)
			continue
		}
		life := i.life(p.Name, since)
		if life.from == nil {
			life.first, life.from = time.Now(), now
		}
		life.last, life.to = time.Now(), now
		i.verdict.Count(func(c *judge.Counts) { c.Measured++ })
		i.leaks(ctx, p, life)
	}
}

// life is what is known about a life of a collector.
func (i *inspector) life(process string, since time.Time) *measured {
	for _, known := range i.measures {
		if known.process == process && known.life.Equal(since) {
			return known
		}
	}
	life := &measured{process: process, life: since}
	i.measures = append(i.measures, life)
	return life
}

// leaks compares what a collector takes with what it took at first.
func (i *inspector) leaks(ctx context.Context, p *process.Process, life *measured) {
	for what, value := range life.to {
		if _, known := life.from[what]; !known {
			life.from[what] = value
		}
		bound := most(what, life.from[what])
		// What is on its way at the moment is no leak.
		for tries := 0; value > bound && tries < 5 && pace.Pause(ctx, pace.Interval/2); tries++ {
			if again, err := sizes(ctx, p); err == nil {
				value = min(value, again[what])
			}
		}
		if value > bound {
			i.verdict.Violate("leaks", "%s of %s is %.0f when all is quiet, and was %.0f %.0f s ago; at most %.0f",
				what, p.Name, value, life.from[what], time.Since(life.first).Seconds(), bound)
		}
	}
}

// sizes are what a collector takes and holds.
func sizes(ctx context.Context, p *process.Process) (map[string]float64, error) {
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

// logs looks for panics in the logs, each life's once it was read.
func (i *inspector) logs() {
	for _, p := range i.collectors.All() {
		line, err := p.Outcry(max(1, i.read[p.Name]))
		if err != nil {
			i.verdict.Violate("logs", "%s: %v", p.Name, err)
		}
		if line != "" {
			i.verdict.Violate("logs", "%s", line)
		}
		i.read[p.Name] = p.Lives()
	}
}

// console asks the console for its page.
func (i *inspector) console(ctx context.Context) {
	if _, status, err := process.Fetch(ctx, "http://"+collector.Address(i.collectors.Gateway.Ports.Console)+"/"); err != nil || status != http.StatusOK {
		i.verdict.Violate("console", "it answers %d: %v", status, err)
	}
}

// store asks the store whether it agrees that all services are whole.
func (i *inspector) store(ctx context.Context) {
	query := "http://" + collector.Address(i.collectors.Gateway.Ports.Store) + "/api/v1/query?query=" +
		url.QueryEscape(`gpu_service_partial{k8s_namespace_name="`+fleet.Namespace+`"}`)
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
	if err != nil || status != http.StatusOK {
		i.verdict.Violate("store", "it answers %d: %v: %.200s", status, err, body)
		return
	}
	partial := map[string]string{}
	for _, r := range answer.Data.Result {
		partial[r.Metric["service_name"]] = fmt.Sprint(r.Value[1])
	}
	for service := range i.history.Services() {
		if partial[service] != "0" {
			i.verdict.Violate("store", "%s is whole, and the store has partial %q", service, partial[service])
		}
	}
}

// audit lets gpuctl check the audit log.
func (i *inspector) audit(ctx context.Context) {
	i.verdict.Count(func(c *judge.Counts) { c.Verified++ })
	if err := i.files.VerifyAudit(ctx); err != nil {
		i.verdict.Violate("audit", "%v", err)
	}
	if aside, err := delivery.SetAside(i.files.Audit()); err != nil || len(aside) > 0 {
		i.verdict.Violate("audit", "a start did not continue what it found: %q %v", aside, err)
	}
}

// report prints what the longest life of each collector took.
func (i *inspector) report() {
	for _, p := range i.collectors.All() {
		var longest *measured
		for _, life := range i.measures {
			if life.process == p.Name && (longest == nil || life.lasted() > longest.lasted()) {
				longest = life
			}
		}
		if longest != nil {
			i.journal.Logf("longest life of %s: over %.0f s heap %.1f to %.1f MiB, goroutines %.0f to %.0f, files %.0f to %.0f", p.Name, longest.lasted().Seconds(),
				longest.from["heap"]/mib, longest.to["heap"]/mib, longest.from["goroutines"], longest.to["goroutines"], longest.from["files"], longest.to["files"])
		}
	}
}
