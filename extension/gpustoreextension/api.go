// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension"

import (
	"context"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/promapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/listening"
)

// apiHandler serves the Prometheus API over this store.
func apiHandler(g *gpuStore) http.Handler {
	handler := promapi.Handler(promapi.Options{
		Store: g, Version: prometheusVersion(), GoVersion: runtime.Version(), Now: g.now,
		Observe: func(endpoint string, status int) {
			g.telemetry.ExtensionGpuStoreAPIRequests.Add(context.Background(), 1,
				metric.WithAttributes(attribute.String("endpoint", endpoint), attribute.Int("http.response.status_code", status)))
		},
	})
	if !g.config.API.Auth.HasValue() && g.config.API.NetAddr.Transport != "unix" {
		handler = localOnly(handler)
	}
	return handler
}

// localOnly refuses requests for another host than this machine, and those that a
// page of another makes a browser send: such a query runs too.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !listening.LocalRequest(r, nil) {
			http.Error(w, "This API is for this machine alone: ask for localhost, or configure api::auth.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// prometheusVersion is the version of Prometheus that has this PromQL. The module
// v0.313.2 is Prometheus 3.13.2.
func prometheusVersion() string {
	const module = "github.com/prometheus/prometheus"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == module {
				return releaseOf(m.Version)
			}
		}
	}
	return "3.0.0"
}

func releaseOf(module string) string {
	parts := strings.Split(strings.TrimPrefix(module, "v0."), ".")
	if len(parts) != 2 || len(parts[0]) != 3 {
		return "3.0.0"
	}
	return parts[0][:1] + "." + strings.TrimLeft(parts[0][1:2], "0") + parts[0][2:] + "." + parts[1]
}
