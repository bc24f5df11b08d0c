// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A bound is selected if it is not above the threshold, however it is written.
func TestNotAbove(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, threshold := range []float64{0.0001, 0.1, 0.15, 0.205, 1, 2, 2.5, 9.99, 10, 30, 60.25, 100, 120} {
		selected := regexp.MustCompile("^(?:" + notAbove(threshold) + ")$")
		check := func(text string) {
			t.Helper()
			v, err := strconv.ParseFloat(text, 64)
			require.NoError(t, err)
			assert.Equal(t, v <= threshold, selected.MatchString(text), "%s, %v", text, threshold)
		}
		for _, text := range []string{"0", "0.0", "1e-05", "2.5e-07", "0.0001", "0.001", "0.00015", "1", "1.0", "2", "2.0", "2.00", "2.50", "2.501", "9.990", "10", "10.0", "10.000001", "100", "100.0", "1e+06", "1000", "1e+10", "+Inf"} {
			check(text)
		}
		check(decimal(threshold))
		for range 2000 {
			v := random.ExpFloat64() * threshold
			check(strconv.FormatFloat(v, 'f', 1+random.IntN(5), 64))
			check(strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
}

func TestObjectivesAreChecked(t *testing.T) {
	const good = "time_to_first_token: {within: 2, share: 0.95}\ntime_per_output_token: {within: 0.1, share: 0.95}\nserved: {share: 0.99}\n"
	o, err := readObjectives([]byte(good))
	require.NoError(t, err)
	assert.Equal(t, objectives{objective{2, 0.95}, objective{0.1, 0.95}, objective{0, 0.99}}, o)
	for change, with := range map[string]string{
		"within: 2":    "within: 0",
		"within: 0.1":  "within: 0.0000001",
		"share: 0.99":  "share: 1",
		"share: 0.95}": "share: 0.93}", // a burn rate of 14.4 would need more than all requests
		"served: {":    "served: {within: 3, ",
		"served:":      "serve:",
	} {
		text := regexp.MustCompile(regexp.QuoteMeta(change)).ReplaceAllLiteralString(good, with)
		_, err := readObjectives([]byte(text))
		assert.Error(t, err, text)
	}
}
