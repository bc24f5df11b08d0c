// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package queries

import (
	"testing"

	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func TestNamesOfTheMixinAreThoseThatAreWritten(t *testing.T) {
	namer := otlptranslator.MetricNamer{WithMetricSuffixes: true}
	for constant, metric := range map[string]names.Metric{
		MemoryUtilization: names.GPUMemoryUtilization, Energy: names.HwEnergy, Clock: names.GPUClockFrequency, ThrottleDuration: names.GPUThrottleDuration,
		PCIeThroughput: names.GPUPCIeThroughput, NVLinkThroughput: names.GPUNVLinkThroughput, PCIeReplays: names.GPUPCIeReplays, NVLinkErrors: names.GPUNVLinkErrors,
		RemappedRows: names.GPURemappedRows, RowRemapFailure: names.GPURowRemapFailure, RetiredPages: names.GPURetiredPages, RetiredPending: names.GPURetiredPending,
		HealthStatus: names.GPUHealthStatus, ScrapeDuration: names.ExporterScrapeDuration, ScrapeSamples: names.ExporterScrapeSamples,
	} {
		kind := otlptranslator.MetricType(otlptranslator.MetricTypeGauge)
		switch metric.Kind {
		case names.Counter:
			kind = otlptranslator.MetricTypeMonotonicCounter
		case names.UpDownCounter:
			kind = otlptranslator.MetricTypeNonMonotonicCounter
		}
		got, err := namer.Build(otlptranslator.Metric{Name: metric.Name, Unit: metric.Unit, Type: kind})
		require.NoError(t, err)
		assert.Equal(t, got, constant, metric.Name)
	}
	labels := otlptranslator.LabelNamer{}
	for constant, attribute := range map[string]string{
		ClockDomain: names.GPUClockDomain, Direction: names.NetworkDirection, NVLinkErrorType: names.GPUNVLinkError,
		HealthWatch: names.GPUHealthWatch, HealthState: names.GPUHealthState, ValueScope: names.GPUValueScope,
	} {
		got, err := labels.Build(attribute)
		require.NoError(t, err)
		assert.Equal(t, got, constant, attribute)
	}
}
