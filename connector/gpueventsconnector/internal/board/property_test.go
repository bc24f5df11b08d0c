// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/ras"
	"github.com/otelcol-gpu/otelcol-gpu/internal/xid"
)

// Whatever is read, happens, or is stored: a verdict is consistent, and a board that is
// restored is the same.
func TestAnything(t *testing.T) {
	odd := []float64{math.NaN(), math.NaN(), math.NaN(), 0, 0, 0, 1, 1, 2, 3, 0.5, -1, 16, 63, 511, 512, 1e6, 1 << 53, 1e300, math.Inf(1), math.Inf(-1)}
	codes := append(xid.Codes(), 0, -1, 173, 1023, 1024, math.MaxInt32)
	owners := []string{"", "a/a", "a/b", "b/a"}
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 7))
		w := newWatch()
		w.Kind = Kind(r.UintN(1 << 9))
		values, places := readings(page{})
		for range 300 {
			switch gap := time.Duration(r.Int64N(int64(90 * time.Second))); {
			case r.IntN(100) == 0:
				gap = time.Duration(r.Int64N(int64(3 * day)))
				w.now = w.now.Add(gap)
			case r.IntN(50) == 0:
				w.now = w.now.Add(-gap) // the clock is set back
			default:
				w.now = w.now.Add(gap)
			}
			code := codes[r.IntN(len(codes))]
			switch r.IntN(9) {
			case 0:
				w.XID(code, XIDOf(code), w.at())
			case 1:
				w.Seen(Evidence(r.UintN(16)), w.at())
			case 2:
				w.Set([]string{Temperature, Lost, LinkDown, "other", ""}[r.IntN(5)], r.IntN(2) == 0, w.at())
			case 3:
				w.Fault([]int{13, 31}[r.IntN(2)], owners[r.IntN(len(owners))], w.at())
			case 8:
				e, _ := ras.Lookup(code, ras.Fatal)
				w.RAS(code, e.Action, w.at())
			case 4:
				w.Spread(31, owners[r.IntN(len(owners))], w.at())
			default:
				for i := range values {
					if r.IntN(3) == 0 {
						values[i] = odd[r.IntN(len(odd))]
					}
				}
				w.Take(values, places, w.at())
			}
			consistent(t, &w.Board)
		}
		restored(t, &w.Board)
	}
}

func consistent(t *testing.T, b *Board) {
	v := b.Verdict()
	require.Equal(t, v.Applicable, v.WithData+len(v.Missing()))
	require.Equal(t, v.State == health.OK, v.Score == 1)
	require.Equal(t, v.State == health.Failed, v.Score == 0)
	require.True(t, v.Score >= 0 && v.Score <= 1)
	require.Equal(t, v.State == health.OK, len(v.Reasons) == 0)
	require.True(t, v.Known || len(v.Reasons) == 0)
	require.True(t, slices.IsSortedFunc(v.Reasons, func(x, y Active) int { return int(y.State) - int(x.State) }))
	for i := range v.Reasons {
		a := &v.Reasons[i]
		require.LessOrEqual(t, a.State, v.State)
		require.NotEqual(t, health.OK, a.State)
		require.LessOrEqual(t, a.Action, v.Action)
		require.NotEqual(t, health.None, a.Action)
		require.LessOrEqual(t, a.Since, a.Last)
		require.LessOrEqual(t, len(a.Codes), maxCodes)
		s := a.Sentence()
		require.NotEmpty(t, s)
		require.NotContains(t, s, "NaN")
		require.False(t, strings.HasSuffix(s, "."))
		require.Equal(t, 1, strings.Count(" "+strings.Join(namesOf(v.Reasons), " ")+" ", " "+a.Reason.Name+" "))
	}
}

func namesOf(reasons []Active) (all []string) {
	for i := range reasons {
		all = append(all, reasons[i].Reason.Name)
	}
	return all
}

func restored(t *testing.T, b *Board) {
	saved := b.Save()
	text, err := json.Marshal(saved)
	require.NoError(t, err)
	var stored Saved
	require.NoError(t, json.Unmarshal(text, &stored))
	again := Board{Kind: b.Kind}
	again.Restore(&stored)
	require.Equal(t, saved, again.Save())
	was, is := b.Verdict(), again.Verdict()
	require.Equal(t, namesOf(was.Reasons), namesOf(is.Reasons))
	require.Equal(t, []any{was.State, was.Action, was.Score}, []any{is.State, is.Action, is.Score})
}

// A stored board that cannot be is taken as far as it can.
func TestRestoreRefuses(t *testing.T) {
	var b Board
	b.Restore(&Saved{
		Since: 1, Counters: []float64{1, 2, 3, 4, 5}, Episodes: []uint64{1, 2, 3, 4, 5},
		XIDs: make([]int, 100), Faults: make([]SavedFault, 100),
		Counts: []SavedCount{{Name: "other", Count: 1}, {Name: "nvlink_errors", Of: 9}, {Name: "nvlink_down", Count: -1}},
		Reasons: []SavedReason{
			{Name: "xid_reset", State: "failed", Action: "reset_gpu"}, {Name: "xid_reset", State: "degraded", Action: "reset_gpu"},
			{Name: "other", State: "failed", Action: "rma"}, {Name: "lost", State: "ok", Action: "none"}, {Name: "lost", State: "worse", Action: "none"},
			{Name: "temperature", State: "degraded", Action: "pray"}, {Name: "throttle", State: "degraded", Action: "check_mechanics", Held: true},
		},
	})
	v := b.Verdict()
	require.Equal(t, []string{"xid_reset", "throttle"}, namesOf(v.Reasons))
	consistent(t, &b)
}

// A board that is well is judged without allocations.
func TestTakeAllocatesNothing(t *testing.T) {
	w := newWatch()
	values, places := readings(wellPage)
	take := func() {
		w.Take(values, places, w.at())
		w.now = w.now.Add(w.every)
	}
	take()
	require.Zero(t, testing.AllocsPerRun(1000, take))
	require.Equal(t, "ok", w.String())
}

// wellPage has every input of a board that is well.
var wellPage = func() page {
	p := page{"hw.energy": 100, "hw.errors/corrected": 1}
	for _, r := range Reasons {
		for _, in := range r.Reads {
			for _, value := range append([]string{""}, in.Values...) {
				key := in.Metric.Name
				if value != "" {
					key += "/" + value
				}
				if in.Where != nil && in.Where.Is != nil {
					key += " of " + in.Where.Is[0]
				}
				p[key] = 0
			}
		}
	}
	return p
}()

// BenchmarkTake is the time to judge one page of each of 5,000 boards: of well ones, and
// of boards with three reasons.
func BenchmarkTake(b *testing.B) {
	bad := page{"gpu.memory.row_remap.pending": 1, "gpu.memory.row_remap.failure": 1, "gpu.health.status/fail": 1}
	for name, more := range map[string]page{"well": nil, "reasons": bad} {
		b.Run(name, func(b *testing.B) {
			p := page{}
			for _, from := range []page{wellPage, more} {
				for key, v := range from {
					p[key] = v
				}
			}
			values, places := readings(p)
			boards := make([]Board, 5000)
			at := pcommon.NewTimestampFromTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			b.ReportAllocs()
			for b.Loop() {
				at += pcommon.Timestamp(15 * time.Second)
				for i := range boards {
					boards[i].Take(values, places, at)
					boards[i].Verdict()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/5000-boards")
		})
	}
}
