// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package age

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The age of data in a response, as of noon, where 90 s are the limit.
func TestJudge(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		at    time.Time
		age   float64
		stale bool
		fresh bool
	}{
		"nothing is stored":          {},
		"now":                        {at: noon, fresh: true},
		"a clock that is ahead":      {at: noon.Add(time.Hour), fresh: true},
		"of another zone":            {at: noon.Add(-time.Minute).In(time.FixedZone("", 3600)), age: 60, fresh: true},
		"at the limit":               {at: noon.Add(-90 * time.Second), age: 90, fresh: true},
		"beyond it":                  {at: noon.Add(-91 * time.Second), age: 91, stale: true},
		"finer than the store keeps": {at: noon.Add(-time.Second - time.Microsecond), age: 1.001, fresh: true},
	} {
		t.Run(name, func(t *testing.T) {
			j := NewJudge(noon, 90*time.Second, nil)
			assert.Equal(t, test.fresh, j.Fresh(test.at))
			got := j.Reported(test.at)
			assert.Equal(t, test.stale, got.Stale)
			whole := j.Freshness()
			assert.Equal(t, noon, whole.EvaluatedAt)
			assert.InDelta(t, 90, whole.StaleAfter, 0)
			assert.Equal(t, got, whole.Told, "of the whole response, that is all")
			if test.at.IsZero() {
				assert.Nil(t, got.DataTime)
				assert.Nil(t, got.DataAge)
				return
			}
			require.NotNil(t, got.DataTime)
			assert.Equal(t, test.at.UTC().Truncate(time.Millisecond), *got.DataTime)
			assert.InDelta(t, test.age, *got.DataAge, 1e-9)
		})
	}
}

// A response is as new as the newest that went into it, unless one sample alone counts.
func TestFreshnessIsThatOfTheNewest(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	j := NewJudge(noon, time.Minute, nil)
	j.Reported(noon.Add(-20 * time.Second))
	j.Reported(noon.Add(-50 * time.Second))
	j.Reported(time.Time{})
	require.InDelta(t, 20, *j.Freshness().DataAge, 0)
	j.Used(noon.Add(-10 * time.Second))
	require.InDelta(t, 10, *j.Freshness().DataAge, 0)
	j.OnlyUsed(noon.Add(-2 * time.Minute))
	require.True(t, j.Freshness().Stale)
}
