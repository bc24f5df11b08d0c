// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package output writes what the ledger contains: its totals, prices and budgets as
// metrics, and the rows of its hours as log records. It has no clock and no I/O.
//
// The rows of the ledger are finer than series: a series is the sum over the types, regions
// and pools of nodes, and over prices. What is not known has no series. The first point of a
// counter is 0, so that a store that adds up differences misses nothing of it, and a series
// that is over ends with a point without a value.
package output

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/budget"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// Books are what is emitted at a time.
type Books struct {
	Start   int64 // of counters, ms
	Totals  []ledger.Total
	Prices  map[Price]float64 // of a GPU for an hour
	Budgets []budget.Used
}

// Metrics writes metrics. It knows which series the next component has.
type Metrics struct {
	scope, version, currency string

	usage    group[usageKey]
	capacity group[capacityKey]
	prices   group[Price]
	budgets  group[budgetKey]
	limits   group[limitKey]
}

// New returns a Metrics that has written nothing. kept are the totals that were restored:
// their series exist already, and begin with no 0.
func New(scope, version, currency string, kept []ledger.Total) *Metrics {
	m := &Metrics{scope: scope, version: version, currency: currency}
	m.add(&Books{Totals: kept})
	m.Accepted()
	return m
}

// Write returns the metrics of a time. last: nothing follows for now, so that values are not
// held back for a 0.
func (m *Metrics) Write(b *Books, now pcommon.Timestamp, last bool) pmetric.Metrics {
	m.add(b)
	w := writer{md: pmetric.NewMetrics(), scope: m.scope, version: m.version, currency: m.currency, now: now, start: b.Start, last: last}
	write(&m.usage, &w)
	write(&m.capacity, &w)
	write(&m.prices, &w)
	write(&m.budgets, &w)
	write(&m.limits, &w)
	return w.md
}

// Accepted notes that the next component has what was written last. Without it, the first
// points and the ends in it are written once more.
func (m *Metrics) Accepted() {
	m.usage.accepted()
	m.capacity.accepted()
	m.prices.accepted()
	m.budgets.accepted()
	m.limits.accepted()
}

// add adds up what belongs to each series.
func (m *Metrics) add(b *Books) {
	m.usage.begin()
	m.capacity.begin()
	m.prices.begin()
	m.budgets.begin()
	m.limits.begin()
	for i := range b.Totals {
		t := &b.Totals[i]
		if t.Key.State == ledger.Held && !t.Retired {
			v := m.usage.at(usageOf(&t.Key))
			v.add(t)
			if v.start == 0 || t.Start < v.start {
				v.start = t.Start
			}
		}
		if t.Time > 0 {
			v := m.capacityOf(t)
			v.add(t)
			v.has &= ofCapacity
		}
	}
	for k, price := range b.Prices {
		m.prices.at(k).put(0, price)
	}
	for i := range b.Budgets {
		m.addBudget(&b.Budgets[i])
	}
}

// addBudget adds the limit of a budget, and how much of it is used where that is known.
func (m *Metrics) addBudget(u *budget.Used) {
	k := limitKey{budgetKey: budgetKey{u.Budget.Name, names.BudgetCost}, tenant: u.Budget.Tenant}
	k.period, k.timezone = u.Budget.Every()
	limit, i := prices.Billionths(u.Budget.Cost).Float(), limitCost
	if u.Budget.Hours > 0 {
		k.kind, limit, i = names.BudgetHours, float64(u.Budget.Hours)/1e3, limitTime
	}
	m.limits.at(k).put(i, limit)
	if u.Known {
		m.budgets.at(k.budgetKey).put(0, u.Ratio)
	}
}

// capacityOf returns the values of a state. All states of boards exist once one does: a
// fleet without free GPUs has 0 of them.
func (m *Metrics) capacityOf(t *ledger.Total) *values {
	k := capacityKey{t.Key.Cluster, t.Key.Model, t.Key.Capacity, t.Key.State}
	if m.capacity.all[k] == nil {
		for s := range ledger.NumStates {
			of := k
			of.state = s
			m.capacity.at(of).has |= 1 << held
		}
	}
	return m.capacity.at(k)
}

// values are the series of one key, by number.
type values struct {
	has    uint32
	start  int64 // ms; 0: that of the ledger
	ms     [numTimes]int64
	cost   [2]prices.Money // of the time, of idle time
	energy [3]int64        // mJ
	carbon int64           // µg
	gauge  float64
}

// Numbers of the series of a key.
const (
	held = iota
	used
	idle
	unmeasured
	unplaced
	numTimes
	cost     = numTimes
	idleCost = cost + 1
	energy   = idleCost + 1 // and the two after it
	carbon   = energy + 3
)

func (v *values) put(i int, gauge float64) { v.has, v.gauge = v.has|1<<i, gauge }

func (v *values) add(t *ledger.Total) {
	for i, ms := range [numTimes]int64{t.Time, t.Used, t.Idle, t.Unmeasured, t.Unplaced} {
		v.ms[i] += ms
	}
	measured := t.Time > t.Unmeasured
	v.hasIf(held, t.Time > 0)
	v.hasIf(unmeasured, t.Time > 0)
	v.hasIf(used, measured)
	v.hasIf(idle, measured)
	v.hasIf(unplaced, t.Unplaced > 0)
	priced := t.Time > t.Unpriced
	v.cost[0], v.cost[1] = v.cost[0].Add(t.Cost), v.cost[1].Add(t.IdleCost)
	v.hasIf(cost, priced)
	v.hasIf(idleCost, priced && measured)
	for i, mj := range t.Energy {
		v.energy[i] += mj
		v.hasIf(energy+i, mj > 0)
	}
	v.carbon += t.Carbon
	v.hasIf(carbon, t.Carbon > 0)
}

func (v *values) hasIf(i int, is bool) {
	if is {
		v.has |= 1 << i
	}
}

// value is the value of a series in its unit.
func (v *values) value(i int) float64 {
	switch {
	case i < numTimes:
		return float64(v.ms[i]) / 1e3
	case i < energy:
		return v.cost[i-cost].Float()
	case i < carbon:
		return float64(v.energy[i-energy]) / 1e3
	}
	return float64(v.carbon) / 1e6
}
