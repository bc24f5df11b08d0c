// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package prices

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func day(text string) time.Time {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestParseDecimal(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "2.95": 2_950_000_000, "23.60": 23_600_000_000, "0.000000001": 1, "999999999.999999999": 999_999_999_999_999_999, "007": 7_000_000_000,
	} {
		got, err := ParseDecimal(text)
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "-1", "+1", "1e3", "NaN", "Inf", "1,5", ".5", "5.", "1.0000000001", "1000000000", " 1", "1_0", "0x1", "1.2.3"} {
		_, err := ParseDecimal(text)
		assert.Error(t, err, text)
	}
}

func TestRate(t *testing.T) {
	assert.Equal(t, int64(2_212_500_000), Rate{2_950_000_000, 1}.Cost(2_700_000))
	assert.Equal(t, Rate{2_950_000_000, 1}, rate(23_600_000_000, nano, 8))
	assert.Equal(t, Rate{10 * nano, 3}, rate(10*nano, nano, 3), "exact, where a decimal is not")
	assert.Equal(t, int64(10*nano), rate(10*nano, nano, 3).Cost(3*3_600_000))
	assert.Equal(t, Rate{0, 1}, rate(0, nano, 8), "free of charge is a price")
	assert.True(t, Rate{0, 1}.Known())
	assert.False(t, Rate{}.Known())
	assert.InDelta(t, 2.95, rate(23_600_000_000, nano, 8).Hour(), 1e-12)
	assert.Equal(t, rate(3_500_000_000, nano, 1), Rate{1_500_000_000, 1}.Of(3, 7), "an instance of 3/7 at 1.50 is a GPU at 3.50")
}

func TestBook(t *testing.T) {
	h100 := map[string]string{MatchHostType: "gpu-h100-sxm_8gpu-*"}
	book, err := New("USD", []RuleConfig{
		{Match: map[string]string{MatchHostType: "gpu-h100-sxm_8gpu-*", MatchCapacity: "spot"}, InstanceHour: "10.00", GPUs: 8, ValidFrom: "2026-05-01", Source: "list"},
		{Match: h100, InstanceHour: "23.60", GPUs: 8, ValidFrom: "2026-05-01", Source: "list"},
		{Match: h100, InstanceHour: "24.00", GPUs: 8, ValidFrom: "2026-07-01T12:00:00+02:00", PriceFraction: "0.9", Kind: KindContracted},
		{Match: map[string]string{MatchModel: "*A100*", "node.label.pool": "own"}, GPUHour: "1.10"},
		{Match: map[string]string{MatchProfile: "1g.*", MatchModel: "*"}, GPUHour: "0.5"},
		{Match: map[string]string{MatchModel: "*L4*"}, GPUHour: "0"},
		{Match: map[string]string{MatchProfile: "2g.20gb.me"}, GPUHour: "2"},
	})
	require.NoError(t, err)
	eight := Facts{Model: "NVIDIA H100 80GB HBM3", HostType: "gpu-h100-sxm_8gpu-128vcpu", Boards: 8}
	spot := eight
	spot.Capacity = "spot"
	seven := eight
	seven.Boards = 7
	switched := time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		f    Facts
		at   time.Time
		want Price
		why  Why
	}{
		{"first that matches", spot, day("2026-06-01"), Price{Rate: rate(10*nano, nano, 8), Kind: KindList, Source: "list", From: day("2026-05-01")}, Priced},
		{"not spot", eight, day("2026-06-01"), Price{Rate: Rate{2_950_000_000, 1}, Kind: KindList, Source: "list", From: day("2026-05-01"), Until: switched}, Priced},
		{"the next version", eight, switched, Price{Rate: Rate{2_700_000_000, 1}, Kind: KindContracted, From: switched}, Priced},
		{"before the first", eight, day("2026-04-30"), Price{Until: day("2026-05-01")}, NotYet},
		{"another number of boards", seven, day("2026-06-01"), Price{Until: switched}, OtherCount},
		{"a label", Facts{Model: "NVIDIA A100-SXM4-80GB", Labels: map[string]string{"pool": "own"}}, day("2026-06-01"), Price{Rate: Rate{1_100_000_000, 1}, Kind: KindList, From: epoch}, Priced},
		{"another label", Facts{Model: "NVIDIA A100-SXM4-80GB", Labels: map[string]string{"pool": "x"}}, day("2026-06-01"), Price{}, NoRule},
		{"an instance", Facts{Model: "NVIDIA A30", Profile: "1g.6gb"}, day("2026-06-01"), Price{Rate: Rate{nano / 2, 1}, PerInstance: true, Kind: KindList, From: epoch}, Priced},
		{"an instance in another form", Facts{Profile: "2g.20gb+me"}, day("2026-06-01"), Price{Rate: Rate{2 * nano, 1}, PerInstance: true, Kind: KindList, From: epoch}, Priced},
		{"free of charge", Facts{Model: "NVIDIA L4"}, day("2026-06-01"), Price{Rate: Rate{0, 1}, Kind: KindList, From: epoch}, Priced},
		{"nothing is known", Facts{}, day("2026-06-01"), Price{}, NoRule},
	} {
		got, why := book.At(&tt.f, tt.at)
		assert.Equal(t, tt.why, why, tt.name)
		assert.Equal(t, tt.want, got, tt.name)
	}
	assert.Equal(t, []string{"pool"}, book.Labels())
	assert.Empty(t, book.Stale(day("2026-10-01")))
	assert.Equal(t, map[string]time.Time{"list": day("2026-05-01")}, book.Stale(day("2026-12-01")))
}

func TestRulesThatAreRefused(t *testing.T) {
	all := map[string]string{MatchModel: "*"}
	for _, tt := range []struct {
		rule RuleConfig
		err  string
	}{
		{RuleConfig{GPUHour: "1"}, `prices::0::match: nothing is matched: name the boards, {hw.model: "*"} for all`},
		{RuleConfig{Match: map[string]string{"model": "*"}, GPUHour: "1"}, "prices::0::match::model: there is no such key: use hw.model,"},
		{RuleConfig{Match: map[string]string{"node.label.": "*"}, GPUHour: "1"}, "match::node.label.: there is no such key"},
		{RuleConfig{Match: map[string]string{MatchModel: "[a"}, GPUHour: "1"}, `match::hw.model: "[a" is no pattern`},
		{RuleConfig{Match: map[string]string{MatchModel: ""}, GPUHour: "1"}, `match::hw.model: "" is no pattern`},
		{RuleConfig{Match: all}, "prices::0::gpu_hour: set either gpu_hour or, with gpus, instance_hour"},
		{RuleConfig{Match: all, GPUHour: "1", InstanceHour: "8"}, "set either gpu_hour or"},
		{RuleConfig{Match: all, GPUHour: "-1"}, `prices::0::gpu_hour: "-1": write a decimal number of 0 or more`},
		{RuleConfig{Match: all, GPUHour: "NaN"}, `gpu_hour: "NaN"`},
		{RuleConfig{Match: all, GPUHour: "1", GPUs: 8}, "prices::0::gpus: it belongs to instance_hour"},
		{RuleConfig{Match: all, InstanceHour: "1"}, "prices::0::gpus: 0: set it to the number of GPUs of the instance"},
		{RuleConfig{Match: all, InstanceHour: "x", GPUs: 8}, `instance_hour: "x"`},
		{RuleConfig{Match: all, GPUHour: "1", PriceFraction: "1.1"}, `price_fraction: "1.1"`},
		{RuleConfig{Match: all, GPUHour: "1", PriceFraction: "0"}, `price_fraction: "0"`},
		{RuleConfig{Match: all, GPUHour: "1", ValidFrom: "1.5.2026"}, `valid_from: "1.5.2026" is no date: write it as 2026-05-01`},
		{RuleConfig{Match: all, GPUHour: "1", Currency: "EUR"}, "currency: EUR: the currency is USD, and nothing is converted"},
		{RuleConfig{Match: all, GPUHour: "1", Kind: "guess"}, `kind: "guess": use list or contracted`},
	} {
		_, err := New("USD", []RuleConfig{tt.rule})
		assert.ErrorContains(t, err, tt.err)
	}
	_, err := New("dollar", nil)
	assert.ErrorContains(t, err, `currency: "dollar"`)
	_, err = New("USD", []RuleConfig{{Match: all, GPUHour: "1", ValidFrom: "2026-05-01"}, {Match: all, GPUHour: "2", ValidFrom: "2026-05-01"}})
	assert.ErrorContains(t, err, "prices::1::valid_from: 2026-05-01 is not after that of the earlier rule")
	_, err = New("USD", []RuleConfig{{Match: all, GPUHour: "x"}, {Match: all, GPUHour: "y"}})
	assert.ErrorContains(t, err, "prices::0")
	assert.ErrorContains(t, err, "prices::1", "every mistake is reported")
}

// A rule that is not valid yet leaves the board to the ones after it, until it is.
func TestNotYetFallsThrough(t *testing.T) {
	book, err := New("USD", []RuleConfig{
		{Match: map[string]string{MatchModel: "*H100*"}, GPUHour: "2", ValidFrom: "2026-05-01"},
		{Match: map[string]string{MatchModel: "*"}, GPUHour: "3"},
	})
	require.NoError(t, err)
	got, why := book.At(&Facts{Model: "H100"}, day("2026-04-01"))
	assert.Equal(t, Priced, why)
	assert.Equal(t, Price{Rate: Rate{3 * nano, 1}, Kind: KindList, From: epoch, Until: day("2026-05-01")}, got)
}

// Where clocks change at midnight, a period begins with the first instant of its day, and periods
// follow each other without a gap.
func TestPeriodsWhereClocksChangeAtMidnight(t *testing.T) {
	for zone, day := range map[string]string{
		"Africa/Cairo": "2026-04-24", "Asia/Beirut": "2026-03-29", "America/Havana": "2026-03-08", "America/Santiago": "2026-09-06",
		"America/Asuncion": "2023-10-01", "Atlantic/Azores": "2026-10-25", "America/Toronto": "1919-03-31", "Pacific/Apia": "2011-12-31", "Europe/Berlin": "2026-03-29",
	} {
		for _, period := range []string{Day, Week, Month} {
			all, err := NewBudgets([]BudgetConfig{{Name: "a", Hours: "1", Period: period, Timezone: zone}})
			require.NoError(t, err)
			noon, err := time.ParseInLocation("2006-01-02 15", day+" 12", all[0].zone)
			require.NoError(t, err)
			start, end := all[0].Period(noon.Add(-5 * 24 * time.Hour))
			for at := noon.Add(-5 * 24 * time.Hour); at.Before(noon.Add(40 * 24 * time.Hour)); at = at.Add(15 * time.Minute) {
				from, to := all[0].Period(at)
				if !from.Equal(start) {
					require.Equal(t, end.UTC(), from.UTC(), "%s %s: the period at %s begins where the one before ends", zone, period, at)
					start, end = from, to
				}
				require.Equal(t, end.UTC(), to.UTC(), "%s %s: one end at %s", zone, period, at)
				require.False(t, at.Before(from) || !at.Before(to), "%s %s: %s is in its period", zone, period, at)
				if period == Day {
					require.Equal(t, at.In(all[0].zone).Format(time.DateOnly), from.In(all[0].zone).Format(time.DateOnly), "%s: a day begins on the day", zone)
				}
			}
		}
	}
}

func TestBudgets(t *testing.T) {
	budgets, err := NewBudgets([]BudgetConfig{
		{Name: "ml", Tenant: "ml*", Cost: "5000", Period: Month, Timezone: "Europe/Berlin"},
		{Name: "all", Hours: "1.5", Period: Week},
		{Name: "day", Cost: "1", Period: Day},
	})
	require.NoError(t, err)
	start, end := budgets[0].Period(time.Date(2026, 3, 31, 22, 30, 0, 0, time.UTC))
	assert.Equal(t, "2026-03-31T22:00:00Z 2026-04-30T22:00:00Z", start.UTC().Format(time.RFC3339)+" "+end.UTC().Format(time.RFC3339), "April in Berlin")
	start, end = budgets[1].Period(time.Date(2026, 5, 3, 23, 0, 0, 0, time.UTC))
	assert.Equal(t, "2026-04-27 2026-05-04", start.Format(time.DateOnly)+" "+end.Format(time.DateOnly), "a Sunday ends the week")
	start, end = budgets[2].Period(time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC))
	assert.Equal(t, "2026-12-31 2027-01-01", start.Format(time.DateOnly)+" "+end.Format(time.DateOnly))
	assert.InDelta(t, 0.8, budgets[0].Used(Money{Whole: 4000}, 0), 1e-12)
	assert.InDelta(t, 2, budgets[1].Used(Money{}, 3*3_600_000), 1e-12)
	assert.True(t, budgets[0].Covers("ml/eu"))
	assert.False(t, budgets[0].Covers("web"))
	assert.True(t, budgets[1].Covers(""))
	for _, tt := range []struct {
		b   BudgetConfig
		err string
	}{
		{BudgetConfig{Cost: "1", Period: Day}, `budgets::0::name: ""`},
		{BudgetConfig{Name: "a", Period: Day}, "budgets::0::cost: set either cost or hours"},
		{BudgetConfig{Name: "a", Cost: "0", Period: Day}, `cost: "0": write an amount above 0`},
		{BudgetConfig{Name: "a", Hours: "-1", Period: Day}, `hours: "-1"`},
		{BudgetConfig{Name: "a", Cost: "1", Period: "year"}, `period: "year": use day, week or month`},
		{BudgetConfig{Name: "a", Cost: "1", Period: Day, Timezone: "Mars"}, `timezone: "Mars" is not known`},
		{BudgetConfig{Name: "a", Cost: "1", Period: Day, Tenant: "["}, `tenant: "[" is no pattern`},
	} {
		_, err := NewBudgets([]BudgetConfig{tt.b})
		assert.ErrorContains(t, err, tt.err)
	}
}

func TestCarbon(t *testing.T) {
	c, err := NewCarbon(CarbonConfig{PUE: 1.2, Intensity: []IntensityConfig{
		{Region: "eu-north1", GramsPerKWh: 45, Kind: Average, ValidFrom: "2026-01-01"},
		{Region: "eu-north1", GramsPerKWh: 40, Kind: Marginal, ValidFrom: "2026-06-01"},
		{Region: "*", GramsPerKWh: 380, Kind: Average},
	}})
	require.NoError(t, err)
	for _, tt := range []struct {
		region string
		at     time.Time
		want   int64
		kind   string
	}{
		{"eu-north1", day("2026-03-01"), 54_000, Average},
		{"eu-north1", day("2026-06-01"), 48_000, Marginal},
		{"eu-north1", day("2025-06-01"), 0, ""},
		{"us", day("2025-06-01"), 456_000, Average},
		{"", day("2026-06-01"), 0, ""},
	} {
		got, kind, ok := c.At(tt.region, tt.at)
		assert.Equal(t, tt.want, got, tt)
		assert.Equal(t, tt.kind, kind, tt)
		assert.Equal(t, tt.kind != "", ok, tt)
	}
	for _, tt := range []struct {
		c   CarbonConfig
		err string
	}{
		{CarbonConfig{PUE: 0.9}, "carbon::pue: 0.9"},
		{CarbonConfig{PUE: 1, Intensity: []IntensityConfig{{GramsPerKWh: 1, Kind: Average}}}, "intensity::0::region"},
		{CarbonConfig{PUE: 1, Intensity: []IntensityConfig{{Region: "a", GramsPerKWh: -1, Kind: Average}}}, "grams_per_kwh: -1"},
		{CarbonConfig{PUE: 1, Intensity: []IntensityConfig{{Region: "a", GramsPerKWh: 1}}}, `kind: "": use average or marginal`},
		{CarbonConfig{PUE: 1, Intensity: []IntensityConfig{{Region: "a", Kind: Average, ValidFrom: "x"}}}, `valid_from: "x"`},
		{CarbonConfig{PUE: 1, Intensity: []IntensityConfig{{Region: "a", Kind: Average}, {Region: "a", Kind: Average}}}, "intensity::1::valid_from"},
	} {
		_, err := NewCarbon(tt.c)
		assert.ErrorContains(t, err, tt.err)
	}
}

func TestImportSkyPilot(t *testing.T) {
	list, err := os.Open("testdata/skypilot.csv")
	require.NoError(t, err)
	defer list.Close()
	rules, err := ImportSkyPilot(list, day("2026-05-01"), "provider's list")
	require.NoError(t, err)
	book, err := New("USD", rules)
	require.NoError(t, err, "an import is a configuration")
	for _, tt := range []struct {
		host, region, capacity string
		boards                 int64
		want                   float64
	}{
		{"gpu-h100-sxm_8gpu-128vcpu-1600gb", "eu-north1", "", 8, 2.95},
		{"gpu-h100-sxm_8gpu-128vcpu-1600gb", "eu-north1", "spot", 8, 1.25},
		{"gpu-h100-sxm_1gpu-16vcpu-200gb", "eu-north1", "on_demand", 1, 2.95},
		{"gpu-l40s-a_1gpu-8vcpu-32gb", "eu-north1", "", 1, 1.5484},
		{"gpu-l40s-d_1gpu-48vcpu-288gb", "eu-north1", "", 1, 2.7516},
		{"gpu-b200-sxm_8gpu-160vcpu-1792gb", "us-central1", "", 8, 5.5},
	} {
		got, why := book.At(&Facts{HostType: tt.host, Region: tt.region, Capacity: tt.capacity, Boards: tt.boards}, day("2026-06-01"))
		assert.Equal(t, Priced, why, tt)
		assert.InDelta(t, tt.want, got.Rate.Hour(), 1e-12, tt)
	}
	_, why := book.At(&Facts{HostType: "gpu-b200-sxm_8gpu-160vcpu-1792gb", Region: "eu-north1", Boards: 8}, day("2026-06-01"))
	assert.Equal(t, NoRule, why, "a price of another region does not count")
	for text, want := range map[string]string{
		"":      "no header",
		"a,b\n": "no column InstanceType",
		"InstanceType,AcceleratorName,AcceleratorCount,Price,Region,SpotPrice\nx,H100,0,1,r,\n":                `line 2, AcceleratorCount: "0"`,
		"InstanceType,AcceleratorName,AcceleratorCount,Price,Region,SpotPrice\nx,H100,1,-1,r,\n":               `line 2, Price: "-1"`,
		"InstanceType,AcceleratorName,AcceleratorCount,Price,Region,SpotPrice\nx,H100,1,1,r,\nx,H100,1,2,r,\n": "line 3: x in r has two prices, 1 and 2",
	} {
		_, err := ImportSkyPilot(strings.NewReader(text), day("2026-05-01"), "")
		assert.ErrorContains(t, err, want)
	}
}

// Whatever the list contains, what comes of it is a configuration, or an error.
func FuzzImportSkyPilot(f *testing.F) {
	list, err := os.ReadFile("testdata/skypilot.csv")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(strings.Join(strings.SplitAfter(string(list), "\n")[:3], ""))
	f.Add("InstanceType,AcceleratorName,AcceleratorCount,Price,Region,SpotPrice\na*[b,H100,8.0,1,r/1,0.5\n")
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := ImportSkyPilot(strings.NewReader(text), day("2026-05-01"), "list")
		if err != nil {
			return
		}
		book, err := New("USD", rules)
		if err != nil {
			t.Fatalf("rules of an import are refused: %v", err)
		}
		for _, r := range rules {
			f := Facts{HostType: unquote(r.Match[MatchHostType]), Region: unquote(r.Match[MatchRegion]), Capacity: r.Match[MatchCapacity], Boards: r.GPUs}
			if p, why := book.At(&f, day("2026-06-01")); why == Priced && p.Rate.Nano < 0 {
				t.Fatalf("%v costs %v", r, p)
			} else if why == NoRule {
				t.Fatalf("%v does not match %v", r, f)
			}
		}
	})
}

func unquote(pattern string) string {
	var text strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '\\' {
			i++
		}
		text.WriteByte(pattern[i])
	}
	return text.String()
}

// FuzzRule: a rule is refused, or gives a price that is not negative.
func FuzzRule(f *testing.F) {
	f.Add("gpu-*", "23.60", int64(8), "0.9", "2026-05-01")
	f.Add("[", "-1", int64(0), "NaN", "x")
	f.Fuzz(func(t *testing.T, pattern, amount string, gpus int64, fraction, from string) {
		book, err := New("USD", []RuleConfig{{
			Match: map[string]string{MatchHostType: pattern}, InstanceHour: amount, GPUs: gpus, PriceFraction: fraction, ValidFrom: from,
		}})
		if err != nil {
			return
		}
		p, why := book.At(&Facts{HostType: "gpu-1", Boards: gpus}, day("2026-06-01"))
		if why == Priced && (!p.Rate.Known() || p.Rate.Nano < 0 || p.Rate.Cost(3_600_000) < 0) {
			t.Fatalf("%v", p)
		}
	})
}
