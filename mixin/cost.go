// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"strconv"

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
			expr:    grew(queries.OwnCostUnpriced, "1h", queries.Model),
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
			expr:    grew(queries.Of(queries.OwnCostRefused, queries.Is("reason", "limit")), "10m"),
			summary: "gpu_cost at " + theProcess + " does not account for all boards: a limit is reached.",
			meaning: "There are more boards than `max_devices` of gpu_cost. What is beyond is in no total: sums are too small.",
			check:   []string{"How many boards there are: `count(group by (hw_id) (gpu_allocation{hw_parent=\"\"}))`."},
			do:      []string{"Raise `max_devices`, with 1.5 KiB of memory for each board."},
		},
		{
			name: "GPUUsageStateFailing", severity: warning,
			expr:    grew(queries.OwnCostStore, "10m"),
			summary: "gpu_cost at " + theProcess + " cannot keep its state.",
			meaning: "Amounts are emitted only after they are stored, so counters stand still until a write succeeds. Nothing is lost unless the process ends before.",
			check:   []string{"STATE_DIRECTORY: mounted, writable, not full."},
			do:      []string{"Give it space or rights; the state is written again every minute."},
		},
	}
}
