// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreexporter

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

func TestApplicationsHaveAShareAndNoNameOfGPUs(t *testing.T) {
	set, tel := settings(t)
	s := &fakeStore{}
	cfg := createDefaultConfig().(*Config)
	cfg.MaxSeries = 2
	e, err := createMetrics(t.Context(), set, cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), host{store.DefaultID: s}))
	md := pmetric.NewMetrics()
	metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	for _, name := range []string{"_hw.gpu.temperature", "device:gpu_xid_errors:max", "gpu", "up", "a", "b"} {
		m := metrics.AppendEmpty()
		m.SetName(name)
		m.SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(1)
	}
	require.NoError(t, e.ConsumeMetrics(t.Context(), md))
	require.NoError(t, e.Shutdown(context.Background()))
	assert.Len(t, s.series, 2)
	for labels := range s.byLabels() {
		assert.NotRegexp(t, "gpu", labels)
	}
	assert.Len(t, s.families, 3)
	assert.EqualValues(t, 4, counted(t, tel, "otelcol_exporter_gpu_store_refused_samples"))
}

func TestAShareIsAPart(t *testing.T) {
	for share, want := range map[int]string{-1: "max_series: -1: set it", 100: "has room for 100 series"} {
		set, _ := settings(t)
		cfg := createDefaultConfig().(*Config)
		cfg.MaxSeries = share
		err := cfg.Validate()
		if share > 0 {
			require.NoError(t, err)
			e, created := createMetrics(t.Context(), set, cfg)
			require.NoError(t, created)
			err = e.Start(t.Context(), host{store.DefaultID: &fakeStore{}})
			require.NoError(t, e.Shutdown(t.Context()))
		}
		assert.ErrorContains(t, err, want)
	}
}
