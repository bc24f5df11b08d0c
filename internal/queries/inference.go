// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package queries // import "github.com/otelcol-gpu/otelcol-gpu/internal/queries"

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// InferenceWindow is the time over which rates and quantiles of requests are taken, as
// by the recording rules.
const InferenceWindow = 5 * time.Minute

// FromEngines selects what an inference engine reports of itself: instrumented clients
// use some of the same names.
const FromEngines = Selector(Engine + `!=""`)

// withBuckets selects histograms that have more than a count and a sum.
const withBuckets = Selector(Bounds + `!="none"`)

// Groups are the labels by which a figure of inference servers is grouped.
type Groups []string

// OfServices is a figure of every service, OfPods one of every pod.
var (
	OfServices = Groups{Cluster, Namespace, Service, SlurmCluster, Account}
	OfPods     = append(OfServices[:len(OfServices):len(OfServices)], Pod)
)

func (g Groups) by(more ...string) string { return by(slices.Concat(g, more)...) }
func (g Groups) on(more ...string) string {
	return " on (" + strings.Join(slices.Concat(g, more), ",") + ") "
}

// InferenceEngines asks which engines services have.
func InferenceEngines(s Selector) string {
	return "count" + by(Cluster, Namespace, Service, Engine) + "(" + anyOf([]string{InferenceUp, InferenceRequests, InferenceTokens}, And(FromEngines, s)) + ")"
}

// InferenceServers asks how many inference servers services have, InferenceServersUp how
// many of them answered the last scrape.
func InferenceServers(s Selector) string {
	return "count" + serviceIdentity + "(" + of(InferenceUp, FromEngines, s) + ")"
}
func InferenceServersUp(s Selector) string {
	return "sum" + serviceIdentity + "(" + of(InferenceUp, FromEngines, s) + ")"
}

// InferenceFigure is a figure that inference servers give: of which series of the
// vocabulary it is made, so that it is known which engines cannot give it.
type InferenceFigure struct {
	// Name is the figure's in the console's API.
	Name   string
	Metric *names.Metric
	// Attribute has one of Values on the series that the figure is made of; "" if that
	// is every series of the metric.
	Attribute string
	Values    []string
	// Lacks is what is missing where an engine has the metric without those.
	Lacks string
	// Quantile marks figures that need the buckets of a histogram.
	Quantile bool
	// Service asks for the figure of services, Pods for that of pods over a time; nil
	// where pods have none.
	Service func(Whole) string
	Pods    func(s Selector, over time.Duration) string
}

// InferenceFigures are the figures of inference servers.
var InferenceFigures = []InferenceFigure{
	p95("time_to_first_token", &names.GenAITimeToFirstToken),
	p95("time_per_output_token", &names.GenAITimePerOutputToken),
	p95("inter_token_latency", &names.InferenceInterTokenLatency),
	p95("request_duration", &names.GenAIRequestDuration),
	{
		Name: "output_tokens", Metric: &names.InferenceTokens, Attribute: names.InferenceTokenType, Values: []string{"output"}, Lacks: "it counts no output tokens",
		Service: Whole.OutputTokens,
		Pods: func(s Selector, over time.Duration) string {
			return Whole{Where: s, Over: over}.read(outputTokens(s), func(over time.Duration) string { return OutputTokens(s, OfPods, over) })
		},
	},
	requests("waiting", "it does not report how many requests wait"),
	requests("running", "it does not report how many requests run"),
	{
		Name: "kv_cache", Metric: &names.InferenceKVCacheUtilization, Attribute: names.InferenceCacheTier, Values: []string{"device"}, Lacks: "it does not report the KV cache in GPU memory",
		Service: func(w Whole) string { return w.KVCache("max") },
	},
	{
		Name: "error_ratio", Metric: &names.InferenceRequestsFinished, Attribute: names.InferenceOutcome, Values: failed, Lacks: "it does not count failed requests",
		Service: Whole.ErrorRatio,
	},
	{
		Name: "tokens_per_joule", Metric: &names.InferenceTokens, Attribute: names.InferenceTokenType, Values: []string{"output"}, Lacks: "it counts no output tokens",
		Service: Whole.TokensPerJoule,
	},
}

// InferenceCannot is why an engine cannot give a figure; empty if it can, or is not known.
func InferenceCannot(engine, figure string) string { return inferenceCannot[engine][figure] }

// InferenceEnginesWithout are the engines that cannot give a figure, sorted.
func InferenceEnginesWithout(figure string) (engines []string) {
	for _, engine := range slices.Sorted(maps.Keys(inferenceCannot)) {
		if InferenceCannot(engine, figure) != "" {
			engines = append(engines, engine)
		}
	}
	return engines
}

// failed are the outcomes of requests that failed. A cancelled one has neither failed
// nor succeeded.
var failed = []string{names.OutcomeError, names.OutcomeRejected}

func p95(name string, m *names.Metric) InferenceFigure {
	return InferenceFigure{
		Name: name, Metric: m, Quantile: true,
		Service: func(w Whole) string { return w.Quantile(0.95, m.Prometheus()) },
		Pods: func(s Selector, over time.Duration) string {
			return InferenceQuantile(0.95, m.Prometheus(), s, OfPods, over)
		},
	}
}

func requests(state, lacks string) InferenceFigure {
	return InferenceFigure{
		Name: state, Metric: &names.InferenceRequests, Attribute: names.InferenceState, Values: []string{state}, Lacks: lacks,
		Service: func(w Whole) string { return w.RequestsIn(state) },
	}
}

// InferenceQuantile asks for a quantile of a histogram of inference servers. Buckets are
// added up where their bounds are the same alone; of several sets of bounds, the highest
// quantile is taken, which that of all requests does not exceed. A set with less than one
// in a hundred requests is left out, and so are histograms without buckets.
func InferenceQuantile(q float64, histogram string, s Selector, g Groups, over time.Duration) string {
	counted := func(suffix string) string {
		return rate(of(histogram+suffix, FromEngines, withBuckets, s), over)
	}
	return "max" + g.by() + "(histogram_quantile(" + number(q) + ", sum" + g.by(Bounds, "le") + "(" + counted("_bucket") + ")) and" + g.on(Bounds) +
		"(sum" + g.by(Bounds) + "(" + counted("_count") + ") >" + g.on() + "group_left () (0.01 * sum" + g.by() + "(" + counted("_count") + "))))"
}

// OutputTokens asks how many tokens are generated in a second, InputTokens how many the
// prompts have.
func OutputTokens(s Selector, g Groups, over time.Duration) string {
	return g.rate(outputTokens(s), over)
}
func InputTokens(s Selector, g Groups, over time.Duration) string {
	return g.rate(of(InferenceTokens, FromEngines, Is(TokenType, "input"), s), over)
}

func outputTokens(s ...Selector) string {
	return of(InferenceTokens, FromEngines, Is(TokenType, "output"), And(s...))
}

// ErrorRatio asks which part of the requests failed, of those that were not cancelled.
// There is none where no engine counts failed ones. FailedRequests and CountedRequests
// ask for both parts, in requests a second.
func ErrorRatio(s Selector, g Groups, over time.Duration) string {
	return quotient(FailedRequests(s, g, over), CountedRequests(s, g, over))
}
func FailedRequests(s Selector, g Groups, over time.Duration) string {
	return g.rate(of(InferenceFinished, FromEngines, OneOf(Outcome, failed...), s), over)
}
func CountedRequests(s Selector, g Groups, over time.Duration) string {
	return g.rate(of(InferenceFinished, FromEngines, Selector(Outcome+`!="`+names.OutcomeCancelled+`"`), s), over)
}

// TokensPerJoule asks how many tokens services generate per joule of their devices:
// by the devices' counters of energy, and by the mean power of those without one. There is
// none where pods, the page of an engine, or the power of a device are missing, now or
// when the time began.
func TokensPerJoule(s Selector, over time.Duration) string {
	device, owned := OfServices.by(Device), Selector(Service+`!=""`)
	powered := "max" + device + "(" + of(Power, owned, s) + ")"
	watts := "sum" + serviceIdentity + "(max" + device + "(" + rate(of(Energy, owned, s), over) + ") or max" + device + "(avg_over_time(" + of(Power, owned, s) + "[" + window(over) + "])))"
	unless := func(expr string) string { return " unless" + OfServices.on() + "(" + expr + ")" }
	expr := EveryPage(quotient(OutputTokens(s, OfServices, over), watts), s) + unless(of(ServicePartial, s)+" == 1") +
		" and" + OfServices.on() + "(count" + serviceIdentity + "(" + powered + ") == " + devices(s) + ")" +
		unless(of(Allocation, owned, s)+" > 0 unless"+OfServices.on(Device)+powered)
	if over != ForChart {
		// Of whom a device was then does not matter: it may be new to the service.
		expr += unless(powered + " unless on (" + Cluster + "," + Device + ") " + before(of(Power), over))
	}
	return expr
}

// devices asks how many devices services hold, with telemetry or without. What is missing
// is not known for a while after a start.
func devices(s Selector) string {
	in := func(state string) string {
		return "max" + serviceIdentity + "(" + of(ServiceDevices, Is(StateOfDevice, state), s) + ")"
	}
	return "(" + in("reporting") + " + " + in("missing") + ")"
}

// before selects series that had a sample when a time began, or shortly before.
func before(series string, over time.Duration) string {
	return "present_over_time(" + series + "[" + window(max(2*time.Minute, over*2/5)) + "] offset " + window(over) + ")"
}

// ForChart stands for the time that one value of a chart of Grafana is about.
const ForChart time.Duration = -1

func window(over time.Duration) string {
	if over == ForChart {
		return "$__rate_interval"
	}
	return model.Duration(over).String()
}

func rate(series string, over time.Duration) string {
	return "rate(" + series + "[" + window(over) + "])"
}

// gauge is the last value of a series; in a chart no older than what the value is about.
func gauge(series string, over time.Duration) string {
	if over == ForChart {
		return "last_over_time(" + series + "[" + window(over) + "])"
	}
	return series
}

func (g Groups) rate(series string, over time.Duration) string {
	return "sum" + g.by() + "(" + rate(series, over) + ")"
}

// quotient leaves out what would be divided by nothing.
func quotient(above, below string) string { return above + " / (" + below + " > 0)" }
