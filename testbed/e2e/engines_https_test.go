// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/otlp"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// scrapes is what is known of the last scrape of each pod.
type scrapes struct {
	mu  sync.Mutex
	all map[string]map[string]float64 // a value of each metric, by pod
}

func (s *scrapes) take(_ context.Context, md pmetric.Metrics) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rm := range md.ResourceMetrics().All() {
		pod, _ := rm.Resource().Attributes().Get("k8s.pod.name")
		if s.all[pod.Str()] == nil {
			s.all[pod.Str()] = map[string]float64{}
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				switch metric.Type() {
				case pmetric.MetricTypeGauge:
					s.all[pod.Str()][metric.Name()] = metric.Gauge().DataPoints().At(0).DoubleValue()
				case pmetric.MetricTypeSum:
					p := metric.Sum().DataPoints().At(0)
					s.all[pod.Str()][metric.Name()] = p.DoubleValue() + float64(p.IntValue())
				}
			}
		}
	}
	return nil
}

// up is the last up of each pod, and whether its engine's page was read.
func (s *scrapes) up() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	up := map[string]string{}
	for pod, metrics := range s.all {
		if v, ok := metrics["up"]; ok {
			_, read := metrics["inference.server.requests"]
			up[pod] = fmt.Sprintf("up %v, read %t", v, read)
		}
	}
	return up
}

// An engine by https is read if INFERENCE_CA_FILE signed its certificate, for its pod's
// address, or if INFERENCE_INSECURE_SKIP_VERIFY is set; where the file is missing, none is.
func TestEnginesByHTTPS(t *testing.T) {
	t.Parallel()
	ours, another := newAuthority(t), newAuthority(t)
	address := net.ParseIP(collector.Loopback)
	api := kubeapi.New("node-1")
	for pod, signed := range map[string]func(dir string){
		"engine":    func(dir string) { ours.sign(t, dir, address) },
		"stranger":  func(dir string) { another.sign(t, dir, address) },
		"elsewhere": func(dir string) { ours.sign(t, dir, net.IPv4(127, 0, 0, 2)) },
	} {
		dir := t.TempDir()
		signed(dir)
		certificate, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
		require.NoError(t, err)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name=\"llama\"} 3\n")
		}))
		server.Config.ErrorLog = stdlog.New(io.Discard, "", 0) // of handshakes that fail on purpose
		server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
		server.StartTLS()
		t.Cleanup(server.Close)
		port := server.Listener.Addr().(*net.TCPAddr).Port
		api.AddPod("inference", pod, m{"annotations": m{"otelcol-gpu.io/scheme": "https", "otelcol-gpu.io/port": strconv.Itoa(port)}}, collector.Loopback,
			m{"name": "vllm", "image": "vllm/vllm-openai:v0.21"})
	}
	ca := filepath.Join(t.TempDir(), "ca.crt")
	replace(t, ca, "CERTIFICATE", ours.cert.Raw)

	scraped := func(t *testing.T, env ...string) (*scrapes, *collector.Collector) {
		t.Helper()
		s := &scrapes{all: map[string]map[string]float64{}}
		return s, start(t, m{
			"receivers": m{"gpu_allocation": m{"socket": filepath.Join(t.TempDir(), "kubelet.sock")}},
			"exporters": m{"otlp_http/apps": otlp.Exporter(serve(t, otlp.Handler{Metrics: s.take}))},
			"service":   m{"pipelines": m{"metrics/inference": m{"exporters": []string{"otlp_http/apps"}}}},
		}, append(append(agentEnv(t, api, "localhost:1"), "APPS_ENDPOINT=localhost:1", "INFERENCE_INTERVAL=1s"), env...), config("agent.yaml"), config("inference.yaml"))
	}
	for name, c := range map[string]struct {
		env  string
		want map[string]string
	}{
		"by what signed it": {"INFERENCE_CA_FILE=" + ca, map[string]string{"engine": "up 1, read true", "stranger": "up 0, read false", "elsewhere": "up 0, read false"}},
		"without a file":    {"", map[string]string{"engine": "up 0, read false", "stranger": "up 0, read false", "elsewhere": "up 0, read false"}},
		"not verified": {
			"INFERENCE_INSECURE_SKIP_VERIFY=true", map[string]string{"engine": "up 1, read true", "stranger": "up 1, read true", "elsewhere": "up 1, read true"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := scraped(t, c.env)
			var up map[string]string
			if !assert.Eventually(t, func() bool { up = s.up(); return assert.ObjectsAreEqual(c.want, up) }, patience, 100*time.Millisecond) {
				assert.Equal(t, c.want, s.up())
			}
		})
	}
	t.Run("the file is missing", func(t *testing.T) {
		t.Parallel()
		missing := filepath.Join(t.TempDir(), "missing.crt")
		s, agent := scraped(t, "INFERENCE_CA_FILE="+missing)
		require.Eventually(t, func() bool { return len(lines(log(t, agent), missing)) > 0 }, patience, 100*time.Millisecond, "the log has the error")
		for pod, up := range s.up() {
			assert.Contains(t, up, "read false", pod)
		}
	})
}
