// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/kube"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
)

// Schedulers that share boards among pods of the node are named, with what the configuration
// lacks.
func TestSharing(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/api/v1/pods spec.nodeName=n1", r.URL.Path+" "+r.URL.Query().Get("fieldSelector"))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","items":[
			{"metadata":{"name":"a","annotations":{"gpu-fraction":"0.5"}}}, {"metadata":{"name":"b","annotations":{"gpu-memory":"2000"}}},
			{"metadata":{"name":"c","annotations":{"hami.io/vgpu-devices-allocated":"GPU-a,NVIDIA,1,0:;"}}}, {"metadata":{"name":"d"}}]}`)
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "`+s.URL+`"}}]
users: [{name: u, user: {}}]
`), 0o600))
	t.Setenv("KUBECONFIG", file)
	results := func(allocation string) []probe.Result {
		conf, err := config.Load(t.Context(), []string{`yaml:{receivers: {gpu_allocation: {node_name: n1, ` + allocation + `}}, service: {pipelines: {metrics: {receivers: [gpu_allocation], exporters: []}}}}`})
		require.NoError(t, err)
		return shared(t.Context(), probe.Env{Config: conf, Kube: kube.New(conf, "", false)}, "n1")
	}
	kai := probe.New("sharing", probe.OK, "kai shares boards among pods of the node (2), and gpu_allocation reads which", "")
	assert.Equal(t, []probe.Result{
		probe.New("sharing", probe.Warn, "hami shares boards among pods of the node (1), which gpu_allocation does not read: which part of which board they have is not known",
			"set sharing: [kai, hami] of gpu_allocation (chart: sharing)"),
		kai,
	}, results("auth_type: kubeConfig, sharing: [kai]"))
	assert.Equal(t, probe.Warn, results("auth_type: kubeConfig")[1].Status)
	assert.Empty(t, results("auth_type: none"))
}

func TestRightsForSharing(t *testing.T) {
	conf, err := config.Load(t.Context(), []string{`yaml:{receivers: {gpu_allocation: {node_name: n1, sharing: [koordinator]}}, service: {pipelines: {metrics: {receivers: [gpu_allocation], exporters: []}}}}`})
	require.NoError(t, err)
	var got []string
	for _, r := range rights(probe.Env{Config: conf}) {
		got = append(got, r.group+"/"+r.resource)
	}
	assert.Equal(t, []string{"/nodes", "resource.k8s.io/resourceslices", "resource.k8s.io/resourceclaims", "/pods", "scheduling.koordinator.sh/devices"}, got)
}
