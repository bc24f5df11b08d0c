// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package prices

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const exampleList = "../../docs/examples/prices/list-prices.yaml"

// The example is a list for gpu_cost, and every price of it has a day and a source.
func TestExampleList(t *testing.T) {
	list, err := os.Open(exampleList)
	require.NoError(t, err)
	defer list.Close()
	rules, err := Read(list)
	require.NoError(t, err)
	book, err := New("USD", rules)
	require.NoError(t, err)
	for i, r := range rules {
		assert.NotEmpty(t, r.Source, i)
		day, err := time.Parse(time.DateOnly, r.ValidFrom)
		require.NoError(t, err, i)
		assert.True(t, day.Before(time.Now()), "rule %d is of a day to come", i)
		assert.NotEmpty(t, r.Match[MatchHostType], "a price list is by machine")
	}
	for _, tt := range []struct {
		facts Facts
		want  string
	}{
		{Facts{HostType: "gpu-h100-sxm_8gpu-128vcpu-1600gb", Region: "eu-north1", Boards: 8}, "2.95"},
		{Facts{HostType: "gpu-h100-sxm_8gpu-128vcpu-1600gb", Region: "eu-north1", Boards: 8, Capacity: "spot"}, "1.25"},
		{Facts{HostType: "p5.48xlarge", Region: "us-east-1", Boards: 8, Capacity: "on_demand"}, "6.88"},
	} {
		p, why := book.At(&tt.facts, day("2026-07-01"))
		require.Equal(t, Priced, why, tt.facts)
		assert.Equal(t, tt.want, p.Rate.Money(3_600_000).String())
	}
	_, why := book.At(&Facts{HostType: "p5.48xlarge", Region: "us-east-1", Boards: 8, Capacity: "spot"}, day("2026-07-01"))
	assert.Equal(t, NoRule, why, "a spot machine has no price of another kind")
	assert.NotEmpty(t, book.Stale(day("2027-06-01")), "lists grow old")
}

// Prices are the user's: no configuration that is shipped loads the example.
func TestExampleListIsNotLoaded(t *testing.T) {
	for _, dir := range []string{"../../config", "../../charts"} {
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			assert.NotContains(t, string(text), filepath.Base(exampleList), path)
			return err
		}))
	}
}
