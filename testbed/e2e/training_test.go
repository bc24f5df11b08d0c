// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"sigs.k8s.io/yaml"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/otlp"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/trainsim"
)

// postMetrics sends metrics to the OTLP/HTTP receiver of a collector.
func postMetrics(t *testing.T, c *collector.Collector, md pmetric.Metrics) {
	t.Helper()
	body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	require.NoError(t, err)
	response, err := http.Post(fmt.Sprintf("http://localhost:%d/v1/metrics", c.Ports.OTLPHTTP), "application/x-protobuf", bytes.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
}

// trainingRun is a run of three steps, the last with a loss that is not finite.
func trainingRun(dialect trainsim.Dialect, pod string) *trainsim.Run {
	start := time.Now().Add(-time.Minute)
	step := func(n int64, loss float64) trainsim.Step {
		return trainsim.Step{Number: n, End: start.Add(time.Duration(n) * 4 * time.Second), Duration: 4 * time.Second, Wait: time.Second, Tokens: 1 << 20, Loss: loss}
	}
	nan := 0.0
	return &trainsim.Run{
		ID: "run-" + string(dialect), Precision: "bf16", Dialect: dialect,
		Identity: map[string]string{"k8s.namespace.name": "ml", "k8s.pod.name": pod, "service.name": "train-" + string(dialect)},
		Model:    trainsim.Model{Parameters: 7504924672, Layers: 32, Attention: 8192, Sequence: 8192},
		Lives:    []trainsim.Life{{Start: start, Steps: []trainsim.Step{step(1, 3.5), step(2, 3.25), step(3, nan/nan)}}},
	}
}

var dialects = []trainsim.Dialect{trainsim.Contract, trainsim.Megatron, trainsim.NeMo}

// one is the value of the only series of a family with these labels, and false while it is missing.
func one(f map[string]*dto.MetricFamily, family string, labels ...string) (*dto.Metric, bool) {
	found := find(f[family], labels...)
	if len(found) != 1 {
		return nil, false
	}
	return found[0], true
}

// trainingIsOne checks that the three dialects are one vocabulary in Prometheus.
func trainingIsOne(t *testing.T, c *collector.Collector) {
	t.Helper()
	families := eventually(t, c, "all three dialects", func(f map[string]*dto.MetricFamily) bool {
		_, contract := one(f, "training_tokens_total", "service_name", "train-contract")
		_, megatron := one(f, "training_step_duration_seconds", "service_name", "train-megatron")
		_, nemo := one(f, "training_tokens_total", "service_name", "train-nemo")
		_, steps := one(f, "training_step_duration_seconds", "service_name", "train-contract")
		_, loss := one(f, "training_loss", "service_name", "train-contract")
		_, theirs := one(f, "training_loss", "service_name", "train-megatron")
		_, skipped := one(f, "training_steps_skipped_total", "service_name", "train-megatron")
		return contract && megatron && nemo && steps && loss && theirs && skipped
	})
	for _, dialect := range []trainsim.Dialect{trainsim.Contract, trainsim.Megatron} {
		labels := []string{"service_name", "train-" + string(dialect), "training_run_id", "run-" + string(dialect), "k8s_namespace_name", "ml"}
		duration, ok := one(families, "training_step_duration_seconds", labels...)
		if assert.True(t, ok, dialect) {
			assert.EqualValues(t, 3, duration.Histogram.GetSampleCount())
			assert.InEpsilon(t, 12, duration.Histogram.GetSampleSum(), 1e-9, dialect)
			assert.InEpsilon(t, 600, duration.Histogram.Bucket[len(duration.Histogram.Bucket)-2].GetUpperBound(), 1e-9, dialect)
		}
		loss, ok := one(families, "training_loss", labels...)
		if assert.True(t, ok, dialect) {
			assert.InEpsilon(t, 3.25, collector.Value(loss), 1e-12)
		}
	}
	for _, dialect := range []trainsim.Dialect{trainsim.Contract, trainsim.NeMo} {
		tokens, ok := one(families, "training_tokens_total", "service_name", "train-"+string(dialect), "training_run_id", "run-"+string(dialect))
		if assert.True(t, ok, dialect) {
			assert.InEpsilon(t, 3<<20, collector.Value(tokens), 1e-12)
		}
	}
	skipped, ok := one(families, "training_steps_skipped_total", "service_name", "train-megatron")
	if assert.True(t, ok) {
		assert.InEpsilon(t, 1, collector.Value(skipped), 1e-12)
	}
	assert.NotContains(t, families, "training_loss_ratio")
}

// What jobs send reaches Prometheus through the gateway in one vocabulary.
func TestTrainingAtTheGateway(t *testing.T) {
	t.Parallel()
	summary := m{"expected_pods": "seen", "interval": "1s"}
	c := start(t, m{"processors": m{"gpu_summary": summary}}, nil, config("gateway.yaml"), config("training.yaml"))
	for _, dialect := range dialects {
		postMetrics(t, c, trainingRun(dialect, "worker-0").Export(time.Now()))
	}
	trainingIsOne(t, c)
	assert.Empty(t, lines(log(t, c), "\terror\t"))
}

// The same on one machine; a job that calls itself a device is none.
func TestTrainingOnOneMachine(t *testing.T) {
	t.Parallel()
	c := start(t, m{"receivers": m{"dcgm": m{"endpoints": []string{"http://localhost:1/metrics"}}}}, nil, config("standalone.yaml"), config("training-standalone.yaml"))
	for _, dialect := range dialects {
		run := trainingRun(dialect, "worker-0")
		run.Identity["hw.id"] = "GPU-1"
		postMetrics(t, c, run.Export(time.Now()))
	}
	postMetrics(t, c, trainingRun(trainsim.Contract, "worker-0").Export(time.Now()))
	trainingIsOne(t, c)
	families := eventually(t, c, "again", func(map[string]*dto.MetricFamily) bool { return true })
	assert.Empty(t, find(families["training_tokens_total"], "hw_id", "GPU-1"))
}

// The agent adds the pod, sends the gateway what is of training and nothing else, and the backend
// of applications all of it.
func TestTrainingFromAnAgent(t *testing.T) {
	t.Parallel()
	api := kubeapi.New("gpu-node-a")
	api.AddPod("ml", "worker-0", m{"labels": m{"app.kubernetes.io/name": "llama-pretrain"}}, "10.0.0.7")
	var mu sync.Mutex
	type point struct{ service, pod, metric string }
	var gateway, apps []point
	sink := func(points *[]point) string {
		return serve(t, otlp.Handler{Metrics: func(_ context.Context, md pmetric.Metrics) error {
			mu.Lock()
			defer mu.Unlock()
			for _, rm := range md.ResourceMetrics().All() {
				_, device := rm.Resource().Attributes().Get("hw.id")
				assert.False(t, device && points == &gateway, "of no device")
				text := func(key string) string {
					if v, has := rm.Resource().Attributes().Get(key); has {
						return v.AsString()
					}
					return ""
				}
				for _, sm := range rm.ScopeMetrics().All() {
					for _, metric := range sm.Metrics().All() {
						*points = append(*points, point{text("service.name"), text("k8s.pod.name"), metric.Name()})
					}
				}
			}
			return nil
		}})
	}
	agent := start(t, m{
		"receivers": m{"gpu_allocation": m{"socket": filepath.Join(t.TempDir(), "kubelet.sock")}},
		"exporters": m{"otlp_http/training": otlp.Exporter(sink(&gateway)), "otlp_http/apps": otlp.Exporter(sink(&apps))},
		"service": m{"pipelines": m{
			"metrics/apps":     m{"exporters": []string{"otlp_http/apps", "best_effort/training"}},
			"metrics/training": m{"exporters": []string{"otlp_http/training"}},
		}},
	}, append(agentEnv(t, api, "localhost:1"), "APPS_ENDPOINT=localhost:1"), config("agent.yaml"), config("applications.yaml"), config("training-agent.yaml"))
	// Until the agent has read the pods it knows no service of theirs.
	send := func() {
		for _, dialect := range dialects {
			run := trainingRun(dialect, "worker-0")
			run.Identity = map[string]string{"k8s.namespace.name": "ml", "k8s.pod.name": "worker-0", "hw.id": "GPU-1"}
			md := run.Export(time.Now())
			for _, name := range []string{"gpu.training.mfu", "hw.gpu.utilization", "http.requests", "training_loss"} {
				metric := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
				metric.SetName(name)
				metric.SetEmptyGauge().DataPoints().AppendEmpty().SetDoubleValue(1)
			}
			postMetrics(t, agent, md)
		}
	}
	has := func(points []point, metric string) bool {
		return slices.Contains(points, point{"llama-pretrain", "worker-0", metric})
	}
	require.Eventually(t, func() bool {
		send()
		mu.Lock()
		defer mu.Unlock()
		return has(gateway, "training.tokens") && has(gateway, "megatron.training.loss") && has(gateway, "nv.dl.training.tokens.processed") && has(apps, "http.requests") && has(apps, "training.tokens")
	}, patience, time.Second)
	mu.Lock()
	defer mu.Unlock()
	for _, p := range gateway {
		assert.True(t, strings.HasPrefix(p.metric, "training.") || strings.HasPrefix(p.metric, "megatron.training.") || strings.HasPrefix(p.metric, "nv.dl.training."), p.metric)
	}
	for _, p := range apps {
		assert.NotRegexp(t, `^(gpu|hw)\.`, p.metric)
	}
}

// What is made of names and of identities is the same wherever it stands.
func TestTrainingTransformsAreOne(t *testing.T) {
	t.Parallel()
	gateway, machine, agent := shipped(t, "training.yaml").Processors, shipped(t, "training-standalone.yaml").Processors, shipped(t, "training-agent.yaml").Processors
	assert.Equal(t, gateway["transform/training"], machine["transform/training"])
	text, err := os.ReadFile(slurm("slurm-node-training.yaml"))
	require.NoError(t, err)
	var node file
	require.NoError(t, yaml.Unmarshal(text, &node))
	for _, id := range []string{"filter/training", "transform/training-identity"} {
		assert.Equal(t, agent[id], machine[id])
		assert.Equal(t, agent[id], node.Processors[id])
	}
	assert.Equal(t, gateway["transform/training"], node.Processors["transform/training"])
}

// On Slurm a job sends to its node, and the node to the central collector: the job is the one that
// TaskProlog has it state, and the node's own telemetry is as before.
func TestTrainingOnASlurmNode(t *testing.T) {
	t.Parallel()
	const token = "d1f0c3b2a4958677"
	exporter := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, slurmPage) }))
	credentials := slurmCredentials(t, token)
	ports, err := collector.Free(1)
	require.NoError(t, err)
	central := start(t, m{"receivers": m{"otlp/nodes": m{"protocols": m{"grpc": m{"endpoint": fmt.Sprintf("%s:%d", collector.Loopback, ports[0])}}}}}, []string{"LISTEN_ADDRESS=" + collector.Loopback, "CREDENTIALS_DIRECTORY=" + credentials},
		config("standalone.yaml"), slurm("slurm-central.yaml"), slurm("slurm-central-training.yaml"))
	node := start(t, m{
		"receivers": m{"dcgm": m{"collection_interval": "1s"}},
		"exporters": m{"otlp_grpc/training": m{"sending_queue": m{"batch": m{"flush_timeout": "100ms"}}}},
	}, []string{
		"DCGM_EXPORTER_ENDPOINT=" + exporter + "/metrics", "NODE_NAME=gpu-7", "CLUSTER_NAME=hpc",
		fmt.Sprintf("GATEWAY_ENDPOINT=localhost:%d", ports[0]), "GATEWAY_CA_FILE=" + filepath.Join(credentials, "tls.crt"), "GATEWAY_TOKEN=" + token,
	}, slurm("slurm-node.yaml"), slurm("slurm-node-training.yaml"))
	for _, dialect := range dialects {
		run := trainingRun(dialect, "")
		run.Identity = map[string]string{"slurm.cluster.name": "hpc", "slurm.job.id": "4711", "service.name": "train-" + string(dialect), "hw.id": "GPU-1"}
		postMetrics(t, node, run.Export(time.Now()))
	}
	families := eventually(t, central, "the job and the devices", func(f map[string]*dto.MetricFamily) bool {
		_, tokens := one(f, "training_tokens_total", "slurm_job_id", "4711", "slurm_cluster_name", "hpc", "service_name", "train-nemo")
		_, steps := one(f, "training_step_duration_seconds", "slurm_job_id", "4711", "service_name", "train-megatron")
		return tokens && steps && len(find(f["hw_gpu_utilization_ratio"])) == 2
	})
	assert.Empty(t, find(families["training_loss"], "hw_id", "GPU-1"))
	assert.NotContains(t, families, "training_loss_ratio")
	assert.NotContains(t, families, "megatron_training_loss")
}

// What follows from a job and its devices, by the shipped overlay and the real binary. The job's
// clock runs ahead of ours, so that a window passes at once.
func TestTrainingFigures(t *testing.T) {
	t.Parallel()
	c := start(t, m{"processors": m{
		"gpu_summary": m{"expected_pods": "seen", "interval": "1s"}, "gpu_training": m{"interval": "1s", "window": "10s"},
	}}, nil, config("gateway.yaml"), config("training.yaml"))
	run := trainingRun(trainsim.Contract, "worker-0")
	begin := time.Now()
	run.Lives[0] = trainsim.Life{Start: begin}
	for n := range int64(50) {
		run.Lives[0].Steps = append(run.Lives[0].Steps, trainsim.Step{
			Number: n + 1, End: begin.Add(time.Duration(n+1) * 4 * time.Second), Duration: 2 * time.Second, Wait: time.Second / 2, Tokens: 4376 * 8 * 4, Loss: 2,
		})
	}
	for i := range 8 {
		run.Devices = append(run.Devices, trainsim.Device{ID: fmt.Sprint("GPU-", i), Model: "NVIDIA H100 80GB HBM3"})
	}
	postMetrics(t, c, run.Held(begin))
	postMetrics(t, c, run.Export(begin))
	labels := []string{"service_name", "train-contract", "k8s_namespace_name", "ml", "training_run_id", "run-contract"}
	eventually(t, c, "the run is known", func(f map[string]*dto.MetricFamily) bool {
		_, ok := one(f, "gpu_training_restarts_total", labels...)
		return ok
	})
	for i := range 4 {
		postMetrics(t, c, run.Export(begin.Add(time.Duration(i+1)*20*time.Second)))
	}
	// far are the figures that are not what they should be.
	far := func(families map[string]*dto.MetricFamily) (far []string) {
		for family, want := range map[string]float64{
			"gpu_training_mfu_ratio wall": 0.2562, "gpu_training_mfu_ratio step": 0.5125, "gpu_training_throughput_per_second": 4376 * 8,
			"gpu_training_device_throughput_per_second": 4376, "gpu_training_data_wait_ratio": 0.25, "gpu_training_lost_steps_total": 0,
		} {
			name, basis, of := strings.Cut(family, " ")
			if of {
				basis = "gpu_training_basis " + basis
			}
			series, ok := one(families, name, append(slices.Clone(labels), strings.Fields(basis)...)...)
			if !ok || math.Abs(collector.Value(series)-want) > 0.0002 {
				far = append(far, fmt.Sprintf("%s is %v and not %v", family, series, want))
			}
		}
		return far
	}
	var last []string
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(last)
		}
	})
	eventually(t, c, "MFU and what belongs to it", func(f map[string]*dto.MetricFamily) bool {
		last = far(f)
		return len(find(f["gpu_training_mfu_ratio"], labels...)) == 2 && len(last) == 0
	})
	assert.Empty(t, lines(log(t, c), "\terror\t"))
}
