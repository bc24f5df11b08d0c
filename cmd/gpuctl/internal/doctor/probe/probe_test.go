// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/web"
)

// A check that breaks or hangs costs the others nothing, and what it panicked
// with is not shown.
func TestChecksAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		fine := func(name string) Check {
			return Check{name, func(context.Context) []Result { return []Result{{Check: name, Status: OK}} }}
		}
		results := Run(t.Context(), []Check{
			fine("first"),
			{"breaks", func(context.Context) []Result { panic("with the secret hush") }},
			{"hangs", func(context.Context) []Result { <-release; return nil }},
			{"slow", func(ctx context.Context) []Result {
				<-ctx.Done()
				return []Result{{Check: "slow", Status: Fail, Seen: "found in its last moment"}}
			}},
			fine("last"),
		}, time.Second, NewProgress(nil))
		close(release)
		var got []string
		for _, r := range results {
			got = append(got, fmt.Sprintf("%s %s", r.Check, r.Status))
			assert.NotContains(t, r.Seen+r.Remedy, "hush")
		}
		assert.Equal(t, []string{"first ok", "breaks fail", "hangs fail", "slow fail", "last ok"}, got)
		assert.Contains(t, results[2].Seen, "not finished within 1s")
		assert.Equal(t, "found in its last moment", results[3].Seen)
	})
}

func TestFewChecksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		checks := make([]Check, 5*atOnce)
		for i := range checks {
			checks[i] = Check{"one", func(context.Context) []Result {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(time.Second)
				now.Add(-1)
				return nil
			}}
		}
		Run(t.Context(), checks, time.Minute, NewProgress(nil))
		assert.LessOrEqual(t, most.Load(), int32(atOnce))
	})
}

func TestSkew(t *testing.T) {
	asked := time.Date(2026, 1, 1, 12, 0, 0, 400e6, time.UTC)
	answered := asked.Add(200 * time.Millisecond)
	for _, tt := range []struct {
		date   time.Duration // from the second in which we asked
		skew   time.Duration
		status Status
		seen   string
	}{
		{0, 0, OK, "as ours"},
		{-time.Second, -400 * time.Millisecond, OK, "as ours"},
		{2 * time.Second, 1400 * time.Millisecond, OK, "1s ahead of ours"},
		{time.Minute, 59*time.Second + 400*time.Millisecond, Warn, "59s ahead of ours"},
		{-time.Minute, -59*time.Second - 400*time.Millisecond, Warn, "59s behind ours"},
	} {
		date := asked.Truncate(time.Second).Add(tt.date)
		assert.Equal(t, tt.skew, skewOf(date, asked, answered))
		r := Clock("them", &web.Answer{Header: http.Header{"Date": {date.Format(http.TimeFormat)}}, Asked: asked, Answered: answered})
		assert.Equal(t, []Result{New("clock of them", tt.status, tt.seen, r[0].Remedy)}, r)
	}
	assert.Empty(t, Clock("them", &web.Answer{Header: http.Header{"Date": {"yesterday"}}, Asked: asked, Answered: answered}))
}
