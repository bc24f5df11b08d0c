// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/judge"
)

// Series of what a service held, by model: of one price each.
const (
	usageHeld   = "gpu_usage_held_seconds_total"
	usageUsed   = "gpu_usage_used_seconds_total"
	usageBlind  = "gpu_usage_unmeasured_seconds_total"
	usageCost   = "gpu_usage_cost_total"
	usageIdle   = "gpu_usage_idle_cost_total"
	usageEnergy = "gpu_usage_energy_joules_total"
	usageCarbon = "gpu_usage_carbon_grams_total"
	prefill     = "inference_server_request_prefill_time_seconds"
	decode      = "inference_server_request_decode_time_seconds"
	hits        = `inference_server_prefix_cache_hits_total{inference_cache_tier="device",`
	lookups     = `inference_server_prefix_cache_queries_total{inference_cache_tier="device",`
	input       = tokens + `{inference_token_type="input",`
	output      = tokens + `{inference_token_type="output",`
)

func rowOf(model string) string {
	return svc + `,gpu_tenant="ml",hw_model="` + model + `",gpu_capacity_type="on_demand"`
}

// rising is a counter that rises by an amount a second.
func rising(perSecond float64) string {
	return "0+" + strconv.FormatFloat(perSecond*30, 'g', -1, 64) + "x480"
}

// priced is busy, of which every part has a price: two H100 of 3.60 an hour at 50 %, and
// an L40S of 1.80 that is fully used. 4.50 of its 9.00 an hour are held and not used: 3.60.
func priced() map[string]string {
	all := busy()
	for model, of := range map[string]struct{ gpus, price, used, watts float64 }{
		"NVIDIA H100": {2, 3.60, 0.5, 600}, "NVIDIA L40S": {1, 1.80, 1, 300},
	} {
		row := rowOf(model)
		all[usageHeld+`{`+row+`}`] = rising(of.gpus)
		all[usageUsed+`{`+row+`}`] = rising(of.gpus * of.used)
		all[usageBlind+`{`+row+`}`] = rising(0)
		all[usageCost+`{gpu_cost_currency="USD",`+row+`}`] = rising(of.gpus * of.price / 3600)
		all[usageEnergy+`{gpu_energy_basis="board",`+row+`}`] = rising(of.gpus * of.watts / 2)
		all[usageEnergy+`{gpu_energy_basis="share",`+row+`}`] = rising(of.gpus * of.watts / 2)
	}
	for _, pod := range []string{pod0, pod1} {
		all[prefill+`_sum{`+pod+`}`], all[prefill+`_count{`+pod+`}`] = rising(6), rising(10)
		all[decode+`_sum{`+pod+`}`], all[decode+`_count{`+pod+`}`] = rising(4), rising(10)
	}
	return all
}

// costs are the values that the rules of cost give the service after two hours, by name
// and basis.
func costs(t *testing.T, series map[string]string) map[string]float64 {
	t.Helper()
	db, engine := promqltest.LoadedStorage(t, load(series)), judge.NewEngine()
	newJudge(t, db, engine, func(group string) bool { return group == "otelcol-gpu.cost" }).At(t, sampled(240))
	query, err := engine.NewInstantQuery(t.Context(), db, nil, `{__name__=~"namespace_service:(gpu_cost|gpu_used_ratio|tokens_per_joule).*",service_name="chat"}`, sampled(240))
	require.NoError(t, err)
	defer query.Close()
	vector, err := query.Exec(t.Context()).Vector()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, s := range vector {
		name, _ := strings.CutPrefix(s.Metric.Get("__name__"), "namespace_service:")
		if basis := s.Metric.Get("gpu_cost_basis"); basis != "" {
			name += " " + basis
		}
		require.NotContains(t, values, name, "one of each service")
		require.False(t, math.IsNaN(s.F) || math.IsInf(s.F, 0), "%s: %v", name, s.F)
		values[name] = s.F
	}
	return values
}

const perMtoken = "gpu_cost_per_mtoken"

// What a service of which everything is known costs. 400 prompt tokens and 200 generated
// ones a second; of the prompts, 100 were in the prefix cache; six tenths of the engines'
// time is prefill.
func TestCostRules(t *testing.T) {
	const held, used = 9.0 / 3600, 5.4 / 3600 // a second
	want := map[string]float64{
		"gpu_cost:rate1h": held, "gpu_used_ratio:1h": 2. / 3, "tokens_per_joule:1h": 200. / 1500,
		perMtoken + ":1h held": held / 600e-6, perMtoken + ":1h used": used / 600e-6,
		perMtoken + "_input:1h held": 0.6 * held / 300e-6, perMtoken + "_input:1h used": 0.6 * used / 300e-6,
		perMtoken + "_output:1h held": 0.4 * held / 200e-6, perMtoken + "_output:1h used": 0.4 * used / 200e-6,
	}
	got := costs(t, priced())
	assert.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	for name, v := range want {
		assert.InEpsilon(t, v, got[name], 1e-9, name)
	}
}

// An engine may count its prefix cache in blocks, as vLLM 0.8 does: they are no tokens.
func TestCostOfInputWithBlocks(t *testing.T) {
	blocks := priced()
	blocks[hits+pod0+`}`], blocks[lookups+pod0+`}`] = rising(50./16), rising(200./16)
	assert.InEpsilon(t, costs(t, priced())[perMtoken+"_input:1h held"], costs(t, blocks)[perMtoken+"_input:1h held"], 1e-9)
}

// What is found in a cache elsewhere was not computed either.
func TestCostOfInputWithAnotherCache(t *testing.T) {
	more := priced()
	more[`inference_server_prefix_cache_hits_total{inference_cache_tier="external",`+pod1+`}`] = rising(60)
	assert.InEpsilon(t, costs(t, priced())[perMtoken+"_input:1h held"]*300/240, costs(t, more)[perMtoken+"_input:1h held"], 1e-9)
}

// c_in × computed prompt tokens + c_out × generated tokens is the cost, by both bases, and
// so is the blended cost × all tokens: whatever the engines, the prices and the load are.
func TestCostPerTokenConservesCost(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 7))
		all := priced()
		var in, computed, out, held, used float64
		for _, pod := range []string{pod0, pod1} {
			prompts, generated := 1+random.ExpFloat64()*5000, 1+random.ExpFloat64()*500
			cached := prompts * random.Float64()
			all[input+pod+`}`], all[output+pod+`}`], all[hits+pod+`}`] = rising(prompts), rising(generated), rising(cached)
			all[lookups+pod+`}`] = rising(prompts)
			all[prefill+`_sum{`+pod+`}`], all[decode+`_sum{`+pod+`}`] = rising(random.ExpFloat64()), rising(random.ExpFloat64())
			in, computed, out = in+prompts, computed+prompts-cached, out+generated
		}
		for _, model := range []string{"NVIDIA H100", "NVIDIA L40S"} {
			gpus, price, ratio := 8*random.Float64(), 5*random.Float64(), random.Float64()
			row := rowOf(model)
			all[usageHeld+`{`+row+`}`], all[usageUsed+`{`+row+`}`] = rising(gpus), rising(gpus*ratio)
			all[usageCost+`{gpu_cost_currency="USD",`+row+`}`] = rising(gpus * price)
			held, used = held+gpus*price, used+gpus*price*ratio
		}
		got := costs(t, all)
		for basis, cost := range map[string]float64{"held": held, "used": used} {
			split := got[perMtoken+"_input:1h "+basis]*computed + got[perMtoken+"_output:1h "+basis]*out
			assert.InEpsilon(t, cost*1e6, split, 1e-9, "%d: split by %s", seed, basis)
			assert.InEpsilon(t, cost*1e6, got[perMtoken+":1h "+basis]*(in+out), 1e-9, "%d: blended by %s", seed, basis)
		}
	}
}

// A cost of tokens is absent where a part of it is not known, and is never 0 or infinite.
func TestCostPerTokenIsAbsent(t *testing.T) {
	both := []string{" held", " used"}
	names := func(kinds ...string) (all []string) {
		for _, kind := range kinds {
			for _, basis := range both {
				all = append(all, perMtoken+kind+":1h"+basis)
			}
		}
		return all
	}
	everyPod := func(series, values string) map[string]string {
		return map[string]string{series + pod0 + `}`: values, series + pod1 + `}`: values}
	}
	constant := func(series string) map[string]string { return everyPod(series, "5000x480") }
	row := rowOf("NVIDIA H100")
	for name, c := range map[string]struct {
		series map[string]string
		absent []string
	}{
		"no tokens":             {with(constant(input), constant(output)), names("", "_input", "_output")},
		"no tokens generated":   {constant(output), names("_output")},
		"all prompts are known": {with(everyPod(hits, rising(200)), everyPod(input, rising(200))), names("_input")},
		"an engine without phases": {
			map[string]string{prefill + `_sum{` + pod1 + `}`: "_x480", prefill + `_count{` + pod1 + `}`: "_x480", up + `{` + pod1 + `}`: "1x480"}, nil,
		},
		"no engine with phases": {
			map[string]string{
				prefill + `_sum{` + pod0 + `}`: "_x480", prefill + `_count{` + pod0 + `}`: "_x480",
				prefill + `_sum{` + pod1 + `}`: "_x480", prefill + `_count{` + pod1 + `}`: "_x480",
			}, names("_input", "_output"),
		},
		"a page that cannot be read": {map[string]string{up + `{` + pod1 + `}`: "1x200 0x280"}, append(names("", "_input", "_output"), "tokens_per_joule:1h")},
		"a model without a price":    {map[string]string{usageCost + `{gpu_cost_currency="USD",` + row + `}`: "_x480"}, names("", "_input", "_output")},
		"no prices": {
			map[string]string{usageCost + `{gpu_cost_currency="USD",` + row + `}`: "_x480", usageCost + `{gpu_cost_currency="USD",` + rowOf("NVIDIA L40S") + `}`: "_x480"},
			append(names("", "_input", "_output"), "gpu_cost:rate1h"),
		},
		"a price for half an hour": {
			map[string]string{
				usageCost + `{gpu_cost_currency="USD",` + row + `}`:                  "_x180 0+0.06x300",
				usageCost + `{gpu_cost_currency="USD",` + rowOf("NVIDIA L40S") + `}`: "_x180 0+0.06x300",
			}, names("", "_input", "_output"),
		},
		"engines of half an hour": {
			with(everyPod(input, "_x180 0+3000x300"), everyPod(output, "_x180 0+3000x300")), append(names("", "_input", "_output"), "tokens_per_joule:1h"),
		},
		"no utilization":         {map[string]string{usageBlind + `{` + row + `}`: rising(2)}, []string{"gpu_used_ratio:1h", perMtoken + ":1h used", perMtoken + "_input:1h used", perMtoken + "_output:1h used"}},
		"a board without energy": {map[string]string{usageEnergy + `{gpu_energy_basis="board",` + row + `}`: "_x480", usageEnergy + `{gpu_energy_basis="share",` + row + `}`: "_x480"}, []string{"tokens_per_joule:1h"}},
		"no prefix cache":        {everyPod(hits, "_x480"), nil},
		"hits of unknown unit":   {everyPod(lookups, "_x480"), names("_input")},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := costs(t, with(priced(), c.series)), costs(t, priced())
			for _, name := range c.absent {
				require.Contains(t, want, name)
				delete(want, name)
			}
			assert.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
		})
	}
}

// What is made up of the cost of a service has the names and labels that the binary writes.
func (w *world) accounts(t *testing.T) {
	add := func(name string, _ float64, more ...string) {
		// The fleet's clock is faster than the collector's: more energy than boards can take
		// is credited to no owner.
		if !strings.HasPrefix(name, "gpu_") || name == usageEnergy || name == usageCarbon {
			return
		}
		labels := map[string]string{} // the last of a name counts
		for i := 0; i < len(more); i += 2 {
			labels[more[i]] = more[i+1]
		}
		series := name + `{job="otelcol-gpu"`
		for label, value := range labels {
			if value != "" {
				series += "," + label + `!=""`
			}
		}
		assert.NotEmpty(t, w.ask(t, "present_over_time("+series+"}[20m])", w.now()), "%s", series)
	}
	accounts(add, add, 1)
}

// costScenarios are what fires about usage and money, beside a healthy fleet.
var costScenarios = map[string]scenario{
	"idle spend": {
		map[string]string{usageIdle + `{gpu_cost_currency="USD",` + rowOf("NVIDIA H100") + `}`: "0x360 0+1x119"}, []string{"GPUIdleSpendOverBudget"},
	},
	"little idle spend": {
		map[string]string{usageIdle + `{gpu_cost_currency="USD",` + rowOf("NVIDIA H100") + `}`: "0x360 0+0.5x119"}, nil,
	},
	"most of a budget": {map[string]string{`gpu_budget_used_ratio{gpu_budget_name="ml",gpu_budget_kind="cost"}`: from("0.79", "0.81")}, []string{"GPUBudgetUsed"}},
	"all of a budget":  {map[string]string{`gpu_budget_used_ratio{gpu_budget_name="ml",gpu_budget_kind="hours"}`: from("0.5", "1.2")}, []string{"GPUBudgetUsed", "GPUBudgetExceeded"}},
	"a model has no price": {
		map[string]string{`otelcol_gpu_cost_unpriced{hw_model="NVIDIA H100",` + own + `}`: "_x360 0+30x119"}, []string{"GPUPriceMissing"},
	},
	"a model had no price once": {map[string]string{`otelcol_gpu_cost_unpriced{hw_model="NVIDIA H100",` + own + `}`: "3000x480"}, nil},
	"nothing is known": {
		map[string]string{
			`gpu_capacity_time_seconds_total{gpu_capacity_state="held",` + brdModel + `}`:    "0+30x480",
			`gpu_capacity_time_seconds_total{gpu_capacity_state="unknown",` + brdModel + `}`: "0x360 0+30x119",
		}, []string{"GPUUsageUnknown"},
	},
	"a machine without a kubelet": {
		map[string]string{`gpu_capacity_time_seconds_total{gpu_capacity_state="unknown",k8s_cluster_name="c2",hw_model="NVIDIA H100"}`: "0x360 0+30x119"}, nil,
	},
	"usage is behind":           {map[string]string{`otelcol_gpu_cost_lag{` + own + `}`: from("90", "700")}, []string{"GPUUsageLag"}},
	"too many boards":           {map[string]string{`otelcol_gpu_cost_refused_points{reason="limit",` + own + `}`: "0x360 0+9x119"}, []string{"GPUUsageRefused"}},
	"points that are wrong":     {map[string]string{`otelcol_gpu_cost_refused_points{reason="invalid",` + own + `}`: "0x360 0+9x119"}, nil},
	"usage cannot be stored":    {map[string]string{`otelcol_gpu_cost_store_failures{` + own + `}`: "_x360 1x119"}, []string{"GPUUsageStateFailing"}},
	"boards that are free":      {map[string]string{`gpu_capacity_time_seconds_total{gpu_capacity_state="free",` + brdModel + `}`: "0+30x480"}, nil},
	"a budget that is all used": {map[string]string{`gpu_budget_used_ratio{gpu_budget_name="ml",gpu_budget_kind="cost"}`: from("0.1", "1")}, []string{"GPUBudgetUsed", "GPUBudgetExceeded"}},
}

const brdModel = `k8s_cluster_name="c1",hw_model="NVIDIA H100"`

// Each alert about usage fires while its cause lasts, and clears afterwards: a day of
// health, one of trouble, and two of health.
func TestCostAlertsFireAndClear(t *testing.T) {
	t.Parallel()
	const hour, day = 12, 288 // samples, one every five minutes
	days := func(healthy, trouble, after string) string {
		return fmt.Sprintf("%sx%d %sx%d %sx%d", healthy, day-1, trouble, day-1, after, 2*day-1)
	}
	text := "load 5m\n"
	for name, values := range map[string]string{
		`gpu_allocation{k8s_cluster_name="c1",hw_id="GPU-1"}`:                            days("1", "1", "1"),
		usageIdle + `{gpu_cost_currency="USD",` + rowOf("NVIDIA H100") + `}`:             days("0", "0+1", "287"),
		`gpu_budget_used_ratio{gpu_budget_name="ml",gpu_budget_kind="cost"}`:             days("0.5", "1.1", "0"),
		`otelcol_gpu_cost_unpriced{hw_model="NVIDIA H100",` + own + `}`:                  days("0", "0+300", "86100"),
		`otelcol_gpu_cost_lag{` + own + `}`:                                              days("90", "900", "90"),
		`gpu_capacity_time_seconds_total{gpu_capacity_state="held",` + brdModel + `}`:    days("0+300", "86400", "86400+300"),
		`gpu_capacity_time_seconds_total{gpu_capacity_state="unknown",` + brdModel + `}`: days("0", "0+300", "86100"),
	} {
		text += "  " + name + " " + values + "\n"
	}
	j := newJudge(t, promqltest.LoadedStorage(t, text), judge.NewEngine(), func(group string) bool { return group == "otelcol-gpu.usage" })
	all := []string{"GPUIdleSpendOverBudget", "GPUBudgetUsed", "GPUBudgetExceeded", "GPUPriceMissing", "GPUUsageUnknown", "GPUUsageLag"}
	at := func(i int) []string { return keys(j.At(t, time.Unix(int64(i)*300, 0))) }
	var during []string
	for i := range 4 * day {
		fired := at(i)
		switch {
		case i < day:
			assert.Empty(t, fired, "%d", i)
		case i == 2*day-1:
			during = fired
		case i == 2*day+2*hour:
			assert.ElementsMatch(t, []string{"GPUIdleSpendOverBudget", "GPUUsageUnknown"}, fired, "what looks a day back")
		case i == 4*day-1:
			assert.Empty(t, fired, "afterwards")
		}
	}
	assert.ElementsMatch(t, all, during)
}
