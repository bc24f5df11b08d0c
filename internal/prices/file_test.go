// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package prices

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	rules, err := Read(strings.NewReader("- match: {hw.model: \"*H100*\"}\n  instance_hour: 23.60\n  gpus: 8\n  valid_from: 2026-05-01\n- {match: {hw.model: \"*\"}, gpu_hour: \"1\"}\n"))
	require.NoError(t, err)
	assert.Equal(t, []RuleConfig{
		{Match: map[string]string{MatchModel: "*H100*"}, InstanceHour: "23.60", GPUs: 8, ValidFrom: "2026-05-01"},
		{Match: map[string]string{MatchModel: "*"}, GPUHour: "1"},
	}, rules, "amounts are what is written")
	_, err = New("USD", rules)
	require.NoError(t, err)
}

// What is wrong is named by its line, and nothing of a price list is in an error.
func TestReadShowsNothing(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "it has no rules",
		"[]":                                     "it has no rules",
		"prices: 12345":                          "line 1: it is no list",
		"- {gpu_hour: \"12345\"}\n- {12345}":     "line 2: it is no list",
		"- {gpu_hour: \"12345\", gpus: 12345.5}": "line 1: it is no list",
		"- {gpu_hour: [12345]}":                  "line 1: it is no list",
		"- {gpu_hour: 12345":                     "line 1: it is no list",
		"- {gpu_hour: \"1\"}\n---\n- 12345":      "more than one document",
		"\x0012345":                              "its YAML: it is no list",
	} {
		_, err := Read(strings.NewReader(text))
		require.ErrorContains(t, err, want, text)
		assert.NotContains(t, err.Error(), "12345")
	}
	_, err := Read(strings.NewReader("- 12345"))
	for _, field := range reflect.VisibleFields(reflect.TypeFor[RuleConfig]()) {
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		assert.ErrorContains(t, err, key)
	}
}

func TestRuleError(t *testing.T) {
	_, err := New("USD", []RuleConfig{{Match: map[string]string{MatchModel: "*"}, GPUHour: "1"}, {Match: map[string]string{MatchProfile: "*"}, GPUHour: "-1"}})
	var mistake *RuleError
	require.True(t, errors.As(err, &mistake))
	assert.Equal(t, 1, mistake.Rule)
	assert.Equal(t, "gpu_hour", mistake.Key)
	assert.ErrorContains(t, err, `prices::1::gpu_hour: "-1"`)
}
