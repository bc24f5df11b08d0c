// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
)

// methodExport takes metrics. An empty request is none.
const methodExport = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"

// otlpExporter is what matters here of an exporter's configuration.
type otlpExporter struct {
	Endpoint        string         `mapstructure:"endpoint"`
	MetricsEndpoint string         `mapstructure:"metrics_endpoint"`
	TLS             tlsClient      `mapstructure:"tls"`
	Headers         any            `mapstructure:"headers"`
	Auth            authentication `mapstructure:"auth"`
}

type authentication struct {
	Authenticator string `mapstructure:"authenticator"`
}

type tlsClient struct {
	Insecure           bool   `mapstructure:"insecure"`
	InsecureSkipVerify bool   `mapstructure:"insecure_skip_verify"`
	CAFile             string `mapstructure:"ca_file"`
	CAPem              string `mapstructure:"ca_pem"`
	CertFile           string `mapstructure:"cert_file"`
	KeyFile            string `mapstructure:"key_file"`
	ServerName         string `mapstructure:"server_name_override"`
}

// checkGateway exports nothing to wherever the collector sends OTLP: that shows
// the way, its certificate and the token.
func (in *installation) checkGateway(ctx context.Context) []Result {
	var results []Result
	for _, c := range in.of("exporters", "otlp", "otlp_grpc", "otlphttp", "otlp_http") {
		var cfg otlpExporter
		if err := c.read(&cfg); err != nil {
			results = append(results, Result{"gateway", c.id, Fail, err.Error(), "otelcol-gpu validate with the same --config says why"})
			continue
		}
		results = append(results, in.export(ctx, c.id, cfg))
	}
	if len(results) == 0 {
		return []Result{{"gateway", "", Skipped, "the configuration sends OTLP nowhere", ""}}
	}
	return results
}

func (in *installation) export(ctx context.Context, id string, cfg otlpExporter) Result {
	r := Result{Check: "gateway", Subject: id, Status: Fail}
	kind, _, _ := strings.Cut(id, "/")
	overHTTP := kind == "otlphttp" || kind == "otlp_http"
	address, err := addressOf(cfg, overHTTP)
	if err != nil {
		r.Seen, r.Remedy = err.Error(), "set exporters::"+id+"::endpoint; agent.yaml takes it from GATEWAY_ENDPOINT, host:port"
		return r
	}
	header, err := in.credentials(cfg)
	if err != nil {
		r.Seen, r.Remedy = err.Error(), "check the extension that exporters::"+id+"::auth names, and that its file is mounted"
		return r
	}
	var secure *tls.Config
	if address.Scheme == "https" {
		if secure, err = cfg.TLS.config(); err != nil {
			r.Seen, r.Remedy = err.Error(), "check exporters::"+id+"::tls, and that its files are mounted"
			return r
		}
	}
	if overHTTP {
		err = exportHTTP(ctx, address, secure, header)
	} else {
		transport := grpcTransport(secure, nil)
		defer transport.CloseIdleConnections()
		_, err = call(ctx, transport, *address, methodExport, header)
	}
	if err == nil {
		r.Status, r.Seen = OK, fmt.Sprintf("%s takes OTLP", address.Host)
		if secure == nil && header.Get("Authorization") != "" {
			r.Status, r.Remedy = Warn, "the token travels unencrypted: switch TLS on, at the gateway and in exporters::"+id+"::tls"
		}
		return r
	}
	r.Seen = address.Host + ": " + why(err)
	r.Remedy = remedyOfExport(err, id, secure != nil)
	return r
}

// addressOf is where an exporter sends metrics.
func addressOf(cfg otlpExporter, overHTTP bool) (*url.URL, error) {
	text := cfg.Endpoint
	if overHTTP && cfg.MetricsEndpoint != "" {
		text = cfg.MetricsEndpoint
	}
	if text == "" {
		return nil, errors.New("there is no endpoint")
	}
	if scheme, rest, found := strings.Cut(text, ":///"); found && (scheme == "dns" || scheme == "passthrough") {
		text = rest
	}
	if !strings.Contains(text, "://") {
		scheme := "https"
		if cfg.TLS.Insecure {
			scheme = "http"
		}
		text = scheme + "://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the endpoint is no address")
	}
	if overHTTP && cfg.MetricsEndpoint == "" {
		u = u.JoinPath("v1", "metrics")
	}
	return u, nil
}

func exportHTTP(ctx context.Context, address *url.URL, secure *tls.Config, header http.Header) error {
	header.Set("Content-Type", "application/x-protobuf")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: secure, Proxy: http.ProxyFromEnvironment}}
	a, err := do(ctx, client, http.MethodPost, address.String(), header, bytes.NewReader(nil))
	if err != nil {
		return err
	}
	switch {
	case a.status/100 == 2:
		return nil
	case a.status == http.StatusUnauthorized:
		return &grpcError{grpcUnauthenticated, http.StatusText(a.status)}
	case a.status == http.StatusForbidden:
		return &grpcError{grpcPermission, http.StatusText(a.status)}
	default:
		return fmt.Errorf("it answers %d", a.status)
	}
}

func remedyOfExport(err error, id string, secure bool) string {
	var refused *grpcError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	switch {
	case errors.As(err, &refused) && (refused.code == grpcUnauthenticated || refused.code == grpcPermission):
		return "the token is not the gateway's: compare the Secrets of agent and gateway, and restart both after a change"
	case errors.As(err, &refused) && refused.code == grpcUnimplemented:
		return "it takes no metrics: the address is of something else, or the gateway has no metrics pipeline with otlp"
	case errors.As(err, &refused) && (refused.code == grpcUnavailable || refused.code == grpcExhausted || refused.code == grpcDeadline):
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

func (t *tlsClient) config() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: t.InsecureSkipVerify}
	pem := []byte(t.CAPem)
	if t.CAFile != "" {
		var err error
		if pem, err = os.ReadFile(t.CAFile); err != nil {
			return nil, err
		}
	}
	if len(pem) > 0 {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("the authority (ca_file, ca_pem) holds no certificate")
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, err
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// credentials are the headers that the exporter sends. They are shown nowhere.
func (in *installation) credentials(cfg otlpExporter) (http.Header, error) {
	header := http.Header{}
	switch headers := cfg.Headers.(type) {
	case map[string]any:
		for key, value := range headers {
			header.Set(key, fmt.Sprint(value))
		}
	case []any:
		for _, one := range headers {
			pair := mapOf(one)
			header.Set(fmt.Sprint(pair["name"]), fmt.Sprint(pair["value"]))
		}
	}
	id := cfg.Auth.Authenticator
	if id == "" {
		return header, nil
	}
	conf, there := in.extension(id)
	kind, _, _ := strings.Cut(id, "/")
	switch {
	case !there:
		return nil, fmt.Errorf("the authenticator %s is not configured", id)
	case kind != "bearertokenauth":
		return nil, fmt.Errorf("the authenticator %s cannot be used from here", id)
	case !in.used["extensions/"+id]:
		return nil, fmt.Errorf("the authenticator %s is not in service::extensions", id)
	}
	bearer := struct {
		Scheme   string `mapstructure:"scheme"`
		Header   string `mapstructure:"header"`
		Token    string `mapstructure:"token"`
		Filename string `mapstructure:"filename"`
	}{Scheme: "Bearer", Header: "Authorization"}
	if err := (component{id, conf}).read(&bearer); err != nil {
		return nil, err
	}
	if bearer.Filename != "" {
		text, err := os.ReadFile(bearer.Filename)
		if err != nil {
			return nil, err
		}
		// Of several tokens, one a line, a client uses the first.
		bearer.Token, _, _ = strings.Cut(strings.TrimSpace(string(text)), "\n")
		bearer.Token = strings.TrimSpace(bearer.Token)
	}
	if bearer.Token == "" {
		return nil, fmt.Errorf("the token of %s is empty", id)
	}
	if strings.ContainsFunc(bearer.Token, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, fmt.Errorf("the token of %s has characters that no token has", id)
	}
	value := strings.Join(slices.DeleteFunc([]string{bearer.Scheme, bearer.Token}, func(s string) bool { return s == "" }), " ")
	header.Set(bearer.Header, value)
	return header, nil
}
