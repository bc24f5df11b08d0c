// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreextension

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/extension/extensionauth/extensionauthtest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

func sample(name string, at time.Time, v float64, pairs ...string) store.Series {
	return store.Series{
		Labels:  labels.FromStrings(append([]string{model.MetricNameLabel, name}, pairs...)...),
		Samples: []store.Sample{{Time: at.UnixMilli(), Value: v}},
	}
}

// A reload stops an extension and starts the next one on the same directory.
func TestReload(t *testing.T) {
	c := configured(t, nil)
	now := time.Now().Truncate(time.Second)
	for i := range 3 {
		set, _, _ := settings(t)
		g, err := newExtension(set, c)
		require.NoError(t, err)
		require.NoError(t, g.Start(t.Context(), host{}))
		a, err := g.Append(t.Context(), []store.Series{sample("m", now.Add(time.Duration(i)*time.Second), float64(i))})
		require.NoError(t, err)
		assert.Equal(t, 1, a.Stored)
		require.NoError(t, g.AppendEvents(t.Context(), []*store.Event{{ID: fmt.Sprint(i), Name: "e"}}))
		r, err := g.Instant(t.Context(), `count_over_time(m[1m])`, now.Add(10*time.Second))
		require.NoError(t, err)
		assert.Equal(t, model.SampleValue(i+1), r.Value.(model.Vector)[0].Value)
		assert.Len(t, g.Events(store.EventQuery{}), i+1)
		require.NoError(t, g.Shutdown(t.Context()))
		require.NoError(t, g.Shutdown(t.Context()), "once more does no harm")
	}
}

func TestBeforeTheStartThereIsNothing(t *testing.T) {
	set, _, _ := settings(t)
	g, err := newExtension(set, configured(t, nil))
	require.NoError(t, err)
	_, err = g.Instant(t.Context(), "m", time.Now())
	assert.Equal(t, store.Unavailable, store.KindOf(err))
	_, err = g.Append(t.Context(), []store.Series{sample("m", time.Now(), 1)})
	assert.Equal(t, store.Unavailable, store.KindOf(err))
	assert.Error(t, g.AppendEvents(t.Context(), []*store.Event{{ID: "1"}}))
	assert.Empty(t, g.Events(store.EventQuery{}))
	assert.Empty(t, g.Deliveries(store.DeliveryQuery{}))
	g.KeepAudit(1, &audit.Record{ID: "1"})
	assert.Error(t, g.Health(t.Context()))
	require.NoError(t, g.Shutdown(t.Context()))
}

// A start that fails reports why, and leaves nothing behind that is in the way of
// the next one.
func TestStartsThatFail(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, taken.Close()) })
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	missing := component.MustNewID("nobody")
	for name, tc := range map[string]struct {
		change  func(*Config)
		reports []string
	}{
		"port taken":    {func(c *Config) { c.API.NetAddr.Endpoint = taken.Addr().String() }, []string{"api::endpoint:", "set another"}},
		"no directory":  {func(c *Config) { c.Directory = filepath.Join(file, "x") }, []string{"directory:", file}},
		"authenticator": {func(c *Config) { c.API.Auth = auth(missing) }, []string{"api:", "nobody"}},
		"authenticator of the client": {func(c *Config) {
			c.Engine, c.Prometheus.URL = enginePrometheus, "http://localhost:1"
			c.Prometheus.Auth = configoptional.Some(configauth.Config{AuthenticatorID: missing})
		}, []string{"prometheus:", "nobody"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := configured(t, tc.change)
			set, _, _ := settings(t)
			g, err := newExtension(set, c)
			require.NoError(t, err)
			err = g.Start(t.Context(), host{})
			for _, text := range tc.reports {
				require.ErrorContains(t, err, text)
			}
			require.NoError(t, g.Shutdown(t.Context()))
			if name == "no directory" {
				return
			}
			good := configured(t, nil)
			good.Directory = c.Directory
			begin(t, good)
		})
	}
}

func TestTwoOnOneDirectoryAreOneTooMany(t *testing.T) {
	for _, engine := range []string{engineEmbedded, enginePrometheus} {
		first := configured(t, func(c *Config) {
			if engine == enginePrometheus {
				c.Engine, c.Prometheus.URL = engine, "http://localhost:1"
			}
		})
		begin(t, first)
		set, _, _ := settings(t)
		second, err := newExtension(set, first)
		require.NoError(t, err)
		err = second.Start(t.Context(), host{})
		require.ErrorContains(t, err, "in use by another process")
		require.ErrorContains(t, err, first.Directory)
	}
}

func auth(id component.ID) configoptional.Optional[confighttp.AuthConfig] {
	return configoptional.Some(confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: id}})
}

func get(t *testing.T, url string, change func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	if change != nil {
		change(r)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text)
}

func TestTheAPIIsForThisMachine(t *testing.T) {
	g := begin(t, configured(t, nil))
	g.write(t, sample("m", time.Now(), 42))
	status, body := get(t, g.url()+"/api/v1/query?query=m", nil)
	assert.Equal(t, 200, status)
	assert.Contains(t, body, `"42"`)
	for _, name := range []string{"evil.example", "evil.example:9090", "localhost.evil.example", "10.0.0.1", ""} {
		status, body = get(t, g.url()+"/api/v1/query?query=m", func(r *http.Request) { r.Host = name })
		if name == "" { // then the client names the address
			assert.Equal(t, 200, status)
			continue
		}
		assert.Equal(t, 403, status, name)
		assert.NotContains(t, body, "42")
	}
	for _, name := range []string{"localhost", "localhost:1234", "127.0.0.1", "[::1]:9090", "[::1]"} {
		status, _ = get(t, g.url()+"/api/v1/query?query=m", func(r *http.Request) { r.Host = name })
		assert.Equal(t, 200, status, name)
	}
	for header, value := range map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"} {
		status, _ = get(t, g.url()+"/api/v1/query?query=m", func(r *http.Request) { r.Header.Set(header, value) })
		assert.Equal(t, 403, status, "a page of another host: %s", header)
	}
	assert.Positive(t, g.counted(t, "otelcol_extension_gpu_store_api_requests", "endpoint", "query"))
}

// Who begins a request and never ends it keeps no connection for that.
func TestABodyThatDoesNotCome(t *testing.T) {
	assert.NotZero(t, createDefaultConfig().(*Config).API.ReadTimeout)
	g := begin(t, configured(t, func(c *Config) { c.API.ReadTimeout = 50 * time.Millisecond }))
	conn, err := net.Dial("tcp", g.address.String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 99\r\n\r\nq")
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	text, err := io.ReadAll(conn)
	assert.NoError(t, err)
	assert.Contains(t, string(text), "400 Bad Request")
}

func TestTheAPIBehindAnAuthenticator(t *testing.T) {
	id := component.MustNewID("bearertokenauth")
	c := configured(t, func(c *Config) {
		c.API.NetAddr.Endpoint = "0.0.0.0:0"
		c.API.Auth = auth(id)
	})
	set, _, _ := settings(t)
	g, err := newExtension(set, c)
	require.NoError(t, err)
	require.NoError(t, g.Start(t.Context(), host{id: extensionauthtest.NewErr(fmt.Errorf("no"))}))
	t.Cleanup(func() { require.NoError(t, g.Shutdown(t.Context())) })
	assert.Equal(t, []component.ID{id}, g.Dependencies(), "it starts after its authenticator")
	_, port, err := net.SplitHostPort(g.address.String())
	require.NoError(t, err)
	status, _ := get(t, "http://127.0.0.1:"+port+"/api/v1/query?query=1", func(r *http.Request) { r.Host = "gateway" })
	assert.Equal(t, 401, status)
}

func TestABodyIsBounded(t *testing.T) {
	g := begin(t, configured(t, nil))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url()+"/api/v1/query", strings.NewReader("query="+strings.Repeat("x", 1<<20)))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Equal(t, 400, answer.StatusCode)
}

// The engine for servers has the log of its own, and needs no server for it.
func TestTheLogIsThereForBothEngines(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	c := configured(t, func(c *Config) { c.Engine, c.Prometheus.URL = enginePrometheus, server.URL })
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	event := &store.Event{ID: "e1", Name: "gpu.device.lost", Key: "k", State: "raised", Severity: "error", Time: now, Attributes: map[string]any{"n": 1.5}}
	id := component.MustNewID("basicauth")
	assert.Equal(t, []component.ID{id}, (&gpuStore{config: &Config{Engine: enginePrometheus, Prometheus: PrometheusConfig{ClientConfig: confighttp.ClientConfig{
		Auth: configoptional.Some(configauth.Config{AuthenticatorID: id}),
	}}}}).Dependencies())
	for i := range 2 {
		set, _, _ := settings(t)
		g, err := newExtension(set, c)
		require.NoError(t, err)
		require.NoError(t, g.Start(t.Context(), host{}))
		copied := *event
		require.NoError(t, g.AppendEvents(t.Context(), []*store.Event{&copied}), "the same again is known")
		g.KeepAudit(uint64(i+7), &audit.Record{
			ID: fmt.Sprint("d", i), Time: now, Events: []audit.Event{{ID: "e1", Name: "gpu.device.lost"}}, Receiver: "ops", URLHost: "hooks.example.com",
			Attempt: i + 1, MaxAttempts: 5, Outcome: audit.Failed, Status: 503, ErrorType: audit.ErrorHTTP5xx, NextAttempt: now.Add(time.Minute),
			Durations: audit.Durations{Total: time.Second},
		})
		g.KeepAudit(0, &audit.Record{ID: fmt.Sprint("o", i), Receiver: "other", Events: []audit.Event{{ID: "e2"}}})
		events := g.Events(store.EventQuery{})
		require.Len(t, events, 1)
		assert.Equal(t, "gpu.device.lost", events[0].Name)
		assert.Equal(t, map[string]any{"n": 1.5}, events[0].Attributes)
		assert.Equal(t, now, events[0].Time)
		assert.Empty(t, g.Events(store.EventQuery{Match: func(e *store.Event) bool { return e.Severity == "fatal" }}))
		deliveries := g.Deliveries(store.DeliveryQuery{EventID: "e1"})
		require.Len(t, deliveries, i+1)
		assert.Equal(t, &store.Delivery{
			Sequence: uint64(2*i + 1), ID: fmt.Sprint("d", i), Time: now, EventIDs: []string{"e1"}, EventName: "gpu.device.lost", Receiver: "ops", Host: "hooks.example.com",
			Attempt: i + 1, Attempts: 5, Outcome: audit.Failed, Status: 503, ErrorType: audit.ErrorHTTP5xx, NextAttempt: now.Add(time.Minute), Duration: time.Second,
			AuditSequence: uint64(i + 7),
		}, deliveries[0])
		assert.Len(t, g.Deliveries(store.DeliveryQuery{Match: func(d *store.Delivery) bool { return d.Receiver == "other" }}), i+1)
		assert.Equal(t, store.Unavailable, store.KindOf(g.Health(t.Context())))
		require.NoError(t, g.Shutdown(t.Context()))
	}
}

func TestRefusalsAreCountedAndReportedOnce(t *testing.T) {
	g := begin(t, configured(t, nil))
	now := time.Now()
	for range 3 {
		a, err := g.Append(t.Context(), []store.Series{sample("m", now.Add(time.Hour), 1), sample("m", now, 1)})
		require.NoError(t, err)
		assert.Equal(t, 1, a.Stored)
	}
	assert.EqualValues(t, 3, g.counted(t, "otelcol_extension_gpu_store_samples", "", ""))
	assert.EqualValues(t, 3, g.counted(t, "otelcol_extension_gpu_store_samples_refused", "reason", "too_new"))
	logged := g.logs.FilterMessageSnippet("samples are not stored").All()
	require.Len(t, logged, 1)
	assert.Contains(t, logged[0].ContextMap()["meaning"], "clock")
	assert.EqualValues(t, 1, g.counted(t, "otelcol_extension_gpu_store_series", "", ""))
	_, err := g.telemetry.GetMetric("otelcol_extension_gpu_store_size")
	assert.NoError(t, err)
}

func TestVersionOfPrometheus(t *testing.T) {
	assert.Equal(t, "3.13.2", releaseOf("v0.313.2"))
	assert.Equal(t, "3.5.0", releaseOf("v0.305.0"))
	assert.Equal(t, "3.0.0", releaseOf("(devel)"))
}
