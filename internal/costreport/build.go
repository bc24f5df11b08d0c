// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package costreport

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// lineKey is what makes a line one.
type lineKey struct {
	start  int64
	state  string
	group  Group
	others bool
}

// span is an hour of the rows, or a day that the store added up.
type span struct {
	time, unknown int64
	open          bool
}

// money is what has a price in one currency.
type money struct {
	priced     int64
	cost, idle prices.Money
}

// sums is a line before its currency is known.
type sums struct {
	Line
	money []money // as Builder.currencies
}

// classKey is the time of a class of boards, by currency: -1 for none.
type classKey struct {
	class    Unpriced
	currency int
}

// Builder adds up rows. Its memory is that of the lines, not of the rows.
type Builder struct {
	Options
	currencies []string // of the rows
	newest     []int64  // the newest hour of each, in Unix seconds
	lines      map[lineKey]*sums
	spans      map[int64]*span
	classes    map[classKey]int64
	partDays   map[int64]bool // days that the store added up, and of which a part is asked for, in Unix seconds
	kept       map[Group]bool // groups with lines of their own; nil: all
	// average and marginal are kinds of carbon intensity that there are.
	average, marginal bool
}

// New returns a Builder. Options must be valid.
func New(o Options) *Builder {
	return &Builder{Options: o, lines: map[lineKey]*sums{}, spans: map[int64]*span{}, classes: map[classKey]int64{}, partDays: map[int64]bool{}}
}

// Build adds up rows, each hour and key of which is there once.
func Build(rows []usage.Row, o Options) Report {
	b := New(o)
	for i := range rows {
		b.Add(&rows[i])
	}
	return b.Report()
}

// currency is the place of a row's currency; -1: it has no price.
func (b *Builder) currency(r *usage.Row) int {
	if r.RatePer == 0 {
		return -1
	}
	i := slices.Index(b.currencies, r.Currency)
	if i < 0 {
		i = len(b.currencies)
		b.currencies, b.newest = append(b.currencies, r.Currency), append(b.newest, r.Hour.Unix())
	}
	b.newest[i] = max(b.newest[i], r.Hour.Unix())
	return i
}

// main is the place of the currency of the newest row with a price; -1: no row has one.
func (b *Builder) main() int {
	found := -1
	for i := range b.currencies {
		if found < 0 || cmp.Or(cmp.Compare(b.newest[i], b.newest[found]), cmp.Compare(b.currencies[found], b.currencies[i])) > 0 {
			found = i
		}
	}
	return found
}

// period is the one that a row is in. Without steps it is that of the options.
func (b *Builder) period(hour time.Time, day bool) (start, end time.Time) {
	start = hour.UTC()
	switch {
	case b.Step == Whole:
		return b.From, b.To
	case b.Step == Daily:
		start = start.Truncate(24 * time.Hour)
		return start, start.Add(24 * time.Hour)
	case day:
		return start, start.Add(24 * time.Hour)
	}
	return start, start.Add(time.Hour)
}

// Add adds a row; each hour and key is added once. It keeps the row's texts, not the row.
func (b *Builder) Add(r *usage.Row) {
	b.See(r)
	if !b.wanted(r) {
		return
	}
	start, end := b.period(r.Hour, r.Day)
	key := lineKey{start: start.UnixNano(), state: r.State}
	if b.grouped(r.State) {
		key.group = b.By.groupOf(&r.Key)
		if b.kept != nil && !b.kept[key.group] {
			key.group, key.others = Group{}, true
		}
	}
	l, currency := b.line(key, start, end), b.currency(r)
	l.add(r, currency)
	l.or(Marks{Open: r.Open, Contested: r.Contested, BoardMetered: r.BoardMetered, Estimated: r.Estimated})
	if r.Time > 0 {
		class := Unpriced{Model: r.Model, HostType: r.HostType, Region: r.Region, CapacityType: r.CapacityType}
		b.classes[classKey{class, currency}] += r.Time
	}

	if r.Carbon > 0 {
		b.average, b.marginal = b.average || !r.Marginal, b.marginal || r.Marginal
	}
}

// See notes a row of which the report has no line, since it is not of the owners that are
// asked for: how much of an hour is unknown is of the whole fleet.
func (b *Builder) See(r *usage.Row) {
	b.cut(r)
	if !b.wanted(r) {
		return
	}
	s := b.spans[r.Hour.Unix()]
	if s == nil {
		s = &span{}
		b.spans[r.Hour.Unix()] = s
	}
	s.time += r.Time
	s.open = s.open || r.Open
	if r.State == usage.Unknown {
		s.unknown += r.Time
	}
}

func (b *Builder) line(key lineKey, start, end time.Time) *sums {
	l := b.lines[key]
	if l == nil {
		l = &sums{Line: Line{Start: start, End: end, State: key.state, Group: key.group, Others: key.others}}
		b.lines[key] = l
	}
	if l.End.Before(end) {
		l.End = end
	}
	return l
}

func (l *sums) add(r *usage.Row, currency int) {
	l.Time += r.Time
	l.Unplaced += r.Unplaced
	if r.State == usage.Held {
		l.Held += r.Time
		l.Used += r.Used
		l.Idle += r.Idle
		l.Unmeasured += r.Unmeasured
	}
	if currency >= 0 {
		for len(l.money) <= currency {
			l.money = append(l.money, money{})
		}
		m := &l.money[currency]
		m.priced += r.Time
		m.cost, m.idle = m.cost.Add(r.Rate().Money(r.Time)), m.idle.Add(r.Rate().Money(r.Idle))
	}
	for i, e := range r.Energy {
		l.Energy[i] += e
		if r.Carbon >= 0 {
			l.CarbonEnergy += e
		}
	}
	if r.Carbon >= 0 {
		l.Carbon += r.Carbon
	}
}

// plus adds other amounts.
func (a *Amounts) plus(o *Amounts) {
	a.Time += o.Time
	a.Held += o.Held
	a.Used += o.Used
	a.Idle += o.Idle
	a.Unmeasured += o.Unmeasured
	a.Unplaced += o.Unplaced
	a.Priced += o.Priced
	a.Cost = a.Cost.Add(o.Cost)
	a.IdleCost = a.IdleCost.Add(o.IdleCost)
	a.Shared = a.Shared.Add(o.Shared)
	a.Carbon += o.Carbon
	a.CarbonEnergy += o.CarbonEnergy
	for i := range a.Energy {
		a.Energy[i] += o.Energy[i]
	}
}

// addStates adds the states that a period has no row of.
func (b *Builder) addStates() {
	if b.Owned {
		return
	}
	ends := map[int64]*sums{}
	there := map[lineKey]bool{}
	for key, l := range b.lines {
		if p := ends[key.start]; p == nil || p.End.Before(l.End) {
			ends[key.start] = l
		}
		there[lineKey{start: key.start, state: key.state}] = true
	}
	if b.Step == Whole {
		ends[b.From.UnixNano()] = &sums{Line: Line{Start: b.From, End: b.To}}
	}
	for at, p := range ends {
		for _, state := range Unheld {
			if !there[lineKey{start: at, state: state}] {
				b.line(lineKey{start: at, state: state}, p.Start, p.End)
			}
		}
	}
}

// Report is what was added. It is called once.
func (b *Builder) Report() Report {
	r := Report{Options: b.Options}
	if b.average {
		r.Intensities = append(r.Intensities, prices.Average)
	}
	if b.marginal {
		r.Intensities = append(r.Intensities, prices.Marginal)
	}
	b.price(&r)
	if b.Top > 0 && b.kept == nil {
		b.mergeOthers(b.greatest())
	}
	b.addStates()
	unknown := map[int64]bool{} // periods
	for _, at := range slices.Sorted(maps.Keys(b.spans)) {
		s, hour := b.spans[at], time.Unix(at, 0).UTC()
		if s.open {
			r.OpenHours = append(r.OpenHours, hour)
		}
		if s.unknown*100 > s.time {
			r.UnknownHours = append(r.UnknownHours, hour)
			start, _ := b.period(hour, false)
			unknown[start.UnixNano()] = true
		}
	}
	r.From, r.To = b.covered()
	for _, at := range slices.Sorted(maps.Keys(b.partDays)) {
		r.PartDays = append(r.PartDays, time.Unix(at, 0).UTC())
	}
	for key, l := range b.lines {
		l.UnknownHours = unknown[key.start]
		if b.Step == Whole {
			l.Start, l.End = r.From, r.To
		}
		r.Lines = append(r.Lines, l.Line)
	}
	slices.SortFunc(r.Lines, func(x, y Line) int {
		return cmp.Or(x.Start.Compare(y.Start), cmp.Compare(slices.Index(Unheld, x.State), slices.Index(Unheld, y.State)), greatestFirst(&x, &y))
	})
	if b.ShareUnheld {
		share(r.Lines)
	}
	r.sum()
	return r
}

// price chooses the currency, and sets the money of the lines and what has none.
func (b *Builder) price(r *Report) {
	currency := b.main()
	for i, name := range b.currencies {
		if i == currency {
			r.Currency = name
		} else {
			r.OtherCurrencies = append(r.OtherCurrencies, name)
		}
	}
	slices.Sort(r.OtherCurrencies)
	for _, l := range b.lines {
		if currency >= 0 && currency < len(l.money) {
			l.Priced, l.Cost, l.IdleCost = l.money[currency].priced, l.money[currency].cost, l.money[currency].idle
		}
	}
	unpriced := map[Unpriced]int64{}
	for key, ms := range b.classes {
		if key.currency < 0 || key.currency != currency {
			unpriced[key.class] += ms
		}
	}
	for class, ms := range unpriced {
		class.Time = ms
		r.Unpriced = append(r.Unpriced, class)
	}
	slices.SortFunc(r.Unpriced, func(x, y Unpriced) int {
		return cmp.Or(cmp.Compare(y.Time, x.Time), cmp.Compare(x.Model, y.Model), cmp.Compare(x.HostType, y.HostType),
			cmp.Compare(x.Region, y.Region), cmp.Compare(x.CapacityType, y.CapacityType))
	})
}

// sum fills in the states of all periods, and the fleet.
func (r *Report) sum() {
	all := Line{Start: r.From, End: r.To}
	r.Total = all
	for _, state := range slices.Insert(slices.Clone(Unheld), 0, usage.Held) {
		all.State = state
		r.States = append(r.States, all)
	}
	for i := range r.Lines {
		l := &r.Lines[i]
		for _, sum := range []*Line{&r.Total, &r.States[1+slices.Index(Unheld, l.State)]} {
			sum.plus(&l.Amounts)
			sum.or(l.Marks)
		}
	}
}

// greatestFirst orders groups: by cost, by time, and the rest of the others last.
func greatestFirst(x, y *Line) int {
	if x.Others != y.Others {
		if x.Others {
			return 1
		}
		return -1
	}
	return cmp.Or(y.Cost.Compare(x.Cost), cmp.Compare(y.Time, x.Time), compareGroups(&x.Group, &y.Group))
}

func compareGroups(x, y *Group) int {
	return cmp.Or(cmp.Compare(x.Tenant, y.Tenant), cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(x.SlurmCluster, y.SlurmCluster), cmp.Compare(x.Namespace, y.Namespace),
		cmp.Compare(x.Service, y.Service), cmp.Compare(x.Pod, y.Pod), cmp.Compare(x.Model, y.Model), cmp.Compare(x.HostType, y.HostType),
		cmp.Compare(x.Region, y.Region), cmp.Compare(x.CapacityType, y.CapacityType), cmp.Compare(x.NodePool, y.NodePool),
		cmp.Compare(x.Labels, y.Labels), cmp.Compare(x.Profile, y.Profile), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Currency, y.Currency),
		cmp.Compare(x.RateNano, y.RateNano), cmp.Compare(x.RatePer, y.RatePer))
}

// share spreads in each period the cost of what has no owner. In one where nothing was held
// it stays where it is.
func share(lines []Line) {
	for len(lines) > 0 {
		n := slices.IndexFunc(lines, func(l Line) bool { return !l.Start.Equal(lines[0].Start) })
		if n < 0 {
			n = len(lines)
		}
		sharePeriod(lines[:n])
		lines = lines[n:]
	}
}

func sharePeriod(lines []Line) {
	weights, held, unheld := make([]int64, len(lines)), int64(0), prices.Money{}
	for i := range lines {
		weights[i] = lines[i].Held
		held += lines[i].Held
		if lines[i].State != usage.Held {
			unheld = unheld.Add(lines[i].Cost)
		}
	}
	if held == 0 {
		return
	}
	for i, part := range unheld.Divide(weights) {
		if lines[i].Shared = part; lines[i].State != usage.Held {
			lines[i].Shared = prices.Money{}.Sub(lines[i].Cost)
		}
	}
}
