// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package collector has the probes of a collector itself: its health and where it
// listens.
package collector

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/web"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// expirySoon is when a certificate is worth a warning.
const expirySoon = 14 * 24 * time.Hour

// Health asks the extension health_check.
func Health(ctx context.Context, env probe.Env) []probe.Result {
	extensions := env.Config.Of("extensions", "health_check")
	if len(extensions) == 0 {
		return []probe.Result{probe.New("", probe.Skipped, "the configuration has no health_check", "add it to the extensions and to service::extensions: probes need it too")}
	}
	cfg := struct {
		Endpoint string `mapstructure:"endpoint"`
		Path     string `mapstructure:"path"`
	}{"localhost:13133", "/"}
	if err := extensions[0].Read(&cfg); err != nil {
		return []probe.Result{probe.Invalid("", err)}
	}
	address := config.Near(cfg.Endpoint)
	r := probe.Result{Subject: address, Status: probe.Fail}
	a, err := web.Get(ctx, web.Direct(nil), "http://"+address+cfg.Path, nil)
	switch {
	case err != nil:
		r.Seen, r.Remedy = web.Why(err), "the collector does not run, or not with this configuration; "+probe.Logs
	case unwell(a.Body) != "":
		r.Seen, r.Remedy = "a component is not well: "+unwell(a.Body), "the log names it and the cause; of a store: gpuctl doctor console state"
	case a.Status != http.StatusOK:
		r.Seen, r.Remedy = fmt.Sprintf("not ready: it answers %d", a.Status), "it starts (an agent waits a minute for the API server), stops, or has failed; "+probe.Logs
	default:
		r.Status, r.Seen = probe.OK, "healthy"
	}
	return []probe.Result{r}
}

// unwell is the error of a component that is not well, where health_check reports
// it: under the feature gate extension.healthcheck.useComponentStatus alone.
func unwell(body []byte) string {
	var health struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &health) != nil {
		return ""
	}
	return safetext.Strip(health.Error, 500)
}

type listener struct {
	Endpoint string            `mapstructure:"endpoint"`
	TLS      *config.TLSServer `mapstructure:"tls"`
}

// Listeners looks at where the collector takes OTLP.
func Listeners(ctx context.Context, env probe.Env) []probe.Result {
	var results []probe.Result
	for _, c := range env.Config.Of("receivers", "otlp") {
		var cfg struct {
			Protocols struct {
				GRPC *listener `mapstructure:"grpc"`
				HTTP *listener `mapstructure:"http"`
			} `mapstructure:"protocols"`
		}
		if err := c.Read(&cfg); err != nil {
			results = append(results, probe.Invalid(c.ID, err))
			continue
		}
		for _, one := range []struct {
			what string
			*listener
		}{{"gRPC", cfg.Protocols.GRPC}, {"HTTP", cfg.Protocols.HTTP}} {
			if one.listener != nil && one.Endpoint != "" {
				results = append(results, listens(ctx, env.Now, c.ID+" "+one.what, *one.listener)...)
			}
		}
	}
	if len(results) == 0 {
		return []probe.Result{probe.New("", probe.Skipped, "the configuration has no otlp receiver in a pipeline", "")}
	}
	return results
}

func listens(ctx context.Context, now time.Time, what string, l listener) []probe.Result {
	address := config.Near(l.Endpoint)
	r := probe.Result{Subject: what, Status: probe.OK, Seen: "listens on " + address}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		r.Status, r.Seen, r.Remedy = probe.Fail, address+": "+web.Why(err), "the collector does not run, or listens elsewhere; "+probe.Logs
		return []probe.Result{r}
	}
	_ = conn.Close()
	results := []probe.Result{r}
	if l.TLS != nil && l.TLS.CertFile != "" {
		results = append(results, certificate(now, what+" certificate", l.TLS))
	}
	return results
}

// certificate looks at the files of a listener's certificate.
func certificate(now time.Time, subject string, t *config.TLSServer) probe.Result {
	r := probe.Result{Subject: subject, Status: probe.Fail, Remedy: "renew the certificate and its Secret; the collector reads it at its start, and again after tls::reload_interval where that is set"}
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		r.Seen, r.Remedy = err.Error(), "check tls::cert_file and tls::key_file, and that the user may read them"
		return r
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		r.Seen = err.Error()
		return r
	}
	r.Seen = "valid until " + leaf.NotAfter.UTC().Format(time.RFC3339)
	switch {
	case now.After(leaf.NotAfter):
		r.Seen = "expired at " + leaf.NotAfter.UTC().Format(time.RFC3339)
	case now.Before(leaf.NotBefore):
		r.Seen, r.Remedy = "not valid before "+leaf.NotBefore.UTC().Format(time.RFC3339), "check this machine's clock"
	case now.Add(expirySoon).After(leaf.NotAfter):
		r.Status = probe.Warn
	default:
		r.Status, r.Remedy = probe.OK, ""
	}
	return r
}
