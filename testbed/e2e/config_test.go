// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/webhook"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// started is how each shipped configuration is run; TestEveryConfigurationRuns
// fails for one that is missing here. Those that need Kubernetes, or a story of
// their own, are run by the test that is named.
var started = map[string][]string{
	"standalone.yaml":                {"standalone.yaml"},
	"inference-standalone.yaml":      {"standalone.yaml", "inference-standalone.yaml"},
	"demo.yaml":                      {"standalone.yaml", "inference-standalone.yaml", "demo.yaml"},
	"webhooks.yaml":                  {"standalone.yaml", "webhooks.yaml"},
	"cost.yaml":                      {"standalone.yaml", "cost.yaml"},
	"kernel-log.yaml":                {"standalone.yaml", "kernel-log.yaml"},
	"agent.yaml":                     {"e2e/agent_test.go"},
	"applications.yaml":              {"e2e/agent_test.go"},
	"gateway-applications.yaml":      {"e2e/exemplars_test.go"},
	"agent-raw.yaml":                 {"kubernetes/gateway/world_test.go"},
	"gateway.yaml":                   {"kubernetes/gateway/world_test.go"},
	"raw-gateway.yaml":               {"kubernetes/gateway/world_test.go"},
	"scale-out.yaml":                 {"e2e/scaleout_test.go"},
	"scale-out-gateway.yaml":         {"e2e/scaleout_test.go"},
	"inference.yaml":                 {"kubernetes/inference/world_test.go"},
	"inference-gateways.yaml":        {"kubernetes/inference/world_test.go"},
	"host.yaml":                      {"e2e/host_test.go"},
	"vendors.yaml":                   {"e2e/vendors_test.go"},
	"vendors-standalone.yaml":        {"e2e/vendors_test.go"},
	"nvml.yaml":                      {"e2e/nvml_test.go"},
	"nvml-standalone.yaml":           {"e2e/nvml_test.go"},
	"nccl-agent.yaml":                {"e2e/nccl_test.go"},
	"nccl-gateway.yaml":              {"e2e/nccl_test.go"},
	"nccl-standalone.yaml":           {"e2e/nccl_test.go"},
	"training.yaml":                  {"e2e/training_test.go"},
	"training-agent.yaml":            {"e2e/training_test.go"},
	"training-standalone.yaml":       {"e2e/training_test.go"},
	"slurm-node.yaml":                {"e2e/slurm_node_test.go"},
	"scheduler.yaml":                 {"mixin/schedulers_test.go"},
	"slurm-controller.yaml":          {"e2e/slurm_controller_test.go"},
	"bring-your-own-collector.yaml":  {"e2e/bringyourown_test.go"},
	"bring-your-own-pipeline.yaml":   {"e2e/bringyourown_test.go"},
	"bring-your-own-prometheus.yaml": {"e2e/bringyourown_test.go"},
}

// A place for a request is taken before a token is read: no address alone has all of
// them where others than this machine can ask.
func TestNoPeerHasAllPlaces(t *testing.T) {
	shipped, err := filepath.Glob(config("*.yaml"))
	require.NoError(t, err)
	for _, path := range append(shipped, slurm("slurm-central.yaml")) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var c struct{ Extensions map[string]json.RawMessage }
		require.NoError(t, yaml.Unmarshal(text, &c))
		for id, raw := range c.Extensions {
			if !strings.HasPrefix(id, "request_limit") {
				continue
			}
			var limit struct {
				All   int `json:"max_requests"`
				Peer  int `json:"max_requests_per_peer"`
				Hosts []string
			}
			require.NoError(t, json.Unmarshal(raw, &limit))
			assert.True(t, limit.Peer < limit.All || len(limit.Hosts) > 0, "%s: %s", path, id)
		}
	}
}

// What ends a series overtakes none of its points on the way to the gateway, and an agent
// needs no more places there at a time than it may have. What host.yaml sends never ends.
func TestExportersKeepTheOrder(t *testing.T) {
	files, err := filepath.Glob(config("*.yaml"))
	require.NoError(t, err)
	exporters := 0
	for _, path := range files {
		for id, exporter := range shipped(t, filepath.Base(path)).Exporters {
			if !strings.HasPrefix(id, "otlp_grpc") || id == "otlp_grpc/host" {
				continue
			}
			exporters++
			queue, _ := exporter["sending_queue"].(m)
			assert.EqualValues(t, 1, queue["num_consumers"], "%s: %s", path, id)
		}
	}
	assert.NotZero(t, exporters)
}

// Every configuration that ships starts, scrapes, serves service averages, logs
// nothing about deprecation, and stops cleanly.
func TestEveryConfigurationRuns(t *testing.T) {
	shipped, err := filepath.Glob(config("*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, shipped)
	for _, path := range shipped {
		name := filepath.Base(path)
		files, known := started[name]
		require.True(t, known, "say in the map started how %s is run", name)
		if by, ok := strings.CutSuffix(files[0], "_test.go"); ok {
			text, err := os.ReadFile(filepath.Join(root, "testbed", by+"_test.go"))
			if assert.NoError(t, err, name) {
				assert.Contains(t, string(text), strconv.Quote(name), "%s does not run it", files[0])
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var configs []string
			for _, f := range files {
				configs = append(configs, config(f))
			}
			_, _, endpoints := fleet(t, gpusim.Demo(gpusim.DemoTimes()))
			sink := serve(t, webhook.NewSink(time.Now))
			c := start(t, m{
				"receivers":  m{"dcgm": m{"endpoints": endpoints, "collection_interval": "1s"}},
				"processors": m{"gpu_summary": m{"interval": "1s"}},
			}, []string{"WEBHOOK_URL=https://hooks.example.com/secret-path", "SINK=" + sink}, configs...)

			families := eventually(t, c, "devices and services", func(f map[string]*dto.MetricFamily) bool {
				return len(find(f["gpu_exporter_up"])) == 4 && len(find(f["gpu_service_pods"], "service_name", "llama")) == 5
			})
			assert.Contains(t, families, "hw_gpu_memory_usage_bytes")
			assert.NotContains(t, families, "target_info")
			text := log(t, c)
			assert.NotContains(t, text, "deprecated")
			assert.NotContains(t, text, "secret-path")
			assert.Empty(t, lines(text, "\terror\t"))
		})
	}
}

// What becomes of a metric on its way to Prometheus is the same wherever it goes
// there: names and labels are those of dashboards, alerts and the console.
func TestPrometheusOutputIsOne(t *testing.T) {
	t.Parallel()
	all, err := filepath.Glob(config("*.yaml"))
	require.NoError(t, err)
	gateway, scaled := shipped(t, "gateway.yaml"), shipped(t, "scale-out.yaml")
	prometheus, write := maps.Clone(gateway.Exporters["prometheus"]), scaled.Exporters["prometheus_remote_write"]
	delete(prometheus, "endpoint")
	for _, option := range []string{"translation_strategy", "resource_to_telemetry_conversion"} {
		assert.Equal(t, prometheus[option], write[option])
	}
	transforms, pages, writes := 0, 0, 0
	for _, path := range all {
		name := filepath.Base(path)
		f := shipped(t, name)
		if transform, ok := f.Processors["transform/prometheus"]; ok {
			assert.Equal(t, gateway.Processors["transform/prometheus"], transform, name)
			transforms++
		}
		for _, id := range []string{"prometheus", "prometheus/apps"} {
			if page, ok := f.Exporters[id]; ok {
				delete(page, "endpoint")
				assert.Equal(t, prometheus, page, name)
				pages++
			}
		}
		if other, ok := f.Exporters["prometheus_remote_write"]; ok {
			assert.Equal(t, write, other, name)
			writes++
		}
	}
	assert.Equal(t, []int{4, 5, 2}, []int{transforms, pages, writes})
}

// Applications are refused before anything else is: all that they may use is less
// than what has the other limiter refuse.
func TestApplicationsAreRefusedFirst(t *testing.T) {
	t.Parallel()
	all, err := filepath.Glob(config("*.yaml"))
	require.NoError(t, err)
	under := map[string]string{"applications.yaml": "agent.yaml", "inference.yaml": "agent.yaml", "gateway-applications.yaml": "gateway.yaml", "standalone.yaml": "standalone.yaml"}
	mib := func(limiter any, key string) (mib int) {
		text := fmt.Sprint(limiter.(m)[key])
		if _, preset, ok := strings.Cut(text, ":-"); ok {
			text = strings.TrimSuffix(preset, "}")
		}
		_, _ = fmt.Sscan(text, &mib)
		return mib
	}
	for _, path := range all {
		name := filepath.Base(path)
		apps, has := shipped(t, name).Processors["memory_limiter/apps"]
		if !has {
			assert.NotContains(t, under, name)
			continue
		}
		require.Contains(t, under, name, "over which configuration?")
		all := shipped(t, under[name]).Processors["memory_limiter"]
		limit, spike := mib(all, "limit_mib"), mib(all, "spike_limit_mib")
		if spike == 0 {
			spike = limit / 5 // the limiter's own
		}
		assert.Positive(t, mib(apps, "limit_mib"), name)
		assert.LessOrEqual(t, mib(apps, "limit_mib"), limit-spike, name)
	}
}

// file is what a configuration of config/ has.
type file struct {
	Receivers  map[string]any
	Processors map[string]any
	Exporters  map[string]map[string]any
}

func shipped(t *testing.T, name string) (f file) {
	t.Helper()
	text, err := os.ReadFile(config(name))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &f), name)
	return f
}

// command runs the collector's command line to its end.
func command(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t, "otelcol-gpu"), args...)
	cmd.Env = append(os.Environ(), "STATE_DIRECTORY="+t.TempDir())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestVersionAndComponentsAreRight(t *testing.T) {
	t.Parallel()
	out, err := command(t, "--version")
	require.NoError(t, err)
	assert.Equal(t, "otelcol-gpu version 0.1.0\n", out)

	out, err = command(t, "components")
	require.NoError(t, err)
	for _, want := range []string{
		"dcgm", "amd_gpu", "gaudi", "intel_gpu", "gpu_allocation", "otlp", "prometheus", "host_metrics", "kubelet_stats", "file_log",
		"gpu_pod", "gpu_summary", "memory_limiter", "batch", "filter", "transform", "resource", "attributes", "groupbyattrs", "resource_detection", "k8s_attributes",
		"webhook", "debug", "otlp_grpc", "otlp_http", "prometheus_remote_write", "file", "gpu_store",
		"gpu_events", "forward", "health_check", "pprof", "zpages", "file_storage", "bearertokenauth", "gpu_console",
	} {
		assert.Contains(t, out, "- name: "+want+"\n")
	}
	for _, scheme := range []string{"env", "file", "http", "https", "yaml"} {
		assert.Contains(t, out, "- scheme: "+scheme+"\n")
	}
	assert.Contains(t, out, "module: github.com/otelcol-gpu/otelcol-gpu v0.1.0\n")
}

// A configuration that cannot work stops the start with its key and the remedy.
func TestBadConfigurationStopsTheStart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		overlay string
		want    []string
	}{
		"no endpoint":        {"receivers: {dcgm: {endpoints: []}}", []string{"receivers::dcgm", "endpoints", "http://localhost:9400/metrics"}},
		"interval too short": {"receivers: {dcgm: {collection_interval: 100ms}}", []string{"receivers::dcgm", "collection_interval", "1s"}},
		"unknown key":        {"receivers: {dcgm: {endpoint: x}}", []string{"dcgm", "endpoint"}},
		"both sources of AMD": {
			"{receivers: {amd_gpu: {source: sysfs, endpoints: [\"http://localhost:5000/metrics\"]}}, service: {pipelines: {metrics: {receivers: [amd_gpu]}}}}",
			[]string{"receivers::amd_gpu", "endpoints", "source: exporter"},
		},
		"Gaudi asked too often": {
			"{receivers: {gaudi: {collection_interval: 1s, endpoints: [\"http://localhost:41611/metrics\"]}}, service: {pipelines: {metrics: {receivers: [gaudi]}}}}",
			[]string{"receivers::gaudi", "collection_interval", "10s"},
		},
		"summary source": {"processors: {gpu_summary: {expected_pods: guess}}", []string{"gpu_summary", "expected_pods", "seen"}},
		"summary in two pipelines": {
			"service: {pipelines: {metrics/two: {receivers: [otlp], processors: [gpu_summary], exporters: [prometheus]}}}",
			[]string{"gpu_summary", "pipeline"},
		},
		"webhook without receivers": {"exporters: {webhook: {receivers: {}}}", []string{"webhook", "receivers"}},
		"webhook to loopback":       {`exporters: {webhook: {receivers: {a: {url: "http://127.0.0.1:9/very-secret"}}}}`, []string{"receivers::a::url", "allow_cidrs"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ports, err := collector.FreePorts()
			require.NoError(t, err)
			free, err := json.Marshal(ports.Overlay())
			require.NoError(t, err)
			out, err := command(t, "--config", config("standalone.yaml"), "--config", "yaml:"+string(free), "--config", "yaml:"+tc.overlay)
			require.Error(t, err, "the collector must not start")
			for _, text := range tc.want {
				assert.Contains(t, out, text)
			}
			assert.NotContains(t, out, "very-secret")
		})
	}
}

// The labels of Prometheus are an allow-list: what is not on it starts no series.
func TestPrometheusLabelsAreTheAllowList(t *testing.T) {
	t.Parallel()
	_, _, endpoints := fleet(t, gpusim.Demo(gpusim.DemoTimes()))
	c := start(t, m{
		"receivers":  m{"dcgm": m{"endpoints": endpoints, "collection_interval": "1s"}},
		"processors": m{"gpu_summary": m{"interval": "1s", "warmup": "1s", "staleness": "3s"}},
	}, nil, config("standalone.yaml"))
	families := eventually(t, c, "averages", func(f map[string]*dto.MetricFamily) bool {
		return len(find(f["gpu_service_utilization_ratio"], "service_name", "llama")) == 1
	})
	allowed := map[string]bool{}
	for _, name := range []string{
		"k8s_cluster_name", "k8s_node_name", "k8s_namespace_name", "k8s_pod_name", "k8s_container_name", "service_name",
		"host_name", "server_address", "server_port", "hw_id", "hw_parent", "hw_type", "hw_model",
		"gpu_index", "gpu_mig_profile", "gpu_mig_instance_id", "gpu_partition_id", "gpu_partition_profile", // and those of the points:
		"hw_gpu_task", "hw_sensor_location", "gpu_pipe", "gpu_clock_domain", "gpu_power_limit_kind", "gpu_throttle_reason",
		"network_io_direction", "gpu_io_link", "gpu_nvlink_error_type", "gpu_nvlink_lane", "error_type", "gpu_xid_code", "gpu_xid_derived",
		"gpu_health_watch", "gpu_health_state", "gpu_pod_state", "gpu_device_state", "xid", "window_size_in_ms",
		"hw_state", "gpu_health_reason", "gpu_health_action", "gpu_fabric_state", "gpu_nvlink_state", "gpu_memory_spare_rows",
	} {
		allowed[name] = true
	}
	seen := map[string]bool{}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			for _, l := range metric.GetLabel() {
				seen[l.GetName()] = true
			}
		}
	}
	var unexpected []string
	for name := range seen {
		if !allowed[name] {
			unexpected = append(unexpected, name)
		}
	}
	sort.Strings(unexpected)
	assert.Empty(t, unexpected)
	assert.True(t, seen["k8s_pod_name"] && seen["service_name"] && seen["gpu_mig_profile"])
}

// An address that was left out is named by its variable.
func TestWhatIsNotSetIsNamed(t *testing.T) {
	t.Parallel()
	for file, variable := range map[string]string{
		"raw-gateway.yaml": "BACKEND_ENDPOINT", "bring-your-own-pipeline.yaml": "BACKEND_ENDPOINT", "vendors-standalone.yaml": "GPU_RECEIVERS",
	} {
		args := []string{"validate", "--config", config(file)}
		if file == "vendors-standalone.yaml" {
			args = append([]string{"validate", "--config", config("standalone.yaml")}, args[1:]...)
		}
		cmd := exec.Command(binary(t, "otelcol-gpu"), args...)
		cmd.Env = []string{"HOME=" + t.TempDir(), "K8S_NODE_NAME=n", "SCRAPE_TARGET=localhost:9400"}
		out, err := cmd.CombinedOutput()
		assert.Error(t, err, file)
		assert.Contains(t, string(out), variable+"-is-not-set", file)
	}
}
