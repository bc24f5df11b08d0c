// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// sharing is an API with requests that share for two seconds.
func sharing(t *testing.T, s store.Store, now func() time.Time) *client {
	t.Helper()
	c := serveAPI(t, s, time.Time{}, nil) // for its comparison with the contract
	config := createDefaultConfig().(*Config)
	set := extension.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: componenttest.NewNopTelemetrySettings(), BuildInfo: component.NewDefaultBuildInfo()}
	e, err := newExtension(set, config)
	require.NoError(t, err)
	e.now = now
	c.handler, err = newAPI(config, s, e.reader(s), set, e.telemetry).handler()
	require.NoError(t, err)
	return c
}

func TestRequestsShareWhatTheStoreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{}
		c := sharing(t, s, time.Now)
		evaluated := func(path string) time.Time {
			if path == "status" {
				return ok[consoleapi.StatusAnswer](c, path, nil).Freshness.EvaluatedAt
			}
			return ok[consoleapi.ServicesAnswer](c, path, nil).Freshness.EvaluatedAt
		}
		first := evaluated("services")
		asked := s.queries()
		require.Positive(t, asked)

		time.Sleep(1900 * time.Millisecond)
		assert.Equal(t, first, evaluated("services"), "of the moment of the first, and says so")
		assert.Equal(t, asked, s.queries())
		assert.Equal(t, first, evaluated("status"))
		assert.Equal(t, asked+3, s.queries(), "status asks for the same, with which window to open, and whether there ever was anything")

		time.Sleep(200 * time.Millisecond)
		assert.Equal(t, first.Add(2100*time.Millisecond), evaluated("services"))
		assert.Equal(t, 2*asked+3, s.queries(), "what is older than share_for is read again")
	})
}

// Several at once get what each would get alone.
func TestSharedAnswersAreThoseOfOne(t *testing.T) {
	w := newWorld(t)
	fill(w, 16)
	now := func() time.Time { return w.now }
	alone, shared := serveAPI(t, w.store, w.now, nil), sharing(t, w.store, now)
	requests := []string{"status", "services", "nodes", "pods?cluster=c1&namespace=ml&service=svc-1", "range?cluster=c1&namespace=ml&service=svc-1&by=pod&window=30m"}
	ask := func(c *client, request string) string {
		answer := httptest.NewRecorder()
		c.handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://localhost/api/v1/"+request, nil))
		return answer.Body.String()
	}
	var group sync.WaitGroup
	for range 2 {
		for _, request := range requests {
			group.Go(func() {
				assert.JSONEq(t, ask(alone, request), ask(shared, request), request)
			})
		}
	}
	group.Wait()
}

func TestAFailureIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{}
		c := sharing(t, s, time.Now)
		s.set(store.Errorf(store.Unavailable, "the store is down"))
		assert.Equal(t, http.StatusBadGateway, c.get("services", nil).status)
		s.set(nil)
		assert.Equal(t, http.StatusOK, c.get("services", nil).status)
	})
}

// A caller that leaves does not affect the others, and a query without callers ends.
func TestWhoLeavesASharedQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, ended := make(chan struct{}), 0
		s := &fakeStore{}
		s.ask = func(ctx context.Context) error {
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				s.mu.Lock()
				ended++
				s.mu.Unlock()
				return store.Errorf(store.Canceled, "gone")
			}
		}
		c := sharing(t, s, time.Now)
		request := func() (context.CancelFunc, *httptest.ResponseRecorder) {
			ctx, cancel := context.WithCancel(t.Context())
			w := httptest.NewRecorder()
			go c.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/api/v1/services", nil).WithContext(ctx))
			synctest.Wait()
			return cancel, w
		}
		leave, _ := request()
		asked := s.queries()
		stay, answered := request()
		defer stay()
		assert.Equal(t, asked, s.queries())
		leave()
		synctest.Wait()
		assert.Zero(t, ended)
		close(release)
		synctest.Wait()
		assert.Equal(t, http.StatusOK, answered.Code)

		time.Sleep(3 * time.Second)
		release = make(chan struct{})
		before := s.queries()
		leave, alone := request()
		leave()
		synctest.Wait()
		assert.Positive(t, ended)
		assert.Equal(t, s.queries()-before, ended, "all that the request had asked")
		assert.Equal(t, statusGone, alone.Code)
	})
}
