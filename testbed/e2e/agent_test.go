// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/otlp"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

const annotation = "resource.opentelemetry.io/service.name"

func owner(kind, name string) []m {
	return []m{{"apiVersion": "any/v1", "kind": kind, "name": name, "uid": name + "-uid"}}
}

// startAgent runs config/agent.yaml with config/applications.yaml on the pods of a
// node, with more environment. What it sends to the gateway and for applications goes to
// the two sinks.
func startAgent(t *testing.T, api *kubeapi.API, overlay m, more ...string) (c *collector.Collector, gateway, apps *otlp.Sink) {
	t.Helper()
	gateway, apps = &otlp.Sink{}, &otlp.Sink{}
	pipeline := func(exporters ...string) m { return m{"exporters": exporters} }
	top := m{
		"receivers": m{"gpu_allocation": m{"socket": filepath.Join(t.TempDir(), "kubelet.sock")}},
		"exporters": m{"otlp_http": otlp.Exporter(serve(t, gateway)), "otlp_http/apps": otlp.Exporter(serve(t, apps))},
		"service": m{"pipelines": m{
			"metrics": pipeline("otlp_http", "gpu_events"), "logs/events": pipeline("otlp_http"), "metrics/apps": pipeline("otlp_http/apps"),
			"logs/apps": pipeline("otlp_http/apps"), "traces/apps": pipeline("otlp_http/apps"),
		}},
	}
	for _, section := range []string{"receivers", "processors"} {
		if changed, ok := overlay[section].(m); ok {
			if _, ok := top[section]; !ok {
				top[section] = m{}
			}
			maps.Copy(top[section].(m), changed)
		}
	}
	env := slices.Concat(agentEnv(t, api, "localhost:1"), []string{"APPS_ENDPOINT=localhost:1"}, more)
	return start(t, top, env, config("agent.yaml"), config("applications.yaml")), gateway, apps
}

func agentEnv(t *testing.T, api *kubeapi.API, gateway string) []string {
	t.Helper()
	return []string{
		"K8S_NODE_NAME=" + api.Node(), "K8S_CLUSTER_NAME=test-cluster", "GATEWAY_ENDPOINT=" + gateway, "GATEWAY_INSECURE=true",
		"K8S_AUTH_TYPE=kubeConfig", "KUBECONFIG=" + kubeconfigOf(t, serve(t, api)),
	}
}

// nodeA is the API of the demo's first node: its exporter's pod, at the port
// that is returned, and the pod of llama, which here is one of a LeaderWorkerSet.
func nodeA(t *testing.T) (api *kubeapi.API, port int) {
	t.Helper()
	_, _, endpoints := fleet(t, gpusim.Demo(gpusim.DemoTimes()))
	exporter, err := url.Parse(endpoints[0])
	require.NoError(t, err)
	port, err = strconv.Atoi(exporter.Port())
	require.NoError(t, err)
	api = kubeapi.New("gpu-node-a")
	api.AddPod("gpu-operator", "exporter-x7k2p", m{"labels": m{"app": "nvidia-dcgm-exporter"}, "ownerReferences": owner("DaemonSet", "nvidia-dcgm-exporter")}, exporter.Hostname())
	api.AddPod("inference", "llama-6b8d5c9f7d-k2x9p", m{
		"labels": m{
			"app.kubernetes.io/name": "llama", "app.kubernetes.io/component": "prefill", "team": "blue",
			"pod-template-hash": "6b8d5c9f7d", "leaderworkerset.sigs.k8s.io/name": "llama-70b",
		},
		"ownerReferences": owner("ReplicaSet", "llama-6b8d5c9f7d"),
	}, "10.0.0.1")
	return api, port
}

// The agent's own exporter and queue, into another collector: the service there
// is the one that the agent named.
func TestAgentFeedsAGateway(t *testing.T) {
	t.Parallel()
	api, port := nodeA(t)
	gateway := start(t, m{"processors": m{"gpu_summary": quick}}, nil, config("standalone.yaml"), fromAgents)
	agent := start(t, m{"receivers": m{
		"gpu_allocation": m{"socket": filepath.Join(t.TempDir(), "kubelet.sock")},
		"dcgm":           m{"kubernetes": m{"port": port}, "collection_interval": "1s"},
	}}, agentEnv(t, api, fmt.Sprintf("%s:%d", collector.Loopback, gateway.Ports.OTLPGRPC)), config("agent.yaml"))
	eventually(t, gateway, "the service's average", func(f map[string]*dto.MetricFamily) bool {
		return len(find(f["gpu_service_utilization_ratio"], "service_name", "llama-70b", "k8s_namespace_name", "inference", "k8s_cluster_name", "test-cluster")) == 1
	})
	assert.Empty(t, lines(log(t, agent), "\terror\t"))
}

// A node's exporter is found, its telemetry gets the pod from gpu_pod, and uid,
// owner and service from Kubernetes; free devices get none of that. Spans of the pod get
// its devices.
func TestAgentDescribesPods(t *testing.T) {
	t.Parallel()
	api, port := nodeA(t)
	socket := filepath.Join(t.TempDir(), "kubelet.sock")
	c, gateway, apps := startAgent(t, api, m{"receivers": m{
		"dcgm":           m{"kubernetes": m{"port": port}, "collection_interval": "1s"},
		"gpu_allocation": m{"socket": socket, "poll_interval": "1s", "timeout": "1s", "collection_interval": "1s"},
	}}, "APPS_POD_DEVICES=true")

	// An agent takes telemetry before it knows the pods: it does not wait for the API server.
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(gateway.Resources(), func(r otlp.Resource) bool {
			return r.Attributes["hw.id"] != "" && r.Attributes["k8s.pod.uid"] != ""
		})
	}, patience, 100*time.Millisecond, "the agent knows the pods")
	gateway.Reset()
	var held, free []map[string]string
	up := false
	require.Eventually(t, func() bool {
		held, free = nil, nil
		for _, r := range gateway.Resources() {
			up = up || slices.Contains(r.Metrics, "gpu.exporter.up")
			switch {
			case r.Attributes["hw.id"] == "":
			case r.Attributes["k8s.pod.name"] != "":
				held = append(held, r.Attributes)
			default:
				free = append(free, r.Attributes)
			}
		}
		return up && len(held) >= 2 && len(free) >= 2
	}, patience, 100*time.Millisecond)
	for _, a := range held {
		want := map[string]string{
			"k8s.cluster.name": "test-cluster", "k8s.node.name": "gpu-node-a", "k8s.namespace.name": "inference",
			"k8s.pod.name": "llama-6b8d5c9f7d-k2x9p", "k8s.container.name": "vllm", "k8s.pod.uid": "llama-6b8d5c9f7d-k2x9p-uid",
			"k8s.deployment.name": "llama", "service.name": "llama-70b", "k8s.pod.label.app.kubernetes.io/component": "prefill",
		}
		for k, v := range want {
			assert.Equal(t, v, a[k], k)
		}
		assert.NotEmpty(t, a["k8s.pod.start_time"])
		assertNoHelpers(t, a)
	}
	for _, a := range free {
		assert.Equal(t, "test-cluster", a["k8s.cluster.name"])
		assert.NotContains(t, a, "service.name")
		assert.NotContains(t, a, "k8s.pod.uid")
		assertNoHelpers(t, a)
	}
	assert.Empty(t, apps.Resources())
	spansNameGPUs(t, c, apps, socket, held, free)
	text := log(t, c)
	assert.NotContains(t, text, "deprecated")
	assert.NotContains(t, text, "forbidden", "the agent asks for nothing but its node's pods")
	assert.Empty(t, lines(text, "\terror\t"))
}

// What the agent cannot know by itself stops the start where it is missing.
func TestAgentNeedsItsNodeAndGateway(t *testing.T) {
	t.Parallel()
	for overlay, more := range map[string][]string{
		"applications.yaml": {"exporters::otlp_grpc/apps", "APPS_ENDPOINT-is-not-set"},
		"inference.yaml":    {"exporters::otlp_grpc/apps", "APPS_ENDPOINT-is-not-set"},
		"host.yaml":         {"exporters::otlp_grpc/host"},
	} {
		out, err := command(t, "validate", "--config", config("agent.yaml"), "--config", config(overlay))
		require.Error(t, err)
		for _, text := range append([]string{
			"receivers::dcgm: kubernetes::node_name", "receivers::gpu_allocation: node_name", "processors::k8s_attributes", "K8S_NODE_NAME", "exporters::otlp_grpc", "GATEWAY_ENDPOINT-is-not-set",
		}, more...) {
			assert.Contains(t, out, text, overlay)
		}
	}
}

// assertNoHelpers: nothing leaves that only transform/service needs, and no label
// that is not on the allow-list.
func assertNoHelpers(t *testing.T, attributes map[string]string) {
	t.Helper()
	for k := range attributes {
		assert.False(t, strings.HasPrefix(k, "otelcol_gpu"), k)
		assert.False(t, strings.HasPrefix(k, "k8s.pod.label") && k != "k8s.pod.label.app.kubernetes.io/component", k)
	}
}

// Applications are known by their own word or their address; the rules of
// service.name are those of docs/agent.md. internal/serviceidentity has every
// rule, testbed/kubernetes compares both on a real API server.
func TestAgentNamesServices(t *testing.T) {
	t.Parallel()
	api := kubeapi.New("node-1")
	minute := time.Now().Unix() / 60
	groups := m{
		"leaderworkerset.sigs.k8s.io/name": "lws", "ray.io/cluster": "ray", "jobset.sigs.k8s.io/jobset-name": "jobset",
		"training.kubeflow.org/job-name": "kubeflow", "volcano.sh/job-name": "volcano", "app.kubernetes.io/instance": "instance",
	}
	without := func(keys ...string) m {
		rest := maps.Clone(groups)
		for _, k := range keys {
			delete(rest, k)
		}
		return rest
	}
	const lws, ray, jobset, kubeflow, volcano = "leaderworkerset.sigs.k8s.io/name", "ray.io/cluster", "jobset.sigs.k8s.io/jobset-name", "training.kubeflow.org/job-name", "volcano.sh/job-name"
	want := map[string]string{}
	add := func(pod, service string, metadata m) {
		api.AddPod("apps", pod, metadata, fmt.Sprintf("10.0.1.%d", len(want)))
		want[pod] = service
	}
	add("bare", "bare", nil)
	add("jaeger-agent-0", "jaeger-agent-0", nil)
	add("annotated", "said", m{"annotations": m{annotation: "said"}, "labels": groups})
	add("annotated-empty", "lws", m{"annotations": m{annotation: ""}, "labels": groups})
	add("lws", "lws", m{"labels": groups, "ownerReferences": owner("StatefulSet", "lws-1")})
	add("ray", "ray", m{"labels": without(lws)})
	add("jobset", "jobset", m{"labels": without(lws, ray)})
	add("kubeflow", "kubeflow", m{"labels": without(lws, ray, jobset)})
	add("volcano", "volcano", m{"labels": without(lws, ray, jobset, kubeflow), "ownerReferences": owner("Job", "vj")})
	add("instance", "instance", m{"labels": without(lws, ray, jobset, kubeflow, volcano)})
	add("empty-group", "volcano", m{"labels": m{lws: "", volcano: "volcano"}})
	add("empty-instance", "empty-instance", m{"labels": m{"app.kubernetes.io/instance": "", "app.kubernetes.io/name": "n"}})
	add("deployment", "chat", m{"labels": m{"pod-template-hash": "abc"}, "ownerReferences": owner("ReplicaSet", "chat-abc")})
	add("cronjob", "nightly", m{"ownerReferences": owner("Job", fmt.Sprintf("nightly-%d", minute))})
	add("job", "nightly-20261121", m{"ownerReferences": owner("Job", "nightly-20261121")})
	api.AddPod("apps", "peer", m{"ownerReferences": owner("DaemonSet", "the-peer")}, collector.Loopback)
	c, gateway, apps := startAgent(t, api, m{"receivers": m{"dcgm": m{"collection_interval": "1s"}}})

	var resources []map[string]string
	for pod := range want {
		resources = append(resources, map[string]string{"k8s.namespace.name": "apps", "k8s.pod.name": pod})
	}
	resources = append(resources,
		map[string]string{"case": "said by itself", "k8s.namespace.name": "apps", "k8s.pod.name": "lws", "service.name": "mine"},
		map[string]string{"case": "forged helper", "k8s.namespace.name": "apps", "k8s.pod.name": "bare", "otelcol_gpu.group.ray": "forged"},
		map[string]string{"case": "known by address"},
		map[string]string{"case": "no such pod", "k8s.namespace.name": "apps", "k8s.pod.name": "unheard-of"},
	)
	cases := map[string]string{"said by itself": "mine", "forged helper": "bare", "known by address": "the-peer", "no such pod": ""}
	url := "http://" + fmt.Sprintf("%s:%d", collector.Loopback, c.Ports.OTLPHTTP)
	began, all := time.Now(), func() bool { return len(apps.Resources()) == len(resources) }
	// An agent takes telemetry before it knows the pods: it does not wait for the API server.
	for known := false; !known; {
		apps.Reset()
		require.NoError(t, otlp.Post(t.Context(), url, otlp.Metrics, resources...))
		require.Eventually(t, all, patience, 20*time.Millisecond)
		known = !slices.ContainsFunc(apps.Resources(), func(r otlp.Resource) bool {
			return r.Attributes["service.name"] == "" && r.Attributes["case"] != "no such pod"
		})
		require.Less(t, time.Since(began), patience, "the agent knows the pods")
	}
	for _, signal := range []otlp.Signal{otlp.Metrics, otlp.Logs, otlp.Traces} {
		apps.Reset()
		require.NoError(t, otlp.Post(t.Context(), url, signal, resources...))
		require.Eventually(t, all, patience, 20*time.Millisecond)
		for _, r := range apps.Resources() {
			a := r.Attributes
			assert.Equal(t, signal, r.Signal)
			assert.Equal(t, "test-cluster", a["k8s.cluster.name"])
			assertNoHelpers(t, a)
			service, name := want[a["k8s.pod.name"]], a["k8s.pod.name"]
			if a["case"] != "" {
				service, name = cases[a["case"]], a["case"]
			}
			assert.Equal(t, service, a["service.name"], "%s of %s", signal, name)
		}
	}
	assert.Empty(t, gateway.Resources(), "applications' telemetry does not pass gpu_pod")
}
