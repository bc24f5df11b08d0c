// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// A page of a node with a dcgm-exporter that knows which job has which GPU
// (--hpc-job-mapping-dir): GPU 0 is job 4711's, GPU 1 has no owner.
const slurmPage = `# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-11111111-1111-1111-1111-111111111111",device="nvidia0",modelName="H100",Hostname="gpu-7",hpc_job="4711"} 87
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-22222222-2222-2222-2222-222222222222",device="nvidia1",modelName="H100",Hostname="gpu-7"} 0
`

// The same of AMD's exporter.
const slurmPageAMD = `# TYPE gpu_gfx_activity gauge
gpu_gfx_activity{gpu_id="0",gpu_uuid="c3ff74a1-0000-1000-8088-426fc31c9eaf",card_series="AMD Instinct MI300X",hostname="gpu-8",job_id="4712",job_user="ada",job_partition="batch"} 64
`

// The two configurations of docs/install.md for nodes without Kubernetes: over
// TLS and with the token the node's devices arrive, with the job where the
// exporter names one and without an owner where it does not.
func TestSlurmNodesWithoutKubernetes(t *testing.T) {
	t.Parallel()
	const token = "d1f0c3b2a4958677"
	exporter := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, slurmPage) }))
	credentials := slurmCredentials(t, token)
	ports, err := collector.Free(1)
	require.NoError(t, err)
	central := start(t, m{"receivers": m{"otlp/nodes": m{"protocols": m{"grpc": m{"endpoint": fmt.Sprintf("%s:%d", collector.Loopback, ports[0])}}}}}, []string{"LISTEN_ADDRESS=" + collector.Loopback, "CREDENTIALS_DIRECTORY=" + credentials},
		config("standalone.yaml"), slurm("slurm-central.yaml"))
	endpoint := fmt.Sprintf("localhost:%d", ports[0])
	node := func(token string) *collector.Collector {
		return start(t, m{"receivers": m{"dcgm": m{"collection_interval": "1s"}}}, []string{
			"DCGM_EXPORTER_ENDPOINT=" + exporter + "/metrics", "NODE_NAME=gpu-7", "CLUSTER_NAME=hpc",
			"GATEWAY_ENDPOINT=" + endpoint, "GATEWAY_CA_FILE=" + filepath.Join(credentials, "tls.crt"), "GATEWAY_TOKEN=" + token,
		}, slurm("slurm-node.yaml"))
	}

	// Who is on this machine has no token, and so no names of GPUs; a page of another
	// site has nothing.
	local := func(host string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("http://localhost:%d/v1/metrics", central.Ports.OTLPHTTP), strings.NewReader(
			`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"hw.gpu.utilization","unit":"1","gauge":{"dataPoints":[{"asDouble":1}]}}]}]}]}`))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		request.Host = host
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	assert.Equal(t, http.StatusForbidden, local("evil.example"))
	assert.Equal(t, http.StatusOK, local("localhost"))

	stranger := node("not-the-token")
	require.Eventually(t, func() bool { return len(lines(log(t, stranger), "Unauthenticated")) > 0 }, patience, 100*time.Millisecond,
		"without the token nothing is taken")
	families, err := central.Metrics(t.Context())
	require.NoError(t, err)
	assert.Nil(t, families["hw_gpu_utilization_ratio"], "without the token nothing is taken")

	node(token)
	families = eventually(t, central, "both devices", func(f map[string]*dto.MetricFamily) bool {
		return len(f["hw_gpu_utilization_ratio"].GetMetric()) == 2
	})
	job := find(families["hw_gpu_utilization_ratio"], "hpc_job", "4711")
	require.Len(t, job, 1)
	assert.Equal(t, "GPU-11111111-1111-1111-1111-111111111111", collector.Label(job[0], "hw_id"))
	assert.Equal(t, "gpu-7", collector.Label(job[0], "k8s_node_name"))
	assert.Equal(t, "hpc", collector.Label(job[0], "k8s_cluster_name"))
	assert.InDelta(t, 0.87, job[0].GetGauge().GetValue(), 1e-9)
	free := find(families["hw_gpu_utilization_ratio"], "hw_id", "GPU-22222222-2222-2222-2222-222222222222")
	require.Len(t, free, 1)
	assert.Empty(t, collector.Label(free[0], "hpc_job"))
	assert.Empty(t, families["gpu_service_utilization_ratio"].GetMetric(), "a job is no service")

	// A node with AMD's boards, by a file more: the job is under the same label.
	amd := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, slurmPageAMD) }))
	start(t, m{"receivers": m{"amd_gpu": m{"collection_interval": "1s"}}}, []string{
		"AMD_EXPORTER_ENDPOINT=" + amd + "/metrics", "NODE_NAME=gpu-8", "CLUSTER_NAME=hpc",
		"GATEWAY_ENDPOINT=" + endpoint, "GATEWAY_CA_FILE=" + filepath.Join(credentials, "tls.crt"), "GATEWAY_TOKEN=" + token,
	}, slurm("slurm-node.yaml"), slurm("slurm-node-amd.yaml"))
	eventually(t, central, "the job of AMD's exporter", func(f map[string]*dto.MetricFamily) bool {
		job := find(f["hw_gpu_utilization_ratio"], "hpc_job", "4712", "k8s_node_name", "gpu-8")
		return len(job) == 1 && collector.Label(job[0], "hw_id") == "GPU-c388426fc31c9eaf"
	})
}

func slurm(name string) string { return filepath.Join(root, "docs", "examples", "systemd", name) }

// slurmCredentials is a folder as systemd makes it of LoadCredential: tls.crt,
// tls.key and token.
func slurmCredentials(t *testing.T, token string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	certificate := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.ParseIP(collector.Loopback)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate, certificate, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		"token":   []byte(token + "\n"),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	return dir
}
