// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"

import "github.com/otelcol-gpu/otelcol-gpu/internal/names"

// engines are all that are known. Where the families of a page could be those of
// several, the first counts.
var engines = []*Engine{
	vllm,
	vllmRouter,
	sglang,
	nim,
	trtllm,
	lmdeploy,
	tgi,
	triton,
	llamacpp,
	dynamo,
	llmd,
}

// Engines lists all engines. What it returns must not be changed.
func Engines() []*Engine { return engines }

// ByName finds an engine by the value of inference.engine.
func ByName(name string) (*Engine, bool) {
	for _, e := range engines {
		if e.Name == name {
			return e, true
		}
	}
	return nil, false
}

// Attributes that many rows have.
var (
	running   = []Attribute{{names.InferenceState, "running"}}
	waiting   = []Attribute{{names.InferenceState, "waiting"}}
	succeeded = []Attribute{{names.InferenceOutcome, names.OutcomeSuccess}}
	input     = []Attribute{{names.InferenceTokenType, "input"}}
	output    = []Attribute{{names.InferenceTokenType, "output"}}
	cached    = []Attribute{{names.InferenceTokenType, "cached"}}
	device    = []Attribute{{names.InferenceCacheTier, "device"}}

	swapped     = []Attribute{{names.InferenceState, "swapped"}}
	paused      = []Attribute{{names.InferenceState, "paused"}}
	cancelled   = []Attribute{{names.InferenceOutcome, names.OutcomeCancelled}}
	failed      = []Attribute{{names.InferenceOutcome, names.OutcomeError}}
	host        = []Attribute{{names.InferenceCacheTier, "host"}}
	external    = []Attribute{{names.InferenceCacheTier, "external"}}
	loraRunning = []Attribute{{names.InferenceLoraState, "running"}}
	loraWaiting = []Attribute{{names.InferenceLoraState, "waiting"}}
	loraLimit   = []Attribute{{names.InferenceLoraState, "limit"}}
)

// reasons is the label with the engine's word for the end of a request. A word of
// unknown meaning has this outcome.
func reasons(label, unknown string) []Dimension {
	return []Dimension{{Label: label, Attribute: names.InferenceFinish, Outcome: unknown}}
}

// outcomes is what the engines' words for the end of a request mean.
var outcomes = map[string]string{
	"stop": names.OutcomeSuccess, "eos_token": names.OutcomeSuccess, "stop_sequence": names.OutcomeSuccess,
	"eos": names.OutcomeSuccess, "length": names.OutcomeSuccess, "success": names.OutcomeSuccess,

	"abort": names.OutcomeCancelled, "cancelled": names.OutcomeCancelled, "CANCELED": names.OutcomeCancelled,

	"error": names.OutcomeError, "BACKEND": names.OutcomeError, "OTHER": names.OutcomeError,
	"generation": names.OutcomeError, "incomplete": names.OutcomeError, "internal": names.OutcomeError,

	"REJECTED": names.OutcomeRejected, "overloaded": names.OutcomeRejected, "overload": names.OutcomeRejected,
	"validation": names.OutcomeRejected, "not_found": names.OutcomeRejected,

	// LMDeploy's.
	"ResponseType.SUCCESS": names.OutcomeSuccess, "ResponseType.FINISH": names.OutcomeSuccess,
	"ResponseType.CANCEL": names.OutcomeCancelled, "ResponseType.INPUT_LENGTH_ERROR": names.OutcomeRejected,

	// Codes of HTTP: not valid, not found, too many.
	"400": names.OutcomeRejected, "404": names.OutcomeRejected, "422": names.OutcomeRejected, "429": names.OutcomeRejected,

	// Codes of the endpoint picker.
	"Canceled": names.OutcomeCancelled, "BadRequest": names.OutcomeRejected, "NotFound": names.OutcomeRejected,
	"ResourceExhausted": names.OutcomeRejected, "InferencePoolResourceExhausted": names.OutcomeRejected,
}

// Outcome is how a request ended, by the engine's word for it; unknown for a word that is
// not in the table.
func Outcome(word, unknown string) string {
	if o, ok := outcomes[word]; ok {
		return o
	}
	return unknown
}

// Bounds that OpenTelemetry advises for the metrics of generative AI, in seconds
// (docs/gen-ai/gen-ai-metrics.md of the semantic conventions, v1.41.1); and those of
// numbers of tokens and requests that most engines have.
var (
	durations = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	first     = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	between   = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5}
	tokens    = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000}
	batches   = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}
)

var advised = map[*names.Metric][]float64{
	&names.GenAITimeToFirstToken: first, &names.InferenceGatewayTimeToFirstToken: first,
	&names.GenAITimePerOutputToken: between, &names.InferenceGatewayTimePerOutputToken: between,
	&names.InferenceInterTokenLatency: between, &names.InferenceGatewayInterTokenLatency: between,
	&names.InferenceTimePerToken: between, &names.InferenceGatewayTimePerToken: between,
	&names.InferenceRequestTokens: tokens, &names.InferenceGatewayRequestTokens: tokens, &names.InferenceIterationTokens: tokens,
	&names.InferenceBatchSize: batches,
}

// Advised are the bounds near which those of a row stay if there are too many: what
// OpenTelemetry advises for the metric, or for one that is measured alike.
func Advised(r *Row) []float64 {
	switch list, ok := advised[r.Metric]; {
	case r.Advised != nil:
		return r.Advised
	case ok:
		return list
	case r.Metric.Unit == "s":
		return durations
	default:
		return nil
	}
}
