// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension"

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/prometheus/tsdb/fileutil"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/diskfault"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/embedded"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/problems"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/remote"
	"github.com/otelcol-gpu/otelcol-gpu/internal/listening"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// reserve is what the embedded engine leaves free on the disk, in bytes.
const reserve = 64 << 20

// engine is what both engines are.
type engine interface {
	store.Querier
	store.Appender
	Close() error
}

// gpuStore is the extension. It is a store.Store from Start to Shutdown.
type gpuStore struct {
	config    *Config
	settings  extension.Settings
	telemetry *metadata.TelemetryBuilder
	health    *health
	now       func() time.Time
	// free is how much may be written into a directory; tests have other disks.
	free func(directory string) (bytes int64, known bool)

	lock   fileutil.Releaser
	engine engine
	log    *eventLog
	server *http.Server
	served sync.WaitGroup
	ended  chan struct{} // closed by Shutdown
	// address is where the API is served, for tests.
	address net.Addr
}

var (
	_ store.Store                     = (*gpuStore)(nil)
	_ extensioncapabilities.Dependent = (*gpuStore)(nil)
)

func newExtension(set extension.Settings, cfg *Config) (*gpuStore, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	g := &gpuStore{config: cfg, settings: set, telemetry: telemetry, now: time.Now, free: embedded.FreeBytes, engine: notStarted{}}
	g.health = &health{Tracker: problems.New(), directory: cfg.Directory, now: func() time.Time { return g.now() },
		logger: set.Logger.WithOptions(zap.AddStacktrace(zapcore.FatalLevel))} // a disk has no use for ours
	return g, nil
}

// Dependencies are the authenticators and middlewares, which have to be there
// first.
func (g *gpuStore) Dependencies() []component.ID {
	var ids []component.ID
	if g.config.Engine == enginePrometheus {
		if auth := g.config.Prometheus.Auth.Get(); auth != nil {
			ids = append(ids, auth.AuthenticatorID)
		}
		for _, m := range g.config.Prometheus.Middlewares {
			ids = append(ids, m.ID)
		}
		return ids
	}
	if auth := g.config.API.Auth.Get(); auth != nil {
		ids = append(ids, auth.Config.AuthenticatorID)
	}
	for _, m := range g.config.API.Middlewares {
		ids = append(ids, m.ID)
	}
	return ids
}

// Start opens the directory and the engine, and serves the API.
func (g *gpuStore) Start(ctx context.Context, host component.Host) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Shutdown(ctx))
		}
	}()
	if err := g.open(); err != nil {
		return err
	}
	if g.config.Engine == enginePrometheus {
		g.engine, err = g.remoteEngine(ctx, host)
	} else {
		g.engine, err = embedded.Open(g.embeddedOptions())
	}
	if err != nil {
		g.engine = notStarted{}
		return err
	}
	if err := g.observe(); err != nil {
		return err
	}
	if g.config.Engine == engineEmbedded && g.config.API.NetAddr.Endpoint != "" {
		if err := g.serve(ctx, host); err != nil {
			return err
		}
	}
	g.look()
	g.health.start(host)
	ended := make(chan struct{})
	g.ended = ended
	g.served.Go(func() { g.watch(ended) })
	return nil
}

// open locks the directory and opens the log in it.
func (g *gpuStore) open() (err error) {
	directory := g.config.Directory
	if err := os.MkdirAll(filepath.Join(directory, "log"), 0o750); err != nil {
		return fmt.Errorf("directory: %s cannot be made; make it writable for this user, or set directory to another: %w", directory, err)
	}
	if g.lock, _, err = fileutil.Flock(filepath.Join(directory, "lock")); err != nil {
		if diskfault.Cause(err) == store.DiskReadOnly {
			return diskfault.Explain(directory, err)
		}
		return fmt.Errorf("directory: %s is in use by another process or by another gpu_store; each needs a directory of its own, and an old process must have ended: %w", directory, err)
	}
	g.log, err = openLog(filepath.Join(directory, "log"), g.config.Log, g.config.Query, g.health, g.telemetry)
	return err
}

func (g *gpuStore) embeddedOptions() embedded.Options {
	c := g.config
	return embedded.Options{
		Directory: filepath.Join(c.Directory, "metrics"),
		Retention: c.Retention, MaxBytes: c.MaxBytes, OutOfOrder: c.OutOfOrderWindow, Lookback: c.lookback(),
		MaxSeries: c.MaxSeries, MaxSamples: c.Query.MaxSamples, QueryTimeout: c.Query.Timeout, ConcurrentQuery: c.Query.MaxConcurrent,
		Reserve: min(reserve, c.MaxBytes/16), Logger: g.settings.Logger, Now: g.now, Free: g.free,
	}
}

func (g *gpuStore) remoteEngine(ctx context.Context, host component.Host) (engine, error) {
	c := g.config
	client, err := c.Prometheus.ToClient(ctx, host.GetExtensions(), g.settings.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("prometheus: %w", err)
	}
	return remote.New(remote.Options{
		URL: c.Prometheus.URL, Client: client, QueryTimeout: c.Query.Timeout, ConcurrentQuery: c.Query.MaxConcurrent,
		MaxResponse: c.Prometheus.MaxResponseBytes,
	})
}

// serve serves the Prometheus API.
func (g *gpuStore) serve(ctx context.Context, host component.Host) error {
	c := &g.config.API
	listener, err := c.ToListener(ctx)
	if err != nil {
		return listening.Explain("api::endpoint", c.NetAddr.Endpoint, ", or \"\" for no API", err)
	}
	g.address = listener.Addr()
	g.server, err = c.ToServer(ctx, host.GetExtensions(), g.settings.TelemetrySettings, apiHandler(g))
	if err != nil {
		return errors.Join(fmt.Errorf("api: %w", err), listener.Close())
	}
	listening.Limit(g.server, func() { g.telemetry.ExtensionGpuStoreConnectionsRefused.Add(context.Background(), 1) })
	server := g.server
	g.served.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	g.settings.Logger.Info("serving the Prometheus API", zap.String("endpoint", g.address.String()))
	return nil
}

// Shutdown ends the server, then queries, then closes the files. The directory
// is free when it returns.
func (g *gpuStore) Shutdown(ctx context.Context) error {
	var errs []error
	if g.ended != nil {
		g.health.stop()
		close(g.ended)
		g.ended = nil
	}
	if g.server != nil {
		// A query that goes on holds a connection; it is canceled below.
		short, cancel := context.WithTimeout(ctx, time.Second)
		if g.server.Shutdown(short) != nil {
			errs = append(errs, g.server.Close())
		}
		cancel()
		g.server = nil
	}
	g.served.Wait()
	g.telemetry.Shutdown()
	errs = append(errs, g.engine.Close())
	if g.log != nil {
		errs = append(errs, g.log.close())
	}
	if g.lock != nil {
		errs = append(errs, g.lock.Release())
		g.lock = nil
	}
	return errors.Join(errs...)
}
