// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
)

// Of 300 W, 70 are of the idle board and by share, and 230 of what two instances do.
func TestEnergyByActivity(t *testing.T) {
	board := []Point{
		instance(owned("g", "g/1", "busy", share.Fraction{P: 3, Q: 7}), "3g.40gb"),
		instance(owned("g", "g/2", "lazy", share.Fraction{P: 3, Q: 7}), "3g.40gb"),
	}
	for _, tt := range []struct {
		name       string
		idle       int64 // mW
		busy, lazy float64
		want       map[string]float64 // W
		estimated  bool
	}{
		{"split", 70_000, .9, .1, map[string]float64{"busy": 30 + 207, "lazy": 30 + 23, "(stranded)": 10}, true},
		{"one is not measured", 70_000, .5, -1, map[string]float64{"busy": 30 + 115, "lazy": 30 + 115, "(stranded)": 10}, true},
		{"none is", 70_000, -1, -1, map[string]float64{"busy": 900. / 7, "lazy": 900. / 7, "(stranded)": 300. / 7}, false},
		{"nothing runs", 70_000, 0, 0, map[string]float64{"busy": 900. / 7, "lazy": 900. / 7, "(stranded)": 300. / 7}, false},
		{"the model is not known", -1, .9, .1, map[string]float64{"busy": 900. / 7, "lazy": 900. / 7, "(stranded)": 300. / 7}, false},
		{"less than an idle board", 400_000, .9, .1, map[string]float64{"busy": 900. / 7, "lazy": 900. / 7, "(stranded)": 300. / 7}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := config()
			cfg.IdleWatts = func(*Class) (int64, bool) { return max(0, tt.idle), tt.idle >= 0 }
			l := New(cfg, t0)
			for at := t0; at <= t0+hour; at += 15 * second {
				add(l, at, board...)
				for part, value := range map[string]float64{"g/1": tt.busy, "g/2": tt.lazy} {
					if value >= 0 {
						l.Utilization("g", part, at, value)
					}
				}
				l.Energy("g", at, float64(at-t0)/1000*300, 700)
			}
			got, sum := rows(l), int64(0)
			for name, watts := range tt.want {
				assert.InEpsilon(t, watts*3600, float64(got[name].Energy[OfShare])/1000, .01, name)
				sum += got[name].Energy[OfShare]
			}
			power := l.boards["g"].power
			assert.Equal(t, power.value, sum+power.pending+power.later, "nothing is lost")
			for _, total := range l.Totals() {
				assert.Equal(t, tt.estimated, total.Flags&Estimated != 0)
			}
		})
	}
}

// A counter that appears later takes over.
func TestCounterThatAppears(t *testing.T) {
	l := New(config(), t0)
	a := owned("g", "g", "a", share.Whole)
	for i := range int64(9) {
		at := t0 + i*minute
		add(l, at, a)
		if l.Power("g", at, 300); i >= 4 {
			l.Energy("g", at, float64(i)*1000, 700)
		}
	}
	assert.Equal(t, int64(3_000_000), rows(l)["a"].Energy[OfBoard])
}

// An exporter reports power and the counter at the same time, in any order: it is the
// counter that counts.
func TestCounterBeforePower(t *testing.T) {
	for _, powerFirst := range []bool{true, false} {
		l := New(config(), t0)
		a := owned("g", "g", "a", share.Whole)
		for i := range int64(10) {
			at := t0 + i*15*second
			add(l, at, a)
			if powerFirst {
				l.Power("g", at, 300)
			}
			l.Energy("g", at, 200*float64(i*15), 700)
			l.Power("g", at, 300)
		}
		add(l, t0+3*minute, a)
		assert.Equal(t, [3]int64{OfBoard: 200 * 1000 * 135}, rows(l)["a"].Energy, powerFirst)
	}
}

// Energy counts from the first snapshot on, which is open as long as no other has begun.
func TestEnergyOfTheFirstInterval(t *testing.T) {
	l := New(config(), t0)
	a := owned("g", "g", "a", share.Whole)
	for i := range int64(5) {
		add(l, t0+i*minute, a)
		l.Energy("g", t0+i*minute, float64(i)*1000, 700)
	}
	assert.Equal(t, int64(3_000_000), rows(l)["a"].Energy[OfBoard])
}

// An exporter reads its boards less often than it is scraped, every scrape is a little early or
// late, and the gateway restarts: no energy is missing, of boards at their power limit included.
func TestEnergyOfAnExporterThatRefreshesSlowly(t *testing.T) {
	jitter := []int64{0, 170, -120, 60, -190, 110, -40, 200, -80, 20}
	const lasts = 6 * hour
	for _, refresh := range []int64{second, 15 * second, 20 * second, 30 * second, 60 * second} {
		for _, watts := range []float64{100, 500, 699} {
			for _, counter := range []bool{true, false} {
				t.Run(fmt.Sprint(refresh/second, "s ", watts, "W ", counter), func(t *testing.T) {
					l := New(config(), t0)
					for i, at := 0, t0; at <= t0+lasts; i, at = i+1, at+15*second {
						now := at + jitter[i%len(jitter)]
						add(l, now, owned("g", "g", "a", share.Whole))
						read := (now + 7*second) / refresh * refresh
						if counter {
							l.Energy("g", now, float64(read-t0+hour)/1000*watts, 700)
						} else { // twice of it in half of the time
							l.Power("g", now, 2*watts*float64(read/(5*minute)%2))
						}
						if i%40 == 39 {
							l, _ = Restore(config(), l.Encode())
						}
					}
					a := rows(l)["a"]
					energy := a.Energy[OfBoard] + a.Energy[Integrated]
					assert.InEpsilon(t, watts*float64(lasts), energy, .005)
					assert.Zero(t, l.Counts().EnergyGap)
				})
			}
		}
	}
}

// A counter that never changes, though its exporter is scraped, does not keep hours for ever.
func TestEnergyOfACounterThatStandsStill(t *testing.T) {
	l := New(config(), t0)
	for at := t0; at < t0+10*day; at += 5 * minute {
		add(l, at, owned("g", "g", fmt.Sprint("pod", at/day), share.Whole))
		l.Energy("g", at, 1000, 700)
		flush(l, at)
	}
	hours := 0
	for _, r := range l.rows {
		hours += len(r.hours)
	}
	assert.Less(t, hours, 30)
	l.Energy("g", t0+10*day, 900_000, 700)
	assert.Equal(t, 10*day, l.Counts().EnergyGap)
}
