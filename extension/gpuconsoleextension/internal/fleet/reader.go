// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet reads the state of a GPU fleet out of a store: services, pods,
// nodes, devices, charts, events.
package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/unstored"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// atOnce is how many queries of one request run at once: a store has turns for
// few, and others wait.
const atOnce = 4

// Options are what a Reader takes for known; all are needed.
type Options struct {
	StaleAfter time.Duration // data that is older is no longer current
	Remembered time.Duration // what fell silent is named for so long
	Thresholds Thresholds    // where gpu_summary publishes none
	MaxPoints  int           // of a line of a chart
	MaxLines   int           // of a chart
	Delay      time.Duration // how long the store may take until a sample can be read
	ShareFor   time.Duration // requests within it share the responses of the store; 0: none do
	Now        func() time.Time
}

// Thresholds are those by which figures are explained, and devices called idle.
type Thresholds struct {
	Warmup           time.Duration // within which a new pod should report
	PartialThreshold float64       // missing ratio above which a service is partial
	IdleThreshold    float64       // utilization below which a device is idle
	IdleFor          time.Duration // once it was so for that long
	// Published: they are those of gpu_summary. Else it publishes none, or has not
	// evaluated lately, and they are those of the configuration.
	Published bool
}

// Reader reads the state of a fleet. It may be used by several goroutines.
type Reader struct {
	store   store.Store
	options Options

	mu   sync.Mutex
	last *moment // that others may share
}

// New makes a Reader of a store.
func New(s store.Store, o Options) *Reader { return &Reader{store: s, options: o} }

// Key names a service; an empty cluster is that of telemetry that names none.
type Key struct{ Cluster, Namespace, Service string }

// reading is one answer in the making: everything in it is of one moment.
type reading struct {
	*Reader
	moment *moment
	now    time.Time // when it is evaluated
	at     time.Time // of when values are
	group  *errgroup.Group
	ctx    context.Context
	mu     sync.Mutex
	newest time.Time // of the samples that went into it
	// unstored is what the store could not keep.
	unstored   *unstored.Unstored
	thresholds Thresholds
	err        error // of the question for thresholds
}

func (r *Reader) read(ctx context.Context) *reading {
	m := r.moment()
	reading := &reading{Reader: r, moment: m, now: m.now, at: m.now.Add(-r.options.Delay), unstored: r.Unstored()}
	reading.more(ctx)
	thresholds := reading.vector(queries.Thresholds())
	reading.err = reading.group.Wait()
	reading.thresholds = published(*thresholds, r.options.Thresholds)
	reading.more(ctx)
	return reading
}

// published are the thresholds that gpu_summary published, if it published them all;
// else the others.
func published(found model.Vector, others Thresholds) Thresholds {
	values := map[string]float64{}
	for _, sample := range found {
		values[string(sample.Metric[model.MetricNameLabel])] = float64(sample.Value)
	}
	seconds := func(name string) time.Duration { return time.Duration(values[name] * float64(time.Second)) }
	t := Thresholds{
		Warmup: seconds(queries.SummaryWarmup), PartialThreshold: values[queries.SummaryPartialThreshold],
		IdleThreshold: values[queries.SummaryIdleThreshold], IdleFor: seconds(queries.SummaryIdleFor), Published: true,
	}
	if len(values) < 4 {
		return others
	}
	return t
}

// Unstored is what the store cannot keep, or could not a moment ago. It asks no
// metrics.
func (r *Reader) Unstored() *unstored.Unstored {
	return unstored.Of(r.store, r.options.Now(), r.options.StaleAfter)
}

// more begins to ask further questions.
func (r *reading) more(ctx context.Context) {
	r.group, r.ctx = errgroup.WithContext(ctx)
	r.group.SetLimit(atOnce)
}

// vector asks; the answer is there after wait.
func (r *reading) vector(query string) *model.Vector { return r.vectorAt(query, r.at) }

func (r *reading) vectorAt(query string, at time.Time) *model.Vector {
	v := new(model.Vector)
	ctx := r.ctx
	r.group.Go(func() error {
		found, err := r.moment.ask(ctx, question{query, at}, func(ctx context.Context) (model.Vector, error) {
			return r.instant(ctx, query, at)
		})
		*v = slices.Clone(found) // others have its samples, but not their order
		return err
	})
	return v
}

func (r *Reader) instant(ctx context.Context, query string, at time.Time) (model.Vector, error) {
	result, err := r.store.Instant(ctx, query, at)
	if err != nil {
		return nil, err
	}
	found, ok := result.Value.(model.Vector)
	if !ok {
		return nil, store.Errorf(store.Unavailable, "the store answers, but not as Prometheus does: a %T for a vector", result.Value)
	}
	return numbers(found), nil
}

// matrix asks for a range; the answer is there after wait.
func (r *reading) matrix(query string, g grid) *model.Matrix {
	m := new(model.Matrix)
	ctx := r.ctx
	r.group.Go(func() error {
		result, err := r.store.Range(ctx, query, store.Range{Start: g.start, End: g.end(), Step: g.step})
		if err != nil {
			return err
		}
		found, ok := result.Value.(model.Matrix)
		if !ok {
			return store.Errorf(store.Unavailable, "the store answers, but not as Prometheus does: a %T for a matrix", result.Value)
		}
		*m = found
		return nil
	})
	return m
}

// wait waits for all answers.
func (r *reading) wait() error { return cmp.Or(r.group.Wait(), r.err) }

// numbers leaves out what is no data: NaN, infinities, histograms.
func numbers(v model.Vector) model.Vector {
	kept := v[:0]
	for _, s := range v {
		if s.Histogram == nil && isNumber(float64(s.Value)) {
			kept = append(kept, s)
		}
	}
	return kept
}

func isNumber(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// seconds is a time that a query returns.
func seconds(v model.SampleValue) time.Time {
	return time.UnixMilli(int64(math.Round(float64(v) * 1000))).UTC()
}

// reported returns how old something is; a zero time is no data.
func (r *reading) reported(t time.Time) consoleapi.Told {
	if t.IsZero() {
		return consoleapi.Told{}
	}
	t = t.UTC().Truncate(time.Millisecond)
	age := max(0, r.now.Sub(t).Seconds()) // a clock that is ahead
	r.used(t)
	return consoleapi.Told{DataTime: &t, DataAge: &age, Stale: age > r.options.StaleAfter.Seconds()}
}

// used notes the time of a sample that went into the answer.
func (r *reading) used(t time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.After(r.newest) {
		r.newest = t
	}
}

// fresh reports whether what is of that time is current.
func (r *reading) fresh(t time.Time) bool {
	return !t.IsZero() && r.now.Sub(t) <= r.options.StaleAfter
}

// freshness is that of the whole answer.
func (r *reading) freshness() consoleapi.Freshness {
	return consoleapi.Freshness{
		EvaluatedAt: r.now.UTC().Truncate(time.Millisecond), Told: r.reported(r.newest), StaleAfter: r.options.StaleAfter.Seconds(),
	}
}

// Unknown is the freshness of an answer without data.
func (r *Reader) Unknown() consoleapi.Freshness {
	return consoleapi.Freshness{EvaluatedAt: r.options.Now().UTC().Truncate(time.Millisecond), StaleAfter: r.options.StaleAfter.Seconds()}
}

func text(v model.LabelValue) *string {
	if v == "" {
		return nil
	}
	s := string(v)
	return &s
}

func pointer[T any](v T) *T { return &v }

// whole is a count that a query returns.
func whole(v *float64) *int {
	if v == nil {
		return nil
	}
	return pointer(max(0, int(math.Round(*v))))
}

// plus adds counts; what is not known makes the sum so.
func plus(counts ...*int) *int {
	sum := 0
	for _, c := range counts {
		if c == nil {
			return nil
		}
		sum += *c
	}
	return &sum
}

func above(c *int) bool { return c != nil && *c > 0 }
