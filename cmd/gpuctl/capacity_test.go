// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
)

func capacityConsole(t *testing.T, pages ...consoleapi.CapacityAnswer) (string, *[]string) {
	t.Helper()
	t.Setenv(tokenVariable, "")
	asked := &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/capacity" {
			_ = json.NewEncoder(w).Encode(consoleapi.StatusAnswer{})
			return
		}
		*asked = append(*asked, r.URL.RawQuery)
		_ = json.NewEncoder(w).Encode(pages[min(len(*asked), len(pages))-1])
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

func TestCapacityTables(t *testing.T) {
	answer := consoleapi.CapacityAnswer{
		Size: 4, Freshness: consoleapi.Freshness{Told: consoleapi.Told{DataAge: ref(7.0)}}, NodesKnown: true, Total: 2, Next: ref("x"), WaitingTotal: 1,
		Pools: []consoleapi.CapacityPool{{
			Cluster: ref("c1"), Resource: "nvidia.com/gpu", Model: ref("H100"), Allocatable: ref(16), Requested: ref(4), Free: ref(12), Stranded: ref(2),
			StrandedBy: []consoleapi.StrandedDevices{{Reason: "cpu", Devices: 2}}, Fits: ref(2), FitNodes: ref(1), Fragmentation: ref(0.25),
		}},
		Waiting: []consoleapi.WaitingPods{{Cluster: ref("c1"), Namespace: "ml\x1b[2J", Reason: "insufficient_gpu", Resource: "nvidia.com/gpu", Pods: ref(1), Devices: ref(8), Oldest: ref(3600.0)}},
		Hints:   []consoleapi.CapacityHint{{Resource: "nvidia.com/gpu", Text: "12 devices are free."}},
		Nodes:   []consoleapi.CapacityNode{{Cluster: ref("c1"), Node: "a", Resource: "nvidia.com/gpu", Free: ref(8), Stranded: ref(0), Fits: ref(2)}},
	}
	second := answer
	second.Next, second.Nodes = nil, []consoleapi.CapacityNode{{Cluster: ref("c1"), Node: "b", Resource: "nvidia.com/gpu", Free: ref(4), Schedulable: ref(false)}}
	url, asked := capacityConsole(t, answer, second)
	code, out, errOut := ask("capacity", "--size", "4", "--model", "H100", "--endpoint", url)
	require.Equal(t, exitOK, code, errOut)
	plain := strings.Join(strings.Fields(out), " ")
	assert.Contains(t, plain, "c1 nvidia.com/gpu H100 16 4 12 2 2 cpu 2 1 25%")
	assert.Contains(t, plain, "- insufficient_gpu nvidia.com/gpu 1 8 1h0m0s")
	assert.Contains(t, plain, "12 devices are free.")
	assert.Contains(t, plain, "c1 a nvidia.com/gpu - - - 8 0 2 c1 b,cordoned nvidia.com/gpu - - - 4 - -")
	assert.NotContains(t, out, "\x1b")
	assert.Equal(t, []string{"model=H100&show=fit&size=4", "cursor=x&model=H100&show=fit&size=4"}, *asked)

	url, _ = capacityConsole(t, second)
	code, _, _ = ask("capacity", "--check", "--endpoint", url)
	assert.Equal(t, exitFailed, code, "pods wait")
	_, out, _ = ask("capacity", "-o", "json", "--endpoint", url)
	var got consoleapi.CapacityAnswer
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	assert.Len(t, got.Nodes, 1)
}

func TestCapacityThatIsNotReported(t *testing.T) {
	url, _ := capacityConsole(t, consoleapi.CapacityAnswer{Size: 8, Reason: ref(consoleapi.NoScheduling), Silent: []consoleapi.SilentCluster{{Cluster: ref("c1"), Last: time.Unix(0, 0)}}})
	code, out, _ := ask("capacity", "--endpoint", url)
	assert.Equal(t, exitOK, code)
	assert.Contains(t, out, "gpu_scheduling of cluster c1 reports nothing since")
	assert.Contains(t, out, "config/scheduler.yaml")
}
