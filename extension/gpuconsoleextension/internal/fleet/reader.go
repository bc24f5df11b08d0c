// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet reads the state of a GPU fleet out of a store: services, pods,
// nodes, devices, charts, events.
package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"context"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/age"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/capacity"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/unstored"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

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
	Log
	store   store.Store
	options Options
	client  *ask.Client
	listing listing
}

// New makes a Reader of a store.
func New(s store.Store, o Options) *Reader {
	r := &Reader{store: s, options: o, client: ask.NewClient(s, o.Delay, o.ShareFor, o.Now)}
	r.Log = Log{store: s, now: o.Now, staleAfter: o.StaleAfter}
	return r
}

// Key names a service.
type Key = inventory.Key

// answer makes one response.
func answer[T any](ctx context.Context, r *Reader, read func(*reading) (T, error)) (T, error) {
	reading, err := r.read(ctx)
	if err != nil {
		var none T
		return none, err
	}
	return read(reading)
}

// read begins a response.
func (r *Reader) read(ctx context.Context) (*reading, error) {
	q := r.client.Begin(ctx)
	judge := age.NewJudge(q.Now, r.options.StaleAfter, r.Unstored())
	thresholds := q.Vector(queries.Thresholds())
	if err := q.Wait(); err != nil {
		return nil, err
	}
	q.More(ctx)
	return &reading{
		Questions: q, Judge: judge, store: r.store, options: r.options, thresholds: published(*thresholds, r.options.Thresholds),
	}, nil
}

// Status reads the state of the whole.
func (r *Reader) Status(ctx context.Context) (*Status, error) {
	return answer(ctx, r, func(reading *reading) (*Status, error) { return readStatus(ctx, reading) })
}

// Services reads all services that match a text (of their name, namespace or
// cluster), those that need attention first, and the whole fleet. For a page that follows
// another one they are of the moment of that, as long as they are kept.
func (r *Reader) Services(ctx context.Context, match string, follows bool) (*Services, error) {
	if follows {
		if kept := r.listing.kept(match, r.options.Now()); kept != nil {
			return kept, nil
		}
	}
	return answer(ctx, r, func(reading *reading) (*Services, error) { return readServices(ctx, reading, match) })
}

// Keep keeps services that match a text for the pages that follow, unless requests share nothing.
func (r *Reader) Keep(match string, s *Services) {
	if r.options.ShareFor > 0 {
		r.listing.keep(match, s)
	}
}

// Service reads one service and the names of its missing pods; nil is unknown.
func (r *Reader) Service(ctx context.Context, key Key) (*consoleapi.ServiceAnswer, error) {
	return answer(ctx, r, func(reading *reading) (*consoleapi.ServiceAnswer, error) { return readService(ctx, reading, key) })
}

// Pods reads the pods of a service: missing and degraded ones first, then by name;
// nil is an unknown service.
func (r *Reader) Pods(ctx context.Context, key Key) (*Pods, error) {
	return answer(ctx, r, func(reading *reading) (*Pods, error) { return readPods(ctx, reading, key) })
}

// Nodes reads all nodes with a text in their name or cluster, those that need
// attention first; or one that is named. With attention they are those that need some.
func (r *Reader) Nodes(ctx context.Context, match string, named *Where, attention bool) (*Nodes, error) {
	return answer(ctx, r, func(reading *reading) (*Nodes, error) {
		return readNodes(ctx, reading, match, named, attention)
	})
}

// Range reads the charts of a service over a window that ends now.
func (r *Reader) Range(ctx context.Context, key Key, w Window, by string) (*consoleapi.RangeAnswer, error) {
	return answer(ctx, r, func(reading *reading) (*consoleapi.RangeAnswer, error) { return readRange(ctx, reading, key, w, by) })
}

// DeviceRange reads the charts of a node's devices, or of one device and its
// instances, over a window that ends now; nil is unknown.
func (r *Reader) DeviceRange(ctx context.Context, where Where, w Window) (*consoleapi.DeviceRangeAnswer, error) {
	return answer(ctx, r, func(reading *reading) (*consoleapi.DeviceRangeAnswer, error) {
		return readDeviceRange(ctx, reading, where, w)
	})
}

// Capacity reads what the scheduler has to give and what waits for it, and how current that
// is.
func (r *Reader) Capacity(ctx context.Context, q *capacity.Query) (*capacity.Capacity, consoleapi.Freshness, error) {
	var freshness consoleapi.Freshness
	c, err := answer(ctx, r, func(reading *reading) (*capacity.Capacity, error) {
		read := capacity.Ask(reading.Questions, reading.Judge, r.options.StaleAfter, r.options.Remembered, q)
		if err := reading.Wait(); err != nil {
			return nil, err
		}
		c := read()
		freshness = reading.Freshness()
		return c, nil
	})
	return c, freshness, err
}

// Unstored is what the store cannot keep, or could not a moment ago. It asks no
// metrics.
func (r *Reader) Unstored() *unstored.Unstored {
	return unstored.Of(r.store, r.options.Now(), r.options.StaleAfter)
}

// Endpoints are the webhook endpoints that do not get their deliveries. It asks
// the metric store nothing.
func (r *Reader) Endpoints() []consoleapi.Reason { return endpoints(r.store, r.options.Now()) }

// Unknown is the freshness of an answer without data.
func (r *Reader) Unknown() consoleapi.Freshness {
	return consoleapi.Freshness{EvaluatedAt: r.options.Now().UTC().Truncate(time.Millisecond), StaleAfter: r.options.StaleAfter.Seconds()}
}
