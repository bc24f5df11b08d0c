// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/confmap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/exporterpage"
)

// The rules by which the receiver chooses pods and ports.
func TestTargets(t *testing.T) {
	exporterOf := func(labels map[string]string, phase corev1.PodPhase, ports ...int32) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Status: corev1.PodStatus{Phase: phase, PodIP: "10.0.0.1"}}
		c := corev1.Container{Image: "nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3"}
		for _, port := range ports {
			c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: port})
		}
		p.Spec.Containers = []corev1.Container{c}
		return p
	}
	ours := map[string]string{"app": "nvidia-dcgm-exporter"}
	for name, tt := range map[string]struct {
		k    config.Discovery
		pod  *corev1.Pod
		want string
	}{
		"its port":        {config.Discovery{}, exporterOf(ours, "Running", 9400), "http://10.0.0.1:9400/metrics"},
		"no port":         {config.Discovery{}, exporterOf(ours, "Running"), "http://10.0.0.1:9400/metrics"},
		"GKE":             {config.Discovery{}, exporterOf(map[string]string{"k8s-app": "dcgm-exporter"}, "Running", 9400), "http://10.0.0.1:9400/metrics"},
		"another port":    {config.Discovery{}, exporterOf(ours, "Running", 9500), ""},
		"a port given":    {config.Discovery{Port: 9500}, exporterOf(ours, "Running", 9500), "http://10.0.0.1:9500/metrics"},
		"another pod":     {config.Discovery{}, exporterOf(map[string]string{"app": "node-exporter"}, "Running", 9400), ""},
		"by selector":     {config.Discovery{LabelSelector: "x=y"}, exporterOf(map[string]string{"x": "y"}, "Running", 9400), "http://10.0.0.1:9400/metrics"},
		"not yet running": {config.Discovery{}, exporterOf(ours, "Pending", 9400), ""},
	} {
		got := ""
		for _, e := range targets(&tt.k, tt.pod, exporter{receiver: "dcgm", page: exporterpage.DefaultSettings()}) {
			got += e.url
			assert.Equal(t, "4.5.3", e.version, name)
		}
		assert.Equal(t, tt.want, got, name)
	}
}

// TestTargetsOfOtherVendors: the same rules with the labels and ports of each exporter. Of
// several ports the pod must declare one: the daemon of XPU Manager 1.x declares none, and
// is no exporter.
func TestTargetsOfOtherVendors(t *testing.T) {
	pod := func(key, name string, ports ...int32) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{key: name}}, Status: corev1.PodStatus{Phase: "Running", PodIP: "10.0.0.1"}}
		for _, port := range ports {
			c := corev1.Container{Image: "a:1"}
			if port > 0 {
				c.Ports = []corev1.ContainerPort{{ContainerPort: port}}
			}
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
		return p
	}
	for name, tt := range map[string]struct {
		receiver string
		pod      *corev1.Pod
		want     []string
	}{
		"AMD":             {"amd_gpu", pod("app.kubernetes.io/name", "metrics-exporter", 5000), []string{"http://10.0.0.1:5000/metrics"}},
		"another app":     {"amd_gpu", pod("app", "metrics-exporter", 5000), nil},
		"Gaudi":           {"gaudi", pod("app.kubernetes.io/name", "metric-exporter-ds", 41611), []string{"http://10.0.0.1:41611/metrics"}},
		"XPU Manager 1.x": {"intel_gpu", pod("app", "intel-xpumanager", 0, 29999), []string{"http://10.0.0.1:29999/metrics"}},
		"XPU Manager 2.x": {"intel_gpu", pod("app.kubernetes.io/name", "xpumd", 8080), []string{"http://10.0.0.1:8080/metrics"}},
		"dcgm-exporter":   {"intel_gpu", pod("app", "nvidia-dcgm-exporter", 8080), nil},
	} {
		var got []string
		for _, e := range targets(&config.Discovery{}, tt.pod, exporter{receiver: tt.receiver, page: fetch.DefaultSettings(tt.receiver)}) {
			got = append(got, e.url)
		}
		assert.Equal(t, tt.want, got, name)
	}
}

// TestEveryReceiverHasItsKind: what doctor knows of a vendor is not forgotten.
func TestEveryReceiverHasItsKind(t *testing.T) {
	types := []string{"dcgm"}
	for _, k := range kinds {
		types = append(types, k.Exporter.Type)
		assert.Equal(t, k.Exporter.Type, k.Vendor.Name)
		assert.NotEmpty(t, k.Exporter.NoIdentity, k.Vendor.Name)
		for _, c := range k.Cards {
			assert.NotEmpty(t, c.Remedy, "%s: %s", k.Vendor.Name, c.Name)
		}
	}
	assert.ElementsMatch(t, config.ExporterReceivers, types)
}

// TestAskedTwice: an exporter that limits how often it is asked may just have answered the
// collector.
func TestAskedTwice(t *testing.T) {
	defer func(before time.Duration) { againAfter = before }(againAfter)
	againAfter = time.Millisecond
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = w.Write([]byte("habanalabs_utilization{Serial=\"AM1\"} 1\n"))
	}))
	defer s.Close()
	e := exporter{receiver: "gaudi", url: s.URL, client: s.Client(), page: fetch.DefaultSettings("gaudi")}
	results := checkExporter(t.Context(), probe.Env{Config: config.New(confmap.New())}, e)
	assert.Equal(t, probe.OK, results[0].Status, results[0].Seen)
	assert.Equal(t, 2, asked)
}
