// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package console tests the gpu_console extension with the gpu_store extension.
package console

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// begin starts an extension, which ends with the test.
func begin(t *testing.T, f extension.Factory, config component.Config, extensions host) extension.Extension {
	t.Helper()
	set := extension.Settings{ID: component.NewID(f.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(), BuildInfo: component.NewDefaultBuildInfo()}
	e, err := f.Create(context.Background(), set, config)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), extensions))
	t.Cleanup(func() { require.NoError(t, e.Shutdown(context.Background())) })
	return e
}

// free is an address on which nothing listens.
func free(t *testing.T) string {
	t.Helper()
	ports, err := collector.Free(1)
	require.NoError(t, err)
	return collector.Address(ports[0])
}

func newStore(t *testing.T, change func(*gpustoreextension.Config)) store.Store {
	t.Helper()
	f := gpustoreextension.NewFactory()
	c := f.CreateDefaultConfig().(*gpustoreextension.Config)
	c.Directory = t.TempDir()
	change(c)
	require.NoError(t, c.Validate())
	return begin(t, f, c, host{}).(store.Store)
}

// console is a console over a store; it returns its address.
func console(t *testing.T, s store.Store) string {
	t.Helper()
	f := gpuconsoleextension.NewFactory()
	c := f.CreateDefaultConfig().(*gpuconsoleextension.Config)
	c.NetAddr.Endpoint = free(t)
	begin(t, f, c, host{store.DefaultID: s.(component.Component)})
	return "http://" + c.NetAddr.Endpoint
}

func get(t *testing.T, url string) (int, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, body
}

// A store behind a URL gives the figures that the one in the process gives: here
// it is the latter's own Prometheus API.
func TestBothEngines(t *testing.T) {
	api := free(t)
	inside := newStore(t, func(c *gpustoreextension.Config) { c.API.NetAddr.Endpoint = api })
	outside := newStore(t, func(c *gpustoreextension.Config) { c.Engine, c.Prometheus.URL = "prometheus", "http://"+api })
	// A minute of an evaluation every second, so that both read the same.
	service := []string{"k8s_cluster_name", "c1", "k8s_namespace_name", "ml", "service_name", `a"b\c`}
	for name, v := range map[string]float64{"gpu_service_utilization_ratio": 0.5, "gpu_service_partial": 0, "gpu_service_data_age_seconds": 3} {
		write(t, inside, v, append([]string{"__name__", name}, service...)...)
	}
	for state, n := range map[string]float64{"reporting": 2, "degraded": 0, "missing": 1, "warming": 0, "not_running": 0} {
		write(t, inside, n, append([]string{"__name__", "gpu_service_pods", "gpu_pod_state", state}, service...)...)
	}
	write(t, inside, 0.5, append([]string{"__name__", "hw_gpu_utilization_ratio", "hw_gpu_task", "general", "hw_id", "GPU-1", "k8s_node_name", "n", "k8s_pod_name", "p"}, service...)...)
	var answers []consoleapi.ServicesAnswer
	for _, s := range []store.Store{inside, outside} {
		url := console(t, s)
		status, body := get(t, url+"/api/v1/services")
		require.Equal(t, http.StatusOK, status, "%s", body)
		var a consoleapi.ServicesAnswer
		require.NoError(t, json.Unmarshal(body, &a))
		require.Len(t, a.Services, 1)
		assert.Less(t, *a.Services[0].DataAge, 60.0)
		a.Freshness, a.Services[0].Told = consoleapi.Freshness{}, consoleapi.Told{}
		answers = append(answers, a)
		for _, path := range []string{"status", "nodes", "events"} {
			status, body := get(t, url+"/api/v1/"+path)
			assert.Equal(t, http.StatusOK, status, "%s", body)
		}
	}
	assert.Equal(t, answers[0], answers[1])
	assert.Equal(t, 0.5, *answers[0].Services[0].Values.Utilization)
	assert.Equal(t, 1, *answers[0].Services[0].Devices.Busy)
}

func write(t *testing.T, s store.Store, v float64, pairs ...string) {
	t.Helper()
	series := store.Series{Labels: labels.FromStrings(pairs...)}
	now := time.Now()
	for ago := time.Minute; ago >= 0; ago -= time.Second {
		series.Samples = append(series.Samples, store.Sample{Time: now.Add(-ago).UnixMilli(), Value: v})
	}
	a, err := s.Append(t.Context(), []store.Series{series})
	require.NoError(t, err)
	require.Empty(t, a.Refused)
}

// What answers at the URL of a gpu_store may be another server altogether.
func TestServersThatAreNoPrometheus(t *testing.T) {
	answering := func(kind, text string, status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		reason  consoleapi.ErrorReason
	}{
		"a login page":  {answering("text/html", "<html>Log in</html>", 200), consoleapi.UpstreamInvalid},
		"other JSON":    {answering("application/json", `{"hello":"world"}`, 200), consoleapi.UpstreamInvalid},
		"nothing there": {http.NotFound, consoleapi.UpstreamInvalid},
		"broken":        {answering("text/plain", "oh", 500), consoleapi.UpstreamUnreachable},
		"too much":      {answering("application/json", `{"status":"error","errorType":"execution","error":"too many samples"}`, 422), consoleapi.QueryLimit},
		"down":          {nil, consoleapi.UpstreamUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.handler)
			if test.handler == nil {
				server.Close()
			} else {
				t.Cleanup(server.Close)
			}
			url := console(t, newStore(t, func(c *gpustoreextension.Config) { c.Engine, c.Prometheus.URL = "prometheus", server.URL }))
			status, body := get(t, url+"/api/v1/services")
			var e consoleapi.Error
			require.NoError(t, json.Unmarshal(body, &e))
			assert.Equal(t, http.StatusBadGateway, status)
			assert.Equal(t, test.reason, e.Reason, e.Detail)
			status, body = get(t, url+"/api/v1/status")
			assert.Equal(t, http.StatusOK, status)
			assert.Contains(t, string(body), `"store_unreachable"`)
		})
	}
}
