// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"

import (
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// nim is NVIDIA NIM for language models: vLLM's families without a prefix, and in newer
// images under vLLM's beside them or instead.
var nim = &Engine{
	Name:     "nim",
	Title:    "NVIDIA NIM",
	Prefixes: []string{"vllm:", ""},
	Hides:    "vllm",
	Model:    vllm.Model,
	Rank:     vllm.Rank,
	Rows: slices.Concat(vllmRows, []Row{
		{Metric: &names.InferenceRequestsLimit, From: []string{"num_request_max"}},
		{
			Metric: &names.InferenceRequestsFinished, From: []string{"request_finish", "request_success"},
			Dimensions: reasons("finished_reason", names.OutcomeSuccess), Note: "the second counts the same requests again",
		},
		{Metric: &names.InferenceRequestsFinished, Attributes: failed, From: []string{"request_failure"}},
	}),
	Passed: vllmPassed,
	Cannot: map[*names.Metric]string{
		&names.InferenceTimePerToken:  vllm.Cannot[&names.InferenceTimePerToken],
		&names.InferenceBatchSize:     vllm.Cannot[&names.InferenceBatchSize],
		&names.InferenceExecutions:    vllm.Cannot[&names.InferenceExecutions],
		&names.InferenceInferences:    vllm.Cannot[&names.InferenceInferences],
		&names.InferenceModelLoadTime: vllm.Cannot[&names.InferenceModelLoadTime],
	},
}
