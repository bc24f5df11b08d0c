// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
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

// OTLPExporter is what is read of an exporter's configuration.
type OTLPExporter struct {
	Endpoint        string         `mapstructure:"endpoint"`
	MetricsEndpoint string         `mapstructure:"metrics_endpoint"`
	TLS             TLSClient      `mapstructure:"tls"`
	Headers         any            `mapstructure:"headers"`
	Auth            Authentication `mapstructure:"auth"`
}

// Authentication names an authenticator.
type Authentication struct {
	Authenticator string `mapstructure:"authenticator"`
}

// TLSClient are the keys of TLS that a client needs.
type TLSClient struct {
	Insecure           bool   `mapstructure:"insecure"`
	InsecureSkipVerify bool   `mapstructure:"insecure_skip_verify"`
	CAFile             string `mapstructure:"ca_file"`
	CAPem              string `mapstructure:"ca_pem"`
	CertFile           string `mapstructure:"cert_file"`
	KeyFile            string `mapstructure:"key_file"`
	ServerName         string `mapstructure:"server_name_override"`
}

// Address is where the exporter sends metrics.
func (cfg OTLPExporter) Address(overHTTP bool) (*url.URL, error) {
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

// Config reads the files.
func (t *TLSClient) Config() (*tls.Config, error) {
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

// Credentials are the headers that a client sends. They are shown nowhere.
func (c *Configuration) Credentials(headers any, auth Authentication) (http.Header, error) {
	header := http.Header{}
	switch headers := headers.(type) {
	case map[string]any:
		for key, value := range headers {
			header.Set(key, fmt.Sprint(value))
		}
	case []any:
		for _, one := range headers {
			pair := MapOf(one)
			header.Set(fmt.Sprint(pair["name"]), fmt.Sprint(pair["value"]))
		}
	}
	id := auth.Authenticator
	if id == "" {
		return header, nil
	}
	conf, there := c.Extension(id)
	kind, _, _ := strings.Cut(id, "/")
	switch {
	case !there:
		return nil, fmt.Errorf("the authenticator %s is not configured", id)
	case kind != "bearertokenauth":
		return nil, fmt.Errorf("the authenticator %s cannot be used from here", id)
	case !c.used["extensions/"+id]:
		return nil, fmt.Errorf("the authenticator %s is not in service::extensions", id)
	}
	bearer := struct {
		Scheme   string `mapstructure:"scheme"`
		Header   string `mapstructure:"header"`
		Token    string `mapstructure:"token"`
		Filename string `mapstructure:"filename"`
	}{Scheme: "Bearer", Header: "Authorization"}
	if err := (Component{id, conf}).Read(&bearer); err != nil {
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

// TLSServer are the keys of a listener's TLS that are looked at.
type TLSServer struct {
	CertFile string `mapstructure:"cert_file"`
	KeyFile  string `mapstructure:"key_file"`
}
