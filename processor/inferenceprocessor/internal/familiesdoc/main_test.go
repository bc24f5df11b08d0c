// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
)

// TestUpToDate fails when what is written is not what the table states.
func TestUpToDate(t *testing.T) {
	source, err := cannotSource()
	require.NoError(t, err)
	for path, want := range map[string]string{"../../families.md": markdown(), "../../../../internal/queries/generated_inference.go": string(source)} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.True(t, want == string(text), "%s is old: run go generate in processor/inferenceprocessor", path)
	}
}

func TestCannot(t *testing.T) {
	e := &families.Engine{
		Cannot: map[*names.Metric]string{&names.InferenceKVCacheUtilization: "no family of it"},
		Rows: []families.Row{
			{Metric: &names.GenAIRequestDuration, Rule: families.Mean},
			{Metric: &names.GenAITimeToFirstToken, Rule: families.Mean}, {Metric: &names.GenAITimeToFirstToken},
			{Metric: &names.InferenceRequests, Attributes: []families.Attribute{{Key: names.InferenceState, Value: "waiting"}}},
			{Metric: &names.InferenceTokens, Dimensions: []families.Dimension{{Attribute: names.InferenceTokenType, Words: map[string]string{"prompt": "input"}}}},
			{Metric: &names.InferenceRequestsFinished, Dimensions: []families.Dimension{{Attribute: names.InferenceFinish, Outcome: names.OutcomeSuccess}}},
		},
	}
	got := map[string]string{}
	for _, f := range queries.InferenceFigures {
		got[f.Name] = cannot(e, &f)
	}
	assert.Equal(t, "no family of it", got["kv_cache"])
	assert.Contains(t, got["request_duration"], "without buckets")
	assert.Empty(t, got["time_to_first_token"], "in one version it has buckets")
	assert.Empty(t, got["waiting"])
	assert.Equal(t, "it does not report how many requests run", got["running"])
	assert.Equal(t, "it counts no output tokens", got["output_tokens"], "a label has input tokens alone")
	assert.Empty(t, got["error_ratio"], "the outcome follows from a label")
}
