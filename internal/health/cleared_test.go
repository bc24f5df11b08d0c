// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseCleared(t *testing.T) {
	now := time.Date(2026, 1, 31, 15, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ value, want, err string }{
		{"", "", ""},
		{"2026-01-31T14:00:00Z", "2026-01-31T14:00:00Z", ""},
		{" 2026-01-31T15:00:00+01:00 ", "2026-01-31T14:00:00Z", ""},
		{"GPU-a=2026-01-31T14:00:00Z, 2026-01-30T00:00:00Z,", "GPU-a=2026-01-31T14:00:00Z 2026-01-30T00:00:00Z", ""},
		{"yesterday,GPU-a=2026-01-31T14:00:00Z", "GPU-a=2026-01-31T14:00:00Z", `"yesterday" is no time`},
		{"2026-01-31T15:00:01Z", "", `"2026-01-31T15:00:01Z" is in the future`},
		{"GPU-a=", "", `"GPU-a=" is no time`},
		{"=2026-01-31T14:00:00Z", "", "is no time, and no device with one"},
		{"2026-01-31", "", "is no time"},
		{strings.Repeat(",", 257), "", "257 bytes, at most 256"},
	} {
		all, err := ParseCleared(tt.value, now)
		var got []string
		for _, c := range all {
			got = append(got, c.String())
		}
		assert.Equal(t, tt.want, strings.Join(got, " "), tt.value)
		if tt.err == "" {
			require.NoError(t, err, tt.value)
		} else {
			require.ErrorContains(t, err, tt.err, tt.value)
		}
	}
}
