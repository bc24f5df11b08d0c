// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// summaryPage is what a kubelet reports of a node with one pod.
func summaryPage(w http.ResponseWriter) {
	now := time.Now().UTC().Format(time.RFC3339)
	cpu := m{"time": now, "usageNanoCores": 500_000_000, "usageCoreNanoSeconds": 90_000_000_000}
	memory := m{"time": now, "usageBytes": 8 << 30, "workingSetBytes": 6 << 30, "rssBytes": 5 << 30, "availableBytes": 2 << 30, "pageFaults": 10, "majorPageFaults": 1}
	disk := m{"time": now, "availableBytes": 1 << 40, "capacityBytes": 2 << 40, "usedBytes": 1 << 40}
	network := m{"time": now, "name": "eth0", "rxBytes": 1000, "rxErrors": 0, "txBytes": 2000, "txErrors": 0}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(m{
		"node": m{"nodeName": "gpu-node-a", "startTime": now, "cpu": cpu, "memory": memory, "fs": disk, "network": network},
		"pods": []m{{
			"podRef":    m{"name": "llama-6b8d5c9f7d-k2x9p", "namespace": "inference", "uid": "llama-6b8d5c9f7d-k2x9p-uid"},
			"startTime": now, "cpu": cpu, "memory": memory, "network": network,
			"containers": []m{{"name": "vllm", "startTime": now, "cpu": cpu, "memory": memory, "rootfs": disk, "logs": disk}},
		}},
	})
}

// The host's and the kubelet's metrics come out under the labels of everything
// else; the kubelet is asked over TLS, and not where its certificate is unknown.
func TestHostAndKubelet(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	kubelet := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/stats/summary" {
			http.NotFound(w, r)
			return
		}
		asked.Add(1)
		summaryPage(w)
	}))
	kubelet.StartTLS()
	t.Cleanup(kubelet.Close)
	folder := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	key, err := x509.MarshalPKCS8PrivateKey(kubelet.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	certificate, private := write("cert.pem", "CERTIFICATE", kubelet.Certificate().Raw), write("key.pem", "PRIVATE KEY", key)

	api, _ := nodeA(t)
	gateway := start(t, nil, nil, config("standalone.yaml"), fromAgents)
	run := func(env ...string) *collector.Collector {
		return start(t, m{"receivers": m{
			"gpu_allocation": m{"socket": filepath.Join(t.TempDir(), "kubelet.sock")},
			"kubelet_stats":  m{"cert_file": certificate, "key_file": private}, // in a pod it is the service account
		}}, append(append(agentEnv(t, api, grpcOf(gateway)), "HOST_INTERVAL=1s", "K8S_KUBELET_AUTH_TYPE=tls", "KUBELET_ENDPOINT="+kubelet.URL), env...),
			config("agent.yaml"), config("host.yaml"))
	}
	// A certificate of another: nothing of the kubelet, and the host's goes on.
	public, secret, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	other, err := x509.CreateCertificate(rand.Reader, template, template, public, secret)
	require.NoError(t, err)
	strange := run("KUBELET_CA_FILE=" + write("other.pem", "CERTIFICATE", other))
	eventually(t, gateway, "the host", func(f map[string]*dto.MetricFamily) bool { return len(f["system_memory_usage_bytes"].GetMetric()) > 0 })
	require.Eventually(t, func() bool { return len(lines(log(t, strange), "certificate")) > 0 }, patience, 200*time.Millisecond)
	require.Zero(t, asked.Load())
	require.NoError(t, strange.Stop())

	agent := run("KUBELET_CA_FILE=" + certificate)
	node := []string{"k8s_cluster_name", "test-cluster", "k8s_node_name", "gpu-node-a"}
	pod := append(node[:4:4], "k8s_namespace_name", "inference", "k8s_pod_name", "llama-6b8d5c9f7d-k2x9p", "service_name", "llama-70b")
	families := eventually(t, gateway, "host, node, pod and container", func(f map[string]*dto.MetricFamily) bool {
		return len(find(f["k8s_node_memory_working_set_bytes"], node...)) == 1 &&
			len(find(f["k8s_pod_memory_working_set_bytes"], pod...)) == 1 &&
			len(find(f["container_memory_working_set_bytes"], append(pod[:len(pod):len(pod)], "k8s_container_name", "vllm")...)) == 1 &&
			len(find(f["k8s_pod_network_io_bytes_total"], pod...)) == 2 &&
			len(find(f["system_cpu_time_seconds_total"], node...)) > 0 && len(find(f["system_memory_limit_bytes"], node...)) > 0
	})
	assert.Equal(t, float64(6<<30), collector.Value(find(families["container_memory_working_set_bytes"])[0]))
	cpu := find(families["system_cpu_time_seconds_total"], node...)
	require.NotEmpty(t, cpu)
	states := map[string]bool{}
	for _, s := range cpu {
		assert.Empty(t, collector.Label(s, "cpu"), "a series a state, and not a state and CPU")
		assert.Empty(t, collector.Label(s, "service_name"), "a host is no service")
		states[collector.Label(s, "state")] = true
	}
	assert.Len(t, cpu, len(states))
	assert.Len(t, find(families["system_memory_limit_bytes"], node...), 1)
	assert.NotContains(t, families, "system_network_io_bytes_total")
	assert.Empty(t, lines(log(t, agent), "\terror\t"))
	assert.NotContains(t, log(t, agent), "deprecated")
}
