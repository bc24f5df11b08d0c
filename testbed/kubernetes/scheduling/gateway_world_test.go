// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/otelcol-gpu/otelcol-gpu/internal/schedulingmodel"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
)

// rights are those that the overlay needs beside the gateway's own.
const rights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: otelcol-gpu-scheduling}
rules:
- {apiGroups: [""], resources: [nodes], verbs: [list, watch]}
- {apiGroups: [resource.k8s.io], resources: [resourceslices, deviceclasses], verbs: [list, watch]}
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: otelcol-gpu-scheduling}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: otelcol-gpu-scheduling}
subjects: [{kind: ServiceAccount, name: otelcol-gpu-gateway, namespace: otelcol-gpu}]
`

// observe starts a gateway with config/scheduler.yaml that reads these pages of schedulers.
func (w *world) observe(pages ...string) {
	w.t.Helper()
	binary, err := filepath.Abs(filepath.Join(root, "bin", "otelcol-gpu"))
	require.NoError(w.t, err)
	require.FileExists(w.t, binary, "run make build")
	kubeconfig, err := cluster.Apply(w.t.Context(), w.Cluster, filepath.Join(root, "config", "kubernetes", "gateway-rbac.yaml"))
	require.NoError(w.t, err)
	w.kubectl(rights, "apply", "-f", "-")
	token := filepath.Join(w.t.TempDir(), "token")
	require.NoError(w.t, os.WriteFile(token, []byte(strings.TrimSpace(w.kubectl("", "create", "token", "-n", "otelcol-gpu", "otelcol-gpu-gateway"))), 0o600))
	ports, err := collector.FreePorts()
	require.NoError(w.t, err)
	overlay := ports.Overlay()
	delete(overlay["exporters"].(m), "prometheus/apps")
	overlay["receivers"].(m)["gpu_scheduling"] = m{"interval": "1s"}
	text, err := json.Marshal(overlay)
	require.NoError(w.t, err)
	w.gateway, err = collector.Start(collector.Options{
		Binary:  binary,
		Configs: []string{filepath.Join(root, "config", "gateway.yaml"), filepath.Join(root, "config", "scheduler.yaml"), "yaml:" + string(text)},
		Env: append([]string{
			"K8S_CLUSTER_NAME=" + clusterName, "K8S_AUTH_TYPE=kubeConfig", "KUBECONFIG=" + kubeconfig,
			"SCHEDULER_TOKEN_FILE=" + token, "SCHEDULER_INSECURE_SKIP_VERIFY=true", "SCHEDULER_INTERVAL=1s",
		}, pages...),
		LogPath: filepath.Join(w.t.TempDir(), "gateway.log"), Ports: ports,
	})
	require.NoError(w.t, err)
	w.logged = append(w.logged, w.gateway.LogPath)
	w.t.Cleanup(func() {
		assert.NoError(w.t, w.gateway.Stop())
		log, err := os.ReadFile(w.gateway.LogPath)
		assert.NoError(w.t, err)
		assert.NotContains(w.t, strings.ToLower(string(log)), "forbidden")
	})
	require.NoError(w.t, w.gateway.WaitReady(w.t.Context()))
}

// objects lists what the model counts.
func (w *world) objects(ctx context.Context) (schedulingmodel.Objects, error) {
	var o schedulingmodel.Objects
	client, all := w.Client(), metav1.ListOptions{}
	nodes, err := client.CoreV1().Nodes().List(ctx, all)
	if err != nil {
		return o, err
	}
	pods, err := client.CoreV1().Pods("").List(ctx, all)
	if err != nil {
		return o, err
	}
	claims, err := client.ResourceV1().ResourceClaims("").List(ctx, all)
	if err != nil {
		return o, err
	}
	devices, err := client.ResourceV1().ResourceSlices().List(ctx, all)
	if err != nil {
		return o, err
	}
	classes, err := client.ResourceV1().DeviceClasses().List(ctx, all)
	if err != nil {
		return o, err
	}
	return schedulingmodel.Objects{
		Nodes: pointers(nodes.Items), Pods: pointers(pods.Items), Claims: pointers(claims.Items), Slices: pointers(devices.Items), Classes: pointers(classes.Items),
	}, nil
}

func pointers[T any](items []T) []*T {
	var out []*T
	for i := range items {
		out = append(out, &items[i])
	}
	return out
}

// labels of Prometheus' page in the order of the model's keys, and the model's names.
var labels = []struct{ label, key string }{
	{"k8s_node_name", "node"}, {"k8s_namespace_name", "namespace"}, {"gpu_queue_name", "queue"}, {"gpu_pending_reason", "reason"},
	{"k8s_resource_name", "resource"}, {"hw_model", "model"}, {"gpu_node_device_state", "state"}, {"gpu_stranded_reason", "reason"}, {"gpu_request_size", "size"},
}

// families are gpu_scheduling's gauges, by Prometheus' names.
var families = map[string]struct{ name, keys string }{
	"gpu_node_devices":                       {"gpu.node.devices", "node resource model state"},
	"gpu_scheduling_stranded":                {"gpu.scheduling.stranded", "resource model reason"},
	"gpu_scheduling_fit":                     {"gpu.scheduling.fit", "resource model size"},
	"gpu_scheduling_fragmentation_ratio":     {"gpu.scheduling.fragmentation", "resource model size"},
	"gpu_scheduling_pending_pods":            {"gpu.scheduling.pending.pods", "namespace queue reason resource"},
	"gpu_scheduling_pending_devices":         {"gpu.scheduling.pending.devices", "namespace queue reason resource"},
	"gpu_scheduling_pending_age_max_seconds": {"gpu.scheduling.pending.age.max", "namespace queue reason"},
}

// figures are what the gateway's page has, under the model's names.
func (w *world) figures(ctx context.Context) (schedulingmodel.Figures, error) {
	page, err := w.gateway.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	out := schedulingmodel.Figures{}
	for family, is := range families {
		for _, one := range page[family].GetMetric() {
			values := map[string]string{}
			for _, l := range labels {
				if value := collector.Label(one, l.label); value != "" {
					values[l.key] = value
				}
			}
			var parts []string
			for key := range strings.FieldsSeq(is.keys) {
				parts = append(parts, key+"="+values[key])
			}
			key := is.name + "{" + strings.Join(parts, ",") + "}"
			if _, twice := out[key]; twice {
				return nil, fmt.Errorf("%s is there twice", key)
			}
			out[key] = collector.Value(one)
		}
	}
	return out, nil
}

// agree waits until the gateway has the figures that the model counts of a fresh list.
func (w *world) agree(after string) (figures int) {
	w.t.Helper()
	w.eventually(after, func(ctx context.Context) error {
		o, err := w.objects(ctx)
		if err != nil {
			return err
		}
		want := w.model.Of(o, time.Now())
		got, err := w.figures(ctx)
		if err != nil {
			return err
		}
		var bad []string
		all := maps.Clone(want)
		maps.Copy(all, got)
		for _, key := range slices.Sorted(maps.Keys(all)) {
			tolerance := 1e-9
			if strings.HasPrefix(key, "gpu.scheduling.pending.age") {
				tolerance = 5 // one interval, and seconds that creation times have no parts of
			}
			x, isWanted := want[key]
			y, is := got[key]
			if is != isWanted || math.Abs(x-y) > tolerance {
				bad = append(bad, fmt.Sprintf("%s: %v (%t), model %v (%t)", key, y, is, x, isWanted))
			}
		}
		if len(bad) > 0 {
			return fmt.Errorf("%s", strings.Join(bad, "\n"))
		}
		figures = len(want)
		return nil
	})
	return figures
}

// query asks the gateway's store, which has Prometheus' engine.
func (w *world) query(ctx context.Context, expression string) (model.Vector, error) {
	address := fmt.Sprintf("http://%s:%d/api/v1/query?query=%s", collector.Loopback, w.gateway.Ports.Store, url.QueryEscape(expression))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var content struct {
		Error string
		Data  struct{ Result model.Vector }
	}
	if err := json.NewDecoder(answer.Body).Decode(&content); err != nil {
		return nil, err
	}
	if content.Error != "" {
		return nil, fmt.Errorf("%s: %s", expression, content.Error)
	}
	return content.Data.Result, nil
}

// queues are the devices of all queues by scheduler, queue and state, as the recording rules
// have them.
func (w *world) queues(ctx context.Context) (map[string]float64, error) {
	text, err := os.ReadFile(filepath.Join(root, "mixin", "rules", "recording.yaml"))
	if err != nil {
		return nil, err
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Record, Expr string
				Labels       map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Record != "gpu:queue_devices" {
				continue
			}
			result, err := w.query(ctx, r.Expr)
			if err != nil {
				return nil, err
			}
			for _, s := range result {
				key := fmt.Sprintf("%s %s %s %s", r.Labels["scheduler"], s.Metric["queue"], s.Metric["k8s_resource_name"], r.Labels["state"])
				if _, twice := out[key]; twice {
					return nil, fmt.Errorf("%s is there twice", key)
				}
				out[key] = float64(s.Value)
			}
		}
	}
	return out, nil
}

// watches are how many are open at the API server for a kind of objects of the whole cluster.
func (w *world) watches(ctx context.Context, resource string) (int, error) {
	text, err := w.Client().Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	page, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		return 0, err
	}
	sum := 0.
	for _, one := range page["apiserver_longrunning_requests"].GetMetric() {
		if collector.Label(one, "verb") == "WATCH" && collector.Label(one, "resource") == resource && collector.Label(one, "scope") == "cluster" {
			sum += one.GetGauge().GetValue()
		}
	}
	return int(sum), nil
}
