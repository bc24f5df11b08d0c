// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
)

func ref[T any](v T) *T { return &v }

// console plays a console with these services, nodes and pods; one item a page.
type console struct {
	services  []consoleapi.Service
	nodes     []consoleapi.Node
	strays    []consoleapi.Exporter
	summary   consoleapi.FleetSummary
	status    consoleapi.StatusAnswer
	noStatus  bool
	pods      map[string][]consoleapi.Pod // by service
	freshness consoleapi.Told
	busy      bool
	token     string
	asked     []string
}

func (c *console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.asked = append(c.asked, r.URL.Path+"?"+r.URL.RawQuery)
	refuse := func(status int, reason consoleapi.ErrorReason) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(consoleapi.Error{Text: "It cannot be.", Reason: reason, Detail: "Details\x1b[31m."})
	}
	if c.busy {
		c.busy = false // once
		w.Header().Set("Retry-After", "7")
		refuse(http.StatusServiceUnavailable, consoleapi.Busy)
		return
	}
	if c.token != "" && r.Header.Get("Authorization") != "Bearer "+c.token {
		refuse(http.StatusUnauthorized, consoleapi.Unauthenticated)
		return
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	next := func(n int) *string {
		if from+1 >= n {
			return nil
		}
		return ref(strconv.Itoa(from + 1))
	}
	f := consoleapi.Freshness{EvaluatedAt: time.Unix(0, 0), Told: c.freshness, StaleAfter: 90}
	var answer any
	switch r.URL.Path {
	case "/gpu/api/v1/services", "/api/v1/services":
		a := consoleapi.ServicesAnswer{Freshness: f, Services: []consoleapi.Service{}, Next: next(len(c.services)), Total: len(c.services), Summary: c.summary}
		a.Services = append(a.Services, c.services[min(from, len(c.services)):min(from+1, len(c.services))]...)
		answer = a
	case "/api/v1/nodes":
		answer = consoleapi.NodesAnswer{Freshness: f, Nodes: c.nodes, Pending: consoleapi.Pending{Pods: ref(2)}, Exporters: c.strays}
	case "/api/v1/pods":
		pods, known := c.pods[r.URL.Query().Get("service")]
		if !known {
			refuse(http.StatusNotFound, consoleapi.NotFound)
			return
		}
		answer = consoleapi.PodsAnswer{Freshness: f, Pods: pods}
	case "/gpu/api/v1/status", "/api/v1/status":
		if c.noStatus {
			refuse(http.StatusServiceUnavailable, consoleapi.Busy)
			return
		}
		answer = c.status
	default:
		refuse(http.StatusBadGateway, consoleapi.UpstreamUnreachable)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func fleet() *console {
	well := consoleapi.Service{
		Cluster: ref("c1"), Namespace: "ml", Service: "chat", Values: consoleapi.Values{Utilization: ref(0.5), MemoryUsed: ref(40.0 * (1 << 30)), MemoryTotal: ref(80.0 * (1 << 30))},
		Totals: consoleapi.Totals{Power: ref(1024.4)}, Pods: consoleapi.PodCounts{InMean: ref(2), Settled: ref(2), Warming: ref(1)},
		Devices: consoleapi.ServiceDevices{Held: ref(2), Busy: ref(2), Idle: ref(0)}, Told: consoleapi.Told{DataAge: ref(7.0)},
	}
	return &console{
		services: []consoleapi.Service{{Namespace: "ml", Service: "evil\x1b[2J\u202e", Attention: []consoleapi.Attention{consoleapi.IdleDevices}, Reasons: []consoleapi.Reason{{Kind: consoleapi.IdleDevices, Severity: consoleapi.SeverityInfo, Label: "4 idle-held"}}}, well},
		nodes: []consoleapi.Node{{
			Cluster: ref("c1"), Node: "gpu-1", State: consoleapi.NodeOK, Exporter: consoleapi.ExporterUp, Schedulable: ref(false),
			Counts: consoleapi.NodeCounts{Devices: 2, Free: 1, Held: 1}, Told: consoleapi.Told{DataAge: ref(7.0)},
			Devices: []consoleapi.Device{{ID: "GPU-1", Index: ref("0"), Model: ref("H100"), State: consoleapi.DeviceHeld, Holders: []consoleapi.Holder{{Namespace: "ml", Pod: "chat-0"}}, Temperature: ref(61.0), XID: ref(0), Health: &consoleapi.Health{State: consoleapi.HealthFailed, Action: ref("rma")}}},
			Health:  consoleapi.Health{State: consoleapi.HealthOK, Action: ref("none"), Coverage: &consoleapi.HealthCoverage{WithData: 5, Applicable: 11}},
		}},
		pods:      map[string][]consoleapi.Pod{"chat": {{Pod: "chat-0", State: consoleapi.PodReporting, Node: ref("gpu-1"), Devices: []consoleapi.Device{{ID: "GPU-1", Index: ref("0")}, {ID: "GPU-2", Index: ref("3"), MIGInstance: ref("1")}}}}},
		freshness: consoleapi.Told{DataAge: ref(7.0)},
	}
}

func begin(t *testing.T, c *console) string {
	t.Helper()
	t.Setenv(tokenVariable, "")
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return server.URL
}

func lines(s string) []string { return strings.Split(strings.TrimRight(s, "\n"), "\n") }

func TestServicesTable(t *testing.T) {
	url := begin(t, fleet())
	code, out, errOut := ask("services", "--endpoint", url)
	require.Equal(t, exitOK, code, errOut)
	got := lines(out)
	require.Len(t, got, 3)
	assert.Equal(t, []string{"CLUSTER", "NAMESPACE", "SERVICE", "STATE", "UTIL", "MEMORY/POD", "POWER", "PODS", "DEVICES", "BUSY", "IDLE", "AGE", "ATTENTION"}, strings.Fields(got[0]))
	assert.Equal(t, "-  ml  idle_devices  -  -  -  -/-  -  -  -  -  4  idle-held", strings.Join(append(strings.Fields(got[1])[:2], strings.Fields(got[1])[3:]...), "  "))
	assert.Equal(t, "c1 ml chat ok 50% 40.0/80.0 GiB 1024 W 2/2 +1 warming 2 2 0 7s -", strings.Join(strings.Fields(got[2]), " "))
	assert.NotContains(t, out, "\x1b", "a name is no command to the terminal")
	assert.NotContains(t, out, "\u202e")
	assert.Empty(t, errOut)
}

func TestPSAndNodesAndTop(t *testing.T) {
	c := fleet()
	url := begin(t, c)
	_, out, _ := ask("ps", "--endpoint", url, "--service", "chat", "--cluster", "c1")
	assert.Equal(t, "ml chat chat-0 reporting gpu-1 0,3/1 - - - - -", strings.Join(strings.Fields(lines(out)[1]), " "))
	code, _, errOut := ask("ps", "--endpoint", url, "--service", "other")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, "nothing is known")

	_, out, _ = ask("nodes", "--endpoint", url)
	assert.Equal(t, "c1 gpu-1 ok,cordoned ok, 5 of 11 checks up 2 1 1 0 0 0 7s -", strings.Join(strings.Fields(lines(out)[1]), " "))
	assert.Contains(t, out, "2 GPU pods wait for a node.")
	assert.NotContains(t, out, "by address")
	_, out, _ = ask("nodes", "--devices", "--endpoint", url)
	assert.Equal(t, "gpu-1 0 GPU-1 H100 held failed: rma ml/chat-0 - - - 61 C 0 - -", strings.Join(strings.Fields(lines(out)[1]), " "))

	code, out, _ = ask("top", "--endpoint", url)
	assert.Equal(t, exitOK, code, "without a terminal it looks once")
	assert.Less(t, strings.Index(out, "chat"), strings.Index(out, "idle_devices"), "the busiest first")
}

// A figure over part of the devices is marked, and what is lost or frozen has its place.
func TestPartOfTheDevices(t *testing.T) {
	c := fleet()
	part := consoleapi.Coverages{Utilization: &consoleapi.Coverage{Devices: 3, Of: 4}, MemoryUsed: &consoleapi.Coverage{Devices: 2, Of: 4}, Power: &consoleapi.Coverage{Devices: 4, Of: 4}}
	s := &c.services[1]
	s.Coverage, s.Devices.Missing, s.Devices.Frozen = part, ref(1), 1
	c.pods["chat"][0].Values, c.pods["chat"][0].Coverage = s.Values, part
	c.summary = consoleapi.FleetSummary{DevicesLost: ref(1), Utilization: ref(0.5), MemoryUsed: ref(40.0 * (1 << 30)), MemoryTotal: ref(80.0 * (1 << 30)), Power: ref(1.0), Coverage: part}
	c.nodes[0].State, c.nodes[0].Exporter = consoleapi.NodeExporterFrozen, consoleapi.ExporterFrozen
	url := begin(t, c)
	_, out, _ := ask("services", "--endpoint", url)
	assert.Equal(t, "c1 ml chat ok 50% (3 of 4) 40.0/80.0 GiB (2 of 4) 1024 W 2/2 +1 warming 2 (1 silent) (1 frozen) 2 0 7s -", strings.Join(strings.Fields(lines(out)[2]), " "))
	_, out, _ = ask("ps", "--endpoint", url, "--service", "chat", "--cluster", "c1")
	assert.Contains(t, out, "40.0/80.0 GiB (2 of 4)")
	_, out, _ = ask("top", "--endpoint", url)
	assert.Contains(t, lines(out)[0], "lost 1, unknown -; utilization 50% (3 of 4), memory 40.0/80.0 GiB (2 of 4), power 1 W;")
	code, out, _ := ask("nodes", "--check", "--endpoint", url)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, out, "exporter_frozen,cordoned  ok, 5 of 11 checks  frozen")
}

func TestConsoleJSON(t *testing.T) {
	url := begin(t, fleet())
	_, out, _ := ask("services", "--endpoint", url, "-o", "json")
	var services consoleapi.ServicesAnswer
	require.NoError(t, json.Unmarshal([]byte(out), &services))
	assert.Len(t, services.Services, 2, "of all pages")
	assert.Nil(t, services.Next)
	_, out, _ = ask("ps", "--endpoint", url, "-o", "json")
	var ps struct {
		Services []servicePods `json:"services"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &ps))
	assert.Len(t, ps.Services, 2)
	_, out, _ = ask("nodes", "--endpoint", url, "-o", "json")
	var nodes consoleapi.NodesAnswer
	require.NoError(t, json.Unmarshal([]byte(out), &nodes))
	assert.Len(t, nodes.Nodes, 1)
}

// fault is a reason that needs attention.
func TestConsoleThatDoesNotAnswer(t *testing.T) {
	html := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer html.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	url := begin(t, fleet())
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"services", "--endpoint", html.URL}, "is no console"},
		{[]string{"services", "--endpoint", strings.Replace(secure.URL, "https:", "http:", 1)}, "it may speak TLS: use https://"},
		{[]string{"services", "--endpoint", closed.URL}, "nothing answers"},
		{[]string{"services", "--endpoint", url + "/elsewhere"}, "It cannot be. Details[31m. (upstream_unreachable)"},
		{[]string{"services", "--endpoint", "ftp://x"}, "--endpoint is no address"},
		{[]string{"services", "--endpoint", "http://u:p@localhost"}, "--endpoint is no address"},
		{[]string{"services", "-o", "yaml"}, "is not table, wide or json"},
		{[]string{"nodes", "gpu-1"}, "is an argument"},
		{[]string{"ps", "--timeout", "0s"}, "--timeout"},
		{[]string{"top", "--interval", "1ms", "--endpoint", url}, "--interval"},
		{[]string{"nodes", "--token-file", "/nonexistent"}, "nonexistent"},
	} {
		code, out, errOut := ask(test.args...)
		assert.Equal(t, exitUsage, code, test.args)
		assert.Contains(t, errOut, test.want, test.args)
		assert.NotContains(t, errOut, "u:p@")
		assert.Empty(t, out)
	}
}

func TestConsoleToken(t *testing.T) {
	c := fleet()
	c.token = testToken
	url := begin(t, c)
	code, _, errOut := ask("services", "--endpoint", url)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, "unauthenticated")
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(testToken+"\n"), 0o600))
	code, _, errOut = ask("services", "--endpoint", url, "--token-file", file)
	assert.Equal(t, exitOK, code, errOut)
	t.Setenv(tokenVariable, testToken)
	code, out, errOut := ask("services", "--endpoint", url+"/gpu")
	assert.Equal(t, exitOK, code, errOut)
	assert.NotContains(t, out+errOut, testToken)
}

// roundTrip answers without a network.
type roundTrip struct{ http.Handler }

func (h roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

func TestConsoleThatIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fleet()
		c.busy = true
		client := consoleClient{base: &url.URL{Scheme: "http", Host: "localhost"}, http: roundTrip{c}}
		began := time.Now()
		got, err := client.nodes(t.Context(), "")
		require.NoError(t, err)
		assert.Len(t, got.Nodes, 1)
		assert.Equal(t, 7*time.Second, time.Since(began), "it is asked again when it said")
	})
}

// Exporters of an unknown node stand below the nodes, and one that is down is
// something to look at.
func TestNodesNamesExportersByAddress(t *testing.T) {
	c := fleet()
	c.strays = []consoleapi.Exporter{{Address: "localhost:9400", State: consoleapi.ExporterDown, DataAge: 2}, {Address: "localhost:9401", State: consoleapi.ExporterUp}}
	url := begin(t, c)
	code, out, _ := ask("nodes", "--endpoint", url, "--check")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, strings.Join(strings.Fields(out), " "), "- localhost:9400 down 2s - localhost:9401 up 0s")
	c.strays = c.strays[1:]
	code, _, _ = ask("nodes", "--endpoint", url, "--check")
	assert.Equal(t, exitOK, code)
}
