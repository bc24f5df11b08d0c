// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// contract is the OpenAPI document, strict about what answers: clients must expect
// fields that they do not know, and the document must have all that there are.
var contract = sync.OnceValues(func() (routers.Router, error) {
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		return nil, err
	}
	doc.Servers = openapi3.Servers{{URL: "http://localhost"}}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	for _, schema := range doc.Components.Schemas {
		seal(schema)
	}
	return gorillamux.NewRouter(doc)
})

// seal makes fields that a schema does not name errors, in all objects within it.
func seal(schema *openapi3.SchemaRef) {
	if schema == nil || schema.Ref != "" {
		return // it is sealed where it is defined
	}
	s := schema.Value
	if len(s.Properties) > 0 && s.AdditionalProperties.Has == nil && s.AdditionalProperties.Schema == nil {
		no := false
		s.AdditionalProperties.Has = &no
	}
	for _, property := range s.Properties {
		seal(property)
	}
	for _, part := range s.AllOf {
		seal(part)
	}
	seal(s.Items)
	seal(s.AdditionalProperties.Schema)
}

// A field that the contract does not have is found, wherever it is.
func TestContractIsStrict(t *testing.T) {
	router, err := contract()
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodGet, "http://localhost/api/v1/pods?namespace=ml&service=chat", nil)
	route, path, err := router.FindRoute(r)
	require.NoError(t, err)
	validate := func(body string) error {
		out := &openapi3filter.ResponseValidationInput{
			RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: path, Route: route},
			Status:                 http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		}
		return openapi3filter.ValidateResponse(t.Context(), out.SetBodyBytes([]byte(body)))
	}
	const freshness = `"evaluated_at":"2026-01-01T00:00:00Z","data_time":null,"data_age":null,"stale":false,"stale_after":45`
	const pod = `"pod":"chat-0","state":"missing","node":null,"exporter":"up","devices":[],"data_time":null,"data_age":null,"stale":true`
	const values = `"utilization":null,"memory_used":null,"memory_total":null,"tensor":null,"sm":null,"dram":null,"fp16":null,"fp32":null,"power":null`
	body := func(top, within, deep string) string {
		return `{"freshness":{` + freshness + within + `},"pods":[{` + pod + `,"values":{` + values + deep + `},"not_measured":[],"coverage":{` + values + `}}],"total":1,"next":null` + top + `}`
	}
	require.NoError(t, validate(body("", "", "")))
	for _, unknown := range []string{body(`,"more":1`, "", ""), body("", `,"more":1`, ""), body("", "", `,"more":1`)} {
		require.ErrorContains(t, validate(unknown), `property "more" is unsupported`)
	}
}

// client asks an API, and compares every answer with the contract.
type client struct {
	t       testing.TB
	handler http.Handler
	logs    *observer.ObservedLogs
}

// serveAPI is the API over a store, without a port.
func serveAPI(t testing.TB, s store.Store, now time.Time, change func(*Config)) *client {
	t.Helper()
	return serveAPIAt(t, s, func() time.Time { return now }, change)
}

// serveAPIAt is serveAPI with a clock.
func serveAPIAt(t testing.TB, s store.Store, now func() time.Time, change func(*Config)) *client {
	t.Helper()
	config := createDefaultConfig().(*Config)
	config.ShareFor = 0 // tests write, and ask in the same moment
	if change != nil {
		change(config)
	}
	require.NoError(t, config.Validate())
	core, logs := observer.New(zapcore.InfoLevel)
	set := extension.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: componenttest.NewNopTelemetrySettings(), BuildInfo: component.NewDefaultBuildInfo()}
	set.Logger = zap.New(core)
	c, err := newExtension(set, config)
	require.NoError(t, err)
	c.now = now
	handler, err := newAPI(config, s, c.reader(s), c.settings, c.telemetry).handler()
	require.NoError(t, err)
	return &client{t: t, handler: handler, logs: logs}
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// get asks for a path and query, which the contract allows or does not.
func (c *client) get(path string, query url.Values) answer {
	c.t.Helper()
	target := "http://localhost/api/v1/" + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return c.do(httptest.NewRequest(http.MethodGet, target, nil))
}

func (c *client) do(r *http.Request) answer {
	c.t.Helper()
	w := httptest.NewRecorder()
	body, err := io.ReadAll(r.Body)
	require.NoError(c.t, err)
	r.Body = io.NopCloser(bytes.NewReader(body))
	c.handler.ServeHTTP(w, r)
	got := answer{w.Code, w.Header(), w.Body.Bytes()}
	r.Body = io.NopCloser(bytes.NewReader(body)) // the contract is about it, too
	c.keepsContract(r, got)
	return got
}

// keepsContract compares request and answer with the contract. What the contract
// forbids to ask must have been refused.
func (c *client) keepsContract(r *http.Request, got answer) {
	c.t.Helper()
	router, err := contract()
	require.NoError(c.t, err)
	route, path, err := router.FindRoute(r)
	if err != nil {
		require.Contains(c.t, []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusForbidden, http.StatusUnauthorized}, got.status, "%s: %v", r.URL, err)
		return
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: path, Route: route, Options: &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true,
	}}
	if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil && got.status != http.StatusServiceUnavailable && got.status != http.StatusUnauthorized {
		require.Equal(c.t, http.StatusBadRequest, got.status, "%s: %v", r.URL, err)
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: got.status, Header: got.header, Options: in.Options}
	out.Body = io.NopCloser(bytes.NewReader(got.body))
	require.NoError(c.t, openapi3filter.ValidateResponse(r.Context(), out), "%s", r.URL)
	require.Equal(c.t, "no-store", got.header.Get("Cache-Control"))
}

// ok is the answer to a request that must succeed. Fields that the Go type does
// not have, or does not write, are errors.
func ok[T any](c *client, path string, query url.Values) T {
	c.t.Helper()
	got := c.get(path, query)
	require.Equal(c.t, http.StatusOK, got.status, "%s", got.body)
	var v T
	d := json.NewDecoder(bytes.NewReader(got.body))
	d.DisallowUnknownFields()
	require.NoError(c.t, d.Decode(&v))
	return v
}

func values(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}
