// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden compares everything that the checks find with testdata/golden; with
// -update it writes the files. The configurations have names instead of the
// addresses of what listens for the test.
func TestGolden(t *testing.T) {
	t.Setenv("K8S_NODE_NAME", "")
	dir := t.TempDir()
	socket := filepath.Join(dir, "kubelet.sock")
	addresses := map[string]string{
		"EXPORTER": serve(t, page), "FROZEN": serve(t, "not a page\n"), "OWN": serve(t, ownMetricsPage), "HEALTH": serve(t, `{"status":"Server available"}`),
		"UNWELL": serve(t, `{"error":"samples are not stored"}`), "CONSOLE": serve(t, consoleStatus), "NOCONSOLE": serve(t, "<html>"),
		"TAKES": serveOTLP(t, &otlp{answer: codes.OK}), "REFUSES": serveOTLP(t, &otlp{answer: codes.Unavailable}), "UNAUTHENTICATED": serveOTLP(t, &otlp{answer: codes.Unauthenticated}),
		"CLOSED": closed(t), "FOLDER": dir, "SOCKET": socket,
		"AMDPAGE": serve(t, amdPage), "GAUDIPAGE": serve(t, gaudiPage), "INTELPAGE": serve(t, intelPage),
	}
	serveKubelet(t, socket)
	kubeconfig(t, dir)
	agent := `
receivers: {dcgm: {endpoints: ["http://EXPORTER/metrics"]}, gpu_allocation: {socket: SOCKET, auth_type: kubeConfig, node_name: n1}, otlp: {protocols: {grpc: {endpoint: "GATEWAY"}}}}
processors: {gpu_pod: {}, k8s_attributes: {auth_type: kubeConfig}}
exporters: {otlp_grpc: {endpoint: "GATEWAY", tls: {insecure: true}}, otlp_http: {endpoint: "http://EXPORTER/in", tls: {insecure: true}}}
extensions: {health_check: {endpoint: "HEALTH"}, file_storage: {directory: FOLDER}}
service:
  extensions: [health_check, file_storage]
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: OWNPORT}}}}]}}
  pipelines: {metrics: {receivers: [dcgm, gpu_allocation, otlp], processors: [gpu_pod, k8s_attributes], exporters: [otlp_grpc, otlp_http]}}
`
	gateway := `
receivers: {otlp: {protocols: {http: {endpoint: "HEALTH"}}}}
processors: {gpu_summary: {expected_pods: kubernetes, auth_type: kubeConfig, namespaces: [ml]}}
exporters: {webhook: {receivers: {ops: {url: "http://CLOSED/"}}}, webhook/idle: {}}
extensions: {health_check: {endpoint: "UNWELL"}, gpu_console: {endpoint: "CONSOLE"}, gpu_store: {directory: FOLDER/none}}
service:
  extensions: [health_check, gpu_console, gpu_store]
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: OWNPORT}}}}]}}
  pipelines: {metrics: {receivers: [otlp], processors: [gpu_summary], exporters: []}, logs: {receivers: [otlp], exporters: [webhook]}}
`
	vendors := `
receivers: {amd_gpu: {endpoints: ["http://AMDPAGE"]}, amd_gpu/driver: {source: sysfs}, gaudi: {endpoints: ["http://GAUDIPAGE"]}, intel_gpu: {endpoints: ["http://INTELPAGE"]}, gpu_allocation: {auth_type: none}}
service: {pipelines: {metrics: {receivers: [amd_gpu, amd_gpu/driver, gaudi, intel_gpu, gpu_allocation]}}}
`
	addresses["OWNPORT"] = addresses["OWN"][strings.LastIndexByte(addresses["OWN"], ':')+1:]
	for name, tt := range map[string]struct {
		config  string
		options Options
	}{
		"agent":           {strings.ReplaceAll(agent, "GATEWAY", "TAKES"), Options{}},
		"refused":         {strings.ReplaceAll(agent, "GATEWAY", "REFUSES"), Options{Only: []string{"gateway", "kubelet"}}},
		"unauthenticated": {strings.ReplaceAll(agent, "GATEWAY", "UNAUTHENTICATED"), Options{Only: []string{"gateway"}}},
		"nothing-listens": {
			strings.NewReplacer("GATEWAY", "CLOSED", "EXPORTER", "CLOSED", "HEALTH", "CLOSED", "SOCKET", "FOLDER/none.sock").Replace(agent),
			Options{Only: []string{"configuration", "exporter", "kubelet", "collector", "otlp", "gateway", "console", "state", "webhook"}},
		},
		"gateway":    {gateway, Options{}},
		"no-console": {strings.ReplaceAll(gateway, "CONSOLE", "NOCONSOLE"), Options{Only: []string{"console"}}},
		"no-page":    {strings.ReplaceAll(agent, "EXPORTER", "FROZEN"), Options{Only: []string{"exporter"}}},
		"watched":    {strings.ReplaceAll(agent, "GATEWAY", "TAKES"), Options{Only: []string{"exporter", "telemetry"}, Watch: time.Millisecond}},
		"vendors":    {vendors, Options{Only: []string{"configuration", "exporter"}, Watch: time.Millisecond}},
		"role-agent": {"", Options{Role: "agent", As: "system:serviceaccount:otelcol-gpu:otelcol-gpu-agent"}},
		"role":       {"", Options{Role: "gateway"}},
		"empty":      {"service: {pipelines: {metrics: {receivers: [x]}}, telemetry: {metrics: {readers: []}}}", Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			o := tt.options
			o.Version, o.Timeout = "0.1.0", 10*time.Second
			var forward, back []string
			for key, address := range addresses {
				forward, back = append(forward, key, address), append(back, address, key)
			}
			if tt.config != "" {
				// Longest first: NOCONSOLE before CONSOLE, OWNPORT before OWN.
				o.Configs = []string{"yaml:" + longestFirst(forward).Replace(tt.config)}
			}
			results, err := Run(t.Context(), o)
			require.NoError(t, err)
			var got strings.Builder
			for _, r := range results {
				if r.Check == "versions" && (r.Subject == "gateway at 127.0.0.1" || r.Subject == "clock of 127.0.0.1") {
					continue // another collector of this machine may be there
				}
				fmt.Fprintf(&got, "%s %s | %s | %s\n", r.Status, r.Check, r.Subject, r.Seen)
				for line := range strings.Lines(r.Remedy) {
					fmt.Fprintf(&got, "    %s\n", strings.TrimSuffix(line, "\n"))
				}
			}
			text := longestFirst(back).Replace(got.String())
			text = regexp.MustCompile(`[0-9.]+ GiB free`).ReplaceAllString(text, "N GiB free")
			text = regexp.MustCompile(`user \d+`).ReplaceAllString(text, "user N")
			file := filepath.Join("testdata", "golden", name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), text)
		})
	}
}

// longestFirst replaces the longer of two names of which one holds the other.
func longestFirst(pairs []string) *strings.Replacer {
	var sorted [][]string
	for pair := range slices.Chunk(pairs, 2) {
		sorted = append(sorted, pair)
	}
	slices.SortFunc(sorted, func(a, b []string) int { return len(b[0]) - len(a[0]) })
	return strings.NewReplacer(slices.Concat(sorted...)...)
}

const page = `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",pod="",modelName="H100"} 1
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-1",pod="",modelName="H100"} 5
`

const ownMetricsPage = `otelcol_process_uptime 60
target_info{service_name="otelcol-gpu",service_version="0.2.0"} 1
otelcol_dcgm_receiver_scrapes{outcome="connect"} 4
otelcol_gpu_allocation_snapshot_age 61
otelcol_receiver_refused_metric_points{receiver="otlp",transport="grpc"} 7
otelcol_exporter_queue_capacity{data_type="logs",exporter="otlp_grpc/events"} 10
otelcol_exporter_queue_size{data_type="logs",exporter="otlp_grpc/events"} 9
`

const consoleStatus = `{"freshness": {"data_age": 400, "stale": true}, "version": "0.1.0", "state": "ready",
"store": {"engine": "embedded", "reachable": true, "problems": [{"part": "samples", "reason": "disk_full", "since": "2026-11-22T14:30:00Z", "refused": 9, "detail": "make room"}]},
"telemetry": {"exporters_up": 2, "exporters_down": 1, "exporters_frozen": 0, "devices": 3, "services": 1, "down_exporters": [{"address": "http://a:9400/metrics", "state": "down", "node": "n1"}]}}`

// serve answers every request with the same text, and returns the address.
func serve(t *testing.T, text string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = []string{time.Now().UTC().Format(http.TimeFormat)}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func closed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// lister is a kubelet that has its devices listed and not what is allocatable.
type lister struct {
	podresources.UnimplementedPodResourcesListerServer
}

func (lister) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	devices := func(ids ...string) []*podresources.ContainerDevices {
		return []*podresources.ContainerDevices{{ResourceName: "nvidia.com/gpu", DeviceIds: ids, Topology: &podresources.TopologyInfo{Nodes: []*podresources.NUMANode{{ID: 1}}}}}
	}
	return &podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{
		{Name: "a", Namespace: "ml", Containers: []*podresources.ContainerResources{{Name: "x", Devices: devices("1", "2"), CpuIds: []int64{1, 2}}, {Name: "y", Devices: devices("3")}}},
		{Name: "b", Namespace: "ml", Containers: []*podresources.ContainerResources{{Name: "x"}}},
	}}, nil
}

func (lister) GetAllocatableResources(context.Context, *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	return nil, status.Error(codes.Unknown, "Pod Resources API GetAllocatableResources disabled")
}

func serveKubelet(t *testing.T, socket string) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	s := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(s, lister{})
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
}

// kubeconfig names an API server in which pods may be listed and not watched.
func kubeconfig(t *testing.T, dir string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		switch {
		case r.URL.Path == "/version":
			fmt.Fprint(w, `{"major":"1","minor":"33+","gitVersion":"v1.33.1"}`)
		case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
			allowed := !strings.Contains(string(body), "watch") && r.Header.Get("Impersonate-User") == ""
			fmt.Fprintf(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{},"status":{"allowed":%t}}`, allowed)
		case r.URL.Path == "/api/v1/nodes":
			assert.Equal(t, "metadata.name=n1", r.URL.Query().Get("fieldSelector"))
			fmt.Fprint(w, `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n1"},"status":{"nodeInfo":{"kubeletVersion":"v1.29.3"}}}]}`)
		case r.URL.Path == "/api/v1/pods":
			fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","items":[
				{"metadata":{"name":"a","labels":{"app.kubernetes.io/component":"agent"}},"spec":{"containers":[{"name":"c","image":"ghcr.io/otelcol-gpu/otelcol-gpu:0.1.0"}]}},
				{"metadata":{"name":"g","labels":{"app.kubernetes.io/component":"gateway"}},"spec":{"containers":[{"name":"c","image":"ghcr.io/otelcol-gpu/otelcol-gpu:0.2.0"}]}}]}`)
		default:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"forbidden","reason":"Forbidden","code":403}`)
		}
	}))
	t.Cleanup(s.Close)
	file := filepath.Join(dir, "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "`+s.URL+`"}}]
users: [{name: u, user: {token: hush}}]
`), 0o600))
	t.Setenv("KUBECONFIG", file)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	require.NoError(t, os.Unsetenv("KUBERNETES_SERVICE_HOST"))
}
