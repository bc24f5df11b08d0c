// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Limits of what the collector may take; what waits is on disk and in memory.
const (
	memoryLimit     = 256 << 20 // bytes, and
	memoryPerPair   = 1 << 10   // for each event and receiver
	goroutineLimit  = 150       // and
	goroutineWorker = 5         // for each worker
)

// judge compares the accounts and prints the result.
func (r *run) judge(ctx context.Context) error {
	if aside, err := setAside(r.process.audit()); err != nil {
		return err
	} else if len(aside) > 0 {
		return fmt.Errorf("audit: a start did not continue what it found: %q", aside)
	}
	files, err := auditFiles(r.process.audit())
	if err != nil {
		return err
	}
	records, kinds, err := readRecords(files)
	if err != nil {
		return err
	}
	facts := Facts{
		Events: r.sender.result(), Wants: map[string]func(Event) bool{}, Connections: map[string]int{},
		Records: records, LastKill: r.lastKill,
	}
	for n, receiver := range r.receivers {
		facts.Wants[receiver.Name] = profileOf(n).wants
		facts.Connections[receiver.Name] = receiver.Connections()
		facts.Requests = append(facts.Requests, receiver.Requests()...)
	}
	verdict := Judge(facts)
	r.report(facts, len(files), kinds)

	findings := verdict.Findings()
	if kinds["unreadable"] > kinds["torn"] {
		findings = append(findings, fmt.Sprintf("audit: %d lines cannot be read, but only %d are reported as torn", kinds["unreadable"], kinds["torn"]))
	}
	if err := r.verify(ctx); err != nil {
		findings = append(findings, err.Error())
	}
	findings = append(findings, r.bounds()...)
	for i, finding := range findings {
		if i == 20 {
			fmt.Fprintf(r.Out, "and %d more\n", len(findings)-i)
			break
		}
		fmt.Fprintln(r.Out, finding)
	}
	if len(findings) > 0 {
		err = fmt.Errorf("%w: %d findings with seed %d; the collector's files are in %s", ErrBroken, len(findings), r.Seed, r.Dir)
		fmt.Fprintln(r.Out, err)
	}
	fmt.Fprintln(r.Out, verdict.Summary())
	return err
}

// report prints what happened, in numbers.
func (r *run) report(f Facts, files int, kinds map[string]int) {
	outcomes := map[string]int{}
	for _, record := range f.Records {
		what := record.Outcome
		if record.ErrorType != "" {
			what += " " + record.ErrorType
		}
		outcomes[what]++
	}
	list := make([]string, 0, len(outcomes))
	for what, n := range outcomes {
		list = append(list, fmt.Sprintf("%s %d", what, n))
	}
	slices.Sort(list)
	posts := 0
	for _, event := range f.Events {
		posts += event.Posts
	}
	r.logf("%d events, posted %d times; %d connections, %d requests", len(f.Events), posts, r.connections(), len(f.Requests))
	r.logf("%d records in %d files, %d checkpoints, %d torn lines: %s", len(f.Records), files, kinds["checkpoint"], kinds["torn"], strings.Join(list, ", "))
	r.logf("peak: %.0f MiB of memory, %d goroutines", r.process.peak.memory/(1<<20), r.process.peak.goroutines)
}

// bounds reports where the collector took more than it may.
func (r *run) bounds() []string {
	var findings []string
	memory := memoryLimit + memoryPerPair*r.Events*r.Receivers
	goroutines := goroutineLimit + goroutineWorker*workers*r.Receivers
	switch peak := r.process.peak; {
	case peak.memory == 0 || peak.goroutines == 0:
		findings = append(findings, "bounds: memory and goroutines could not be measured")
	case peak.memory > float64(memory):
		findings = append(findings, fmt.Sprintf("bounds: %.0f MiB of memory, more than %d", peak.memory/(1<<20), memory>>20))
	case peak.goroutines > goroutines:
		findings = append(findings, fmt.Sprintf("bounds: %d goroutines, more than %d", peak.goroutines, goroutines))
	}
	return findings
}

// verify lets gpuctl check chain, sequence and checkpoints of all files, which
// it finds beside the one that was written last.
func (r *run) verify(ctx context.Context) error {
	out, err := r.gpuctl(ctx, "verify", "--public-key-file", r.process.checkpointKey()+".pub", r.process.audit())
	r.logf("gpuctl audit verify:\n%s", out)
	if err != nil {
		return fmt.Errorf("gpuctl audit verify: %w", err)
	}
	return nil
}
