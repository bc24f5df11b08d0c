// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// The settings are published once for each cluster that has a service.
func TestThresholds(t *testing.T) {
	md, at := pmetric.NewMetrics(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, cluster := range []string{"a", "", "a"} {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.ScopeMetrics().AppendEmpty()
		if cluster != "" {
			rm.Resource().Attributes().PutStr(names.K8sClusterName, cluster)
		}
	}
	cfg := createDefaultConfig().(*Config)
	cfg.Warmup, cfg.PartialThreshold, cfg.IdleThreshold, cfg.IdleFor = time.Minute, 0.5, 0.1, time.Hour
	(&summaryProcessor{cfg: cfg}).putThresholds(md, at)
	assert.Equal(t, map[string]float64{
		"a:/ gpu.summary.warmup": 60, "a:/ gpu.summary.partial_threshold": 0.5, "a:/ gpu.summary.idle_threshold": 0.1, "a:/ gpu.summary.idle_for": 3600,
		"/ gpu.summary.warmup": 60, "/ gpu.summary.partial_threshold": 0.5, "/ gpu.summary.idle_threshold": 0.1, "/ gpu.summary.idle_for": 3600,
	}, flatten(t, md, at).values)
}
