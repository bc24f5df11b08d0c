// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
)

// everyEndpoint is a request to each.
var everyEndpoint = map[string]string{
	"status": "", "services": "", "service": "namespace=ml&service=chat", "pods": "namespace=ml&service=chat", "nodes": "",
	"range": "namespace=ml&service=chat&window=5m", "device_range": "node=n&window=5m", "events": "", "cost": "",
}

func reasonOf(t testing.TB, a answer) consoleapi.Error {
	t.Helper()
	var e consoleapi.Error
	require.NoError(t, json.Unmarshal(a.body, &e), "%s", a.body)
	return e
}

func (c *client) query(path, query string) answer {
	c.t.Helper()
	return c.do(httptest.NewRequest(http.MethodGet, "http://localhost/api/v1/"+path+"?"+query, nil))
}

// More requests at once than allowed are refused at once, by every endpoint, and
// are answered when there is room again.
func TestConcurrentRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := &fakeStore{ask: func(ctx context.Context) error {
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return store.Errorf(store.Canceled, "canceled")
			}
		}}
		c := serveAPI(t, s, time.Now(), func(c *Config) { c.MaxConcurrentRequests = 3 })
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { assert.Equal(t, http.StatusOK, c.query("services", "").status) })
		}
		synctest.Wait()
		for path, query := range everyEndpoint {
			got := c.query(path, query)
			assert.Equal(t, http.StatusServiceUnavailable, got.status, path)
			assert.Equal(t, "2", got.header.Get("Retry-After"))
			e := reasonOf(t, got)
			assert.Equal(t, consoleapi.Busy, e.Reason)
			assert.Contains(t, e.Detail, "max_concurrent_requests")
		}
		close(release)
		wg.Wait()
		for path, query := range everyEndpoint {
			assert.NotEqual(t, http.StatusServiceUnavailable, c.query(path, query).status, path)
		}
	})
}

func TestQueryTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{ask: func(ctx context.Context) error {
			<-ctx.Done()
			return store.Errorf(store.Canceled, "canceled")
		}}
		c := serveAPI(t, s, time.Now(), func(c *Config) { c.QueryTimeout = 3 * time.Second })
		began := time.Now()
		got := c.query("services", "")
		assert.Equal(t, 3*time.Second, time.Since(began))
		assert.Equal(t, http.StatusBadGateway, got.status)
		assert.Equal(t, consoleapi.UpstreamTimeout, reasonOf(t, got).Reason)
		assert.Contains(t, reasonOf(t, got).Detail, "query_timeout")
	})
}

// Errors of the store are explained; those that are its fault open the circuit.
func TestErrorsOfTheStore(t *testing.T) {
	for _, test := range []struct {
		err    error
		reason consoleapi.ErrorReason
		opens  bool
	}{
		{store.Errorf(store.Unavailable, "the server at url (p:9090) cannot be reached: connection refused"), consoleapi.UpstreamUnreachable, true},
		{store.Errorf(store.Unavailable, "the server at url (p:9090) answers, but not as Prometheus does: no JSON"), consoleapi.UpstreamInvalid, true},
		{store.Errorf(store.Timeout, "took longer than a query may"), consoleapi.UpstreamTimeout, true},
		{store.Errorf(store.Busy, "10 queries are running"), consoleapi.UpstreamTimeout, true},
		{store.Errorf(store.Internal, "the disk is broken"), consoleapi.UpstreamUnreachable, true},
		{errors.New("anything"), consoleapi.UpstreamUnreachable, true},
		{store.Errorf(store.TooMuch, "the query would hold more than 1000 samples (max_samples)"), consoleapi.QueryLimit, false},
		{store.Errorf(store.BadQuery, "parse error"), consoleapi.UpstreamRejected, false},
	} {
		s := &fakeStore{err: test.err}
		c := serveAPI(t, s, time.Now(), func(c *Config) { c.CircuitBreaker.Failures = 3 })
		for range 3 {
			for path, query := range everyEndpoint {
				if path == "status" || path == "events" {
					continue
				}
				got := c.query(path, query)
				require.Equal(t, http.StatusBadGateway, got.status, path)
				if e := reasonOf(t, got); e.Reason != consoleapi.CircuitOpen {
					assert.Equal(t, test.reason, e.Reason)
					assert.Contains(t, strings.ToLower(e.Detail), strings.ToLower(test.err.Error()))
				}
			}
		}
		got := c.query("services", "")
		assert.Equal(t, test.opens, reasonOf(t, got).Reason == consoleapi.CircuitOpen, "%v", test.err)
		status := ok[consoleapi.StatusAnswer](c, "status", nil)
		assert.Equal(t, consoleapi.StoreUnreachable, status.State)
		assert.False(t, status.Store.Reachable)
		assert.Equal(t, test.opens, status.Store.CircuitOpen)
		require.NotNil(t, status.Store.Error)
		assert.Nil(t, status.Telemetry.Devices)
		assert.Nil(t, status.Freshness.DataTime)
		assert.Zero(t, ok[consoleapi.EventsAnswer](c, "events", nil).Total, "events are there all the same")
	}
}

func TestCircuitBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := store.Errorf(store.Unavailable, "connection refused")
		s := &fakeStore{err: down}
		c := serveAPI(t, s, time.Now(), func(c *Config) { c.CircuitBreaker = CircuitBreakerConfig{Failures: 3, OpenFor: 10 * time.Second} })
		reason := func() consoleapi.ErrorReason { return reasonOf(t, c.query("services", "")).Reason }
		for range 3 {
			assert.Equal(t, consoleapi.UpstreamUnreachable, reason())
		}
		before := s.queries()
		time.Sleep(4 * time.Second)
		got := c.query("services", "")
		assert.Equal(t, consoleapi.CircuitOpen, reasonOf(t, got).Reason)
		assert.Equal(t, "6", got.header.Get("Retry-After"))
		assert.Contains(t, reasonOf(t, got).Detail, "Connection refused.")
		assert.Equal(t, before, s.queries(), "the store is left alone")

		// One request tries. While it waits, others get an error.
		time.Sleep(7 * time.Second)
		s.ask = func(context.Context) error { time.Sleep(time.Second); return down }
		var wg sync.WaitGroup
		wg.Go(func() { assert.Equal(t, consoleapi.UpstreamUnreachable, reason()) })
		synctest.Wait()
		assert.Equal(t, consoleapi.CircuitOpen, reason())
		wg.Wait()
		assert.Equal(t, consoleapi.CircuitOpen, reason(), "it failed: open again")

		time.Sleep(11 * time.Second)
		s.ask = nil
		s.set(nil)
		assert.Equal(t, http.StatusOK, c.query("services", "").status)
		assert.Equal(t, http.StatusOK, c.query("nodes", "").status)
		assert.Equal(t, 1, c.logs.FilterMessage("the store answers again").Len())
	})
}

// A client that goes away proves nothing about the store, even if theirs was the
// request that tried.
func TestCircuitBreakerAndClientsThatGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{err: store.Errorf(store.Unavailable, "connection refused")}
		c := serveAPI(t, s, time.Now(), func(c *Config) { c.CircuitBreaker.Failures = 2 })
		c.query("services", "")
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		s.set(store.Errorf(store.Canceled, "canceled"))
		ask := func() {
			w := httptest.NewRecorder()
			c.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/api/v1/services", nil).WithContext(gone))
			assert.Equal(t, statusGone, w.Code)
		}
		ask()
		s.set(store.Errorf(store.Unavailable, "connection refused"))
		assert.Equal(t, consoleapi.UpstreamUnreachable, reasonOf(t, c.query("services", "")).Reason)
		assert.Equal(t, consoleapi.CircuitOpen, reasonOf(t, c.query("services", "")).Reason)
		time.Sleep(11 * time.Second)
		s.set(store.Errorf(store.Canceled, "canceled"))
		ask()
		s.set(nil)
		assert.Equal(t, http.StatusOK, c.query("services", "").status)
	})
}

// What answers is not always what it should be.
func TestStoreOfAnotherMind(t *testing.T) {
	c := serveAPI(t, &fakeStore{value: &model.String{Value: "no"}}, time.Now(), nil)
	assert.Equal(t, consoleapi.UpstreamInvalid, reasonOf(t, c.query("services", "")).Reason)
	assert.Equal(t, consoleapi.UpstreamInvalid, reasonOf(t, c.query("range", "namespace=a&service=b&window=5m")).Reason)
}

// A defect ends one request, not the others.
func TestDefect(t *testing.T) {
	api := newDefectiveAPI(t, &fakeStore{})
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/api/v1/defect", nil))
	assert.Equal(t, http.StatusInternalServerError, w.Code)
	assert.Contains(t, w.Body.String(), `"internal"`)
}

func newDefectiveAPI(t *testing.T, s store.Store) http.Handler {
	t.Helper()
	set := extension.Settings{TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	c, err := newExtension(set, createDefaultConfig().(*Config))
	require.NoError(t, err)
	a := newAPI(c.config, s, c.reader(s), c.settings, c.telemetry)
	return a.serve(endpoint{name: "defect", answer: func(context.Context, *parameters) (any, error) { panic("a defect") }})
}
