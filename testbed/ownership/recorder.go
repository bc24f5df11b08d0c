// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/otlp"
)

// Recorder is an OTLP/gRPC server that keeps every point of metrics that
// arrives.
type Recorder struct {
	*otlp.Server

	mu      sync.Mutex
	points  []Point
	strings map[string]string // one copy of each
}

// Record starts a recorder on a free port of loopback. Close ends it; what was
// recorded stays.
func Record() (*Recorder, error) {
	r := &Recorder{strings: map[string]string{}}
	var err error
	r.Server, err = otlp.Serve("127.0.0.1:0", otlp.Handler{Metrics: r.take})
	return r, err
}

// take keeps what an agent sends.
func (r *Recorder) take(_ context.Context, md pmetric.Metrics) error {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.points = flatten(r.points, md, now, r.intern)
	return nil
}

func (r *Recorder) intern(s string) string {
	if known, ok := r.strings[s]; ok {
		return known
	}
	r.strings[s] = s
	return s
}

// Len is how many points there are, for Since.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.points)
}

// Since are the points from the n-th on, in the order in which they arrived.
// They are shared: do not change them.
func (r *Recorder) Since(n int) []Point {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.points[n:len(r.points):len(r.points)]
}
