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
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
	// After that it no longer does: the judge decides about the rest.
	stallTime = 15 * time.Second
	// restoreTime is within what a start takes.
	restoreTime = 400 * time.Millisecond
)

// ErrBroken is the error of a run that went to its end and found something.
var ErrBroken = errors.New("the promise is broken")

// Run sends the events, kills the collector, waits until all is quiet, and
// judges. The last line that it writes is the verdict's summary. Its error is
// ErrBroken if anything was found, or why the run could not be made.
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
	ports, err := collector.Free(o.Receivers + 4)
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

// close ends everything that a run left early has left.
func (r *run) close() {
	if r.process != nil && r.process.running() != nil {
		_ = r.process.running().Stop()
	}
	for _, receiver := range r.receivers {
		receiver.Close()
	}
}

// logf writes a line with the time since the start.
func (r *run) logf(format string, a ...any) {
	fmt.Fprintf(r.Out, "%7.1f s  %s\n", time.Since(r.started).Seconds(), fmt.Sprintf(format, a...))
}

// pace holds the sender back to what the slowest of some receivers has got, so
// that sending takes its part of the run and kills meet it too.
func (r *run) pace() func(int) bool {
	var mu sync.Mutex
	window := max(batchMost, r.Events/20)
	given := false // up waiting
	last, since := -1, time.Now()
	return func(acknowledged int) bool {
		mu.Lock()
		defer mu.Unlock()
		got := acknowledged
		for n, receiver := range r.receivers {
			if profileOf(n).paces {
				got = min(got, receiver.Answered())
			}
		}
		if got != last {
			last, since = got, time.Now()
		}
		if !given && time.Since(since) > stallTime {
			given = true
			r.logf("the receivers get nothing any more: sending goes on without waiting for them")
		}
		return given || acknowledged-got < window
	}
}

// sendAndKill sends everything and kills the collector meanwhile.
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

	r.logf("sending %d events to %d receivers, seed %d", r.Events, r.Receivers, r.Seed)
	for i, moment := range r.moments() {
		if err := r.waitUntil(ctx, moment, i == 0); err != nil {
			return err
		}
		if err := r.kill(ctx, fmt.Sprintf("kill %d", i+1)); err != nil {
			return err
		}
		// Every second time it is killed again while it resumes what is left.
		if r.rand.IntN(2) == 0 {
			if err := r.process.launch(); err != nil {
				return err
			}
			if err := r.pause(ctx, between(r.rand, restoreTime)); err != nil {
				return err
			}
			if err := r.kill(ctx, "and again soon after its start"); err != nil {
				return err
			}
		}
		if err := r.process.start(ctx); err != nil {
			return err
		}
	}
	for r.sender.count() < r.Events {
		if err := r.pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	r.logf("all events acknowledged")
	if err := r.waitQuiet(ctx); err != nil {
		return err
	}
	cancel()
	<-watched
	r.logf("quiet")
	return r.process.stop()
}

// moments are how far the run is when the kills come, as shares of all pairs of
// an event and a receiver: fewer calls are made where events travel in groups.
// The first comes early, when events are still sent.
func (r *run) moments() []float64 {
	moments := make([]float64, r.Kills)
	for i := range moments {
		moments[i] = 0.6 * r.rand.Float64()
	}
	slices.Sort(moments)
	if r.Kills > 0 {
		moments[0] = min(moments[0], 0.2*r.rand.Float64())
	}
	return moments
}

// kill kills the collector and leaves it dead for a moment.
func (r *run) kill(ctx context.Context, what string) error {
	if err := r.process.kill(); err != nil {
		return err
	}
	r.lastKill = time.Now()
	r.logf("%s: %d events acknowledged, receivers called %d times", what, r.sender.count(), r.connections())
	if !sleep(ctx, between(r.rand, time.Second)) {
		return ctx.Err()
	}
	return nil
}

// waitUntil waits until the receivers were called that often, or are called no
// more, and if so wanted, until events are on their way to the collector.
func (r *run) waitUntil(ctx context.Context, moment float64, posting bool) error {
	last, since := -1, time.Now()
	for {
		now := r.connections()
		if now != last {
			last, since = now, time.Now()
		}
		due := float64(now) >= moment*float64(r.Events*r.Receivers) && (!posting || r.sender.posting.Load() > 0)
		if due || time.Since(since) > quietTime/2 {
			return ctx.Err()
		}
		if err := r.pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// pause waits, and ends early with an error if the collector does.
func (r *run) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-r.process.running().Exited():
		return r.process.running().Died()
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// connections are those of all receivers.
func (r *run) connections() int {
	n := 0
	for _, receiver := range r.receivers {
		n += receiver.Connections()
	}
	return n
}

// waitQuiet waits until nothing has happened for a while.
func (r *run) waitQuiet(ctx context.Context) error {
	var last [2]int64
	since := time.Now()
	for time.Since(since) < quietTime {
		if err := r.pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
		files, err := auditFiles(r.process.audit())
		if err != nil {
			return err
		}
		now := [2]int64{int64(r.connections()), 0}
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

// keys makes the keys of the audit file.
func (r *run) keys(ctx context.Context) error {
	out, err := r.gpuctl(ctx, "keygen", "--name", "test/delivery", "--checkpoint", r.process.checkpointKey(), "--fingerprint", r.process.fingerprintKey())
	if err != nil {
		return fmt.Errorf("gpuctl audit keygen: %w: %s", err, out)
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
