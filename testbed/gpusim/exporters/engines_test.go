// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporters

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/pagetest"
)

// engineBench is a node with an engine that has a page elsewhere than at /metrics.
func engineBench(t *testing.T) *bench {
	return newBench(t, gpusim.Config{Seed: 7, Nodes: []gpusim.Node{{Name: "n", Version: "4.6", Model: "H100", Devices: 1, Pods: []gpusim.Pod{{
		Namespace: "chat", Name: "a", Container: "nim", Labels: map[string]string{"app": "llama"}, Devices: []string{"0"}, Load: gpusim.Inference, Engine: "nim-1",
	}}}}})
}

func (b *bench) engine() gpusim.EngineTruth {
	b.t.Helper()
	var truth gpusim.Truth
	b.call(http.MethodGet, "/truth", "", &truth)
	require.Len(b.t, truth.Engines, 1)
	return truth.Engines[0]
}

func (b *bench) page(url string) (int, []byte) {
	b.t.Helper()
	resp, err := b.client.Get(url)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(b.t, err)
	return resp.StatusCode, body
}

func TestEnginePages(t *testing.T) {
	b := engineBench(t)
	b.clock.Advance(time.Minute)
	e := b.engine()
	assert.Equal(t, "up", e.State)
	assert.Contains(t, e.URL, "/v1/metrics")
	status, body := b.page(e.URL)
	assert.Equal(t, http.StatusOK, status)
	var truth gpusim.RequestsTruth
	assert.Equal(t, http.StatusOK, b.call(http.MethodGet, "/truth/requests?service=llama", "", &truth))
	assert.Equal(t, float64(truth.OutputTokens), pagetest.Parse(t, body).One(t, "generation_tokens_total"))
	assert.NotEqual(t, byte('\n'), body[len(body)-1], "the page of this engine has no end of line there")
	status, _ = b.page(e.URL + "x")
	assert.Equal(t, http.StatusNotFound, status)

	id := b.start(`{"node":"n","kind":"page_fails"}`)
	status, _ = b.page(e.URL)
	assert.Equal(t, http.StatusInternalServerError, status)
	b.end(id)
	id = b.start(`{"node":"n","kind":"slow_page","delay":"1h","pod":{"namespace":"chat","name":"a"}}`)
	b.end(id)
	status, _ = b.page(e.URL)
	assert.Equal(t, http.StatusOK, status)

	b.start(`{"node":"n","kind":"engine_restart","for":"5s"}`)
	status, _ = b.page(e.URL)
	assert.Zero(t, status, "connection refused")
	assert.Equal(t, "stopped", b.engine().State)
	assert.Empty(t, b.engine().URL)
	b.clock.Advance(6 * time.Second)
	b.server.Reconcile()
	assert.Equal(t, e.URL, b.engine().URL, "the same address as before")
	_, body = b.page(e.URL)
	assert.Less(t, pagetest.Parse(t, body).One(t, "generation_tokens_total"), float64(truth.OutputTokens))

	b.start(`{"node":"n","kind":"engine_upgrade","engine":"vllm-0.21","for":"1s"}`)
	b.clock.Advance(2 * time.Second)
	b.server.Reconcile()
	assert.Equal(t, "vllm-0.21", b.engine().Engine)
	_, body = b.page(b.engine().URL)
	pagetest.Parse(t, body).One(t, "vllm:num_requests_running")
}

func TestTruthOfUsage(t *testing.T) {
	b := engineBench(t)
	b.clock.Advance(time.Minute)
	var usage []gpusim.UsageTruth
	require.Equal(t, http.StatusOK, b.call(http.MethodGet, "/truth/usage?from=20", "", &usage))
	require.NotEmpty(t, usage)
	for _, u := range usage {
		assert.Equal(t, int64(40), u.Seconds)
		assert.Positive(t, u.BoardMilliJoules)
	}
	var refusal any
	assert.Equal(t, http.StatusBadRequest, b.call(http.MethodGet, "/truth/usage?from=20&to=10", "", &refusal))
}

func TestTruthOfRequests(t *testing.T) {
	b := engineBench(t)
	b.clock.Advance(time.Minute)
	var whole, first, second gpusim.RequestsTruth
	b.call(http.MethodGet, "/truth/requests?service=llama&namespace=chat", "", &whole)
	b.call(http.MethodGet, "/truth/requests?service=llama&to=30", "", &first)
	from := b.fleet.Start().Add(30 * time.Second).Format(time.RFC3339Nano)
	b.call(http.MethodGet, "/truth/requests?service=llama&from="+from+"&to=3600", "", &second)
	assert.Positive(t, whole.OutputTokens)
	assert.Equal(t, whole.OutputTokens, first.OutputTokens+second.OutputTokens)
	assert.Equal(t, whole.Totals, whole.Total)
	assert.Positive(t, whole.FirstToken.P95)
	assert.Equal(t, []float64{30, 60}, []float64{second.From, second.To})
	var refusal map[string]string
	for query, want := range map[string]int{
		"": http.StatusBadRequest, "?service=other": http.StatusNotFound, "?service=llama&from=soon": http.StatusBadRequest, "?service=llama&from=20&to=10": http.StatusBadRequest,
	} {
		assert.Equal(t, want, b.call(http.MethodGet, "/truth/requests"+query, "", &refusal), query)
		assert.NotEmpty(t, refusal["error"])
	}
}

func TestEngineOnAPortThatIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	fl, _ := newFleet(t, gpusim.Config{Seed: 7, Nodes: []gpusim.Node{{Name: "n", Version: "4.6", Model: "H100", Devices: 1, Pods: []gpusim.Pod{{
		Namespace: "chat", Name: "a", Container: "c", Engine: "tgi-3", Port: taken.Addr().(*net.TCPAddr).Port, Devices: []string{"0"}, Load: gpusim.Idle,
	}}}}})
	_, err = Serve(fl, "127.0.0.1", 0)
	assert.ErrorContains(t, err, fmt.Sprintf("pod chat/a: cannot listen on %s: the port is taken", taken.Addr()))
}
