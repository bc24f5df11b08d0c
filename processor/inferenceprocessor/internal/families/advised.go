// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"

import "github.com/otelcol-gpu/otelcol-gpu/internal/names"

// Bounds that OpenTelemetry advises for the metrics of generative AI, in seconds
// (docs/gen-ai/gen-ai-metrics.md of the semantic conventions, v1.41.1).
var (
	durations = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	first     = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	between   = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5}
)

var advised = map[*names.Metric][]float64{
	&names.GenAITimeToFirstToken: first, &names.InferenceGatewayTimeToFirstToken: first,
	&names.GenAITimePerOutputToken: between, &names.InferenceGatewayTimePerOutputToken: between,
	&names.InferenceInterTokenLatency: between, &names.InferenceGatewayInterTokenLatency: between,
	&names.InferenceTimePerToken: between, &names.InferenceGatewayTimePerToken: between,
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
