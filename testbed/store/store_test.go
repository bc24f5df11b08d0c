// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.uber.org/goleak"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store/storetest"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// startStore starts a gpu_store extension as it is by default, but for what
// change changes.
func startStore(t testing.TB, change func(*gpustoreextension.Config)) store.Store {
	t.Helper()
	factory := gpustoreextension.NewFactory()
	c := factory.CreateDefaultConfig().(*gpustoreextension.Config)
	c.Directory = t.TempDir()
	c.API.NetAddr.Endpoint = ""
	if change != nil {
		change(c)
	}
	require.NoError(t, c.Validate())
	e, err := factory.Create(t.Context(), extension.Settings{
		ID: store.DefaultID, TelemetrySettings: componenttest.NewNopTelemetrySettings(), BuildInfo: component.NewDefaultBuildInfo(),
	}, c)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), host{}))
	t.Cleanup(func() { require.NoError(t, e.Shutdown(context.Background())) })
	return e.(store.Store)
}

// limited gives a store the limits of storetest.
func limited(c *gpustoreextension.Config) {
	c.Query.MaxSamples, c.Query.Timeout = storetest.MaxSamples, storetest.Timeout
}

// asking is a store that asks this server.
func asking(t testing.TB, url string) store.Store {
	return startStore(t, func(c *gpustoreextension.Config) {
		limited(c)
		c.Engine, c.Prometheus.URL = "prometheus", url
	})
}

// serving is an embedded store, and where its API is.
func serving(t testing.TB) (s store.Store, url string) {
	t.Helper()
	free, err := collector.Free(1)
	require.NoError(t, err)
	address := net.JoinHostPort(collector.Loopback, strconv.Itoa(free[0]))
	return startStore(t, func(c *gpustoreextension.Config) {
		limited(c)
		c.API.NetAddr.Endpoint = address
	}), "http://" + address
}

// What the embedded engine is tested with is true of a Prometheus server.
func TestPrometheusKeepsTheContract(t *testing.T) {
	p := startPrometheus(t)
	storetest.Run(t, storetest.Subject{
		Store: asking(t, p.url),
		Write: func(t *testing.T, series ...store.Series) { p.write(t, series...) },
	})
}
