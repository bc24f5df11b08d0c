// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpumetrics

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Files of real boards and processors, where they are at hand.
func TestSamples(t *testing.T) {
	const samples = "../../../shared/data/amd"
	if _, err := os.Stat(samples); err != nil {
		t.Skip("samples are not there")
	}
	for name, want := range map[string]map[Quantity]float64{
		"gpu_metrics-v1_3-rx7800xt.bin": {Hotspot: 31, Memory: 48, Power: 32, Activity: 24, MemoryActivity: 0, Energy: 0},
		// 0x010df422 steps are 17,691,682, of which 65,536 are 1 J.
		"gpu_metrics-v1_3-page-padded-rx6900xt.bin": {Hotspot: 59, Memory: 54, Power: 36, Activity: 3, MemoryActivity: 0, Energy: 269.953643798828125},
		"gpu_metrics-v2_1-phoenix.bin":              nil,
		"gpu_metrics-v3_0-strixpoint.bin":           nil,
	} {
		t.Run(name, func(t *testing.T) {
			file, err := os.ReadFile(filepath.Join(samples, name))
			require.NoError(t, err)
			m, err := Decode(file)
			if want == nil {
				require.ErrorIs(t, err, ErrFormat)
				return
			}
			require.NoError(t, err)
			got := map[Quantity]float64{}
			for q := range quantities {
				if v, known := m.Get(q); known {
					got[q] = v
				}
			}
			assert.Equal(t, want, got)
		})
	}
}
