// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package gateway is the probe of wherever a collector sends OTLP.
package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/rpc"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/web"
)

// Probe exports nothing to wherever the collector sends OTLP: that shows the way, its
// certificate and the token.
func Probe(ctx context.Context, env probe.Env) []probe.Result {
	var results []probe.Result
	for _, c := range env.Config.Of("exporters", "otlp", "otlp_grpc", "otlphttp", "otlp_http") {
		var cfg config.OTLPExporter
		if err := c.Read(&cfg); err != nil {
			results = append(results, probe.Invalid(c.ID, err))
			continue
		}
		results = append(results, export(ctx, env.Config, c.ID, cfg))
	}
	if len(results) == 0 {
		return []probe.Result{probe.New("", probe.Skipped, "the configuration sends OTLP nowhere", "")}
	}
	return results
}

func export(ctx context.Context, conf *config.Configuration, id string, cfg config.OTLPExporter) probe.Result {
	r := probe.Result{Subject: id, Status: probe.Fail}
	kind, _, _ := strings.Cut(id, "/")
	overHTTP := kind == "otlphttp" || kind == "otlp_http"
	address, err := cfg.Address(overHTTP)
	if err != nil {
		r.Seen, r.Remedy = err.Error(), "set exporters::"+id+"::endpoint; agent.yaml takes it from GATEWAY_ENDPOINT, host:port"
		return r
	}
	header, err := conf.Credentials(cfg.Headers, cfg.Auth)
	if err != nil {
		r.Seen, r.Remedy = err.Error(), "check the extension that exporters::"+id+"::auth names, and that its file is mounted"
		return r
	}
	var secure *tls.Config
	if address.Scheme == "https" {
		if secure, err = cfg.TLS.Config(); err != nil {
			r.Seen, r.Remedy = err.Error(), "check exporters::"+id+"::tls, and that its files are mounted"
			return r
		}
	}
	if overHTTP {
		err = exportHTTP(ctx, address, secure, header)
	} else {
		err = exportGRPC(ctx, address, secure, header)
	}
	if err == nil {
		r.Status, r.Seen = probe.OK, fmt.Sprintf("%s takes OTLP", address.Host)
		if secure == nil && header.Get("Authorization") != "" {
			r.Status, r.Remedy = probe.Warn, "the token travels unencrypted: switch TLS on, at the gateway and in exporters::"+id+"::tls"
		}
		return r
	}
	r.Seen = address.Host + ": " + rpc.Why(err)
	r.Remedy = remedyOfExport(err, id, secure != nil)
	return r
}

func exportGRPC(ctx context.Context, address *url.URL, secure *tls.Config, header http.Header) error {
	host := address.Host
	if address.Port() == "" {
		host = net.JoinHostPort(address.Hostname(), map[string]string{"http": "80", "https": "443"}[address.Scheme])
	}
	conn, err := rpc.Connect(ctx, "tcp", host, secure)
	if err != nil {
		return err
	}
	defer conn.Close()
	for key := range header {
		ctx = metadata.AppendToOutgoingContext(ctx, key, header.Get(key))
	}
	_, err = pmetricotlp.NewGRPCClient(conn).Export(ctx, pmetricotlp.NewExportRequest())
	return err
}

func exportHTTP(ctx context.Context, address *url.URL, secure *tls.Config, header http.Header) error {
	header.Set("Content-Type", "application/x-protobuf")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: secure, Proxy: http.ProxyFromEnvironment}}
	a, err := web.Do(ctx, client, http.MethodPost, address.String(), header, bytes.NewReader(nil))
	if err != nil {
		return err
	}
	switch {
	case a.Status/100 == 2:
		return nil
	case a.Status == http.StatusUnauthorized:
		return status.Error(codes.Unauthenticated, http.StatusText(a.Status))
	case a.Status == http.StatusForbidden:
		return status.Error(codes.PermissionDenied, http.StatusText(a.Status))
	default:
		return fmt.Errorf("it answers %d", a.Status)
	}
}

func remedyOfExport(err error, id string, secure bool) string {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	switch code := rpc.Code(err); {
	case code == codes.Unauthenticated || code == codes.PermissionDenied:
		return "the token is not the gateway's: compare the Secrets of agent and gateway, and restart both after a change"
	case code == codes.Unimplemented:
		return "it takes no metrics: the address is of something else, or the gateway has no metrics pipeline with otlp"
	case code == codes.Unavailable || code == codes.ResourceExhausted || code == codes.DeadlineExceeded:
		return "the gateway refuses for now: look at its memory (memory_limiter), and run gpuctl doctor there"
	case errors.As(err, &unknown):
		return "set exporters::" + id + "::tls::ca_file to the authority that signed the gateway's certificate"
	case errors.As(err, &host):
		return "set exporters::" + id + "::tls::server_name_override to a name that the certificate has, as the gateway's Service"
	case !secure:
		return "check that the gateway runs and that the address is right; if it has TLS, set GATEWAY_INSECURE=false; a NetworkPolicy may stand between"
	default:
		return "check that the gateway runs and that the address is right; if it has no TLS, set GATEWAY_INSECURE=true; a NetworkPolicy may stand between"
	}
}
