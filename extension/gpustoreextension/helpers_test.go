// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreextension

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store/storetest"
)

// host has extensions, as authenticators.
type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// running is a started extension.
type running struct {
	*gpuStore
	logs      *observer.ObservedLogs
	telemetry *componenttest.Telemetry
}

// settings gives an extension logs and telemetry that tests can read.
func settings(t *testing.T) (extension.Settings, *observer.ObservedLogs, *componenttest.Telemetry) {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	set := extension.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: tel.NewTelemetrySettings(), BuildInfo: component.NewDefaultBuildInfo()}
	set.Logger = zap.New(core)
	return set, logs, tel
}

// configured is the default with a directory of the test and a free port.
func configured(t *testing.T, change func(*Config)) *Config {
	t.Helper()
	c := createDefaultConfig().(*Config)
	c.Directory = t.TempDir()
	c.API.NetAddr.Endpoint = "localhost:0"
	c.Query.Timeout = storetest.Timeout
	c.Query.MaxSamples = storetest.MaxSamples
	if change != nil {
		change(c)
	}
	require.NoError(t, c.Validate())
	return c
}

// begin starts an extension, which ends with the test.
func begin(t *testing.T, c *Config) *running {
	t.Helper()
	set, logs, tel := settings(t)
	g, err := newExtension(set, c)
	require.NoError(t, err)
	require.NoError(t, g.Start(t.Context(), host{}))
	t.Cleanup(func() { require.NoError(t, g.Shutdown(context.Background())) })
	return &running{g, logs, tel}
}

func (r *running) write(t *testing.T, series ...store.Series) {
	t.Helper()
	a, err := r.Append(t.Context(), series)
	require.NoError(t, err)
	require.Empty(t, a.Refused)
}

// url is where the API is served.
func (r *running) url() string { return "http://" + r.address.String() }

// counted returns the sum of a counter's points that have an attribute's value.
func (r *running) counted(t *testing.T, name, attribute, value string) int64 {
	t.Helper()
	m, err := r.telemetry.GetMetric(name)
	require.NoError(t, err)
	return sumOf(t, m, attribute, value)
}
