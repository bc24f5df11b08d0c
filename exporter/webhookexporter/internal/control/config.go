// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package control // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/control"

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/pathless"
)

const (
	minControlToken = 16
	maxControlToken = 4096
)

// Config is where and with which token the running exporter can be asked
// for test events and replays. It is off without an endpoint.
type Config struct {
	// Endpoint is host:port, as in localhost:8481. The host has to be named.
	Endpoint string `mapstructure:"control_endpoint"`
	// Token is the bearer token that a request has to carry.
	Token configopaque.String `mapstructure:"control_token"`
	// TokenFile holds the token, instead of Token. It is read for each
	// request, so that a rotated token takes effect.
	TokenFile string `mapstructure:"control_token_file"`
}

func (c Config) Validate() error {
	hasToken := c.Token != "" || c.TokenFile != ""
	if c.Endpoint == "" {
		if hasToken {
			return errors.New("control_token: means nothing without control_endpoint; set that too, as in localhost:8481, or remove the token")
		}
		return nil
	}
	var errs []error
	host, port, err := net.SplitHostPort(c.Endpoint)
	switch n, portErr := strconv.ParseUint(port, 10, 16); {
	case err != nil:
		errs = append(errs, errors.New("control_endpoint: is not host:port, as in localhost:8481"))
	case host == "":
		errs = append(errs, errors.New("control_endpoint: names no host; write localhost, or explicitly 0.0.0.0 for every address of the machine"))
	case portErr != nil || n == 0:
		errs = append(errs, fmt.Errorf("control_endpoint: port %q is not within 1 and 65535", port))
	}
	switch {
	case !hasToken:
		errs = append(errs, errors.New("control_token: is missing; control_endpoint needs one of at least 16 characters, here or in control_token_file"))
	case c.Token != "" && c.TokenFile != "":
		errs = append(errs, errors.New("control_token: is set beside control_token_file; remove one of them"))
	case c.Token != "":
		if err := checkToken(string(c.Token)); err != nil {
			errs = append(errs, fmt.Errorf("control_token: %w", err))
		}
	}
	return errors.Join(errs...)
}

// checkToken refuses tokens that can be guessed or that no header can carry.
func checkToken(token string) error {
	switch {
	case len(token) < minControlToken:
		return fmt.Errorf("has %d characters; it needs at least %d", len(token), minControlToken)
	case len(token) > maxControlToken:
		return fmt.Errorf("has more than %d characters", maxControlToken)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("holds other characters than visible ASCII")
	}
	return nil
}

// token returns the token that is valid now.
func (c Config) token() (string, error) {
	if c.TokenFile == "" {
		return string(c.Token), nil
	}
	f, err := os.Open(c.TokenFile)
	if err != nil {
		return "", fmt.Errorf("control_token_file: cannot be read: %w", pathless.Cause(err))
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxControlToken+2))
	if err != nil {
		return "", fmt.Errorf("control_token_file: cannot be read: %w", pathless.Cause(err))
	}
	token := strings.TrimSpace(string(raw))
	if err := checkToken(token); err != nil {
		return "", fmt.Errorf("control_token_file: %w", err)
	}
	return token, nil
}

// isLoopback reports whether only this machine can reach the endpoint.
func (c Config) isLoopback() bool {
	host, _, _ := net.SplitHostPort(c.Endpoint)
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
