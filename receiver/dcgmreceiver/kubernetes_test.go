// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape"
)

// podAPI serves list and watch of pods as a Kubernetes API server does, as far as
// client-go's informers ask for it: field selectors are honoured, a streaming
// list is declined, which makes informers fall back to list and watch.
type podAPI struct {
	mu      sync.Mutex
	pods    []*corev1.Pod
	deleted chan *corev1.Pod
	asked   []string // URLs
}

func (a *podAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.asked = append(a.asked, r.URL.String())
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	switch {
	case !strings.HasSuffix(r.URL.Path, "/pods"):
		http.NotFound(w, r)
	case query.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
			Message: "sendInitialEvents is forbidden for watch",
		})
	case query.Get("watch") != "":
		a.watch(w, r)
	default:
		selector, err := fields.ParseSelector(query.Get("fieldSelector"))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for _, pod := range a.pods {
			if selector.Matches(fields.Set{"spec.nodeName": pod.Spec.NodeName}) {
				list.Items = append(list.Items, *pod)
			}
		}
		_ = json.NewEncoder(w).Encode(list)
	}
}

func (a *podAPI) watch(w http.ResponseWriter, r *http.Request) {
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case pod := <-a.deleted:
			raw, err := json.Marshal(pod)
			if err != nil {
				return
			}
			_, _ = fmt.Fprintf(w, `{"type":"DELETED","object":%s}`+"\n", raw)
			w.(http.Flusher).Flush()
		}
	}
}

func exporterPod(name, node, ip string, phase corev1.PodPhase, labels map[string]string, ports ...int32) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "gpu-operator", UID: "uid-1", ResourceVersion: "1", Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Phase: phase, PodIP: ip},
	}
	container := corev1.Container{Name: "exporter", Image: "exporter"}
	for _, p := range ports {
		container.Ports = append(container.Ports, corev1.ContainerPort{ContainerPort: p, Protocol: corev1.ProtocolTCP})
	}
	pod.Spec.Containers = []corev1.Container{container}
	return pod
}

// exporters serves a page on the same free port of several loopback addresses, and
// records which were asked.
func exporters(t *testing.T, ips ...string) (port int, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	hits := map[string]bool{}
	for _, ip := range ips {
		listener, err := net.Listen("tcp", net.JoinHostPort(ip, fmt.Sprint(port)))
		if err != nil {
			t.Skip("this machine has one loopback address alone: ", err)
		}
		port = listener.Addr().(*net.TCPAddr).Port
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			hits[ip] = true
			mu.Unlock()
			_, _ = w.Write([]byte(strings.ReplaceAll(goodPage, `UUID="GPU-0"`, `UUID="GPU-`+ip+`",Hostname="operator"`)))
		}))
		_ = server.Listener.Close()
		server.Listener = listener
		server.Start()
		t.Cleanup(server.Close)
	}
	return port, func() []string {
		mu.Lock()
		defer mu.Unlock()
		var list []string
		for ip := range hits {
			list = append(list, ip)
		}
		slices.Sort(list)
		return list
	}
}

func TestKubernetes(t *testing.T) {
	t.Parallel()
	exporterPort, asked := exporters(t, "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6", "127.0.0.7")
	p := int32(exporterPort)
	operator, chart := map[string]string{"app": "nvidia-dcgm-exporter"}, map[string]string{"app.kubernetes.io/name": "dcgm-exporter"}
	api := &podAPI{
		deleted: make(chan *corev1.Pod),
		pods: []*corev1.Pod{
			exporterPod("operator", "node-a", "127.0.0.2", corev1.PodRunning, operator, p),
			exporterPod("chart", "node-a", "127.0.0.3", corev1.PodRunning, chart), // declares no port
			exporterPod("gke", "node-a", "127.0.0.4", corev1.PodRunning, map[string]string{"k8s-app": "gke-managed-dcgm-exporter"}, p, 9999),
			exporterPod("elsewhere", "node-b", "127.0.0.5", corev1.PodRunning, operator, p),
			exporterPod("finished", "node-a", "127.0.0.6", corev1.PodSucceeded, operator, p),
			exporterPod("web", "node-a", "127.0.0.7", corev1.PodRunning, map[string]string{"app": "web"}, p),
			exporterPod("pending", "node-a", "", corev1.PodPending, operator, p),
		},
	}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	r := start(t, nil, func(c *Config) {
		c.Kubernetes = &scrape.KubernetesConfig{NodeName: "node-a", Port: exporterPort, KubeconfigFile: kubeconfig(t, server.URL)}
	})

	require.Eventually(t, func() bool { return r.count("devices")[""] == 3 }, patience, 20*time.Millisecond)
	assert.Equal(t, []string{"127.0.0.2", "127.0.0.3", "127.0.0.4"}, asked())
	api.mu.Lock()
	for _, url := range api.asked {
		assert.Contains(t, url, "fieldSelector=spec.nodeName%3Dnode-a")
	}
	api.mu.Unlock()
	r.mu.Lock()
	for _, md := range r.scrapes {
		for _, rm := range md.ResourceMetrics().All() {
			attrs := rm.Resource().Attributes()
			node, _ := attrs.Get(names.K8sNodeName)
			assert.Equal(t, "node-a", node.AsString())
			_, exporterPod := attrs.Get(names.K8sPodName)
			assert.False(t, exporterPod, "the exporter's own pod holds no GPU")
			if id, device := attrs.Get(names.HwID); device {
				_, host := attrs.Get(names.HostName)
				assert.Equal(t, id.Str() != "GPU-127.0.0.2", host, "the exporter's own pod is no host")
			}
		}
	}
	r.mu.Unlock()
	assert.Empty(t, r.warnings())

	api.deleted <- api.pods[0]
	require.Eventually(t, func() bool { return r.count("devices")[""] == 2 }, patience, 20*time.Millisecond)
}

func kubeconfig(t *testing.T, url string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
clusters: [{name: test, cluster: {server: %q}}]
users: [{name: test, user: {}}]
`, url), 0o600))
	return file
}

// TestRelabel checks the rules one by one, IPv6 among them.
func TestRelabel(t *testing.T) {
	base := map[string]string{
		"__meta_kubernetes_pod_phase": "Running", "__meta_kubernetes_pod_ip": "10.0.0.1", "__address__": "10.0.0.1",
		"__meta_kubernetes_pod_label_app": "nvidia-dcgm-exporter",
	}
	declared := map[string]string{"__meta_kubernetes_pod_container_port_number": "9400", "__address__": "10.0.0.1:9400"}
	for name, tt := range map[string]struct {
		config scrape.KubernetesConfig
		labels map[string]string
		want   string // the address, "" for a target that is dropped
	}{
		"declared port":      {scrape.KubernetesConfig{}, declared, "10.0.0.1:9400"},
		"no declared port":   {scrape.KubernetesConfig{}, nil, "10.0.0.1:9400"},
		"other port":         {scrape.KubernetesConfig{}, map[string]string{"__meta_kubernetes_pod_container_port_number": "8080", "__address__": "10.0.0.1:8080"}, ""},
		"configured port":    {scrape.KubernetesConfig{Port: 9500}, nil, "10.0.0.1:9500"},
		"IPv6":               {scrape.KubernetesConfig{}, map[string]string{"__meta_kubernetes_pod_ip": "fd00::1", "__address__": "fd00::1"}, "[fd00::1]:9400"},
		"IPv6 declared port": {scrape.KubernetesConfig{}, map[string]string{"__meta_kubernetes_pod_ip": "fd00::1", "__meta_kubernetes_pod_container_port_number": "9400", "__address__": "[fd00::1]:9400"}, "[fd00::1]:9400"},
		"pending":            {scrape.KubernetesConfig{}, map[string]string{"__meta_kubernetes_pod_phase": "Pending"}, ""},
		"init container":     {scrape.KubernetesConfig{}, map[string]string{"__meta_kubernetes_pod_container_init": "true"}, ""},
		"another app":        {scrape.KubernetesConfig{}, map[string]string{"__meta_kubernetes_pod_label_app": "web"}, ""},
		"own selector":       {scrape.KubernetesConfig{LabelSelector: "app=web"}, map[string]string{"__meta_kubernetes_pod_label_app": "web"}, "10.0.0.1:9400"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			tt.config.NodeName = "node-a"
			cfg.Kubernetes = &tt.config
			prom, err := cfg.Prometheus(&exporter)
			require.NoError(t, err)
			b := labels.NewBuilder(labels.FromMap(base))
			for k, v := range tt.labels {
				b.Set(k, v)
			}
			got := ""
			if relabel.ProcessBuilder(b, prom.ScrapeConfigs[0].RelabelConfigs...) {
				got = b.Get("__address__")
			}
			assert.Equal(t, tt.want, got)
		})
	}
}
