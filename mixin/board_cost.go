// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

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
