// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupods

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient/k8sfake"
)

const (
	gib      = int64(1) << 30
	nvDriver = "gpu.nvidia.com"
)

func schedulingKeeper(t *testing.T) *keeper {
	k := testKeeper(t)
	k.scheduling, k.others, k.queueLabels = true, true, []string{"team/queue"}
	return k
}

// amounts is a container that asks for GPUs, CPUs and GiB.
func amounts(name, gpus, cpu, memory string) corev1.Container {
	return requests(name, map[string]string{"nvidia.com/gpu": gpus, "cpu": cpu, "memory": memory + "Gi"})
}

func always(c corev1.Container) corev1.Container {
	c.RestartPolicy = ptr(corev1.ContainerRestartPolicyAlways)
	return c
}

// What is requested is what the scheduler counts: containers start one after the other and
// then run together, and a claim of several pods is one.
func TestWhatTheSchedulerCounts(t *testing.T) {
	inits := func(p *corev1.Pod, init ...corev1.Container) *corev1.Pod {
		p.Spec.InitContainers = init
		return p
	}
	claims := func(p *corev1.Pod, names ...string) *corev1.Pod {
		for _, n := range names {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: n, ResourceClaimName: ptr(n)})
		}
		return p
	}
	mapped := func(p *corev1.Pod, resource string) *corev1.Pod {
		p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
			ResourceClaimName: "ext", RequestMappings: []corev1.ContainerExtendedResourceRequest{{ContainerName: "a", ResourceName: resource, RequestName: "r"}},
		}
		return p
	}
	board := func(n int) Request { return Request{Resource: "nvidia.com/gpu", Count: n} }
	for name, tt := range map[string]struct {
		pod    *corev1.Pod
		claims []*resourcev1.ResourceClaim
		want   []Request
		amount Amount
		stay   int // Devices
	}{
		"containers add up":              {pod: newPod(amounts("a", "2", "4", "8"), amounts("b", "1", "1", "1")), want: []Request{board(3)}, amount: Amount{5000, 9 * gib}, stay: 3},
		"a larger init container":        {pod: inits(newPod(amounts("a", "1", "4", "1")), amounts("init", "4", "1", "8")), want: []Request{board(4)}, amount: Amount{4000, 8 * gib}, stay: 1},
		"a smaller one":                  {pod: inits(newPod(amounts("a", "2", "4", "8")), amounts("init", "1", "1", "1")), want: []Request{board(2)}, amount: Amount{4000, 8 * gib}, stay: 2},
		"a sidecar":                      {pod: inits(newPod(amounts("a", "1", "4", "8")), always(amounts("side", "1", "1", "1"))), want: []Request{board(2)}, amount: Amount{5000, 9 * gib}, stay: 2},
		"an init container beside it":    {pod: inits(newPod(amounts("a", "1", "1", "1")), always(amounts("side", "1", "1", "1")), amounts("init", "3", "4", "8")), want: []Request{board(4)}, amount: Amount{5000, 9 * gib}, stay: 2},
		"init containers alone":          {pod: inits(newPod(requests("a", map[string]string{"cpu": "2"})), amounts("init", "4", "1", "1")), want: []Request{board(4)}, amount: Amount{2000, gib}},
		"resources are counted each":     {pod: newPod(requests("a", map[string]string{"nvidia.com/mig-1g.10gb": "2", "nvidia.com/gpu": "1"})), want: []Request{board(1), {Resource: "nvidia.com/mig-1g.10gb", Count: 2}}, stay: 3},
		"a claim that waits":             {pod: claims(newPod(uses("a", corev1.ResourceClaim{Name: "c"})), "c"), claims: []*resourcev1.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c"}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{asks("r", "mig.nvidia.com", 2)}}}}}, want: []Request{{Resource: "mig.nvidia.com", Claim: "c", Count: 2}}, stay: 2},
		"a claim that was allocated":     {pod: claims(newPod(uses("a", corev1.ResourceClaim{Name: "c"})), "c"), claims: []*resourcev1.ResourceClaim{newClaim("c", result("r1", nvDriver, false), result("r2", nvDriver, false))}, want: []Request{{Resource: nvDriver, Claim: "c", Count: 2, Allocated: true}}, stay: 2},
		"a claim that no container uses": {pod: claims(newPod(gpus("a", "1")), "c"), claims: []*resourcev1.ResourceClaim{newClaim("c", result("r", nvDriver, false))}, want: []Request{board(1), {Resource: nvDriver, Claim: "c", Count: 1, Allocated: true}}, amount: Amount{CPU: 4000}, stay: 1},
		"a device class as a resource":   {pod: newPod(requests("a", map[string]string{"deviceclass.resource.kubernetes.io/mig.nvidia.com": "2", "deviceclass.resource.kubernetes.io/nic": "1"})), want: []Request{{Resource: "mig.nvidia.com", Count: 2}}},
		"a resource that a claim serves": {pod: mapped(newPod(gpus("a", "2")), "nvidia.com/gpu"), claims: []*resourcev1.ResourceClaim{newClaim("ext", result("r", nvDriver, false), result("r", nvDriver, false))},
			want: []Request{{Resource: nvDriver, Claim: "ext", Count: 2, Allocated: true}}, amount: Amount{CPU: 4000}, stay: 2},
		"one that a claim serves, and one that a device plugin does": {pod: mapped(newPod(requests("a", map[string]string{"nvidia.com/gpu": "1", "nvidia.com/mig-1g.10gb": "3"})), "nvidia.com/gpu"), claims: []*resourcev1.ResourceClaim{newClaim("ext", result("r", nvDriver, false))},
			want: []Request{{Resource: "nvidia.com/mig-1g.10gb", Count: 3}, {Resource: nvDriver, Claim: "ext", Count: 1, Allocated: true}}, stay: 4},
		"a resource that an unknown claim serves": {pod: mapped(newPod(gpus("a", "2")), "nvidia.com/gpu"), amount: Amount{CPU: 4000}, stay: 2},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := schedulingKeeper(t).reported(tt.pod, tt.claims)
			require.True(t, ok)
			require.Equal(t, tt.want, got.Scheduling.Requests)
			require.Equal(t, tt.amount, got.Scheduling.Amount)
			require.Equal(t, tt.stay, got.Devices)
		})
	}

	reserves := newPod(gpus("reservation", "1"))
	reserves.Namespace, reserves.Labels = "kai-resource-reservation", map[string]string{"runai-gpu-group": "g1"}
	got, ok := schedulingKeeper(t).reported(reserves, nil)
	require.True(t, ok, "the scheduler sees the pods that reserve boards")
	require.Equal(t, []Request{board(1)}, got.Scheduling.Requests)
	require.Zero(t, got.Devices)
}

func TestWhereAPodWaits(t *testing.T) {
	for name, tt := range map[string]struct {
		labels, annotations map[string]string
		condition           corev1.PodCondition
		want                Scheduling
	}{
		"nowhere": {},
		"scheduled": {
			condition: corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(t0.Add(time.Minute))},
			want:      Scheduling{Scheduled: t0.Add(time.Minute)},
		},
		"refused": {
			condition: corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available:\n3 Insufficient nvidia.com/gpu."},
			want:      Scheduling{Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."},
		},
		"of another condition": {condition: corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		"Kueue's queues":       {labels: map[string]string{"kueue.x-k8s.io/queue-name": "local", "kueue.x-k8s.io/cluster-queue-name": "cluster"}, want: Scheduling{Queue: "cluster"}},
		"Kueue's local queue":  {labels: map[string]string{"kueue.x-k8s.io/queue-name": "local", "kai.scheduler/queue": "kai"}, want: Scheduling{Queue: "local"}},
		"Volcano's":            {annotations: map[string]string{"scheduling.volcano.sh/queue-name": "research\x1b[2J"}, want: Scheduling{Queue: "research[2J"}},
		"KAI's":                {labels: map[string]string{"kai.scheduler/queue": "kai", "quota.scheduling.koordinator.sh/name": "quota"}, want: Scheduling{Queue: "kai"}},
		"Koordinator's":        {labels: map[string]string{"quota.scheduling.koordinator.sh/name": "quota", "team/queue": "own"}, want: Scheduling{Queue: "quota"}},
		"a label of one's own": {labels: map[string]string{"team/queue": "own"}, want: Scheduling{Queue: "own"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(requests("a", map[string]string{"nvidia.com/gpu": "1"}))
			p.CreationTimestamp = metav1.NewTime(t0)
			p.Labels, p.Annotations, p.Status.Conditions = tt.labels, tt.annotations, []corev1.PodCondition{tt.condition}
			got, ok := schedulingKeeper(t).reported(p, nil)
			require.True(t, ok)
			tt.want.Created, tt.want.Requests = t0, []Request{{Resource: "nvidia.com/gpu", Count: 1}}
			require.Equal(t, tt.want, *got.Scheduling)
		})
	}
}

// Members share a watch of what they need together; it ends with the last.
func TestMembersShareAWatch(t *testing.T) {
	t.Parallel()
	api := k8sfake.New(t)
	web := named(newPod(requests("main", map[string]string{"cpu": "2", "memory": "1Gi"})), "shop", "web")
	done, waits := named(web.DeepCopy(), "shop", "done"), named(web.DeepCopy(), "shop", "waits")
	done.Status.Phase, waits.Spec.NodeName = corev1.PodSucceeded, ""
	domain := named(newPod(uses("main", corev1.ResourceClaim{Name: "c"})), "shop", "domain")
	domain.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: ptr("c")}}
	domain.Spec.Containers[0].Resources.Requests = quantities(map[string]string{"cpu": "1"})
	api.Set("pods", named(newPod(gpus("main", "1")), "shop", "a"), web, done, waits, domain)
	api.Set("resourceclaims", newClaim("c", result("r", "compute-domain.nvidia.com", false)))

	all := &watches{all: map[string]*follower{}}
	summary, tel1, _ := all.joined(t, nil)
	scheduling, tel2, _ := all.joined(t, func(c *Config, n *Need) {
		c.Keys.ResourceNames = append(c.Keys.ResourceNames[1:], c.Keys.ResourceNames[0]) // in another order
		n.Others = true
	})
	require.Same(t, summary.watch, scheduling.watch)
	summary.begin(t, api)
	late, _, _ := all.joined(t, nil)
	require.NotSame(t, summary.watch, late.watch, "what it needs may not be kept")
	scheduling.begin(t, api)
	summary.has(t, map[string]int{"shop/a": 1})
	require.Equal(t, map[string]Amount{"node-1": {3000, gib}}, scheduling.Snapshot().Others)
	require.Same(t, summary.Snapshot(), scheduling.Snapshot())
	<-summary.Changed()
	<-scheduling.Changed()
	watched(t, api, 2)
	require.Equal(t, 1, tel1.of("pods ok")/tel2.of("pods ok"), "requests are counted for each")
	// The API has the watch before the client has noted it.
	require.Eventually(t, func() bool {
		at, ok := summary.AsOf(time.Now().Add(time.Hour))
		return ok && at.After(time.Now())
	}, patience, tick, "it is watched")

	summary.Shutdown()
	api.Send("pods", "ADDED", named(newPod(gpus("main", "4")), "train", "b"))
	scheduling.has(t, map[string]int{"shop/a": 1, "train/b": 4})
	scheduling.Shutdown()
	watched(t, api, 0)
}

// A Collector that fails to start shuts down what did not start too.
func TestMembersThatNeverStart(t *testing.T) {
	all := &watches{all: map[string]*follower{}}
	never, _, _ := all.joined(t, nil)
	never.Shutdown()
	_, known := never.AsOf(time.Now())
	require.False(t, known)
	require.Nil(t, never.Snapshot())

	var none *Member
	none.Shutdown()
	require.Nil(t, none.Changed())
	_, err := Join(Config{Keys: Keys{ResourceNames: []string{"gpu"}}}, Settings{})
	require.ErrorContains(t, err, "is no resource name")
}

// What a watch would have can be had without one.
func TestSnapshotOf(t *testing.T) {
	keys := DefaultKeys()
	p := newPod(uses("a", corev1.ResourceClaim{Name: "c"}))
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: ptr("c")}}
	pods := []*corev1.Pod{p, named(newPod(requests("main", map[string]string{"cpu": "2"})), "shop", "web")}
	claims := []*resourcev1.ResourceClaim{newClaim("c", result("r", nvDriver, false))}
	got, err := SnapshotOf(&keys, &Need{Others: true}, pods, claims)
	require.NoError(t, err)
	require.Len(t, got.Pods, 1)
	require.Equal(t, []Request{{Resource: nvDriver, Claim: "c", Count: 1, Allocated: true}}, got.Pods[0].Scheduling.Requests)
	require.Equal(t, map[string]Amount{"node-1": {CPU: 2000}}, got.Others)

	keys.DRA.Enabled = false
	got, err = SnapshotOf(&keys, &Need{}, pods, claims)
	require.NoError(t, err)
	require.Equal(t, &Snapshot{Whole: true}, got, "claims are not known")
	_, err = SnapshotOf(&Keys{ResourceNames: []string{"gpu"}}, &Need{}, nil, nil)
	require.Error(t, err)
}
