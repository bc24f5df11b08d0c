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
	services []consoleapi.Service
	nodes    []consoleapi.Node
	strays   []consoleapi.Exporter
	summary  consoleapi.FleetSummary
	status   consoleapi.StatusAnswer
	noStatus bool
	pods     map[string][]consoleapi.Pod // by service
	told     consoleapi.Told
	busy     bool
	token    string
	asked    []string
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
	f := consoleapi.Freshness{EvaluatedAt: time.Unix(0, 0), Told: c.told, StaleAfter: 90}
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
			Devices: []consoleapi.Device{{ID: "GPU-1", Index: ref("0"), Model: ref("H100"), State: consoleapi.DeviceHeld, Holders: []consoleapi.Holder{{Namespace: "ml", Pod: "chat-0"}}, Temperature: ref(61.0), XID: ref(0)}},
		}},
		pods: map[string][]consoleapi.Pod{"chat": {{Pod: "chat-0", State: consoleapi.PodReporting, Node: ref("gpu-1"), Devices: []consoleapi.Device{{ID: "GPU-1", Index: ref("0")}, {ID: "GPU-2", Index: ref("3"), MIGInstance: ref("1")}}}}},
		told: consoleapi.Told{DataAge: ref(7.0)},
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
	assert.Equal(t, "c1 gpu-1 ok,cordoned up 2 1 1 0 0 0 7s -", strings.Join(strings.Fields(lines(out)[1]), " "))
	assert.Contains(t, out, "2 GPU pods wait for a node.")
	assert.NotContains(t, out, "by address")
	_, out, _ = ask("nodes", "--devices", "--endpoint", url)
	assert.Equal(t, "gpu-1 0 GPU-1 H100 held ml/chat-0 - - - 61 C 0 - -", strings.Join(strings.Fields(lines(out)[1]), " "))

	code, out, _ = ask("top", "--endpoint", url)
	assert.Equal(t, exitOK, code, "without a terminal it looks once")
	assert.Less(t, strings.Index(out, "chat"), strings.Index(out, "idle_devices"), "the busiest first")
}

// A figure over part of the devices says so, and what is lost or frozen has its place.
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
	assert.Contains(t, out, "exporter_frozen,cordoned  frozen")
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
var fault = consoleapi.Reason{Kind: consoleapi.XID, Severity: consoleapi.SeverityError, Label: "XID 79", Text: "GPU 0 of gpu-1 fell off\x1b[2J the bus."}

// TestAttention: whatever is wrong is named where it is.
func TestAttention(t *testing.T) {
	c := fleet()
	throttled := consoleapi.Reason{Kind: consoleapi.Throttled, Severity: consoleapi.SeverityWarn, Label: "throttled: hw thermal"}
	c.services[1].Reasons, c.services[1].Attention = []consoleapi.Reason{fault, throttled, fault}, []consoleapi.Attention{consoleapi.XID, consoleapi.Throttled}
	c.pods["chat"][0].Devices[1].Reasons = []consoleapi.Reason{fault}
	c.nodes[0].Reasons, c.nodes[0].State = []consoleapi.Reason{fault, throttled}, consoleapi.NodeDegraded
	c.nodes[0].Devices[0].Reasons = []consoleapi.Reason{throttled}
	c.summary = consoleapi.FleetSummary{Reasons: []consoleapi.Reason{fault}, ReasonsTotal: 3}
	url := begin(t, c)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"services"}, "c1 ml chat xid 50% 40.0/80.0 GiB 1024 W 2/2 +1 warming 2 2 0 7s XID 79; throttled: hw thermal error: GPU 0 of gpu-1 fell off[2J the bus. and 2 more"},
		{[]string{"ps", "--service", "chat"}, "3/1: XID 79"},
		{[]string{"nodes"}, "c1 gpu-1 degraded,cordoned up 2 1 1 0 0 0 7s XID 79; throttled: hw thermal"},
		{[]string{"nodes", "--devices"}, "61 C 0 - throttled: hw thermal"},
		{[]string{"top"}, "and 2 more"},
	} {
		_, out, _ := ask(append(test.args, "--endpoint", url)...)
		assert.Contains(t, strings.Join(strings.Fields(out), " "), test.want)
	}
	_, out, _ := ask("services", "-q", "chat", "--endpoint", url)
	assert.NotContains(t, out, "fell off", "only what was asked for")
}

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*console)
		services int
		ps       int
		nodes    int
	}{
		"well": {func(*console) {}, exitOK, exitOK, exitOK},
		"partial": {func(c *console) {
			c.services[1].Reasons = []consoleapi.Reason{fault}
		}, exitFailed, exitFailed, exitOK},
		"a device of a pod":  {func(c *console) { c.pods["chat"][0].Devices[1].Reasons = []consoleapi.Reason{fault} }, exitOK, exitFailed, exitOK},
		"a device of a node": {func(c *console) { c.nodes[0].Reasons = []consoleapi.Reason{fault} }, exitOK, exitOK, exitFailed},
		"elsewhere in the fleet": {func(c *console) {
			c.summary = consoleapi.FleetSummary{Reasons: []consoleapi.Reason{fault}, ReasonsTotal: 1}
		}, exitFailed, exitOK, exitOK},
		"pods":    {func(c *console) { c.pods["chat"][0].State = consoleapi.PodDegraded }, exitOK, exitFailed, exitOK},
		"node":    {func(c *console) { c.nodes[0].State = consoleapi.NodeExporterDown }, exitOK, exitOK, exitFailed},
		"device":  {func(c *console) { c.nodes[0].Counts.Lost = 1 }, exitOK, exitOK, exitFailed},
		"stale":   {func(c *console) { c.told = consoleapi.Told{DataAge: ref(600.0), Stale: true} }, exitFailed, exitFailed, exitFailed},
		"no data": {func(c *console) { *c = console{} }, exitFailed, exitFailed, exitFailed},
		"a store that refuses": {func(c *console) {
			c.status.Store.Problems = []consoleapi.StoreProblem{{Part: "samples", Reason: "max_series", Detail: "raise it"}}
		}, exitFailed, exitFailed, exitFailed},
		"a status that is not known": {func(c *console) { c.noStatus = true }, exitFailed, exitFailed, exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			c := fleet()
			test.change(c)
			url := begin(t, c)
			for command, want := range map[string]int{"services": test.services, "ps": test.ps, "nodes": test.nodes} {
				code, _, _ := ask(command, "--endpoint", url, "--check")
				assert.Equal(t, want, code, command)
				code, _, _ = ask(command, "--endpoint", url)
				assert.Equal(t, exitOK, code, command)
			}
		})
	}
}

func TestConsoleThatDoesNotAnswer(t *testing.T) {
	html := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer html.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	url := begin(t, fleet())
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"services", "--endpoint", html.URL}, "is no console"},
		{[]string{"services", "--endpoint", closed.URL}, "nobody answers"},
		{[]string{"services", "--endpoint", url + "/elsewhere"}, "It cannot be. Details[31m. (upstream_unreachable)"},
		{[]string{"services", "--endpoint", "ftp://x"}, "--endpoint is no address"},
		{[]string{"services", "--endpoint", "http://u:p@localhost"}, "--endpoint is no address"},
		{[]string{"services", "-o", "yaml"}, "is not table or json"},
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

// Exporters whose node is not known stand below the nodes, and one that is down is
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

func TestWhatTheStoreCannotKeepStandsFirst(t *testing.T) {
	since := time.Date(2026, 11, 22, 14, 30, 0, 0, time.UTC)
	full := consoleapi.StoreProblem{Part: "samples", Reason: "disk_full", Since: since, Refused: 14906, Detail: "make\x1b[31m room"}
	emptied := full
	emptied.Ended = ref(since.Add(time.Minute))
	for name, test := range map[string]struct {
		status consoleapi.StatusAnswer
		says   []string
		code   int
	}{
		"well":                 {consoleapi.StatusAnswer{State: consoleapi.Ready}, nil, exitOK},
		"full, data current":   {consoleapi.StatusAnswer{State: consoleapi.Ready, Store: consoleapi.StoreStatus{Problems: []consoleapi.StoreProblem{full}}}, []string{"STORE: samples are not stored: disk_full, since ", "14906 refused; make", "room."}, exitFailed},
		"full, nothing is":     {consoleapi.StatusAnswer{State: consoleapi.NotStored, Store: consoleapi.StoreStatus{Problems: []consoleapi.StoreProblem{full}}}, []string{"disk_full", "may report all the same"}, exitFailed},
		"emptied a moment ago": {consoleapi.StatusAnswer{State: consoleapi.NotStored, Store: consoleapi.StoreStatus{Problems: []consoleapi.StoreProblem{emptied}}}, []string{"were not stored"}, exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			c := fleet()
			c.status, c.strays = test.status, nil
			url := begin(t, c)
			for _, command := range []string{"services", "nodes"} {
				for _, output := range []string{"table", "json"} {
					code, _, errOut := ask(command, "--check", "--endpoint", url, "-o", output)
					assert.Equal(t, test.code, code)
					assert.NotContains(t, errOut, "\x1b")
					for _, text := range test.says {
						assert.Contains(t, errOut, text)
					}
					if test.says == nil {
						assert.Empty(t, errOut)
					}
				}
			}
		})
	}
}

func TestWithoutServicesTheNextStepIsNamed(t *testing.T) {
	for state, test := range map[consoleapi.State]struct {
		devices int
		says    string
	}{
		consoleapi.NotEnabled: {0, "Nothing has ever arrived in the store. Next: gpuctl doctor"},
		consoleapi.NoServices: {18, "18 devices report, and no service is known to have one. Next: gpuctl nodes --devices"},
		consoleapi.Ready:      {1, "There is no data."},
	} {
		c := &console{status: consoleapi.StatusAnswer{State: state, Telemetry: consoleapi.Telemetry{Devices: &test.devices}}}
		_, _, errOut := ask("services", "--endpoint", begin(t, c))
		assert.Contains(t, errOut, test.says)
		if state != consoleapi.Ready {
			assert.NotContains(t, errOut, "There is no data")
		}
	}
}
