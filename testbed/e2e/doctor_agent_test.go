// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
)

// clusterAPI is pods with as much more as an agent with all its rights sees.
type clusterAPI struct{ pods *kubeapi.API }

func (a clusterAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	switch {
	case r.URL.Path == "/version":
		answer(m{"major": "1", "minor": "35", "gitVersion": "v1.35.0"})
	case r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
		answer(m{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": m{"allowed": true}})
	case r.URL.Path == "/api/v1/nodes" && r.URL.Query().Get("watch") == "" && r.URL.Query().Get("sendInitialEvents") == "":
		answer(m{"kind": "NodeList", "apiVersion": "v1", "items": []m{{"metadata": m{"name": a.pods.Node()}, "status": m{"nodeInfo": m{"kubeletVersion": "v1.34.2"}}}}})
	default:
		a.pods.ServeHTTP(w, r)
	}
}

// An agent of which everything is as it should be, with nothing but its own
// configuration and environment.
func TestDoctorOnAnAgent(t *testing.T) {
	t.Parallel()
	api, port := nodeA(t)
	env := agentEnv(t, api, "localhost:1")
	env[len(env)-1] = "KUBECONFIG=" + kubeconfigOf(t, serve(t, clusterAPI{api}))

	socket := filepath.Join(t.TempDir(), "kubelet.sock")
	k := kubelet.New(kubelet.Options{QPS: -1})
	require.NoError(t, k.Serve(socket))
	t.Cleanup(k.Stop)
	k.SetDevices("nvidia.com/gpu", kubelet.Devices("GPU-1"))

	gateway := start(t, nil, []string{"DCGM_EXPORTER_ENDPOINT=http://localhost:1/metrics"}, config("standalone.yaml"), fromAgents)
	env = append(env, fmt.Sprintf("GATEWAY_ENDPOINT=%s:%d", collector.Loopback, gateway.Ports.OTLPGRPC))
	overlay := m{"receivers": m{
		"gpu_allocation": m{"socket": socket},
		"dcgm":           m{"kubernetes": m{"port": port}, "collection_interval": "1s"},
	}}
	agent := start(t, overlay, env, config("agent.yaml"))
	env = append(env, "STATE_DIRECTORY="+collector.StateOf(agent.LogPath))

	var d *diagnosis
	well := func() bool {
		d = doctor(t, env, configs(t, agent.Ports, overlay, config("agent.yaml"))...)
		return d.code == 0
	}
	if !assert.Eventually(t, well, patience, time.Second, "nothing fails") {
		t.Fatal(d.text)
	}
	assert.Len(t, d.of("rbac", "ok"), 4)
	assert.Len(t, d.of("gateway", "ok"), 2)
	assert.Len(t, d.of("kubelet", "ok"), 3)
	assert.Contains(t, fmt.Sprint(d.of("kubernetes", "ok")), "kubelet v1.34.2")
	assert.NotEmpty(t, d.of("exporter", "ok"), "found by its pod")
	assert.Empty(t, d.of("collector", "fail", "skipped"))
}
