// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package costreport

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

const hourMS = 3_600_000

var t0 = time.Date(2026, 5, 1, 22, 0, 0, 0, time.UTC)

// row is some time of a state at 2.95 an hour.
func row(hour int, state, tenant, service string, ms int64) usage.Row {
	r := usage.Row{
		Key: usage.Key{
			Cluster: "c", Model: "H100", HostType: "h100x8", CapacityType: "on_demand", State: state,
			Currency: "USD", RateNano: 2_950_000_000, RatePer: 1, Kind: "list",
		},
		Hour: t0.Add(time.Duration(hour) * time.Hour), Revision: 1, Amounts: usage.Amounts{Time: ms, Carbon: -1},
	}
	if state == usage.Held {
		r.Namespace, r.Service, r.Tenant = "ns", service, tenant
	}
	return r
}

// node is the worked example of one hour: eight boards for 23.60.
func node() []usage.Row {
	a := row(0, usage.Held, "ml", "a", 7_200_000)
	a.Used = 3_600_000
	d := row(0, usage.Held, "web", "d", hourMS)
	d.Used, d.Idle = 36_000, hourMS
	c := row(0, usage.Held, "web", "c", 2_057_143)
	c.Unmeasured, c.Energy, c.Carbon = 2_057_143, [3]int64{1: 1_028_571_429}, 130_285_714
	b := row(0, usage.Held, "ml", "b", 2_700_000)
	return []usage.Row{
		a, b, c, d, row(0, usage.Free, "", "", 900_000+514_286+10_800_000), row(0, usage.Stranded, "", "", 1_028_571),
	}
}

// The store keeps the sum alone of old days: a report of a part of them is of other times than
// asked for, and has these. Reports of adjacent times count each day once.
func TestPartsOfDays(t *testing.T) {
	first := t0.Truncate(day)
	var rows []usage.Row
	for i := range 4 {
		r := row(0, usage.Held, "ml", "a", hourMS<<i)
		if r.Hour, r.Day = first.AddDate(0, 0, i), true; i == 3 { // the newest has hours still
			r.Hour, r.Day = r.Hour.Add(12*time.Hour), false
		}
		rows = append(rows, r)
	}
	at := func(days float64) time.Time { return first.Add(time.Duration(days * float64(day))) }
	for _, tt := range []struct {
		from, to         float64 // asked for
		realFrom, realTo float64
		hours            int64
		parts            []time.Time
	}{
		{0, 3, 0, 3, 1 + 2 + 4, nil},
		{0, 1.5, 0, 1, 1, []time.Time{at(1)}},
		{0.5, 1.5, 0, 1, 1, []time.Time{at(0), at(1)}},
		{1.5, 2.5, 1, 2, 2, []time.Time{at(1), at(2)}},
		{1.5, 3.75, 1, 3.75, 2 + 4 + 8, []time.Time{at(1)}},
		{1.25, 1.5, 1, 2, 2, []time.Time{at(1)}},
		{3.25, 3.75, 3.25, 3.75, 8, nil},
	} {
		for _, step := range []Step{Whole, Daily, Hourly} {
			r := Build(rows, Options{By: ByService, Step: step, From: at(tt.from), To: at(tt.to)})
			assert.Equal(t, tt.hours*hourMS, r.Total.Held, tt)
			assert.Equal(t, tt.parts, r.PartDays, tt)
			assert.Equal(t, []time.Time{at(tt.realFrom), at(tt.realTo)}, []time.Time{r.From, r.To}, tt)
			for _, l := range r.Lines {
				assert.False(t, step == Whole && (l.Start != r.From || l.End != r.To), l)
			}
		}
	}
}

func TestWorkedExample(t *testing.T) {
	r := Build(node(), Options{By: ByTenant, From: t0, To: t0.Add(time.Hour)})
	require.Len(t, r.Lines, 6)
	for i, want := range []struct {
		state, tenant string
		ms            int64
		cost          string
	}{
		{usage.Held, "ml", 9_900_000, "8.1125"}, {usage.Held, "web", 5_657_143, "4.6357"},
		{usage.Free, "", 12_214_286, "10.0089"}, {usage.Stranded, "", 1_028_571, "0.8429"},
		{usage.Unavailable, "", 0, "0.0000"}, {usage.Unknown, "", 0, "0.0000"},
	} {
		l := r.Lines[i]
		assert.Equal(t, want.state, l.State)
		assert.Equal(t, want.tenant, l.Group.Tenant)
		assert.Equal(t, want.ms, l.Time)
		assert.Equal(t, want.cost, l.Cost.Round(4))
		assert.True(t, r.Money(&l.Amounts))
	}
	assert.Equal(t, int64(28_800_000), r.Total.Time)
	assert.Equal(t, "23.6000", r.Total.Cost.Round(4))
	assert.Equal(t, "2.9500", r.Lines[1].IdleCost.Round(4))
	assert.Equal(t, []string{"held", "free", "stranded", "unavailable", "unknown"}, []string{r.States[0].State, r.States[1].State, r.States[2].State, r.States[3].State, r.States[4].State})
	assert.Equal(t, int64(15_557_143), r.States[0].Time)
}

func TestNothing(t *testing.T) {
	for _, by := range Groupings {
		r := Build(nil, Options{By: by})
		assert.Len(t, r.Lines, 4, by)
		assert.Empty(t, r.Currency)
		assert.False(t, r.Money(&r.Total.Amounts), "0 hours without a price cost nothing that is known")
		out := JSON(&r)
		assert.Nil(t, out.Total.Cost)
		assert.Equal(t, json.Number("0"), out.Total.Time)
	}
}

// Without prices there are hours, and no money.
func TestNoPrices(t *testing.T) {
	rows := node()
	for i := range rows {
		rows[i].RateNano, rows[i].RatePer, rows[i].Kind = 0, 0, ""
	}
	r := Build(rows, Options{By: ByService})
	out := JSON(&r)
	assert.Nil(t, out.Currency)
	for _, l := range append(out.Lines, out.Total) {
		assert.Nil(t, l.Cost)
		assert.Nil(t, l.PricedCost)
		assert.Equal(t, l.Time, l.Unpriced)
	}
	assert.Equal(t, []consoleapi.CostUnpriced{{Model: "H100", HostType: "h100x8", CapacityType: "on_demand", Time: "28800"}}, out.Unpriced)
}

// With one model that has no price the others have theirs, and sums name what is missing.
func TestPartlyPriced(t *testing.T) {
	rows := node()
	l40s := row(0, usage.Held, "web", "e", hourMS)
	l40s.Model, l40s.RateNano, l40s.RatePer, l40s.Kind = "L40S", 0, 0, ""
	euro := row(-1, usage.Held, "web", "f", hourMS)
	euro.Currency = "EUR"
	r := Build(append(rows, l40s, euro), Options{By: ByTenant})
	assert.Equal(t, "USD", r.Currency)
	assert.Equal(t, []string{"EUR"}, r.OtherCurrencies)
	assert.Equal(t, []Unpriced{{"H100", "h100x8", "", "on_demand", hourMS}, {"L40S", "h100x8", "", "on_demand", hourMS}}, r.Unpriced)
	out := JSON(&r)
	ml, web := out.Lines[0], out.Lines[1]
	assert.Equal(t, json.Number("8.1125"), *ml.Cost)
	assert.Nil(t, web.Cost, "a part of it is not known")
	assert.Nil(t, web.IdleCost)
	assert.Equal(t, json.Number("4.635714402"), *web.PricedCost)
	assert.Equal(t, json.Number("7200"), web.Unpriced)
	assert.Nil(t, out.Total.Cost)
	assert.NotNil(t, out.Total.PricedCost)
}

func TestIntensities(t *testing.T) {
	rows := node()
	for i := range rows {
		rows[i].Carbon = int64(i) // the first has 0
	}
	r := Build(rows, Options{By: ByTenant})
	assert.Equal(t, []string{"average"}, r.Intensities)
	rows[2].Marginal = true
	r = Build(rows, Options{By: ByTenant})
	assert.Equal(t, []string{"average", "marginal"}, r.Intensities)
	r = Build(node()[:2], Options{By: ByTenant})
	assert.Empty(t, r.Intensities)
}

func TestAbsentIsNotZero(t *testing.T) {
	r := Build(node(), Options{By: ByService})
	out := JSON(&r)
	line := func(service string) consoleapi.CostLine {
		return out.Lines[slices.IndexFunc(out.Lines, func(l consoleapi.CostLine) bool {
			return l.Group.Service != nil && *l.Group.Service == service
		})]
	}
	assert.Nil(t, line("c").Used, "none of it is measured")
	assert.Equal(t, json.Number("2057.143"), *line("c").Unmeasured)
	assert.Equal(t, json.Number("130.285714"), *line("c").Carbon)
	assert.Nil(t, line("a").Carbon)
	assert.Nil(t, line("a").Energy)
	assert.Equal(t, json.Number("0"), *line("a").Idle)
	free := out.Lines[4]
	assert.Equal(t, "free", *free.State)
	assert.Nil(t, free.Used)
	assert.Nil(t, free.Unmeasured)
	assert.Nil(t, free.Group.Service)
	assert.Equal(t, json.Number("1028571.429"), out.Total.Energy.Share)
	assert.Equal(t, json.Number("130.285714"), *out.Total.Carbon)
}

func TestMarks(t *testing.T) {
	open := row(1, usage.Held, "ml", "a", 60_000)
	open.Open, open.Contested = true, true
	exact, above := row(2, usage.Unknown, "", "", 10_000), row(3, usage.Unknown, "", "", 10_001)
	rows := []usage.Row{row(0, usage.Held, "ml", "a", hourMS), open, exact, row(2, usage.Held, "ml", "a", 990_000), above, row(3, usage.Held, "ml", "a", 989_999)}
	r := Build(rows, Options{By: ByTenant, Step: Hourly})
	assert.Equal(t, []time.Time{t0.Add(time.Hour)}, r.OpenHours)
	assert.Equal(t, []time.Time{t0.Add(3 * time.Hour)}, r.UnknownHours, "1 % is not more than 1 %")
	assert.True(t, r.Total.Open)
	for _, l := range r.Lines {
		assert.Equal(t, l.Start.Equal(t0.Add(3*time.Hour)), l.Marks.UnknownHours, l.Start)
		assert.Equal(t, l.Start.Equal(t0.Add(time.Hour)) && l.State == usage.Held, l.Open, l.Start)
		assert.Equal(t, time.Hour, l.End.Sub(l.Start))
	}
	days := Build(rows, Options{By: ByTenant, Step: Daily})
	assert.Len(t, days.Lines, 10, "the first two hours are of one day")
	assert.True(t, days.Lines[0].Open)
	assert.True(t, days.Lines[5].Marks.UnknownHours)
	assert.False(t, days.Lines[0].Marks.UnknownHours)
}

func TestRange(t *testing.T) {
	rows := []usage.Row{row(0, usage.Held, "a", "a", 1), row(1, usage.Held, "a", "a", 10), row(2, usage.Held, "a", "a", 100)}
	r := Build(rows, Options{By: ByTenant, From: t0.Add(90 * time.Minute), To: t0.Add(2 * time.Hour)})
	assert.Equal(t, int64(10), r.Total.Time, "the hour that From is in, and not the one that begins at To")
}

func TestShareUnheld(t *testing.T) {
	rows := append(node(), row(1, usage.Free, "", "", hourMS))
	for _, step := range []Step{Whole, Hourly} {
		r := Build(rows, Options{By: ByTenant, Step: step, ShareUnheld: true})
		assert.Zero(t, r.Total.Shared, "what owners get is taken from the others")
		assert.Equal(t, "26.5500", r.Total.Cost.Round(4))
		all := prices.Money{}
		for _, l := range r.Lines {
			if l.State == usage.Held {
				all = all.Add(l.Cost).Add(l.Shared)
			} else if step == Whole || l.Start.Equal(t0) {
				assert.Zero(t, l.Cost.Add(l.Shared), l.State)
			}
		}
		if step == Whole {
			assert.Equal(t, r.Total.Cost, all)
		} else {
			assert.Equal(t, "23.6000", all.Round(4), "nothing was held in the other hour: its cost stays")
		}
		ml := r.Lines[0]
		unheld := (23.6 - 8.1125 - 4.6357) * 9_900_000 / 15_557_143
		if step == Whole {
			unheld += 2.95 * 9_900_000 / 15_557_143
		}
		got, err := json.Number(ml.Shared.String()).Float64()
		require.NoError(t, err)
		assert.InDelta(t, unheld, got, 1e-4)
	}
}

func TestTop(t *testing.T) {
	rows := []usage.Row{
		row(0, usage.Held, "a", "a", 5), row(0, usage.Held, "b", "b", hourMS), row(0, usage.Held, "c", "c", 7),
		row(1, usage.Held, "a", "a", 2*hourMS), row(1, usage.Held, "d", "d", 9),
	}
	r := Build(rows, Options{By: ByTenant, Step: Hourly, Top: 2})
	var got []string
	for _, l := range r.Lines {
		if l.State == usage.Held {
			name := l.Group.Tenant
			if l.Others {
				name = "others"
			}
			got = append(got, l.Start.Format("15 ")+name)
		}
	}
	assert.Equal(t, []string{"22 b", "22 a", "22 others", "23 a", "23 others"}, got)
	assert.Equal(t, Build(rows, Options{By: ByTenant}).Total.Cost, r.Total.Cost)
	boards := Build(append(rows, row(0, usage.Free, "", "", 50)), Options{By: ByModel, Top: 1})
	assert.Equal(t, "H100", boards.Lines[1].Group.Model)
	assert.Equal(t, usage.Free, boards.Lines[1].State)
}

// Whatever a report is grouped by, and in whatever order its rows come, its lines add up to
// the same fleet, to the last billionth.
func TestSumsAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(all ...string) string { return all[rng.IntN(len(all))] }
	var rows []usage.Row
	states := slices.Insert(slices.Clone(Unheld), 0, usage.Held)
	for range 3000 {
		r := row(rng.IntN(60), states[rng.IntN(5)], pick("", "a", "b"), pick("x", "y", "z"), rng.Int64N(8*hourMS))
		r.Model, r.CapacityType, r.NodePool, r.Cluster = pick("H100", "A100"), pick("", "spot"), pick("p", "q"), pick("c", "d")
		r.RateNano, r.RatePer = rng.Int64N(math.MaxInt64/billion), rng.Int64N(9)
		if r.RatePer == 0 {
			r.RateNano, r.Kind = 0, ""
		}
		r.Used = r.Time / 2
		for i := range r.Energy {
			r.Energy[i] = rng.Int64N(1 << 40)
		}
		r.Carbon = rng.Int64N(1<<40) - 1
		rows = append(rows, r)
	}
	var want *Line
	for _, by := range Groupings {
		for _, step := range []Step{Whole, Hourly, Daily} {
			for _, top := range []int{0, 2} {
				rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
				o := Options{By: by, Step: step, Top: top, ShareUnheld: top == 0}
				require.NoError(t, o.Check())
				r := Build(rows, o)
				if want == nil {
					want = &r.Total
				}
				assert.Equal(t, *want, r.Total, "%s %s", by, step)
				sum, states := Amounts{}, Amounts{}
				for i := range r.Lines {
					sum.plus(&r.Lines[i].Amounts)
				}
				for i := range r.States {
					states.plus(&r.States[i].Amounts)
				}
				assert.Equal(t, want.Amounts, sum)
				assert.Equal(t, want.Amounts, states)
			}
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for want, o := range map[string]Options{
		`by: "pod"`:             {By: "pod"},
		`step: "week"`:          {By: ByTenant, Step: "week"},
		"top: 51":               {By: ByTenant, Top: 51},
		"is not after from":     {By: ByTenant, From: t0, To: t0},
		`by: "": use tenant, n`: {},
	} {
		assert.ErrorContains(t, o.Check(), want)
	}
}

// A Builder that knows the groups makes the same report, without lines for the others in
// between.
func TestGroupsThatAreKept(t *testing.T) {
	var rows []usage.Row
	for hour := range 3 {
		for _, tenant := range []string{"a", "b", "c", "d"} {
			rows = append(rows, row(hour, usage.Held, tenant, tenant, int64(tenant[0])*1000))
		}
		rows = append(rows, row(hour, usage.Free, "", "", 50))
	}
	for _, by := range Groupings {
		o := Options{By: by, Step: Hourly, Top: 2}
		first, second := New(Options{By: by, Top: 2}), New(o)
		for i := range rows {
			first.Add(&rows[i])
		}
		second.Keep(first.Greatest())
		for i := range rows {
			second.Add(&rows[i])
		}
		assert.LessOrEqual(t, second.Len(), 3*(2*2+2), by)
		assert.Equal(t, Build(rows, o), second.Report(), by)
	}
}
