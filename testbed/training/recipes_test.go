// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package training tests what docs/reference/training.md has training jobs do.
package training

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recipes are the blocks of Python in the reference, in their order.
func recipes(t *testing.T) (code []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/training.md")
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?s)```python\n(.*?)```").FindAllSubmatch(text, -1) {
		code = append(code, string(block[1]))
	}
	require.GreaterOrEqual(t, len(code), 5)
	return code
}

// python runs Python, where it is.
func python(t *testing.T, input string, arguments ...string) []byte {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	cmd := exec.CommandContext(t.Context(), path, append([]string{"-B"}, arguments...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH=testdata")
	cmd.Stdin = strings.NewReader(input)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	require.NoError(t, err, complaint.String())
	return out
}

func TestRecipesAreCode(t *testing.T) {
	for _, code := range recipes(t) {
		python(t, code, "-c", "import sys; compile(sys.stdin.read(), 'recipe', 'exec')")
	}
}

// The recipe sends what the reference says: a duration between two steps, tokens of every step, and
// no loss that is not finite.
func TestRecipe(t *testing.T) {
	var points [][]any
	require.NoError(t, json.Unmarshal(python(t, recipes(t)[0], "testdata/drive.py"), &points))
	of := func(name string) (values []any, unit string) {
		for _, p := range points {
			if p[0] == name {
				values, unit = append(values, p[2]), p[1].(string)
			}
		}
		return values, unit
	}
	for name, want := range map[string]struct {
		unit   string
		values []any
	}{
		"training.tokens":                    {"{token}", []any{1048576., 1048576., 1048576.}},
		"training.step":                      {"{step}", []any{7., 8., 9.}},
		"training.loss":                      {"", []any{3.5, 3.25}},
		"training.nonfinite":                 {"{value}", []any{1.}},
		"training.model.parameters":          {"{parameter}", []any{7504924672.}},
		"training.model.layers":              {"{layer}", []any{32.}},
		"training.model.attention.dimension": {"{element}", []any{8192.}},
		"training.model.sequence.length":     {"{token}", []any{8192.}},
	} {
		values, unit := of(name)
		assert.Equal(t, want.values, values, name)
		assert.Equal(t, want.unit, unit, name)
	}
	durations, unit := of("training.step.duration")
	assert.Len(t, durations, 2)
	assert.Equal(t, "s", unit)
	i := slices.IndexFunc(points, func(p []any) bool { return p[0] == "training.nonfinite" })
	assert.Equal(t, map[string]any{"training.value": "loss"}, points[i][3])
}
