// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/budget"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

const start = 1_700_000_000_000

var now = pcommon.NewTimestampFromTime(time.UnixMilli(start + 60_000))

// total is an hour of a held GPU at 2.95.
func total(change func(t *ledger.Total)) ledger.Total {
	t := ledger.Total{Row: ledger.Row{
		Key: ledger.Key{
			Class:     ledger.Class{Cluster: "c", Model: "H100", HostType: "h8", Region: "r", Capacity: "spot"},
			Namespace: "ml", Service: "vllm", Tenant: "team", State: ledger.Held, Rate: prices.Rate{Nano: 2_950_000_000, Per: 1}, Kind: prices.KindList,
		},
		Amounts: ledger.Amounts{Time: 3_600_000, Used: 1_800_000, Idle: 900_000, Unmeasured: 60_000},
	}, Start: start, Cost: prices.Money{Whole: 2, Nano: 950_000_000}, IdleCost: prices.Money{Nano: 737_500_000}}
	if change != nil {
		change(&t)
	}
	return t
}

// shown are the points of a batch: a name with attributes, resource first, and the value.
func shown(t *testing.T, md pmetric.Metrics) map[string]string {
	all := map[string]string{}
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			var points pmetric.NumberDataPointSlice
			switch m.Type() {
			case pmetric.MetricTypeGauge:
				points = m.Gauge().DataPoints()
			default:
				points = m.Sum().DataPoints()
				require.True(t, m.Sum().IsMonotonic())
				require.Equal(t, pmetric.AggregationTemporalityCumulative, m.Sum().AggregationTemporality())
			}
			for i, p := range points.All() {
				require.Equal(t, now, p.Timestamp())
				require.Equal(t, m.Type() == pmetric.MetricTypeSum, p.StartTimestamp() != 0)
				for k, v := range rm.Resource().Attributes().All() {
					on, _ := p.Attributes().Get(k)
					require.True(t, v.Equal(on), "%s is on the points too", k)
				}
				var attrs []string
				for k, v := range p.Attributes().All() {
					attrs = append(attrs, k+"="+v.Str())
				}
				slices.Sort(attrs)
				name := m.Name() + "{" + strings.Join(attrs, ",") + "}"
				require.NotContains(t, all, name, "two points of one series")
				all[name] = fmt.Sprint(p.DoubleValue())
				if p.Flags().NoRecordedValue() {
					require.Equal(t, 1, points.Len(), "an end in a metric of its own")
					require.Zero(t, i)
					all[name] = "end"
				}
			}
		}
	}
	return all
}

const (
	service = "{gpu.capacity.type=spot,gpu.tenant=team,hw.model=H100,k8s.cluster.name=c,k8s.namespace.name=ml,service.name=vllm}"
	priced  = "{gpu.capacity.type=spot,gpu.cost.currency=EUR,gpu.tenant=team,hw.model=H100,k8s.cluster.name=c,k8s.namespace.name=ml,service.name=vllm}"
)

func state(s string) string {
	return "{gpu.capacity.state=" + s + ",gpu.capacity.type=spot,hw.model=H100,k8s.cluster.name=c}"
}

func TestTotalsAreSummedByWhatIsShown(t *testing.T) {
	b := &Books{Start: start, Totals: []ledger.Total{
		total(nil),
		total(func(t *ledger.Total) { // another price
			t.Key.HostType, t.Key.Pool, t.Key.Rate.Nano = "h1", "p", 1_000_000_000
			t.Cost, t.IdleCost = prices.Money{Whole: 1}, prices.Money{Nano: 250_000_000}
			t.Energy, t.Carbon = [3]int64{1_500, 500, 0}, 2_000_000
		}),
		total(func(t *ledger.Total) {
			t.Key.State, t.Key.Namespace, t.Key.Service, t.Key.Tenant = ledger.Free, "", "", ""
			t.Amounts = ledger.Amounts{Time: 1_000, Energy: [3]int64{0, 7_000, 0}}
			t.Cost, t.IdleCost = prices.Money{Nano: 819_444}, prices.Money{}
		}),
		total(func(t *ledger.Total) { t.Retired = true }), // counts in the capacity alone
	}}
	m := New("scope", "1", "EUR", b.Totals)
	want := map[string]string{
		"gpu.usage.held" + service: "7200", "gpu.usage.used" + service: "3600", "gpu.usage.idle" + service: "1800", "gpu.usage.unmeasured" + service: "120",
		"gpu.usage.cost" + priced: "3.95", "gpu.usage.idle.cost" + priced: "0.9875", "gpu.usage.carbon" + service: "2",
		"gpu.usage.energy" + strings.Replace(service, "gpu.tenant", "gpu.energy.basis=board,gpu.tenant", 1): "1.5",
		"gpu.usage.energy" + strings.Replace(service, "gpu.tenant", "gpu.energy.basis=share,gpu.tenant", 1): "0.5",
		"gpu.capacity.time" + state("held"): "10800", "gpu.capacity.time" + state("free"): "1",
		"gpu.capacity.time" + state("stranded"): "0", "gpu.capacity.time" + state("unavailable"): "0", "gpu.capacity.time" + state("unknown"): "0",
		"gpu.capacity.cost" + strings.Replace(state("held"), "hw", "gpu.cost.currency=EUR,hw", 1):    "6.9",
		"gpu.capacity.cost" + strings.Replace(state("free"), "hw", "gpu.cost.currency=EUR,hw", 1):    "0.000819444",
		"gpu.capacity.energy" + strings.Replace(state("held"), "hw", "gpu.energy.basis=board,hw", 1): "1.5",
		"gpu.capacity.energy" + strings.Replace(state("held"), "hw", "gpu.energy.basis=share,hw", 1): "0.5",
		"gpu.capacity.energy" + strings.Replace(state("free"), "hw", "gpu.energy.basis=share,hw", 1): "7",
	}
	assert.Equal(t, want, shown(t, m.Write(b, now, false)))
}

// An account of Slurm is no namespace, and has series of its own beside one of its name.
func TestJobsBesideANamespaceOfTheirAccountsName(t *testing.T) {
	b := &Books{Start: start, Totals: []ledger.Total{total(nil), total(func(t *ledger.Total) { t.Key.SlurmCluster = "hpc" })}}
	all := shown(t, New("scope", "1", "EUR", b.Totals).Write(b, now, false))
	assert.Equal(t, "3600", all["gpu.usage.held"+service])
	assert.Equal(t, "3600", all["gpu.usage.held{gpu.capacity.type=spot,gpu.tenant=team,hw.model=H100,k8s.cluster.name=c,service.name=vllm,service.namespace=ml,slurm.cluster.name=hpc}"])
}

// What is not known has no series: no price no money, no utilization neither used nor idle.
func TestWhatIsNotKnownIsAbsent(t *testing.T) {
	b := &Books{Start: start, Totals: []ledger.Total{total(func(t *ledger.Total) {
		t.Key.Rate, t.Cost, t.IdleCost, t.Unpriced = prices.Rate{}, prices.Money{}, prices.Money{}, t.Time
		t.Used, t.Idle, t.Unmeasured = 0, 0, t.Time
	})}}
	got := shown(t, New("scope", "1", "EUR", b.Totals).Write(b, now, false))
	for name := range got {
		assert.False(t, strings.Contains(name, "cost") || strings.Contains(name, "used") || strings.Contains(name, "idle") || strings.Contains(name, "carbon") || strings.Contains(name, "energy"), name)
	}
	assert.Equal(t, "3600", got["gpu.usage.held"+service])

	// A device of which the board is not known is no capacity.
	b.Totals[0] = total(func(t *ledger.Total) {
		t.Amounts, t.Cost, t.IdleCost = ledger.Amounts{Unplaced: 5_000}, prices.Money{}, prices.Money{}
	})
	got = shown(t, New("scope", "1", "EUR", b.Totals).Write(b, now, false))
	assert.Equal(t, map[string]string{"gpu.usage.unplaced" + service: "5"}, got)
}

// A series begins with 0, so that a store that adds up differences misses nothing, and what
// was refused is written once more.
func TestFirstPointsAndEnds(t *testing.T) {
	m := New("scope", "1", "EUR", nil)
	b := &Books{Start: start, Totals: []ledger.Total{total(nil)}}
	held := "gpu.usage.held" + service
	value := func(last bool) string { return shown(t, m.Write(b, now, last))[held] }

	assert.Equal(t, "0", value(false))
	assert.Equal(t, "0", value(false), "it was refused")
	assert.Equal(t, "3600", value(true), "before a stop nothing is held back")
	m.Write(b, now, false)
	m.Accepted()
	assert.Equal(t, "3600", value(false))
	m.Accepted()

	b.Totals[0].Retired = true
	assert.Equal(t, "end", value(false))
	assert.Equal(t, "end", value(false), "it was refused")
	got := shown(t, m.Write(b, now, false))
	assert.Equal(t, "end", got["gpu.usage.cost"+priced])
	assert.Equal(t, "3600", got["gpu.capacity.time"+state("held")], "it stays in the capacity")
	m.Accepted()
	assert.Empty(t, value(false), "it has ended")

	b.Totals = append(b.Totals, total(func(t *ledger.Total) { t.Time, t.Start = 1000, start+5 }))
	assert.Equal(t, "0", value(false), "it is back")
	md := m.Write(b, now, false)
	p := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0)
	assert.Equal(t, pcommon.Timestamp((start+5)*1e6), p.StartTimestamp())
}

func TestPricesAndBudgets(t *testing.T) {
	budgets, err := prices.NewBudgets([]prices.BudgetConfig{
		{Name: "ml", Tenant: "ml-*", Cost: "5000.3", Period: prices.Month, Timezone: "Europe/Berlin"},
		{Name: "fleet", Hours: "720", Period: prices.Day}, {Name: "unpriced", Cost: "5", Period: prices.Week},
	})
	require.NoError(t, err)
	m := New("scope", "1", "EUR", nil)
	b := &Books{Start: start, Prices: map[Price]float64{{Cluster: "c", Model: "H100", HostType: "h8", Capacity: "spot", Region: "r"}: 2.95}, Budgets: []budget.Used{
		{Budget: budgets[0], Ratio: 1.5, Known: true}, {Budget: budgets[1], Ratio: 0.25, Known: true}, {Budget: budgets[2]},
	}}
	price := "gpu.price{cloud.region=r,gpu.capacity.type=spot,gpu.cost.currency=EUR,host.type=h8,hw.model=H100,k8s.cluster.name=c}"
	want := map[string]string{
		price: "2.95",
		"gpu.budget.used{gpu.budget.kind=cost,gpu.budget.name=ml}":     "1.5",
		"gpu.budget.used{gpu.budget.kind=hours,gpu.budget.name=fleet}": "0.25",

		"gpu.budget.limit.cost{gpu.budget.kind=cost,gpu.budget.name=ml,gpu.budget.period=month,gpu.budget.timezone=Europe/Berlin,gpu.cost.currency=EUR,gpu.tenant=ml-*}": "5000.3",
		"gpu.budget.limit.cost{gpu.budget.kind=cost,gpu.budget.name=unpriced,gpu.budget.period=week,gpu.budget.timezone=UTC,gpu.cost.currency=EUR}":                      "5",
		"gpu.budget.limit.time{gpu.budget.kind=hours,gpu.budget.name=fleet,gpu.budget.period=day,gpu.budget.timezone=UTC}":                                               "2.592e+06",
	}
	assert.Equal(t, want, shown(t, m.Write(b, now, false)))
	m.Accepted()
	b.Prices = nil
	want[price] = "end"
	assert.Equal(t, want, shown(t, m.Write(b, now, false)), "it is not known any more")
}

func TestRowsOfHours(t *testing.T) {
	const hour = 1_699_999_200_000
	h := &Hours{Scope: "scope", Version: "1", Currency: "EUR"}
	read := func(hours ...ledger.HourTotal) (rows []usage.Row) {
		for _, record := range h.Write(h.Rows(hours), now).ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
			row, err := usage.FromRecord(record)
			require.NoError(t, err)
			assert.Equal(t, now, record.ObservedTimestamp())
			rows = append(rows, row)
		}
		return rows
	}
	held := total(func(t *ledger.Total) {
		t.Key.Pool, t.Key.Labels, t.Key.Profile, t.Key.Pod = "p", "a=b", "3g.40gb", "pod-1"
		t.Energy, t.Carbon, t.Unplaced, t.Flags = [3]int64{1, 2, 3}, 4, 5, ledger.Contested|ledger.BoardMetered|ledger.Estimated
	}).Row
	free := total(func(t *ledger.Total) { t.Key.State, t.Key.Rate, t.Key.Kind = ledger.Free, prices.Rate{}, "" }).Row
	rows := read(ledger.HourTotal{Row: held, Start: hour, Revision: 3}, ledger.HourTotal{Row: free, Start: hour + 3_600_000})
	require.Len(t, rows, 2)
	assert.Equal(t, usage.Row{
		Key: usage.Key{
			Cluster: "c", Model: "H100", HostType: "h8", Region: "r", CapacityType: "spot", NodePool: "p", Labels: "a=b", Profile: "3g.40gb", State: "held",
			Namespace: "ml", Service: "vllm", Tenant: "team", Pod: "pod-1", Currency: "EUR", RateNano: 2_950_000_000, RatePer: 1, Kind: "list",
		},
		Hour: time.UnixMilli(hour).UTC(), Revision: 3,
		Amounts:   usage.Amounts{Time: 3_600_000, Used: 1_800_000, Idle: 900_000, Unmeasured: 60_000, Unplaced: 5, Energy: [3]int64{1, 2, 3}, Carbon: 4},
		Contested: true, BoardMetered: true, Estimated: true,
	}, rows[0])
	assert.True(t, rows[1].Open)
	assert.Equal(t, int64(-1), rows[1].Carbon, "no intensity is known")
	assert.Empty(t, rows[1].Currency)

	for kind, marginal := range map[string]bool{prices.Average: false, prices.Marginal: true} {
		h.Carbon = func(region string, at time.Time) (int64, string, bool) {
			return 0, kind, region == "r" && at.After(time.UnixMilli(hour))
		}
		row := read(ledger.HourTotal{Row: free, Start: hour, Revision: 1})[0]
		assert.Zero(t, row.Carbon, "its grid causes none")
		assert.Equal(t, marginal, row.Marginal)
	}
}

// Sums do not depend on the order of rows: a counter that falls by the last digit of a float
// would be a reset.
func TestMoneyIsExact(t *testing.T) {
	rows := make([]ledger.Total, 1000)
	for i := range rows {
		rows[i] = total(func(t *ledger.Total) {
			t.Key.Pool, t.Cost = fmt.Sprint(i), prices.Money{Whole: int64(i) * 1_000_003, Nano: int64(i) * 999_983 % 1_000_000_000}
		})
	}
	value := func() float64 {
		m := New("scope", "1", "EUR", nil)
		m.add(&Books{Totals: rows})
		return m.usage.at(usageOf(&rows[0].Key)).value(cost)
	}
	first := value()
	slices.Reverse(rows)
	assert.Equal(t, math.Float64bits(first), math.Float64bits(value()))
}
