// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package sysfs

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
)

func TestParseCounts(t *testing.T) {
	for text, want := range map[string][3]int{ // -1: not there
		"ue: 0\nce: 0\n":                  {0, 0, -1},
		"ue: 1\nce: 2\nde: 3\n":           {1, 2, 3},
		"ce:2\nue:\t1\n":                  {1, 2, -1},
		"ue: 18446744073709551615\nce: 0": {math.MaxInt, 0, -1},
		"new: 5\nue: 0\nce: 4\n":          {0, 4, -1},
	} {
		c, err := parseCounts([]byte(text))
		require.NoError(t, err, text)
		for i := range kinds {
			assert.Equal(t, want[i] >= 0, c[i].known, text)
			if c[i].known && want[i] != math.MaxInt {
				assert.EqualValues(t, want[i], c[i].n, text)
			}
		}
	}
	for _, text := range []string{"", "\n", "ue: 1\n", "ce: 1\n", "ue: -1\nce: 0\n", "ue: 1.5\nce: 0\n", "ue: 1\nue: 2\nce: 0\n", "ue\nce\n", "ue: 18446744073709551616\nce: 0\n"} {
		_, err := parseCounts([]byte(text))
		require.ErrorIs(t, err, errMalformed, "%q", text)
	}
	_, err := parseCounts([]byte("Query currently inaccessible\n"))
	require.ErrorIs(t, err, errInaccessible)
}

func TestParseBadPages(t *testing.T) {
	for text, want := range map[string][3]uint64{
		"": {}, "\n": {},
		"0x00000001 : 0x00001000 : R\n0x00000002 : 0x00001000 : F\n": {1, 0, 1},
		"1:1:P": {0, 1, 0},
	} {
		got, err := parseBadPages([]byte(text))
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"0x1 : 0x1000\n", "0x1 : 0x1000 : RR\n", "0x1 : 0x1000 : r\n", "0x1 : 0x1000 :\n", "a:b:c:R\n"} {
		_, err := parseBadPages([]byte(text))
		require.ErrorIs(t, err, errMalformed, text)
	}
}

// FuzzFiles: whatever a file contains, each of its readers ends with a value or an error
// that has a cause.
func FuzzFiles(f *testing.F) {
	for _, text := range []string{"93\n", "-1", "", "ue: 0\nce: 0\nde: 1\n", "Query currently inaccessible\n", "0x1 : 0x1000 : R\n", "\xff: \n:", "9223372036854775808"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		check := func(err error) {
			if err != nil {
				require.Contains(t, []gpusysfs.Cause{gpusysfs.Malformed, gpusysfs.Busy}, causeOf(err))
			}
		}
		v, err := parseNumber(text)
		check(err)
		require.False(t, math.IsNaN(v) || math.IsInf(v, 0))
		c, err := parseCounts(text)
		check(err)
		require.Equal(t, err == nil, c[0].known && c[1].known)
		n, err := parseBadPages(text)
		check(err)
		require.LessOrEqual(t, int(n[0]+n[1]+n[2]), len(text))
	})
}
