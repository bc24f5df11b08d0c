// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension"

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/listening"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

const (
	// remoteDelay is how long a sample may be on its way to a server. The
	// newest moment there is not whole: some series have it, others not yet.
	remoteDelay = 2 * time.Second
	// maxHeader bounds a request's line and headers.
	maxHeader = 64 << 10
)

// console is the extension.
type console struct {
	config    *Config
	settings  extension.Settings
	telemetry *metadata.TelemetryBuilder
	now       func() time.Time

	server *http.Server
	served sync.WaitGroup
	// address is where it is served, for tests.
	address net.Addr
}

var _ extensioncapabilities.Dependent = (*console)(nil)

func newExtension(set extension.Settings, cfg *Config) (*console, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &console{config: cfg, settings: set, telemetry: telemetry, now: time.Now}, nil
}

// Dependencies are what must be started before.
func (c *console) Dependencies() []component.ID {
	ids := []component.ID{c.config.Store}
	if c.config.Auth.HasValue() {
		ids = append(ids, c.config.Auth.Get().Config.AuthenticatorID)
	}
	return ids
}

// Start finds the store and serves page and API.
func (c *console) Start(ctx context.Context, host component.Host) error {
	s, err := store.Find(host, "store", c.config.Store)
	if err != nil {
		return err
	}
	a := newAPI(c.config, s, c.reader(s), c.settings, c.telemetry)
	if a.authenticator, err = newAuthenticator(ctx, c.config, host); err != nil {
		return err
	}
	if err := c.telemetry.RegisterExtensionGpuConsoleCircuitOpenCallback(func(_ context.Context, o metric.Int64Observer) error {
		open := int64(0)
		if a.breaker.open() {
			open = 1
		}
		o.Observe(open)
		return nil
	}); err != nil {
		return err
	}
	handler, err := a.handler()
	if err != nil {
		return err
	}
	return c.serve(ctx, host, handler)
}

func (c *console) reader(s store.Store) *fleet.Reader {
	o := fleet.Options{
		StaleAfter: c.config.StaleAfter, Remembered: c.config.Remembered,
		Thresholds: c.config.thresholds(),
		MaxPoints:  c.config.MaxPointsPerSeries, MaxLines: c.config.MaxSeriesPerRange,
		ShareFor: c.config.ShareFor, Now: c.now,
	}
	if s.Info().ReadOnly {
		o.Delay = remoteDelay
	}
	return fleet.New(s, o)
}

func (c *console) serve(ctx context.Context, host component.Host, handler http.Handler) error {
	open := c.config.ServerConfig
	// The API asks for authentication itself: the page's files have none.
	open.Auth = configoptional.None[confighttp.AuthConfig]()
	listener, err := open.ToListener(ctx)
	if err != nil {
		return listening.Explain("endpoint", open.NetAddr.Endpoint, "", err)
	}
	c.address = listener.Addr()
	c.server, err = open.ToServer(ctx, host.GetExtensions(), c.settings.TelemetrySettings, handler)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	c.server.MaxHeaderBytes = maxHeader
	listening.Limit(c.server, func() { c.telemetry.ExtensionGpuConsoleConnectionsRefused.Add(context.Background(), 1) })
	c.served.Go(func() {
		if err := c.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	c.settings.Logger.Info("serving the console", zap.String("endpoint", c.address.String()), zap.String("path", c.config.PathPrefix+"/"))
	return nil
}

// Shutdown ends the server. Who waits for an answer gets it within a second, or
// not at all.
func (c *console) Shutdown(ctx context.Context) error {
	defer c.telemetry.Shutdown()
	if c.server == nil {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var err error
	if c.server.Shutdown(short) != nil {
		err = c.server.Close()
	}
	c.served.Wait()
	return err
}
