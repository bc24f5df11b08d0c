// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// expirySoon is when a certificate is worth a warning.
const expirySoon = 14 * 24 * time.Hour

// logs is where to look when the collector does not answer.
const logs = "look at its log: kubectl logs -n otelcol-gpu ds/otelcol-gpu-agent, statefulset/otelcol-gpu-gateway, or journalctl -u otelcol-gpu"

func (in *installation) checkHealth(ctx context.Context) []Result {
	extensions := in.of("extensions", "health_check")
	if len(extensions) == 0 {
		return []Result{{"collector", "", Skipped, "the configuration has no health_check", "add it to the extensions and to service::extensions: probes need it too"}}
	}
	cfg := struct {
		Endpoint string `mapstructure:"endpoint"`
		Path     string `mapstructure:"path"`
	}{"localhost:13133", "/"}
	if err := extensions[0].read(&cfg); err != nil {
		return []Result{{"collector", "", Fail, err.Error(), "otelcol-gpu validate with the same --config says why"}}
	}
	address := near(cfg.Endpoint)
	r := Result{Check: "collector", Subject: address, Status: Fail}
	a, err := get(ctx, direct(nil), "http://"+address+cfg.Path, nil)
	switch {
	case err != nil:
		r.Seen, r.Remedy = why(err), "the collector does not run, or not with this configuration; "+logs
	case unwell(a.body) != "":
		r.Seen, r.Remedy = "a component is not well: "+unwell(a.body), "the log names it and the cause; of a store: gpuctl doctor console state"
	case a.status != http.StatusOK:
		r.Seen, r.Remedy = fmt.Sprintf("not ready: it answers %d", a.status), "it starts (an agent waits a minute for the API server), stops, or has failed; "+logs
	default:
		r.Status, r.Seen = OK, "healthy"
	}
	return []Result{r}
}

// unwell is the error of a component that is not well, where health_check tells: it
// does under the feature gate extension.healthcheck.useComponentStatus alone.
func unwell(body []byte) string {
	var health struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &health) != nil {
		return ""
	}
	return safetext.Strip(health.Error, 500)
}

// tlsServer are the keys of a listener's TLS that are looked at.
type tlsServer struct {
	CertFile string `mapstructure:"cert_file"`
	KeyFile  string `mapstructure:"key_file"`
}

type listener struct {
	Endpoint string     `mapstructure:"endpoint"`
	TLS      *tlsServer `mapstructure:"tls"`
}

// checkListeners looks at where the collector takes OTLP.
func (in *installation) checkListeners(ctx context.Context) []Result {
	var results []Result
	for _, c := range in.of("receivers", "otlp") {
		var cfg struct {
			Protocols struct {
				GRPC *listener `mapstructure:"grpc"`
				HTTP *listener `mapstructure:"http"`
			} `mapstructure:"protocols"`
		}
		if err := c.read(&cfg); err != nil {
			results = append(results, Result{"otlp", c.id, Fail, err.Error(), "otelcol-gpu validate with the same --config says why"})
			continue
		}
		for _, one := range []struct {
			what string
			*listener
		}{{"gRPC", cfg.Protocols.GRPC}, {"HTTP", cfg.Protocols.HTTP}} {
			if one.listener != nil && one.Endpoint != "" {
				results = append(results, in.listens(ctx, c.id+" "+one.what, *one.listener)...)
			}
		}
	}
	if len(results) == 0 {
		return []Result{{"otlp", "", Skipped, "the configuration has no otlp receiver in a pipeline", ""}}
	}
	return results
}

func (in *installation) listens(ctx context.Context, what string, l listener) []Result {
	address := near(l.Endpoint)
	r := Result{Check: "otlp", Subject: what, Status: OK, Seen: "listens on " + address}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		r.Status, r.Seen, r.Remedy = Fail, address+": "+why(err), "the collector does not run, or listens elsewhere; "+logs
		return []Result{r}
	}
	_ = conn.Close()
	results := []Result{r}
	if l.TLS != nil && l.TLS.CertFile != "" {
		results = append(results, in.certificate("otlp", what+" certificate", l.TLS))
	}
	return results
}

// certificate looks at the files of a listener's certificate.
func (in *installation) certificate(check, subject string, t *tlsServer) Result {
	r := Result{Check: check, Subject: subject, Status: Fail, Remedy: "renew the certificate and its Secret; the collector reads it at its start, and again after tls::reload_interval where that is set"}
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
	now := in.now()
	r.Seen = "valid until " + leaf.NotAfter.UTC().Format(time.RFC3339)
	switch {
	case now.After(leaf.NotAfter):
		r.Seen = "expired at " + leaf.NotAfter.UTC().Format(time.RFC3339)
	case now.Before(leaf.NotBefore):
		r.Seen, r.Remedy = "not valid before "+leaf.NotBefore.UTC().Format(time.RFC3339), "check this machine's clock"
	case now.Add(expirySoon).After(leaf.NotAfter):
		r.Status = Warn
	default:
		r.Status, r.Remedy = OK, ""
	}
	return r
}
