// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporters

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/vendors"
)

func TestControlOfVendors(t *testing.T) {
	start := time.Now()
	fleet, err := vendors.New(vendors.Config{Nodes: []vendors.Node{{Name: "n", Model: "MI300X", Boards: 1, Compute: "cpx", Memory: "nps4"}}}, func() time.Time { return start })
	require.NoError(t, err)
	control := ControlVendors(fleet, nil)
	ask := func(method, path, body string) (int, string) {
		w := httptest.NewRecorder()
		control.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		return w.Code, w.Body.String()
	}
	code, body := ask("POST", "/fault", `{"node": "n", "kind": "partition_missing", "partition": 3}`)
	require.Equal(t, http.StatusCreated, code, body)
	var started struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(body), &started))
	_, truth := ask("GET", "/truth", "")
	assert.Contains(t, truth, "partition_missing")
	code, _ = ask("DELETE", "/fault/"+started.ID, "")
	assert.Equal(t, http.StatusNoContent, code)
	for _, tc := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"POST", "/fault", `{"node": "x", "kind": "ras"}`, http.StatusBadRequest, "no node"},
		{"POST", "/fault", `{"node": "n", "kind": "dance"}`, http.StatusBadRequest, "unknown kind"},
		{"POST", "/fault", `{"nodez": 1}`, http.StatusBadRequest, "nodez"},
		{"DELETE", "/fault/f99", "", http.StatusNotFound, "no such fault"},
		{"POST", "/pods", `{"node": "n", "pods": [{"namespace": "a", "name": "b", "container": "c", "devices": ["0:7"]}]}`, http.StatusNoContent, ""},
		{"POST", "/pods", `{"node": "x"}`, http.StatusBadRequest, "no node"},
	} {
		code, body := ask(tc.method, tc.path, tc.body)
		assert.Equal(t, tc.code, code, body)
		assert.Contains(t, body, tc.want)
	}
	_, truth = ask("GET", "/truth", "")
	assert.Contains(t, truth, `"pod": "b"`)
}

func TestServeVendors(t *testing.T) {
	cfg, err := vendors.Demo(vendors.Gaudi, time.Minute, time.Minute, time.Minute)
	require.NoError(t, err)
	fleet, err := vendors.New(cfg, time.Now)
	require.NoError(t, err)
	server, err := ServeVendors(fleet, "127.0.0.1", 0)
	require.NoError(t, err)
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, node := range fleet.Nodes() {
		resp, err := client.Get(server.URL(node))
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
	}
}
