// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension"

import (
	"context"
	"fmt"
	"net/http"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/extensionauth"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/listening"
)

// newAuthenticator returns the authenticator of the API; nil is none.
func newAuthenticator(ctx context.Context, c *Config, host component.Host) (extensionauth.Server, error) {
	if !c.Auth.HasValue() {
		return nil, nil
	}
	server, err := c.Auth.Get().Config.GetServerAuthenticator(ctx, host.GetExtensions())
	if err != nil {
		return nil, fmt.Errorf("auth::authenticator: %w", err)
	}
	return server, nil
}

// access decides who may ask the API.
type access struct {
	config        *Config
	authenticator extensionauth.Server // nil: no authentication
}

// authenticated passes requests that the authenticator accepts.
func (a *access) authenticated(r *http.Request) (*http.Request, *failure) {
	if a.authenticator == nil {
		return r, nil
	}
	sources := map[string][]string(r.Header)
	ctx, err := a.authenticator.Authenticate(r.Context(), sources)
	if err != nil {
		// Not its text: it may reveal more than a client should know.
		detail := "The token that was sent is not valid."
		if r.Header.Get("Authorization") == "" {
			detail = "Send one as Authorization: Bearer."
		}
		return nil, fail(http.StatusUnauthorized, consoleapi.Unauthenticated, "A token is needed.", detail)
	}
	return r.WithContext(ctx), nil
}

// localOnly refuses requests for another host than this machine, where nothing
// else guards the API. A page from elsewhere can make a browser ask loopback
// under a name of its own, and would read the answers; or ask without reading them,
// and what was asked for is done.
func (a *access) localOnly(r *http.Request) *failure {
	if a.authenticator != nil || a.config.NetAddr.Transport == "unix" {
		return nil
	}
	if listening.LocalRequest(r, a.config.AllowedHosts) {
		return nil
	}
	return fail(http.StatusForbidden, consoleapi.Unauthenticated, "This console is for its own machine alone.",
		"Ask for localhost, name the host in allowed_hosts, or configure auth.")
}
