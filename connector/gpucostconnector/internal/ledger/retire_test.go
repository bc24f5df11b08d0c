// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// flush is what the connector does with each flush that succeeds.
func flush(l *Ledger, now int64) []Total {
	l.Expire(now)
	l.Hours(now)
	all := l.Totals()
	l.HoursEmitted()
	return all
}

// Rows of services that are gone make room, and no sum becomes smaller by that.
func TestRetirement(t *testing.T) {
	cfg := config()
	cfg.MaxRows = 40
	cfg.Price = func(_ *Priced, at int64) Price { // a new price every hour
		h := hourOf(at)
		return Price{prices.Rate{Nano: h / hour % 100 * 1_000_000_007, Per: 7}, prices.KindList, h + hour}
	}
	l := New(cfg, t0)
	largest, capacity, cost := 0, int64(0), prices.Money{}
	for at := t0; at < t0+20*day; at += 5 * minute {
		job := fmt.Sprint("job", (at-t0)/(8*hour))
		add(l, at, owned("g0", "g0", "steady", share.Whole), owned("g1", "g1", job, share.Whole))
		if at%hour != 0 {
			continue
		}
		time, money, steady, living := int64(0), prices.Money{}, int64(0), map[string]bool{}
		totals := flush(l, at)
		for _, total := range totals {
			time, money = time+total.Time, money.Add(total.Cost)
			if total.Key.Service == "steady" {
				steady += total.Time
			}
			assert.Equal(t, total.Retired, total.Key.Service == "" && !total.Key.Rate.Known())
			living[total.Key.Service] = true
		}
		require.GreaterOrEqual(t, time, capacity)
		require.GreaterOrEqual(t, money.Float(), cost.Float())
		require.Equal(t, max(0, at-t0-5*minute), steady, "its prices of before are part of its series")
		if at > t0 {
			require.True(t, living[fmt.Sprint("job", (at-t0-5*minute)/(8*hour))])
		}
		capacity, cost, largest = time, money, max(largest, len(totals))
		if at%day == 0 {
			again, err := Restore(cfg, l.Encode())
			require.NoError(t, err)
			require.ElementsMatch(t, l.Totals(), again.Totals())
			// The gap of a restart is bridged, and then it is as it was.
			l = again
		}
	}
	assert.Less(t, largest, 40)
	assert.Zero(t, l.Counts().Overflowed, "there was always room")
	assert.Equal(t, 2*(20*day-10*minute), capacity+2*(t0+20*day-10*minute-hourOf(t0+20*day-1)+5*minute))
}

// A service that is back after its series has ended begins with 0 and a new start.
func TestServiceThatIsBack(t *testing.T) {
	l := New(config(), t0)
	runs := func(from, to int64, pod string) {
		for at := from; at <= to; at += minute {
			add(l, at, owned("g", "g", pod, share.Whole))
			if at%(5*minute) == 0 {
				flush(l, at)
			}
		}
	}
	of := func(service string) (all []Total) {
		for _, total := range l.Totals() {
			if total.Key.Service == service {
				all = append(all, total)
			}
		}
		return all
	}
	runs(t0, t0+hour, "nightly")
	runs(t0+hour+minute, t0+25*hour, "other")
	require.Len(t, of("nightly"), 1, "it has changed less than a day before")
	runs(t0+25*hour+minute, t0+27*hour, "other")
	require.Empty(t, of("nightly"))
	runs(t0+27*hour+minute, t0+28*hour, "nightly")
	back := of("nightly")
	require.Len(t, back, 1)
	assert.Equal(t, t0+27*hour+minute, back[0].Start)
	assert.Equal(t, 58*minute, back[0].Time)
}

// An hour that may still gain time is not forgotten, so a revision of it contains all of it.
func TestHourThatGainsTimeLate(t *testing.T) {
	l := New(config(), t0)
	lagging := owned("lagging", "lagging", "a", share.Whole)
	lagging.Node = "other"
	for at := t0; at < t0+20*hour; at += 5 * minute {
		add(l, at, owned("g", "g", "a", share.Whole))
		if at <= t0+2*hour {
			add(l, at, lagging)
		}
		flush(l, at)
	}
	// What its node kept in a queue comes now.
	for at := t0 + 2*hour; at < t0+20*hour; at += 5 * minute {
		add(l, at, lagging)
		for _, h := range l.Hours(t0 + 20*hour) {
			if h.Revision > 0 && h.Start+hour < at-10*minute && h.Start >= t0+2*hour {
				require.Equal(t, 2*hour, h.Time)
				require.Equal(t, uint32(2), h.Revision)
			}
		}
		l.HoursEmitted()
	}
	add(l, t0+10*hour, owned("new", "new", "b", share.Whole))
	assert.Equal(t, int64(1), l.Counts().Late, "hours of then are forgotten")
}

// A counter of energy that is silent for long does not keep hours for ever.
func TestEnergyThatIsSilentForLong(t *testing.T) {
	l := New(config(), t0)
	l.Energy("g", t0, 1000, 0)
	for at := t0; at < t0+10*day; at += 5 * minute {
		add(l, at, owned("g", "g", fmt.Sprint("pod", at/day), share.Whole))
		if at == t0+hour {
			l.Energy("g", at, 2000, 0)
		}
		flush(l, at)
	}
	hours := 0
	for _, r := range l.rows {
		hours += len(r.hours)
	}
	assert.Less(t, hours, 6)
	l.Energy("g", t0+10*day, 900_000, 0)
	add(l, t0+10*day, owned("g", "g", "x", share.Whole))
	add(l, t0+10*day+1, owned("g", "g", "x", share.Whole))
	assert.Zero(t, l.boards["g"].power.pending)
}

// A clock of the gateway that is ahead for a while forgets neither hours nor budgets, and
// what comes after it is accounted.
func TestClockThatIsAheadForAWhile(t *testing.T) {
	cfg := config()
	cfg.Budgets = historyBudgets[:1]
	l := New(cfg, t0)
	for at := t0; at <= t0+6*hour; at += minute {
		add(l, at, owned("g", "g", "a", share.Whole))
		now := at
		if at == t0+3*hour {
			now += 40 * day
		}
		flush(l, now)
		l.Budgets(now)
	}
	assert.Equal(t, 6*hour-minute, rows(l)["a"].Time)
	assert.Equal(t, 6*hour-minute, l.Budgets(t0 + 6*hour)[0].Time)
	assert.Zero(t, l.Counts().Late)
}

// Rows of what has no owner are limited too: labels may be of single nodes.
func TestRowsOfNodesAreLimited(t *testing.T) {
	cfg := config()
	cfg.MaxRows = 3
	l := New(cfg, t0)
	for i := range 100 {
		class := *h100
		class.Labels = fmt.Sprint("host=", i)
		for n := range int64(3) {
			a, b := owned(fmt.Sprint("a", i), fmt.Sprint("a", i), fmt.Sprint("pod", i), share.Whole), free(fmt.Sprint("b", i), fmt.Sprint("b", i), share.Whole)
			a.Class, b.Class, a.Owner.Tenant = &class, &class, fmt.Sprint("t", i)
			add(l, t0+n*minute, a, b)
		}
	}
	time := map[State]int64{}
	for _, total := range l.Totals() {
		time[total.Key.State] += total.Time
	}
	assert.Equal(t, map[State]int64{Held: 100 * minute, Free: 100 * minute}, time)
	assert.LessOrEqual(t, len(l.rows), 3*cfg.MaxRows+2)
}
