// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// atOnce is how many checks run at the same time.
	atOnce = 8
	// patience is for how long a check may go on after its time is over. One that
	// takes longer is left behind.
	patience = time.Second
)

// Check is a part of the whole that cannot harm the others.
type Check struct {
	Name string
	Run  func(context.Context) []Result
}

// Run runs the checks, some at the same time, and returns their results in order.
// Each has so much time.
func Run(ctx context.Context, checks []Check, timeout time.Duration, progress *Progress) []Result {
	progress.add(len(checks))
	results := make([][]Result, len(checks))
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, c := range checks {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			results[i] = bounded(ctx, c, timeout)
			for j := range results[i] {
				results[i][j].Check = c.Name
			}
			progress.end()
		})
	}
	wg.Wait()
	return slices.Concat(results...)
}

// bounded runs a check that may panic or hang.
func bounded(ctx context.Context, c Check, timeout time.Duration) []Result {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	results := make(chan []Result, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				// What it panicked with may quote what must not be shown.
				results <- []Result{New("", Fail, fmt.Sprintf("the check itself broke (%T)", p), "this is a defect of gpuctl: please report it with your version of it")}
			}
		}()
		results <- c.Run(ctx)
	}()
	select {
	case r := <-results:
		return r
	case <-late(ctx):
		return []Result{New("", Fail, fmt.Sprintf("not finished within %v", timeout), "raise --timeout, or look at why nothing answers")}
	}
}

// late is closed some time after ctx has ended.
func late(ctx context.Context) <-chan struct{} {
	over := make(chan struct{})
	context.AfterFunc(ctx, func() { time.AfterFunc(patience, func() { close(over) }) })
	return over
}

// Progress counts what is to be done and what is done.
type Progress struct {
	mu        sync.Mutex
	report    func(done, all int)
	done, all int
}

// NewProgress reports to a function, which may be nil. Its calls do not overlap.
func NewProgress(report func(done, all int)) *Progress { return &Progress{report: report} }

func (p *Progress) add(n int) { p.change(0, n) }

func (p *Progress) end() { p.change(1, 0) }

func (p *Progress) change(done, all int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.all = p.done+done, p.all+all
	if p.report != nil {
		p.report(p.done, p.all)
	}
}

// Stop ends the reports: a check that was left behind may still end.
func (p *Progress) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report = nil
}
