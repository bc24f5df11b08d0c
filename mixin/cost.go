// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"strconv"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// What is recorded of the cost of services.
const (
	recordCost       = "namespace_service:gpu_cost:rate1h"
	recordUsedRatio  = "namespace_service:gpu_used_ratio:1h"
	recordPerMtoken  = "namespace_service:gpu_cost_per_mtoken:1h"
	recordPerInput   = "namespace_service:gpu_cost_per_mtoken_input:1h"
	recordPerOutput  = "namespace_service:gpu_cost_per_mtoken_output:1h"
	recordTokenJoule = "namespace_service:tokens_per_joule:1h"
)

// costBasis is the label that distinguishes the two bases of a cost.
const costBasis = "gpu_cost_basis"

// costRecording is what services cost, and what a token of theirs does. gpu_cost counts;
// rates, ratios and the join with what engines report are Prometheus' work.
func costRecording() []rule {
	whole := queries.Whole{Over: queries.CostWindow}
	rules := []rule{
		{Record: recordCost, Expr: queries.Spend(queries.ByHeld, queries.All, queries.CostWindow)},
		{Record: recordUsedRatio, Expr: queries.UsedRatio(queries.All, queries.CostWindow)},
		{Record: recordTokenJoule, Expr: whole.TokensPerJouleHeld()},
	}
	for _, basis := range []queries.Basis{queries.ByHeld, queries.ByUsed} {
		labels := map[string]string{costBasis: string(basis)}
		rules = append(rules,
			rule{Record: recordPerMtoken, Expr: whole.CostPerToken(basis), Labels: labels},
			rule{Record: recordPerInput, Expr: whole.CostPerInput(basis), Labels: labels},
			rule{Record: recordPerOutput, Expr: whole.CostPerOutput(basis), Labels: labels})
	}
	return rules
}

// Texts that name an amount of money, and a budget.
const (
	theAmount = `{{ printf "%.2f" $value }} {{ $labels.` + queries.Currency + ` }}`
	theBudget = "{{ $labels." + queries.Budget + " }} ({{ $labels." + queries.BudgetKind + " }})"
)

func costAlerts(o options) []alert {
	perDay := strconv.FormatFloat(o.IdleSpendPerDay, 'f', -1, 64)
	budget := most(queries.BudgetUsed, queries.Cluster, queries.Budget, queries.BudgetKind)
	ofBudget := []string{"`gpuctl cost --by service --since 7d`, or the console's page Cost: which services of its tenant cost most, and how much of that is idle."}
	return []alert{
		{
			name: "GPUIdleSpendOverBudget", severity: warning,
			expr:    sum("increase("+queries.UsageIdleCost+"[1d])", queries.OfMoney...) + " > " + perDay,
			summary: theService + " spent " + theAmount + " on idle GPUs within a day.",
			meaning: "GPUs that the service held did nothing for long, and what they cost in that time within 24 hours is more than " + perDay + ": `idleSpendPerDay` of mixin/options.yaml.",
			check: []string{
				"Which pods: GPUIdleHeld of the same service; dashboard GPU service, row Pods.",
				"Whether they wait for something: data, a queue, a person.",
			},
			do: []string{
				"Talk to the owner: scale down, or give notebooks a culler. Nothing is broken.",
				"Set `idleSpendPerDay` to what is worth a notification, in the currency of the prices, and run `go generate` in mixin/.",
			},
		},
		{
			name: "GPUBudgetUsed", severity: warning,
			expr:    budget + " > 0.8",
			summary: "{{ $value | humanizePercentage }} of the budget " + theBudget + " are used.",
			meaning: "More than four fifths of a budget of gpu_cost are used, and its period still runs. Budgets inform: nothing is stopped.",
			check:   ofBudget,
			do:      []string{"Compare with how much of the period has passed: 80 % on the last day is a plan that works.", "Idle devices first: GPUIdleSpendOverBudget. Then the tenant's plan, or the budget."},
		},
		{
			name: "GPUBudgetExceeded", severity: warning,
			expr:    budget + " >= 1",
			summary: "The budget " + theBudget + " is used up: {{ $value | humanizePercentage }}.",
			meaning: "A tenant has used all of a budget of gpu_cost before its period ended. Budgets inform: nothing is stopped, and no pod is refused. The alert ends with the period.",
			check:   ofBudget,
			do:      []string{"Talk to the tenant. Limits that refuse pods are the scheduler's: quotas of Kueue, KAI or HAMi."},
		},
		{
			name: "GPUPriceMissing", severity: warning, wait: "10m",
			expr:    grew(queries.OwnCostUnpriced, time.Hour, queries.Model),
			summary: "{{ $labels." + queries.Model + " }} has no price: {{ $value | humanizeDuration }} of GPUs within an hour.",
			meaning: "Prices are configured, and no rule matches boards of this model. Their hours and energy are counted; their cost is absent, and so are sums of money that they belong to.",
			check: []string{
				"The gateway's log: it names the board's model, machine type, region and capacity type, and why no rule fits: none matches, `gpus` of the rule is another number than the node has, or `valid_from` is in the future.",
				"`gpu_node_info` of the node: whether the machine type and the labels that rules match are there.",
			},
			do: []string{
				"Add a rule to `prices` of gpu_cost. It counts from then on: hours before it stay without a price, and `gpuctl cost --prices FILE` prices them in a report.",
				"Boards that cost nothing: a rule with `gpu_hour: \"0\"`.",
			},
		},
		{
			name: "GPUUsageUnknown", severity: warning, wait: "15m",
			expr:    queries.UnknownRatio("1d", queries.Cluster) + " > 0.01",
			summary: "Of {{ $value | humanizePercentage }} of the GPU time of a day it is not known who held it{{ with $labels." + queries.Cluster + " }} (cluster {{ . }}){{ end }}.",
			meaning: "More than a hundredth of the time of the boards is in the state unknown: gaps that were too long to bridge, or with other owners at both ends, or owners of which the board is not known. It is charged to no owner.",
			check: []string{
				"Gaps: GPUAllocationStale, GPUNodeLost, GPUCollectorDown within the day; restarts of the gateway.",
				"`gpu_usage_unplaced_seconds_total`: devices of software schedulers (HAMi, Volcano, Koordinator, KAI) need `sharing` of gpu_allocation.",
			},
			do: []string{"Bring the agents back, or set `sharing`. What is unknown stays so; the alert ends when a day has less of it."},
		},
		{
			name: "GPUUsageLag", severity: warning,
			expr:    most(queries.OwnCostLag, process...) + " > 600",
			summary: "gpu_cost at " + theProcess + " is {{ $value | humanizeDuration }} behind.",
			meaning: "The time of a board is accounted up to more than ten minutes ago: its points arrive late, or the clock of this process was set back. Nothing is lost yet; counters stand still until then.",
			check: []string{
				"Clocks: `timedatectl` on the nodes and the gateway's.",
				"The agents' queues: dashboard GPU telemetry collector.",
			},
			do: []string{"Correct the clock, or give the gateway what it lacks (memory, CPU, network)."},
		},
		{
			name: "GPUUsageRefused", severity: warning,
			expr:    grew(queries.Of(queries.OwnCostRefused, queries.Is("reason", "limit")), 10*time.Minute),
			summary: "gpu_cost at " + theProcess + " does not account for all boards: a limit is reached.",
			meaning: "There are more boards than `max_devices` of gpu_cost. What is beyond is in no total: sums are too small.",
			check:   []string{"How many boards there are: `count(group by (hw_id) (gpu_allocation{hw_parent=\"\"}))`."},
			do:      []string{"Raise `max_devices`, with 1.5 KiB of memory for each board."},
		},
		{
			name: "GPUUsageStateFailing", severity: warning,
			expr:    grew(queries.OwnCostStore, 10*time.Minute),
			summary: "gpu_cost at " + theProcess + " cannot keep its state.",
			meaning: "Amounts are emitted only after they are stored, so counters stand still until a write succeeds. Nothing is lost unless the process ends before.",
			check:   []string{"STATE_DIRECTORY: mounted, writable, not full."},
			do:      []string{"Give it space or rights; the state is written again every minute."},
		},
	}
}

// ofTenants selects the usage of the tenants that are chosen.
var ofTenants = queries.And(inNamespace, chosen(queries.Tenant, "tenant"))

// Amounts come once a minute, and reports are about hours: what a chart shows at a moment
// is about the hour before it.
func hourly(metric string, s ...queries.Selector) string {
	return "rate(" + queries.Of(metric, s...) + "[1h])"
}

// anHour is an amount of money an hour.
func anHour(series string, labels ...string) string {
	return sum(series, append(labels, queries.Currency)...) + " * 3600"
}

func costBoard() board {
	return board{
		uid: "otelcol-gpu-cost", title: "GPU cost", since: "now-24h",
		description: "Who holds how much of the GPUs, how much of that is used, what it costs and what it burns; and what has no owner. " +
			"A figure of money is absent where a part of it has no price. Reports over more than the time that is kept here: gpuctl cost.",
		variables: []variable{
			clusterVariable,
			{"namespace", "Namespace", "Namespace of the pods.", queries.Of(queries.UsageHeld, inCluster) + ", " + queries.Namespace},
			{"tenant", "Tenant", "Who pays, as gpu_cost finds it.", queries.Of(queries.UsageHeld, inNamespace) + ", " + queries.Tenant},
		},
		rows: []row{
			{"Now: the last hour", costNow()},
			{"Tenants", costTenants()},
			{"Boards: what has no owner", costBoards()},
			{"Services", costServices()},
			{"Tokens", costTokens()},
			{"Energy", costEnergy()},
			{"Prices and budgets", costPrices()},
		},
	}
}

func costNow() []panel {
	inCapacity := func(states ...string) queries.Selector {
		return queries.And(inCluster, queries.OneOf(queries.CapacityState, states...))
	}
	unheld := inCapacity("free", "stranded")
	unknown := figure("Unknown", "Time of the boards of which it is not known who held them.", units.PercentUnit,
		sum(hourly(queries.CapacityTime, inCapacity("unknown")))+" / ("+sum(hourly(queries.CapacityTime, inCluster))+" > 0)", 0.01, 0)
	return []panel{
		figure("Fleet, an hour", "What all boards of the clusters cost an hour, held or not.", units.Short, anHour(hourly(queries.CapacityCost, inCluster)), 0, 0),
		figure("Held, an hour", "Thereof what tenants hold.", units.Short, anHour(hourly(queries.UsageCost, ofTenants)), 0, 0),
		figure("Idle, an hour", "Thereof what was held and did nothing for long.", units.Short, anHour(hourly(queries.UsageIdleCost, ofTenants)), 0, 0),
		figure("Free and stranded, an hour", "Boards and parts of boards that have no owner.", units.Short, anHour(hourly(queries.CapacityCost, unheld)), 0, 0),
		unknown,
		figure("Fullest budget", "Used part of the budget that is nearest to its limit, or beyond it.", units.PercentUnit, most(last(queries.BudgetUsed)), 0.8, 1),
	}
}

// usageColumns are the amounts of a report, by labels, within the time on display.
func usageColumns(labels ...string) []query {
	hours := func(metric string) string { return sum(rise(queries.Of(metric, ofTenants)), labels...) + " / 3600" }
	money := func(metric string) string {
		return sum(rise(queries.Of(metric, ofTenants)), append(labels[:len(labels):len(labels)], queries.Currency)...)
	}
	return []query{
		{expr: hours(queries.UsageHeld), column: "GPU-hours held"},
		{expr: hours(queries.UsageUsed), column: "GPU-hours used"},
		{expr: hours(queries.UsageIdle), column: "GPU-hours idle"},
		{expr: money(queries.UsageCost), column: "Cost"},
		{expr: money(queries.UsageIdleCost), column: "Cost of idle"},
		{expr: sum(rise(queries.Of(queries.UsageEnergy, ofTenants)), labels...) + " / 3600", column: "Energy", unit: units.WattHour},
		{expr: sum(rise(queries.Of(queries.UsageCarbon, ofTenants)), labels...), column: "CO2e", unit: units.Gram},
	}
}

const whatColumnsAre = " Within the time on display. Held: each device by its share of the board. Used: that times utilization. Idle: the time of stretches without work. Prometheus estimates at the ends of the range; gpuctl cost is exact."

func costTenants() []panel {
	spend := lines("Spend of tenants, an hour", "What each tenant holds, by the price of the board.", units.Short,
		query{expr: anHour(hourly(queries.UsageCost, ofTenants), queries.Tenant), legend: name(queries.Tenant, queries.Currency)})
	held := lines("GPUs of tenants", "How many whole GPUs each tenant holds, and uses.", units.Short,
		query{expr: sum(hourly(queries.UsageHeld, ofTenants), queries.Tenant), legend: name(queries.Tenant) + " held"},
		query{expr: sum(hourly(queries.UsageUsed, ofTenants), queries.Tenant), legend: name(queries.Tenant) + " used"})
	spend.stacked = true
	return []panel{
		{kind: grid, title: "Usage of tenants", unit: units.Short, width: 24, height: 9, queries: usageColumns(queries.Tenant),
			description: "What each tenant had, and what it cost." + whatColumnsAre},
		spend, held,
	}
}

func costBoards() []panel {
	by := func(title, description, expr, legend string) panel {
		p := lines(title, description, units.Short, query{expr: expr, legend: legend})
		p.stacked = true
		return p
	}
	return []panel{
		by("GPUs by state", "Together the physical fleet. Free: may be held, and is not. Stranded: part of a board that no MIG instance covers. Unavailable: on a cordoned node, or missing. Unknown: not known.",
			sum(hourly(queries.CapacityTime, inCluster), queries.CapacityState), name(queries.CapacityState)),
		by("Cost by state, an hour", "What the boards cost in each state. A model without a price is not in it.",
			anHour(hourly(queries.CapacityCost, inCluster), queries.CapacityState), name(queries.CapacityState, queries.Currency)),
		{kind: grid, title: "Models", unit: units.Short, width: 24, height: 8,
			description: "Time and cost of the boards by model, type of capacity and state, within the time on display.",
			queries: []query{
				{expr: sum(rise(queries.Of(queries.CapacityTime, inCluster)), queries.Model, queries.CapacityType, queries.CapacityState) + " / 3600", column: "GPU-hours"},
				{expr: sum(rise(queries.Of(queries.CapacityCost, inCluster)), queries.Model, queries.CapacityType, queries.CapacityState, queries.Currency), column: "Cost"},
			}},
	}
}

func costServices() []panel {
	return []panel{
		{kind: grid, title: "Usage of services", unit: units.Short, width: 24, height: 12, toService: true, queries: usageColumns(service...),
			description: "What each service had, and what it cost." + whatColumnsAre},
		lines("Spend of services, an hour", "Reads a recorded series.", units.Short,
			query{expr: anHour(last(queries.Of(recordCost, inNamespace)), queries.Namespace, queries.Account, queries.Service), legend: ofService + " {{" + queries.Currency + "}}"}),
		withMax(lines("Used part", "Used time by held time. Absent where the utilization is not known for more than a hundredth of the hour. Reads a recorded series.", units.PercentUnit,
			query{expr: most(last(queries.Of(recordUsedRatio, inNamespace)), service...), legend: ofService})),
	}
}

func costTokens() []panel {
	of := func(record, what string) query {
		return query{
			expr:   most(last(queries.Of(record, inNamespace)), append(service[:len(service):len(service)], queries.Currency, costBasis)...),
			legend: ofService + what + " {{" + queries.Currency + "}} by {{" + costBasis + "}}",
		}
	}
	return []panel{
		lines("Cost of a million tokens", "Prompt and generated ones alike. By held time it adds up to the bill; by used time it compares engines and models. Absent without tokens, without a price of all that is held, or where a page cannot be read.", units.Short,
			of(recordPerMtoken, "")),
		lines("Cost of a million tokens, split", "By the engine's time in prefill and decode: both together are the cost again. Input: prompt tokens that were computed, without those found in a prefix cache. Absent for engines that do not report these times: no ratio is assumed.", units.Short,
			of(recordPerInput, " input"), of(recordPerOutput, " output")),
		lines("Tokens per joule of what is held", "Generated tokens for the energy of the service's boards and shares of boards; those of shares are estimates.", units.Short,
			query{expr: most(last(queries.Of(recordTokenJoule, inNamespace)), service...), legend: ofService}),
	}
}

func costEnergy() []panel {
	return []panel{
		lines("Power of tenants", "Mean over the hour before, by what it is computed from: boards that are held whole, shares of boards (an estimate), or the integrated power where the exporter has no counter of energy.", units.Watt,
			query{expr: sum(hourly(queries.UsageEnergy, ofTenants), queries.Tenant, queries.EnergyBasis), legend: name(queries.Tenant, queries.EnergyBasis)}),
		lines("Power by state", "Boards without an owner burn energy too.", units.Watt,
			query{expr: sum(hourly(queries.CapacityEnergy, inCluster), queries.CapacityState), legend: name(queries.CapacityState)}),
		lines("CO2e of tenants", "Within the hour before. By location, of the energy of GPUs and the overhead of the data centre; absent without an intensity.", units.Gram,
			query{expr: sum("increase("+queries.Of(queries.UsageCarbon, ofTenants)+"[1h])", queries.Tenant), legend: name(queries.Tenant)}),
	}
}

func costPrices() []panel {
	return []panel{
		{kind: grid, title: "Prices", unit: units.Short, width: 12, height: 8, description: "What a whole GPU costs an hour now, by the rule that matches. A model that is not here has no price.",
			queries: []query{{expr: most(last(queries.Price), queries.Cluster, queries.Model, queries.HostType, queries.Region, queries.CapacityType, queries.Currency), column: "Price"}}},
		{kind: grid, title: "Budgets", unit: units.PercentUnit, width: 12, height: 8, description: "Used part of each budget in the period that runs. Budgets inform; nothing is stopped.", warn: 0.8, alarm: 1,
			queries: []query{{expr: most(last(queries.BudgetUsed), queries.Cluster, queries.Budget, queries.BudgetKind), column: "Used"}}},
	}
}
