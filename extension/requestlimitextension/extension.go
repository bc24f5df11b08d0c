// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package requestlimitextension

import (
	"context"
	"net"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensionmiddleware"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/extension/requestlimitextension/internal/limit"
	"github.com/otelcol-gpu/otelcol-gpu/extension/requestlimitextension/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// host is why a request for another host is refused.
const host limit.Reason = "host"

var (
	_ extension.Extension            = (*requestLimit)(nil)
	_ extensionmiddleware.HTTPServer = (*requestLimit)(nil)
	_ extensionmiddleware.GRPCServer = (*requestLimit)(nil)
)

// requestLimit bounds the requests of all servers that name it.
type requestLimit struct {
	config    Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	limiter   *limit.Limiter
	causes    logonce.Causes
}

func newExtension(set extension.Settings, config *Config) (*requestLimit, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	e := &requestLimit{
		config: *config, logger: set.Logger, telemetry: telemetry,
		limiter: limit.New(config.MaxRequests, config.MaxRequestsPerPeer),
	}
	return e, telemetry.RegisterExtensionRequestLimitInFlightCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(int64(e.limiter.InFlight()))
		return nil
	})
}

// Start implements component.Component.
func (*requestLimit) Start(context.Context, component.Host) error { return nil }

// Shutdown implements component.Component.
func (e *requestLimit) Shutdown(context.Context) error {
	e.telemetry.Shutdown()
	return nil
}

// refused counts a request that is refused, and logs the first with its reason.
func (e *requestLimit) refused(ctx context.Context, reason limit.Reason, peer, authority string) {
	e.telemetry.ExtensionRequestLimitRefused.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", string(reason))))
	if e.causes.First(string(reason), time.Now()) {
		e.logger.Warn("requests are refused; further ones with this reason are only counted",
			zap.String("reason", string(reason)), zap.String("peer", peer), zap.String("host", safetext.Strip(authority, 128)),
			zap.Int("max_requests", e.config.MaxRequests), zap.Int("max_requests_per_peer", e.config.MaxRequestsPerPeer))
	}
}

// peerOf is a peer's address without its port: one peer has many.
func peerOf(address string) string {
	if name, _, err := net.SplitHostPort(address); err == nil {
		return name
	}
	return address
}

// retryAfter is when a peer that was refused may send again.
const retryAfter = time.Second
