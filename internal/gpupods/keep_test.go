// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupods

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
)

func ptr[T any](v T) *T { return &v }

// t0 is when the containers of the tests started.
var t0 = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func testKeeper(t *testing.T) *keeper {
	keys := DefaultKeys()
	keys.DRA.Drivers, keys.DRA.DeviceClasses = []string{"gpu.nvidia.com"}, []string{"gpu.nvidia.com", "mig.nvidia.com"}
	m, err := resourcenames.New(keys.ResourceNames)
	require.NoError(t, err)
	return newKeeper(&keys, m, &Need{})
}

func quantities(of map[string]string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, q := range of {
		list[corev1.ResourceName(name)] = resource.MustParse(q)
	}
	return list
}

func requests(name string, of map[string]string) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: quantities(of)}}
}

func gpus(name, n string) corev1.Container {
	return requests(name, map[string]string{"nvidia.com/gpu": n, "cpu": "4"})
}

func uses(name string, claims ...corev1.ResourceClaim) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Claims: claims}}
}

func running(name string, since time.Time) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}}}
}

// newPod is a running pod of these containers, all of them started at t0.
func newPod(containers ...corev1.Container) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "api-5d4f8-x2x7q", UID: "uid-1",
			Labels:          map[string]string{"pod-template-hash": "5d4f8"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "api-5d4f8"}},
		},
		Spec:   corev1.PodSpec{NodeName: "node-1", Containers: containers},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, c := range containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, running(c.Name, t0))
	}
	return p
}

func result(request, driver string, admin bool) resourcev1.DeviceRequestAllocationResult {
	r := resourcev1.DeviceRequestAllocationResult{Request: request, Driver: driver, Pool: "node-1", Device: "gpu-0"}
	if admin {
		r.AdminAccess = ptr(true)
	}
	return r
}

func newClaim(name string, results ...resourcev1.DeviceRequestAllocationResult) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if len(results) > 0 {
		c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: results}}
	}
	return c
}

func asks(name, class string, count int64) resourcev1.DeviceRequest {
	return resourcev1.DeviceRequest{Name: name, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, Count: count}}
}

// reported is what a snapshot has of a pod; false if nothing.
func (k *keeper) reported(p *corev1.Pod, claims []*resourcev1.ResourceClaim) (Pod, bool) {
	all := map[types.NamespacedName]keptClaim{}
	for _, c := range claims {
		if is, ok := k.claim(c); ok {
			all[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}] = is
		}
	}
	is, ok := k.pod(p)
	if !ok {
		return Pod{}, false
	}
	out := is.resolved(all)
	if out == nil {
		return Pod{}, false
	}
	return *out, true
}

func TestDevicesAskedFor(t *testing.T) {
	const nv, domain = "gpu.nvidia.com", "compute-domain.nvidia.com"
	withClaims := func(p *corev1.Pod, claims ...corev1.PodResourceClaim) *corev1.Pod {
		p.Spec.ResourceClaims = claims
		return p
	}
	direct := corev1.PodResourceClaim{Name: "gpu", ResourceClaimName: ptr("claim-1")}
	template := corev1.PodResourceClaim{Name: "gpu", ResourceClaimTemplateName: ptr("template")}
	generated := []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: ptr("api-gpu-abc")}}
	use := corev1.ResourceClaim{Name: "gpu"}
	extended := func(p *corev1.Pod, resource string) *corev1.Pod {
		p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
			ResourceClaimName: "ext-1",
			RequestMappings:   []corev1.ContainerExtendedResourceRequest{{ContainerName: "main", ResourceName: resource, RequestName: "container-0-request-0"}},
		}
		return p
	}

	for name, tt := range map[string]struct {
		pod    *corev1.Pod
		claims []*resourcev1.ResourceClaim
		want   int
	}{
		"no accelerator": {pod: newPod(requests("main", map[string]string{"cpu": "4"}))},
		"one":            {pod: newPod(gpus("main", "1")), want: 1},
		"limits alone": {pod: newPod(corev1.Container{Name: "main", Resources: corev1.ResourceRequirements{
			Limits: quantities(map[string]string{"nvidia.com/gpu": "2"}),
		}}), want: 2},
		"requests and limits are one": {pod: newPod(corev1.Container{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: quantities(map[string]string{"nvidia.com/gpu": "2"}), Limits: quantities(map[string]string{"nvidia.com/gpu": "2"}),
		}}), want: 2},
		"containers add up":         {pod: newPod(gpus("a", "2"), gpus("b", "1"), requests("c", nil)), want: 3},
		"MIG, replicas":             {pod: newPod(requests("a", map[string]string{"nvidia.com/mig-1g.10gb": "2", "nvidia.com/gpu.shared": "1"})), want: 3},
		"none of it":                {pod: newPod(gpus("main", "0"))},
		"a resource that is none":   {pod: newPod(requests("main", map[string]string{"nvidia.com/gpumem": "8000"}))},
		"an init container":         {pod: withInit(newPod(requests("main", nil)), gpus("init", "1"), nil)},
		"a sidecar":                 {pod: withInit(newPod(gpus("main", "1")), gpus("side", "1"), ptr(corev1.ContainerRestartPolicyAlways)), want: 2},
		"a claim":                   {pod: withClaims(newPod(uses("main", use)), direct), claims: []*resourcev1.ResourceClaim{newClaim("claim-1", result("r", nv, false), result("r", nv, false))}, want: 2},
		"a claim that is not known": {pod: withClaims(newPod(uses("main", use)), direct)},
		"a claim that nobody uses":  {pod: withClaims(newPod(gpus("main", "1")), direct), claims: []*resourcev1.ResourceClaim{newClaim("claim-1", result("r", nv, false))}, want: 1},
		"generated from a template": {pod: func() *corev1.Pod {
			p := withClaims(newPod(uses("main", use)), template)
			p.Status.ResourceClaimStatuses = generated
			return p
		}(), claims: []*resourcev1.ResourceClaim{newClaim("api-gpu-abc", result("r", nv, false))}, want: 1},
		"not generated yet":           {pod: withClaims(newPod(uses("main", use)), template), claims: []*resourcev1.ResourceClaim{newClaim("api-gpu-abc", result("r", nv, false))}},
		"admin access is no device":   {pod: withClaims(newPod(uses("main", use)), direct), claims: []*resourcev1.ResourceClaim{newClaim("claim-1", result("r", nv, true))}},
		"a compute domain is no GPU":  {pod: withClaims(newPod(uses("main", use)), direct), claims: []*resourcev1.ResourceClaim{newClaim("claim-1", result("r", nv, false), result("c", domain, false))}, want: 1},
		"containers share a request":  {pod: withClaims(newPod(uses("a", use), uses("b", use)), direct), claims: []*resourcev1.ResourceClaim{newClaim("claim-1", result("r", nv, false))}, want: 1},
		"one request of a claim":      {pod: withClaims(newPod(uses("a", corev1.ResourceClaim{Name: "gpu", Request: "r1"})), direct), claims: []*resourcev1.ResourceClaim{newClaim("claim-1", result("r1", nv, false), result("r2", nv, false))}, want: 1},
		"the first available":         {pod: withClaims(newPod(uses("a", corev1.ResourceClaim{Name: "gpu", Request: "r1"})), direct), claims: []*resourcev1.ResourceClaim{newClaim("claim-1", result("r1/big", nv, false))}, want: 1},
		"requests and a claim add up": {pod: withClaims(newPod(gpus("a", "1"), uses("b", use)), direct), claims: []*resourcev1.ResourceClaim{newClaim("claim-1", result("r", nv, false))}, want: 2},
		// Kubernetes 1.36: what is asked for as a resource is served by a claim.
		"an extended resource counts once":       {pod: extended(newPod(gpus("main", "2")), "nvidia.com/gpu"), claims: []*resourcev1.ResourceClaim{newClaim("ext-1", result("container-0-request-0", nv, false), result("container-0-request-0", nv, false))}, want: 2},
		"an extended resource by its class name": {pod: extended(newPod(requests("main", map[string]string{"deviceclass.resource.kubernetes.io/gpu.nvidia.com": "1"})), "deviceclass.resource.kubernetes.io/gpu.nvidia.com"), claims: []*resourcev1.ResourceClaim{newClaim("ext-1", result("container-0-request-0", nv, false))}, want: 1},
		"not allocated yet": {pod: withClaims(newPod(uses("main", use)), direct), claims: []*resourcev1.ResourceClaim{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "claim-1"},
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
				asks("a", "mig.nvidia.com", 2), asks("b", "compute-domain.nvidia.com", 1),
				{Name: "c", FirstAvailable: []resourcev1.DeviceSubRequest{{Name: "x", DeviceClassName: "gpu.nvidia.com", Count: 1}, {Name: "y", DeviceClassName: "mig.nvidia.com", Count: 4}}},
				{Name: "d", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", Count: 8, AdminAccess: ptr(true)}},
			}}},
		}}, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := testKeeper(t).reported(tt.pod, tt.claims)
			require.Equal(t, tt.want > 0, ok)
			require.Equal(t, tt.want, got.Devices)
		})
	}
}

func withInit(p *corev1.Pod, c corev1.Container, restart *corev1.ContainerRestartPolicy) *corev1.Pod {
	c.RestartPolicy = restart
	p.Spec.InitContainers = []corev1.Container{c}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{running(c.Name, t0)}
	return p
}

func TestWithoutClaims(t *testing.T) {
	k := testKeeper(t)
	k.drivers = nil
	p := newPod(uses("main", corev1.ResourceClaim{Name: "gpu"}))
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr("claim-1")}}
	_, ok := k.pod(p)
	require.False(t, ok)
}

func TestWhatIsReportedOfAPod(t *testing.T) {
	base := Pod{
		Namespace: "shop", Name: "api-5d4f8-x2x7q", UID: "uid-1", Node: "node-1", Service: "api",
		Phase: corev1.PodRunning, Up: true, Started: t0, LastRun: -1, Devices: 1,
	}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	ended := func(d time.Duration) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(t0), FinishedAt: metav1.NewTime(t0.Add(d))}}
	}
	for name, tt := range map[string]struct {
		pod    func(p *corev1.Pod)
		change func(want *Pod)
	}{
		"running": {func(*corev1.Pod) {}, func(*Pod) {}},
		"no node yet": {func(p *corev1.Pod) {
			p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
		}, func(want *Pod) {
			want.Node, want.Phase, want.Up, want.Started = "", corev1.PodPending, false, time.Time{}
		}},
		"being deleted": {func(p *corev1.Pod) { p.DeletionTimestamp = ptr(metav1.NewTime(t0)) }, func(want *Pod) { want.Deleted = true }},
		"completed": {func(p *corev1.Pod) {
			p.Status.Phase, p.Status.ContainerStatuses[0].State = corev1.PodSucceeded, ended(time.Hour)
		}, func(want *Pod) { want.Phase, want.Up, want.Started = corev1.PodSucceeded, false, time.Time{} }},
		"waits": {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = waiting }, func(want *Pod) {
			want.Up, want.Started = false, time.Time{}
		}},
		"ran before": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0] = running("main", t0.Add(time.Hour))
			p.Status.ContainerStatuses[0].LastTerminationState = ended(20 * time.Second)
		}, func(want *Pod) { want.Started, want.LastRun = t0.Add(time.Hour), 20*time.Second }},
		"the newest start of the accelerator containers": {func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, gpus("late", "1"), requests("proxy", nil))
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, running("late", t0.Add(time.Minute)), running("proxy", t0.Add(time.Hour)))
		}, func(want *Pod) { want.Started, want.Devices = t0.Add(time.Minute), 2 }},
		"a container without accelerator that waits": {func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, requests("proxy", nil))
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "proxy", State: waiting})
		}, func(*Pod) {}},
		"of an annotation": {func(p *corev1.Pod) {
			p.Annotations = map[string]string{"resource.opentelemetry.io/service.name": "named"}
		}, func(want *Pod) { want.Service = "named" }},
		"of a group": {func(p *corev1.Pod) {
			p.Labels = map[string]string{"leaderworkerset.sigs.k8s.io/name": "llama"}
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "llama-0"}}
		}, func(want *Pod) { want.Service = "llama" }},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(gpus("main", "1"))
			tt.pod(p)
			want := base
			tt.change(&want)
			got, ok := testKeeper(t).reported(p, nil)
			require.True(t, ok)
			require.Equal(t, want, got)
		})
	}
}

// A pod that requests a board for others is no pod of which telemetry is expected.
func TestReservationPods(t *testing.T) {
	pod := newPod(gpus("reservation", "1"))
	pod.Labels["runai-gpu-group"] = "g1"
	_, ok := testKeeper(t).pod(pod)
	require.True(t, ok, "another pod with this label is as any other")
	pod.Namespace = "kai-resource-reservation"
	_, ok = testKeeper(t).pod(pod)
	require.False(t, ok)
}
