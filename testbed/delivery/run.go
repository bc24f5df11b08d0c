// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// Options of a run.
type Options struct {
	Bin       string // folder of otelcol-gpu and gpuctl
	Dir       string // empty folder for what the collector writes
	Events    int
	Receivers int
	Kills     int
	Seed      uint64 // of events, faults and the moments of the kills
	Out       io.Writer
}

// Times of a run.
const (
	// quietTime without a new connection or audit record is the end: longer than
	// any timeout, Retry-After and interval between attempts.
	quietTime = 8 * time.Second
	// stallTime is how long the sender waits for the receivers that are well.
	// After that it no longer does: the judge will say what became of the rest.
	stallTime = 15 * time.Second
)

// Limits of what the collector may take; what waits is on disk and in memory.
const (
	memoryLimit     = 384 << 20 // bytes, and
	memoryPerPair   = 4 << 10   // for each event and receiver
	goroutineLimit  = 150       // and
	goroutineWorker = 5         // for each worker
)

// ErrBroken is the error of a run that went to its end and found something.
var ErrBroken = errors.New("the promise is broken")

// Run sends the events, kills the collector, waits until all is quiet, and
// judges. The last line that it writes is the verdict's summary. Its error is
// ErrBroken if anything was found, or says why the run could not be made.
func Run(ctx context.Context, o Options) error {
	r, err := newRun(o)
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.sendAndKill(ctx); err != nil {
		return err
	}
	return r.judge(ctx)
}

// run is one run under way.
type run struct {
	Options
	rand      *rand.Rand
	receivers []*Receiver
	process   *process
	sender    *sender
	lastKill  time.Time
	started   time.Time
}

func newRun(o Options) (*run, error) {
	if o.Events < 1 || o.Receivers < 1 || o.Kills < 0 {
		return nil, errors.New("at least one event and one receiver, and no negative number of kills")
	}
	r := &run{Options: o, rand: rand.New(rand.NewPCG(o.Seed, 1<<32)), started: time.Now()}
	ports, err := freePorts(o.Receivers + 4)
	if err != nil {
		return nil, err
	}
	for n := range o.Receivers {
		receiver, err := Listen(o.Seed, n, o.Events, ports[n])
		if err != nil {
			r.close()
			return nil, err
		}
		r.receivers = append(r.receivers, receiver)
	}
	ports = ports[o.Receivers:]
	r.process = &process{
		binary: filepath.Join(o.Bin, "otelcol-gpu"),
		dir:    o.Dir,
		ports:  collector.Ports{OTLPHTTP: ports[0], Health: ports[1], Own: ports[2]},
		pprof:  ports[3],
	}
	if err := r.process.configure(o.Events, r.receivers); err != nil {
		r.close()
		return nil, err
	}
	r.sender = &sender{url: "http://" + address(ports[0]), rand: rand.New(rand.NewPCG(o.Seed, 1<<33)), events: newEvents(r.rand, o.Events), mayGo: r.pace()}
	return r, nil
}

func (r *run) close() {
	for _, receiver := range r.receivers {
		receiver.Close()
	}
}

// say writes a line with the time since the start.
func (r *run) say(format string, a ...any) {
	fmt.Fprintf(r.Out, "%7.1f s  %s\n", time.Since(r.started).Seconds(), fmt.Sprintf(format, a...))
}

// pace holds the sender back to what the receivers that are well have got, so
// that sending lasts as long as delivering and kills meet both.
func (r *run) pace() func(int) bool {
	window := max(batchMost, r.Events/20)
	given := false // up waiting
	last, since := -1, time.Now()
	lock := make(chan struct{}, 1)
	return func(acknowledged int) bool {
		lock <- struct{}{}
		defer func() { <-lock }()
		got := r.receivers[0].Answered()
		if got != last {
			last, since = got, time.Now()
		}
		if !given && time.Since(since) > stallTime {
			given = true
			r.say("%s gets nothing any more: sending goes on without waiting for it", r.receivers[0].Name)
		}
		return given || acknowledged-got < window
	}
}

// sendAndKill sends everything and kills the collector meanwhile: at moments
// drawn from the time of sending, the last time soon after it.
func (r *run) sendAndKill(ctx context.Context) error {
	if err := r.keys(ctx); err != nil {
		return err
	}
	if err := r.process.start(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched, sent := make(chan struct{}), make(chan struct{})
	go func() { defer close(watched); r.process.watch(ctx) }()
	go func() { defer close(sent); r.sender.send(ctx) }()
	defer func() { cancel(); <-watched; <-sent }()

	r.say("sending %d events to %d receivers, seed %d", r.Events, r.Receivers, r.Seed)
	for i, moment := range r.moments() {
		if err := r.waitFor(ctx, sent, moment); err != nil {
			return err
		}
		if !sleep(ctx, between(r.rand, 500*time.Millisecond)) {
			return ctx.Err()
		}
		if err := r.process.kill(); err != nil {
			return err
		}
		r.lastKill = time.Now()
		r.say("kill %d, with %d events acknowledged", i+1, r.sender.count())
		if !sleep(ctx, between(r.rand, time.Second)) {
			return ctx.Err()
		}
		if err := r.process.start(ctx); err != nil {
			return err
		}
	}
	if err := r.waitFor(ctx, sent, r.Events); err != nil {
		return err
	}
	r.say("all events acknowledged")
	if err := r.waitQuiet(ctx); err != nil {
		return err
	}
	cancel()
	<-watched
	r.say("quiet")
	return r.process.stop()
}

// moments are how many events are acknowledged when the kills come.
func (r *run) moments() []int {
	moments := make([]int, r.Kills)
	for i := range moments {
		moments[i] = r.rand.IntN(r.Events)
	}
	slices.Sort(moments)
	if r.Kills > 1 {
		moments[r.Kills-1] = r.Events
	}
	return moments
}

// waitFor waits until so many events are acknowledged.
func (r *run) waitFor(ctx context.Context, sent <-chan struct{}, acknowledged int) error {
	for r.sender.count() < acknowledged {
		select {
		case <-r.process.running().Exited():
			return r.process.running().Died()
		case <-sent:
			if r.sender.count() < acknowledged {
				return fmt.Errorf("sending ended with %d of %d events acknowledged: %w", r.sender.count(), r.Events, ctx.Err())
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
	return ctx.Err()
}

// waitQuiet waits until nothing has happened for a while.
func (r *run) waitQuiet(ctx context.Context) error {
	var last [2]int64
	since := time.Now()
	for time.Since(since) < quietTime {
		select {
		case <-r.process.running().Exited():
			return r.process.running().Died()
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		var now [2]int64
		for _, receiver := range r.receivers {
			now[0] += int64(receiver.Connections())
		}
		files, err := auditFiles(r.process.audit())
		if err != nil {
			return err
		}
		for _, file := range files {
			if info, err := os.Stat(file); err == nil { // it may just have been renamed
				now[1] += info.Size()
			}
		}
		if now != last {
			last, since = now, time.Now()
		}
	}
	return nil
}

// judge compares the accounts and says what came of it.
func (r *run) judge(ctx context.Context) error {
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
		findings = append(findings, fmt.Sprintf("audit: %d lines cannot be read, but only %d are told to be torn", kinds["unreadable"], kinds["torn"]))
	}
	if err := r.verify(ctx, files); err != nil {
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

// report says what happened, in numbers.
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
	connections, posts := 0, 0
	for _, n := range f.Connections {
		connections += n
	}
	for _, event := range f.Events {
		posts += event.Posts
	}
	r.say("%d events in %d posts of one; %d connections, %d requests", len(f.Events), posts, connections, len(f.Requests))
	r.say("%d records in %d files, %d checkpoints, %d torn lines: %s", len(f.Records), files, kinds["checkpoint"], kinds["torn"], strings.Join(list, ", "))
	r.say("peak: %.0f MiB of memory, %d goroutines", r.process.peak.memory/(1<<20), r.process.peak.goroutines)
}

// bounds says where the collector took more than it may.
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

// keys makes the keys of the audit file.
func (r *run) keys(ctx context.Context) error {
	out, err := r.gpuctl(ctx, "keygen", "--name", "test/delivery", "--checkpoint", r.process.checkpointKey(), "--fingerprint", r.process.fingerprintKey())
	if err != nil {
		return fmt.Errorf("gpuctl audit keygen: %w: %s", err, out)
	}
	return nil
}

// verify lets gpuctl check chain, sequence and checkpoints of all files.
func (r *run) verify(ctx context.Context, files []string) error {
	out, err := r.gpuctl(ctx, append([]string{"verify", "--key", r.process.checkpointKey() + ".pub"}, files...)...)
	r.say("gpuctl audit verify: %s", out)
	if err != nil {
		return fmt.Errorf("gpuctl audit verify: %w", err)
	}
	return nil
}

// gpuctl runs gpuctl audit with these arguments.
func (r *run) gpuctl(ctx context.Context, args ...string) (string, error) {
	path := filepath.Join(r.Bin, "gpuctl")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: run make build", err)
	}
	out, err := exec.CommandContext(ctx, path, append([]string{"audit"}, args...)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// wants says whether a receiver with this profile's filter wants an event.
func (p profile) wants(e Event) bool {
	severity := map[string]int{"": 0, "info": severityInfo, "warn": severityWarn, "error": severityError}[p.minSeverity]
	if e.Severity < severity {
		return false
	}
	for _, pattern := range p.events {
		if ok, _ := path.Match(pattern, e.Name); ok {
			return true
		}
	}
	return len(p.events) == 0
}
