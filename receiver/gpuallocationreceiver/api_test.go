// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient/k8sfake"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/snapshot"
)

// What the log has where objects cannot be read.
const (
	slicesMissing = "the node's ResourceSlices cannot be read: devices of DRA are as they were last listed, or have no gpu.allocation where they never were"
	claimsMissing = "ResourceClaims cannot be read: it is not known whether their devices are held or only looked at, they have no gpu.allocation and are not free"
)

// kubeRun is a receiver on a scripted kubelet and an API, in real time.
func kubeRun(t *testing.T, s *script, a *k8sfake.API, change ...func(*Config)) *run {
	t.Helper()
	t.Setenv("KUBECONFIG", a.KubeConfig(t))
	r := newRun(t, append([]func(*Config){func(c *Config) {
		c.AuthType = k8sclient.KubeConfig
		c.PollInterval, c.CollectionInterval = 50*time.Millisecond, 50*time.Millisecond
	}}, change...)...)
	r.receiver.source = s
	return r
}

// requests counts requests to the API by object and result.
func (r *run) requests(o string, res k8sclient.Result) int64 {
	m, err := r.telemetry.GetMetric("otelcol_gpu_allocation_api_requests")
	if err != nil {
		return 0
	}
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		object, _ := p.Attributes.Value("object")
		result, _ := p.Attributes.Value("result")
		if object.AsString() == o && result.AsString() == string(res) {
			return p.Value
		}
	}
	return 0
}

func (r *run) apiAges() map[string]float64 {
	m, err := r.telemetry.GetMetric("otelcol_gpu_allocation_api_age")
	if err != nil {
		return nil
	}
	out := map[string]float64{}
	for _, p := range m.Data.(metricdata.Gauge[float64]).DataPoints {
		object, _ := p.Attributes.Value("object")
		out[object.AsString()] = p.Value
	}
	return out
}

// last is the newest batch: allocations, and the state of the node.
func (r *run) last() (allocations []string, node map[string]int64) {
	got := r.taken()
	if len(got) == 0 {
		return nil, nil
	}
	md := got[len(got)-1].md
	node = map[string]int64{}
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			if strings.HasPrefix(m.Name(), "gpu.node.") {
				node[m.Name()] = m.Sum().DataPoints().At(0).IntValue()
			}
		}
	}
	return lines(md), node
}

// await waits until the newest batch reports this.
func (r *run) await(what string, allocations []string, node map[string]int64) {
	r.t.Helper()
	var gotAllocations []string
	var gotNode map[string]int64
	if !assert.Eventually(r.t, func() bool {
		a, n := r.last()
		if n == nil {
			return false
		}
		gotAllocations, gotNode = a, n
		return slices.Equal(a, allocations) && assert.ObjectsAreEqual(node, n)
	}, long, 20*time.Millisecond, what) {
		assert.Equal(r.t, allocations, gotAllocations)
		assert.Equal(r.t, node, gotNode)
		r.t.FailNow()
	}
}

// inML is a claim with its name, in the namespace ml.
func inML(name string, c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	c.Namespace, c.Name = "ml", name
	return c
}

func TestKubernetes(t *testing.T) {
	elsewhere := resourceSlice("z", nvidia, 9, 1, wholeGPU("gpu-0", gpuC))
	other := "node-b"
	elsewhere.Spec.NodeName = &other
	a := k8sfake.New(t)
	nodeB := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-b"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	a.Set("nodes", nodeOf(false), nodeB)
	a.Set("resourceslices", resourceSlice("a", nvidia, 1, 1, wholeGPU("gpu-0", gpuA), wholeGPU("gpu-1", gpuB)), elsewhere)
	c, all := inML("c", allocated(false, "gpu-0")), inML("all", allocated(true, "gpu-0", "gpu-1"))
	a.Set("resourceclaims", c, all)
	s := &script{node: node{Pods: []pod{claimsOf("ml", "train", "c", "gpu-0"), claimsOf("ml", "monitor", "all", "gpu-0", "gpu-1")}}}
	r := kubeRun(t, s, a)
	r.start()
	defer r.stop()

	held := func(pod, gpu string) string { return "ml/" + pod + "/main " + gpu + " 1 gpu.nvidia.com none true" }
	free := func(gpu string) string { return "-/-/- " + gpu + " 0 gpu.nvidia.com none true" }
	schedulable := map[string]int64{"gpu.node.schedulable": 1}
	r.await("the first", []string{free(gpuB), held("train", gpuA)}, schedulable)
	require.Eventually(t, func() bool { return a.Watching("nodes") > 0 && a.Watching("resourceslices") > 0 }, long, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		return assert.ObjectsAreEqual(map[string]float64{"node": 0, "resource_slices": 0}, r.apiAges())
	}, long, 10*time.Millisecond)

	cordoned := nodeOf(true, "nvidia.com/mig.config.state", "pending")
	cordoned.ResourceVersion = "2"
	a.Set("nodes", cordoned, nodeB)
	a.Send("nodes", "MODIFIED", cordoned)
	drained := map[string]int64{"gpu.node.schedulable": 0, "gpu.node.mig.reconfiguring": 1}
	r.await("a cordon", []string{free(gpuB), held("train", gpuA)}, drained)

	// The API server goes. What it reported stays; a claim that is new is unknown.
	a.Leave()
	s.set(func(s *script) { s.node.Pods = append(s.node.Pods, claimsOf("ml", "late", "d", "gpu-1")) })
	r.await("the API gone", []string{held("train", gpuA)}, drained)
	assert.EqualValues(t, 1, r.devices()["unresolved_dra"])
	require.Eventually(t, func() bool {
		return r.requests("node", k8sclient.ResultNoAnswer) > 0 && r.requests("resource_slices", k8sclient.ResultNoAnswer) > 0 && r.requests("resource_claims", k8sclient.ResultNoAnswer) > 0
	}, long, 10*time.Millisecond)
	ages := r.apiAges()
	assert.Greater(t, ages["node"], 0.0)
	assert.Greater(t, ages["resource_slices"], 0.0)

	// It comes back, with a pool of the next generation.
	next := resourceSlice("a", nvidia, 2, 1, wholeGPU("gpu-0", gpuA), wholeGPU("gpu-1", gpuC))
	next.ResourceVersion = "3"
	a.Set("resourceslices", next, elsewhere)
	a.Set("resourceclaims", c, all, inML("d", allocated(false, "gpu-1")))
	a.Return()
	require.Eventually(t, func() bool { return a.Watching("resourceslices") > 0 && a.Watching("nodes") > 0 }, long, 10*time.Millisecond)
	a.Send("resourceslices", "MODIFIED", next)
	r.await("the API back", []string{held("late", gpuC), held("train", gpuA)}, drained)

	a.Send("resourceslices", "DELETED", next)
	r.await("no slice", []string{
		"ml/late/main node-a/gpu.nvidia.com/node-a/gpu-1 1 gpu.nvidia.com none false",
		"ml/train/main node-a/gpu.nvidia.com/node-a/gpu-0 1 gpu.nvidia.com none false",
	}, drained)
	a.Send("nodes", "DELETED", cordoned)
	s.set(func(s *script) { s.node.Pods = nil; s.node.Devices = map[string][]string{gpuName: {gpuB}} })
	r.await("no node", []string{"-/-/- " + gpuB + " 0 nvidia.com/gpu none true"}, map[string]int64{})

	for _, asked := range a.Asked() {
		switch url := asked.String(); {
		case strings.Contains(url, "/nodes"):
			assert.Contains(t, url, "fieldSelector=metadata.name%3Dnode-a")
		case strings.Contains(url, "/resourceslices"):
			assert.Contains(t, url, "fieldSelector=spec.nodeName%3Dnode-a")
		default:
			assert.Contains(t, url, "/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims/")
		}
	}
}

// An API that refuses, has no DRA, or fails does not touch what the device plugin
// gives, and is logged once.
func TestKubernetesFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		want   k8sclient.Result
		remedy string
	}{
		"forbidden":  {http.StatusForbidden, k8sclient.ResultDenied, "list and watch on resourceslices"},
		"not served": {http.StatusNotFound, k8sclient.ResultNotServed, "dra::enabled"},
		"fails":      {http.StatusInternalServerError, k8sclient.ResultFailed, "API server's log"},
	} {
		t.Run(name, func(t *testing.T) {
			a := k8sfake.New(t)
			a.Set("nodes", nodeOf(false))
			a.Status("resourceslices", tt.status)
			a.Status("resourceclaims", tt.status)
			s := oneOfTwo()
			s.node.Pods = append(s.node.Pods, claimsOf("ml", "dra", "c", "gpu-0"))
			r := kubeRun(t, s, a)
			r.start()
			defer r.stop()
			r.await("the device plugin", []string{"-/-/- " + gpuB + " 0 nvidia.com/gpu none true", "ml/a/main " + gpuA + " 1 nvidia.com/gpu none true"},
				map[string]int64{"gpu.node.schedulable": 1})
			require.Eventually(t, func() bool { return r.requests("resource_slices", tt.want) > 1 }, long, 10*time.Millisecond)
			logged := r.logs.FilterMessage(slicesMissing).All()
			if assert.Len(t, logged, 1) {
				assert.Contains(t, logged[0].ContextMap()["remedy"], tt.remedy)
			}
			assert.Equal(t, 1, r.logged(claimsMissing))
			assert.EqualValues(t, 1, r.devices()["unresolved_dra"])
			_, aged := r.apiAges()["resource_slices"]
			assert.Equal(t, tt.want != k8sclient.ResultNotServed, aged, "a cluster without DRA is no alert")
		})
	}
}

// An API that takes requests and never answers holds nothing up.
func TestKubernetesHangs(t *testing.T) {
	a := k8sfake.New(t)
	release := a.Hang()
	r := kubeRun(t, oneOfTwo(), a)
	r.start()
	r.await("the device plugin", []string{"-/-/- " + gpuB + " 0 nvidia.com/gpu none true", "ml/a/main " + gpuA + " 1 nvidia.com/gpu none true"}, map[string]int64{})
	require.Eventually(t, func() bool { return len(a.Asked()) == 2 }, long, 10*time.Millisecond)
	r.stop()
	assert.Zero(t, r.logs.Len(), "to be shut down says nothing about the API")
	release()
}

// A machine without Kubernetes has the prices of what the configuration reports about it.
func TestNodeInfoOfTheConfiguration(t *testing.T) {
	s := oneOfTwo()
	s.err = fs.ErrNotExist
	story(t, s, func(t *testing.T, r *run) {
		until(r, 29)
		got := r.taken()
		require.Equal(t, []float64{15}, times(got), "without a kubelet too")
		rm := got[0].md.ResourceMetrics().At(0)
		assert.Equal(t, map[string]any{"k8s.node.name": "node-a", "k8s.cluster.name": "lab"}, rm.Resource().Attributes().AsRaw())
		m := rm.ScopeMetrics().At(0).Metrics().At(0)
		assert.Equal(t, names.GPUNodeInfo.Name, m.Name())
		p := m.Sum().DataPoints().At(0)
		assert.Equal(t, map[string]any{
			"k8s.node.name": "node-a", "host.type": "dgx-h100", "cloud.region": "eu-north1", "gpu.capacity.type": "reserved",
			"gpu.node.pool": "lab", "node.label.example.com/owner": "ml",
		}, p.Attributes().AsRaw())
		assert.Equal(t, int64(1), p.IntValue())
		assert.Equal(t, 15*time.Second, p.Timestamp().AsTime().Sub(r.receiver.created))
	}, func(c *Config) {
		c.Optional, c.ClusterName = true, "lab"
		c.NodeInfo = NodeInfoConfig{
			HostType: "dgx-h100", Region: "eu-north1", CapacityType: "reserved", NodePool: "lab",
			Labels: map[string]string{"example.com/owner": "ml"},
		}
	})
}

func TestWithoutKubernetes(t *testing.T) {
	const logged = "the Kubernetes API is not read: devices of ResourceClaims (DRA) have no gpu.allocation, the node has no gpu.node.schedulable, gpu.node.mig.reconfiguring and gpu.node.info, and MPS appears as time-slicing"
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, tt := range map[string]struct {
		auth   k8sclient.AuthType
		logged int
	}{
		"no service account": {k8sclient.ServiceAccount, 1},
		"none":               {k8sclient.None, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := oneOfTwo()
			s.node.Pods = append(s.node.Pods, claimsOf("ml", "dra", "c", "gpu-0"))
			story(t, s, func(t *testing.T, r *run) {
				until(r, 31)
				assert.Equal(t, []float64{0, 15, 30}, times(r.taken()))
				assert.Equal(t, tt.logged, r.logged(logged))
				assert.Equal(t, 1+tt.logged, r.logs.Len(), "%v", r.logs.All())
				assert.EqualValues(t, 1, r.devices()["unresolved_dra"])
				assert.Nil(t, r.apiAges())
			}, func(c *Config) { c.AuthType = tt.auth })
		})
	}
	t.Run("no kubeconfig", func(t *testing.T) {
		t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
		r := newRun(t, func(c *Config) { c.AuthType = k8sclient.KubeConfig })
		defer r.stop()
		assert.ErrorContains(t, r.receiver.Start(t.Context(), nil), "auth_type: kubeConfig: ")
	})
}

// An annotation that cannot be read is logged once, and again when it is another one.
func TestAnAnnotationThatCannotBeRead(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	r := &allocationReceiver{logger: zap.New(core)}
	now := time.Date(2026, 1, 31, 15, 0, 0, 0, time.UTC)
	read := func(value string) int {
		node, ok := (&snapshot.NodeReader{}).Keep(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"gpu.otelcol-gpu/cleared": value}}})
		require.True(t, ok)
		for range 3 {
			r.acknowledge(&node, now)
		}
		return len(logs.TakeAll())
	}
	assert.Zero(t, read("2026-01-31T14:00:00Z"))
	assert.Equal(t, 1, read("yesterday"))
	assert.Equal(t, 1, read("tomorrow"))
	assert.Zero(t, read(""))
	assert.Equal(t, 1, read("2026-01-31T16:00:00Z"), "in the future")
}
