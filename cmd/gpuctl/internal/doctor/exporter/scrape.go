// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/web"
)

// scrapeConfig are the keys of a scrape_config that a request needs.
// Prometheus' own client has more.
type scrapeConfig struct {
	TLS struct {
		CA                 string `mapstructure:"ca"`
		CAFile             string `mapstructure:"ca_file"`
		CertFile           string `mapstructure:"cert_file"`
		KeyFile            string `mapstructure:"key_file"`
		ServerName         string `mapstructure:"server_name"`
		InsecureSkipVerify bool   `mapstructure:"insecure_skip_verify"`
	} `mapstructure:"tls_config"`
	BasicAuth *struct {
		Username     string `mapstructure:"username"`
		UsernameFile string `mapstructure:"username_file"`
		Password     string `mapstructure:"password"`
		PasswordFile string `mapstructure:"password_file"`
	} `mapstructure:"basic_auth"`
	Authorization *struct {
		Type            string `mapstructure:"type"`
		Credentials     string `mapstructure:"credentials"`
		CredentialsFile string `mapstructure:"credentials_file"`
	} `mapstructure:"authorization"`
	// What is not done here.
	OAuth2   any `mapstructure:"oauth2"`
	ProxyURL any `mapstructure:"proxy_url"`
}

// client is an HTTP client that asks as the receiver does.
func (s *scrapeConfig) client() (*http.Client, error) {
	if s.OAuth2 != nil || s.ProxyURL != nil {
		return nil, fmt.Errorf("scrape::oauth2 and scrape::proxy_url cannot be used from here")
	}
	t := config.TLSClient{
		InsecureSkipVerify: s.TLS.InsecureSkipVerify, CAFile: s.TLS.CAFile, CAPem: s.TLS.CA,
		CertFile: s.TLS.CertFile, KeyFile: s.TLS.KeyFile, ServerName: s.TLS.ServerName,
	}
	secure, err := t.Config()
	if err != nil {
		return nil, err
	}
	value, err := s.credentials()
	if err != nil {
		return nil, err
	}
	client := web.Direct(secure)
	if value != "" {
		client.Transport = withAuthorization{client.Transport, value}
	}
	return client, nil
}

// credentials are the header Authorization, or nothing.
func (s *scrapeConfig) credentials() (string, error) {
	switch {
	case s.BasicAuth != nil:
		user, err := orFile(s.BasicAuth.Username, s.BasicAuth.UsernameFile)
		if err != nil {
			return "", err
		}
		password, err := orFile(s.BasicAuth.Password, s.BasicAuth.PasswordFile)
		if err != nil {
			return "", err
		}
		req := &http.Request{Header: http.Header{}}
		req.SetBasicAuth(user, password)
		return req.Header.Get("Authorization"), nil
	case s.Authorization != nil:
		secret, err := orFile(s.Authorization.Credentials, s.Authorization.CredentialsFile)
		if err != nil {
			return "", err
		}
		kind := s.Authorization.Type
		if kind == "" {
			kind = "Bearer"
		}
		return kind + " " + secret, nil
	}
	return "", nil
}

// orFile is a value, or what its file holds.
func orFile(value, file string) (string, error) {
	if file == "" {
		return value, nil
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}

// withAuthorization adds a header to each request. It is shown nowhere.
type withAuthorization struct {
	http.RoundTripper
	value string
}

func (w withAuthorization) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", w.value)
	return w.RoundTripper.RoundTrip(req)
}
