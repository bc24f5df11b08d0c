// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package queries // import "github.com/otelcol-gpu/otelcol-gpu/internal/queries"

import (
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// CostWindow is the time over which cost is compared with tokens and energy. Amounts come
// once a minute and requests end in bursts: a shorter one compares neighbouring minutes.
const CostWindow = time.Hour

// Metrics of cost that the dashboards and rules read.
var (
	UsageHeld       = names.UsageHeld.Prometheus()
	UsageUsed       = names.UsageUsed.Prometheus()
	UsageIdle       = names.UsageIdle.Prometheus()
	UsageUnmeasured = names.UsageUnmeasured.Prometheus()
	UsageCost       = names.UsageCost.Prometheus()
	UsageIdleCost   = names.UsageIdleCost.Prometheus()
	UsageEnergy     = names.UsageEnergy.Prometheus()
	UsageCarbon     = names.UsageCarbon.Prometheus()
	CapacityTime    = names.CapacityTime.Prometheus()
	CapacityCost    = names.CapacityCost.Prometheus()
	CapacityEnergy  = names.CapacityEnergy.Prometheus()
	Price           = names.GPUPrice.Prometheus()
	BudgetUsed      = names.BudgetUsed.Prometheus()
	BudgetLimitCost = names.BudgetLimitCost.Prometheus()
	BudgetLimitTime = names.BudgetLimitTime.Prometheus()

	inferencePrefill = names.InferencePrefillTime.Prometheus()
	inferenceDecode  = names.InferenceDecodeTime.Prometheus()
)

// Labels.
const (
	Tenant        = "gpu_tenant"
	Currency      = "gpu_cost_currency"
	EnergyBasis   = "gpu_energy_basis"
	CapacityState = "gpu_capacity_state"
	CapacityType  = "gpu_capacity_type"
	HostType      = "host_type"
	Region        = "cloud_region"
	Budget        = "gpu_budget_name"
	BudgetKind    = "gpu_budget_kind"

	BudgetPeriod   = "gpu_budget_period"
	BudgetTimezone = "gpu_budget_timezone"
)

// OfMoney are amounts of money of every service: amounts of two currencies are never added.
var OfMoney = append(OfServices[:len(OfServices):len(OfServices)], Currency)

// ofRows are the series of usage of every service: what has one price at a time, nearly.
var ofRows = append(OfServices[:len(OfServices):len(OfServices)], Tenant, Model, MIGProfile, CapacityType)

// Basis is which part of what a service holds is compared with what it did.
type Basis string

// What is held reconciles with the bill; what is used, the held time multiplied by the
// utilization, compares engines and models.
const (
	ByHeld Basis = "held"
	ByUsed Basis = "used"
)

// Spend asks for what services cost in a second.
func Spend(b Basis, s Selector, over time.Duration) string {
	if b == ByHeld {
		return OfMoney.rate(of(UsageCost, s), over)
	}
	priced := append(ofRows[:len(ofRows):len(ofRows)], Currency)
	part := quotient(ofRows.rate(of(UsageUsed, s), over), ofRows.rate(of(UsageHeld, s), over))
	return measured("sum"+OfMoney.by()+"("+priced.rate(of(UsageCost, s), over)+" *"+ofRows.on()+"group_left () ("+part+"))", s, over)
}

// UsedRatio asks for the mean utilization of what services hold.
func UsedRatio(s Selector, over time.Duration) string {
	return measured(quotient(OfServices.rate(of(UsageUsed, s), over), OfServices.rate(of(UsageHeld, s), over)), s, over)
}

// measured leaves out services of which the utilization is not known for more than a
// hundredth of the time.
func measured(expr string, s Selector, over time.Duration) string {
	return "((" + expr + ") unless" + OfServices.on() + "(" + OfServices.rate(of(UsageUnmeasured, s), over) + " > 0.01 * " + OfServices.rate(of(UsageHeld, s), over) + "))"
}

// whole leaves out services of which a part is held and has no series of the metric: a
// model without a price, a board without energy.
func whole(expr, metric string, s Selector, over time.Duration) string {
	return "((" + expr + ") unless" + OfServices.on() + "(" + ofRows.rate(of(UsageHeld, s), over) + " > 0 unless" + ofRows.on() + of(metric, s) + "))"
}

// spend is Spend of services with a price of everything that they hold, which had one
// when the time began.
func (w Whole) spend(b Basis) string {
	return whole(Spend(b, w.Where, w.Over)+" and"+OfServices.on()+before(of(UsageCost, w.Where), w.Over), UsageCost, w.Where, w.Over)
}

// The tokens of services per second, with every engine's page read from when the time
// began on.
func (w Whole) tokens(kind string) string {
	series := w.of(InferenceTokens, Is(TokenType, kind))
	return w.able(OfServices.rate(series, w.Over)+" and"+OfServices.on()+before(series, w.Over), series)
}

// computed are prompt tokens without those that were found in a prefix cache. Some engines
// count the cache in GPU memory in blocks, so its part of the prompts is what is looked up and
// found, in whichever unit: an engine that does not count both has no such part. Caches
// elsewhere are counted in tokens.
func (w Whole) computed() string {
	engines := append(OfPods[:len(OfPods):len(OfPods)], Engine)
	rate := func(metric string, s ...Selector) string { return engines.rate(w.of(metric, s...), w.Over) }
	hits, lookups := rate(InferenceHits, onDevice), rate(InferenceLookups, onDevice)
	input := rate(InferenceTokens, Is(TokenType, "input"))
	elsewhere := w.rate(InferenceHits, Selector(CacheTier+`!="device"`))
	missed := "sum" + OfServices.by() + "(" + input + " * (1 - " + quotient(hits, lookups) + ") or " + input + ")"
	return "((" + missed + " - " + elsewhere + " or " + missed + ") and" + OfServices.on() + "(" + w.tokens("input") + ")" +
		" unless" + OfServices.on() + "(" + hits + " > 0 unless " + lookups + " > 0))"
}

// phase is the part of the engines' time in prefill and decode that one of them takes.
func (w Whole) phase(of string) string {
	time := func(histogram string) string { return w.rate(histogram + "_sum") }
	return w.able(quotient(time(of), "("+time(inferencePrefill)+" + "+time(inferenceDecode)+")"),
		w.of(inferencePrefill+"_count"), w.of(inferenceDecode+"_count"))
}

// each is a cost of a million tokens: a part of what services cost, by tokens.
func (w Whole) each(b Basis, part, tokens string) string {
	return EveryPage("1e6 * "+w.spend(b)+" *"+OfServices.on()+"group_left () ("+part+" / ("+tokens+" > 0))", w.all())
}

// CostPerToken asks what a million tokens cost, prompts and generated ones alike. There is
// none without tokens, where the page of an engine cannot be read, or where a part of what
// the service holds has no price.
func (w Whole) CostPerToken(b Basis) string {
	both := "(" + w.tokens("input") + " + " + w.tokens("output") + ")"
	return EveryPage("1e6 * "+w.spend(b)+" /"+OfServices.on()+"group_left () ("+both+" > 0)", w.all())
}

// CostPerInput and CostPerOutput divide the cost by the engines' time in prefill and decode:
// c_in × computed prompt tokens + c_out × generated tokens is the cost again. Where an
// engine does not report these times there is neither, since no ratio is assumed.
func (w Whole) CostPerInput(b Basis) string {
	return w.each(b, w.phase(inferencePrefill), w.computed())
}
func (w Whole) CostPerOutput(b Basis) string {
	return w.each(b, w.phase(inferenceDecode), w.tokens("output"))
}

// TokensPerJouleHeld asks how many tokens services generate per joule of what they hold,
// which includes shares of boards; those are estimates.
func (w Whole) TokensPerJouleHeld() string {
	energy := OfServices.rate(of(UsageEnergy, w.Where), w.Over) + " and" + OfServices.on() + before(of(UsageEnergy, w.Where), w.Over)
	return EveryPage(quotient(w.tokens("output"), whole(energy, UsageEnergy, w.Where, w.Over)), w.all())
}

// BudgetsUsed asks how much of each budget is used, at most one sample each.
func BudgetsUsed(s Selector) string {
	return "max" + by(Budget, BudgetKind) + "(" + of(BudgetUsed, s) + ")"
}

// BudgetLimits asks what each budget allows, of money or in seconds, a sample for each
// source that reports it.
func BudgetLimits(s Selector) string {
	return of(BudgetLimitCost, s) + " or " + of(BudgetLimitTime, s)
}

// CapacityStates are the states of a board, the held one first.
var CapacityStates = []string{"held", "free", "stranded", "unavailable", "unknown"}

// UnknownRatio asks for the part of the time of boards of which it is not known what
// became of it, by labels, where the kubelets report who holds what: elsewhere a device
// without an owner is always unknown.
func UnknownRatio(over string, labels ...string) string {
	time := func(s ...Selector) string {
		return "sum" + by(labels...) + "(increase(" + of(CapacityTime, s...) + "[" + over + "]))"
	}
	return "(" + quotient(time(Is(CapacityState, "unknown")), time()) + " and on (" + Cluster + ") " + Allocation + ")"
}
