// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext/pagetexttest"
)

// FuzzMap: whatever a helper reads of boards, no two resources are of one device, no point
// is no number, and no count is below 0.
func FuzzMap(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var of recorded
		if json.Unmarshal(text, &of) != nil {
			return
		}
		h := newHost(t)
		for range 2 {
			r := h.scrape(of.Boards...)
			r.IDs(t)
			for _, rm := range r.Metrics.ResourceMetrics().All() {
				for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
					for _, p := range pagetexttest.NumberPoints(m).All() {
						v := pagetexttest.Value(p)
						assert.False(t, math.IsNaN(v) || math.IsInf(v, 0), m.Name())
						if m.Type() == pmetric.MetricTypeSum {
							assert.GreaterOrEqual(t, v, 0., m.Name())
						}
						if m.Unit() == "1" && m.Name() != names.HwFanSpeedRatio.Name {
							assert.LessOrEqual(t, v, 1., m.Name())
						}
					}
				}
			}
		}
	})
}
