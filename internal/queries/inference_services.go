// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package queries // import "github.com/otelcol-gpu/otelcol-gpu/internal/queries"

import (
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Metrics of inference servers that the dashboards and rules read beside those of names.go.
var (
	InferenceQueueTime   = names.InferenceQueueTime.Prometheus()
	InferenceBatchSize   = names.InferenceBatchSize.Prometheus()
	InferenceLimit       = names.InferenceRequestsLimit.Prometheus()
	InferencePreemptions = names.InferencePreemptions.Prometheus()
	InferenceExecutions  = names.InferenceExecutions.Prometheus()
	InferenceInferences  = names.InferenceInferences.Prometheus()
	InferenceHits        = names.InferencePrefixCacheHits.Prometheus()
	InferenceLookups     = names.InferencePrefixCacheQueries.Prometheus()
	InferenceDrafted     = names.InferenceSpeculationDraftTokens.Prometheus()
	InferenceAccepted    = names.InferenceSpeculationAcceptedTokens.Prometheus()

	GatewayDuration   = names.InferenceGatewayRequestDuration.Prometheus()
	GatewayFirstToken = names.InferenceGatewayTimeToFirstToken.Prometheus()
	GatewayRequests   = names.InferenceGatewayRequests.Prometheus()
	GatewayFinished   = names.InferenceGatewayRequestsFinished.Prometheus()
	GatewayReady      = names.InferenceGatewayEndpointsReady.Prometheus()
)

// Labels.
const (
	EngineRank   = "inference_engine_rank"
	FinishReason = "inference_finish_reason"
)

// RequestsIn asks how many requests are in a state: running, waiting.
func RequestsIn(state string, s Selector, g Groups, over time.Duration) string {
	return "sum" + g.by() + "(" + gauge(of(InferenceRequests, FromEngines, Is(RequestState, state), s), over) + ")"
}

// FinishedBy asks for requests that ended in a second, by labels.
func FinishedBy(s Selector, g Groups, over time.Duration, labels ...string) string {
	return append(g[:len(g):len(g)], labels...).rate(of(InferenceFinished, FromEngines, s), over)
}

// KVCache asks for the part of the KV caches that is in use: the aggregation, max or avg,
// of engines. Each is in it once, however many models it has.
func KVCache(aggregation string, s Selector, g Groups, over time.Duration) string {
	series := gauge(of(InferenceKVCache, FromEngines, onDevice, s), over)
	if aggregation != "max" {
		series = "max" + OfPods.by(EngineRank) + "(" + series + ")"
	}
	return aggregation + g.by() + "(" + series + ")"
}

// Demand asks for the requests that run or wait.
func Demand(s Selector, g Groups, over time.Duration) string {
	return "sum" + g.by() + "(" + gauge(of(InferenceRequests, FromEngines, OneOf(RequestState, "running", "waiting"), s), over) + ")"
}

// InferenceMean asks for the mean of a histogram, with or without buckets.
func InferenceMean(histogram string, s Selector, g Groups, over time.Duration) string {
	return quotient(g.rate(of(histogram+"_sum", FromEngines, s), over), g.rate(of(histogram+"_count", FromEngines, s), over))
}

// onDevice is the cache in the memory of GPUs.
var onDevice = Is(CacheTier, "device")

// Whole asks for figures of services of which every part is known. They are absent where
// pods of a service are missing (ServicePartial), where a quarter or more of its engines'
// pages could not be read, and where one of its engines does not have the figure.
type Whole struct {
	// Where selects services, Engines some of their engines.
	Where, Engines Selector
	// Over is for how long counters are read.
	Over time.Duration
	// Briefly, unless 0, stands in for Over where engines have not been read for as long:
	// tokens of before are not known, and a rate would take them for none.
	Briefly time.Duration
}

func (w Whole) all() Selector { return And(w.Engines, w.Where) }

func (w Whole) of(metric string, s ...Selector) string {
	return of(metric, FromEngines, And(s...), w.all())
}

func (w Whole) rate(metric string, s ...Selector) string {
	return OfServices.rate(w.of(metric, s...), w.Over)
}

// able leaves out services of which an engine has none of the series, unless its pod
// has them by another engine.
func (w Whole) able(expr string, series ...string) string {
	expr = "((" + expr + ")"
	for _, s := range series {
		expr += " unless" + OfServices.on() + "(group" + OfPods.by(Engine) + "(" + w.of(InferenceUp) + ")" +
			" unless" + OfServices.on(Engine) + s + " unless" + OfPods.on() + s + ")"
	}
	return expr + ")"
}

// known leaves out services of which pods or pages are missing.
func (w Whole) known(expr string) string {
	return "((" + expr + ") unless" + OfServices.on() + "(" + of(ServicePartial, w.Where) + " == 1)" +
		" unless" + OfServices.on() + "(avg" + OfServices.by() + "(" + w.of(InferenceUp) + ") <= 0.75))"
}

// EveryPage leaves services out of which the page of any engine could not be read.
func EveryPage(expr string, s Selector) string {
	return "((" + expr + ") unless" + OfServices.on() + "(" + of(InferenceUp, FromEngines, s) + " == 0))"
}

// OutputTokens, InputTokens and the methods named like functions of this package ask
// for the same.
func (w Whole) OutputTokens() string { return w.known(w.outputTokens()) }
func (w Whole) InputTokens() string {
	input := w.of(InferenceTokens, Is(TokenType, "input"))
	return w.known(w.able(w.read(input, func(over time.Duration) string { return InputTokens(w.all(), OfServices, over) }), input))
}

func (w Whole) outputTokens() string {
	output := outputTokens(w.all())
	return w.able(w.read(output, func(over time.Duration) string { return OutputTokens(w.all(), OfServices, over) }), output)
}

// TokensNewlyRead asks of which services tokens are read, and were not when the window
// began.
func TokensNewlyRead(s Selector) string {
	output := outputTokens(s)
	return "group" + serviceIdentity + "(" + output + ") unless" + OfServices.on() + before(output, InferenceWindow)
}

// read leaves out services of which no engine had the series when the time of the
// expression began. A pod that came since began with none.
func (w Whole) read(series string, expr func(over time.Duration) string) string {
	if w.Over == ForChart {
		return expr(w.Over)
	}
	whole := func(over time.Duration) string {
		return "(" + expr(over) + ") and" + OfServices.on() + before(series, over)
	}
	if w.Briefly == 0 {
		return whole(w.Over)
	}
	return whole(w.Over) + " or (" + whole(w.Briefly) + ")"
}

// Quantile asks for an upper bound of a quantile: that of InferenceQuantile.
func (w Whole) Quantile(q float64, histogram string) string {
	return w.known(w.able(InferenceQuantile(q, histogram, w.all(), OfServices, w.Over), w.of(histogram+"_count", withBuckets)))
}

func (w Whole) Mean(histogram string) string {
	return w.known(w.able(InferenceMean(histogram, w.all(), OfServices, w.Over), w.of(histogram+"_count")))
}

func (w Whole) ErrorRatio() string {
	return w.known(w.able(ErrorRatio(w.all(), OfServices, w.Over), w.of(InferenceFinished, OneOf(Outcome, failed...))))
}

func (w Whole) KVCache(aggregation string) string { return w.known(w.kvCache(aggregation)) }

func (w Whole) kvCache(aggregation string) string {
	return w.able(KVCache(aggregation, w.all(), OfServices, w.Over), w.of(InferenceKVCache, onDevice))
}

func (w Whole) RequestsIn(state string) string { return w.known(w.requestsIn(state)) }

func (w Whole) requestsIn(state string) string {
	return w.able(RequestsIn(state, w.all(), OfServices, w.Over), w.of(InferenceRequests, Is(RequestState, state)))
}

func (w Whole) Demand() string { return w.known(w.demand()) }

func (w Whole) demand() string {
	return w.able(Demand(w.all(), OfServices, w.Over),
		w.of(InferenceRequests, Is(RequestState, "running")), w.of(InferenceRequests, Is(RequestState, "waiting")))
}

// Saturation asks how full services are, from 0 to 1: the highest of the mean KV cache in
// use, of running requests among those that may run, and of waiting ones among all. What
// an engine of the service does not have is left out.
func (w Whole) Saturation() string {
	running, limit := gauge(w.of(InferenceRequests, Is(RequestState, "running")), w.Over), gauge(w.of(InferenceLimit), w.Over)
	pods := func(series string) string {
		return "count" + OfServices.by() + "(count" + OfPods.by() + "(" + series + "))"
	}
	slots := quotient("sum"+OfServices.by()+"("+running+")", "sum"+OfServices.by()+"("+limit+")") + " and " + pods(running) + " == " + pods(limit)
	queue := w.requestsIn("waiting") + " / clamp_min(" + w.demand() + ", 1)"
	var parts []string
	for _, part := range [][2]string{{"kv_cache", w.kvCache("avg")}, {"limit", w.able(slots, w.of(InferenceLimit))}, {"queue", queue}} {
		parts = append(parts, `label_replace(`+part[1]+`, "of", "`+part[0]+`", "", "")`)
	}
	return w.known("max" + OfServices.by() + "(" + strings.Join(parts, " or ") + ")")
}

// PrefixHits asks for the part of tokens that was in the prefix cache, Accepted for that
// of drafted tokens that speculation got right.
func (w Whole) PrefixHits() string {
	return w.known(w.able(quotient(w.rate(InferenceHits, onDevice), w.rate(InferenceLookups, onDevice)), w.of(InferenceHits, onDevice)))
}
func (w Whole) Accepted() string {
	return w.known(w.able(quotient(w.rate(InferenceAccepted), w.rate(InferenceDrafted)), w.of(InferenceAccepted)))
}

// Batch asks for the mean size of a batch, in requests.
func (w Whole) Batch() string {
	return w.known(w.able(quotient(w.rate(InferenceInferences), w.rate(InferenceExecutions)), w.of(InferenceExecutions)) + " or " +
		w.able(InferenceMean(InferenceBatchSize, w.all(), OfServices, w.Over), w.of(InferenceBatchSize+"_count")))
}

// TokensPerJoule and TokensPerDevice need every page of the service, since tokens of a
// missing one are not counted. Power and devices are those of all engines together.
func (w Whole) TokensPerJoule() string {
	output := outputTokens(w.Where)
	return w.able(w.read(output, func(over time.Duration) string { return TokensPerJoule(w.Where, over) }), output)
}

// TokensPerDevice takes the devices that services hold from an expression.
func (w Whole) TokensPerDevice(held string) string {
	return EveryPage(quotient(w.OutputTokens(), held), w.all())
}
