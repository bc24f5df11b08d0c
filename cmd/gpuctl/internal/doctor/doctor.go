// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out what is wrong with an installation of otelcol-gpu and
// says what to do. It only looks: it sends no telemetry and no event.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// Status is how something was found.
type Status string

const (
	OK      Status = "ok"
	Warn    Status = "warn"
	Fail    Status = "fail"
	Skipped Status = "skipped" // there is nothing to look at, or no way to
)

// Result is one thing that was looked at.
type Result struct {
	// Check is what found it: one of Names.
	Check string `json:"check"`
	// Subject is which of several things it is about.
	Subject string `json:"subject,omitempty"`
	Status  Status `json:"status"`
	Seen    string `json:"seen"`
	// Remedy says what to do. It may have several lines.
	Remedy string `json:"remedy,omitempty"`
}

const (
	atOnce = 8 // checks
	// patience is for how long a check may go on after its time is over. One that
	// takes longer is left behind.
	patience = time.Second
	maxSeen  = 2000
)

// check is a part of the whole, which costs the others nothing.
type check struct {
	name string
	run  func(context.Context) []Result
}

// Names are the checks, in the order in which they are told.
var Names = []string{
	"configuration", "exporter", "kubelet", "kubernetes", "rbac", "collector", "telemetry",
	"otlp", "gateway", "console", "state", "webhook", "versions",
}

// Run makes the checks that are wanted, or all. Its error is of the options; what
// is wrong with the installation is in the results.
func Run(ctx context.Context, o Options) ([]Result, error) {
	for _, name := range o.Only {
		if !slices.Contains(Names, name) {
			return nil, fmt.Errorf("there is no check %q: use %s", safetext.Strip(name, 40), strings.Join(Names, ", "))
		}
	}
	in, found, err := examine(ctx, o)
	if err != nil {
		return nil, err
	}
	checks := slices.DeleteFunc(in.checks(), func(c check) bool { return len(o.Only) > 0 && !slices.Contains(o.Only, c.name) })
	in.progress.add(len(checks))
	for i, run := range checks {
		checks[i].run = func(ctx context.Context) []Result {
			defer in.progress.end()
			return run.run(ctx)
		}
	}
	if len(o.Only) > 0 && !slices.Contains(o.Only, "configuration") {
		found = slices.DeleteFunc(found, func(r Result) bool { return r.Status == OK })
	}
	defer in.progress.stop()
	return clean(append(found, runAll(ctx, checks, o.Timeout+o.Watch)...)), nil
}

// progress counts what is to be done and what is done. It may be nil.
type progress struct {
	report    func(done, all int)
	mu        sync.Mutex
	done, all int
}

func (p *progress) add(n int) { p.change(0, n) }

func (p *progress) end() { p.change(1, 0) }

func (p *progress) change(done, all int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.all = p.done+done, p.all+all
	if p.report != nil {
		p.report(p.done, p.all)
	}
}

// stop ends the reports: a check that was left behind may still end.
func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report = nil
}

// Worst is fail where something fails.
func Worst(results []Result) Status {
	worst := OK
	for _, r := range results {
		if r.Status == Fail || r.Status == Warn && worst == OK {
			worst = r.Status
		}
	}
	return worst
}

// runAll runs the checks, some at the same time, and returns their results in
// order. Each has so much time.
func runAll(ctx context.Context, checks []check, timeout time.Duration) []Result {
	results := make([][]Result, len(checks))
	slots := make(chan struct{}, atOnce)
	type done struct {
		i       int
		results []Result
	}
	all := make(chan done, len(checks))
	for i, c := range checks {
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			all <- done{i, bounded(ctx, c, timeout)}
		}()
	}
	for range checks {
		d := <-all
		results[d.i] = d.results
	}
	return slices.Concat(results...)
}

// bounded runs a check that may panic or hang.
func bounded(ctx context.Context, c check, timeout time.Duration) []Result {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	results := make(chan []Result, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				// What it panicked with may quote what must not be shown.
				results <- []Result{{c.name, "", Fail, fmt.Sprintf("the check itself broke (%T)", p), "this is a defect of gpuctl: please report it with your version of it"}}
			}
		}()
		results <- c.run(ctx)
	}()
	select {
	case r := <-results:
		return r
	case <-late(ctx):
		return []Result{{c.name, "", Fail, fmt.Sprintf("not finished within %v", timeout), "raise --timeout, or look at why nothing answers"}}
	}
}

// late is closed some time after ctx has ended.
func late(ctx context.Context) <-chan struct{} {
	over := make(chan struct{})
	context.AfterFunc(ctx, func() { time.AfterFunc(patience, func() { close(over) }) })
	return over
}

// clean makes what came from outside fit to be shown.
func clean(results []Result) []Result {
	for i := range results {
		r := &results[i]
		r.Subject, r.Seen = safetext.Strip(r.Subject, 253), safetext.Strip(r.Seen, maxSeen)
		lines := strings.Split(r.Remedy, "\n")
		for j := range lines {
			lines[j] = safetext.Strip(lines[j], maxSeen)
		}
		r.Remedy = strings.Join(lines, "\n")
	}
	return results
}
