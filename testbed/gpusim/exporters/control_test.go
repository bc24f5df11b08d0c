// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporters

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/webhook"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/pagetest"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

func TestChangesThroughTheControlPort(t *testing.T) {
	b := newBench(t, gpusim.Config{Seed: 7, Nodes: []gpusim.Node{{Name: "n", Version: "4.5", Model: "A100-SXM4-40GB", Devices: 1}}})
	var nothing any
	body, err := json.Marshal(map[string]any{"node": "n", "pods": []gpusim.Pod{{Namespace: "x", Name: "a", Container: "c", Devices: []string{"0:1"}, Load: gpusim.Idle}}})
	require.NoError(t, err)
	assert.Equal(t, http.StatusBadRequest, b.call(http.MethodPost, "/pods", string(body), &nothing), "not in MIG mode yet")
	assert.Equal(t, http.StatusNoContent, b.call(http.MethodPost, "/mig", `{"node":"n","device":0,"layout":["1g.5gb","2g.10gb"]}`, nil))
	assert.Equal(t, http.StatusNoContent, b.call(http.MethodPost, "/pods", string(body), nil))
	assert.Equal(t, http.StatusBadRequest, b.call(http.MethodPost, "/mig", `{"nodes":"n"}`, &nothing))
	var devices []gpusim.DeviceInfo
	assert.Equal(t, http.StatusOK, b.call(http.MethodGet, "/devices/n", "", &devices))
	assert.Equal(t, "2g.10gb", devices[0].Instances[1].Profile)
	assert.Equal(t, http.StatusBadRequest, b.call(http.MethodGet, "/devices/m", "", &nothing))
}

// Another exporter of the same node: instead of the first, or beside it.
func TestExportersElsewhere(t *testing.T) {
	b := newBench(t, gpusim.Demo(gpusim.DemoTimes()))
	free, err := collector.Free(1)
	require.NoError(t, err)
	port := free[0]
	before := b.server.URL("gpu-node-b")
	elsewhere := fmt.Sprintf("http://127.0.0.1:%d/metrics", port)
	read := func(url string) string {
		resp, err := b.client.Get(url)
		if err != nil {
			return "nothing"
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return pagetest.Parse(t, body).Samples[0].Labels["Hostname"]
	}
	id := b.start(fmt.Sprintf(`{"node":"gpu-node-b","kind":"exporter_replaced","host":"other","port":%d}`, port))
	assert.Equal(t, elsewhere, b.server.URL("gpu-node-b"))
	assert.Equal(t, []string{"nothing", "other"}, []string{read(before), read(elsewhere)})
	b.end(id)
	assert.Equal(t, before, b.server.URL("gpu-node-b"))
	assert.Equal(t, []string{"gpu-node-b", "nothing"}, []string{read(before), read(elsewhere)})

	id = b.start(fmt.Sprintf(`{"node":"gpu-node-b","kind":"exporter_twice","host":"second","port":%d}`, port))
	down := b.start(`{"node":"gpu-node-b","kind":"exporter_down"}`)
	assert.Equal(t, []string{"nothing", "second"}, []string{read(before), read(elsewhere)})
	b.end(down)
	assert.Equal(t, []string{"gpu-node-b", "second"}, []string{read(before), read(elsewhere)})
	b.end(id)
}

func TestAnswersThroughTheControlPort(t *testing.T) {
	b := newBench(t, gpusim.Config{Seed: 7, Nodes: []gpusim.Node{{Name: "n", Version: "4.5", Model: "T4", Devices: 1}}})
	var a webhook.Answer
	assert.Equal(t, http.StatusCreated, b.call(http.MethodPost, "/answer", `{"path":"/hook","status":418}`, &a))
	assert.Equal(t, webhook.Answer{Path: "/hook", Status: 418}, a)
}

func TestControlPort(t *testing.T) {
	b := newBench(t, gpusim.Demo(gpusim.DemoTimes()))
	var list []gpusim.FaultStatus
	b.call(http.MethodGet, "/fault", "", &list)
	require.Len(t, list, 3, "the script")
	assert.Equal(t, "scheduled", list[0].State)

	id := b.start(`{"node":"gpu-node-d","kind":"exporter_slow","delay":"1h","for":"10s"}`)
	var truth gpusim.Truth
	b.call(http.MethodGet, "/truth", "", &truth)
	assert.Equal(t, "slow", truth.Nodes[3].Exporter)
	assert.Equal(t, b.server.URL("gpu-node-d"), truth.Nodes[3].URL)
	require.Len(t, truth.Faults, 1)
	assert.Equal(t, id, truth.Faults[0].ID)
	b.clock.Advance(10 * time.Second)
	b.mustGet("gpu-node-d")

	id = b.start(`{"node":"gpu-node-d","kind":"exporter_down"}`)
	assert.Equal(t, http.StatusOK, b.call(http.MethodPost, "/fault", `{"id":"`+id+`","end":true}`, nil))
	b.mustGet("gpu-node-d")

	for body, want := range map[string]int{
		`{"node":"gpu-node-z","kind":"exporter_down"}`:            http.StatusBadRequest,
		`{"node":"gpu-node-a","kind":"exporter_down","typo":1}`:   http.StatusBadRequest,
		`{"node":"gpu-node-a","kind":"exporter_down","id":"own"}`: http.StatusBadRequest,
		`not json`:                http.StatusBadRequest,
		`{"id":"f99","end":true}`: http.StatusNotFound,
	} {
		var refusal map[string]string
		assert.Equal(t, want, b.call(http.MethodPost, "/fault", body, &refusal), body)
		assert.NotEmpty(t, refusal["error"])
	}
	assert.Equal(t, http.StatusNotFound, b.call(http.MethodDelete, "/fault/f99", "", nil))
}
