// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/internal/places"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/pending"
)

const gpu = "nvidia.com/gpu"

var start = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func evaluator() *Evaluator {
	return New(Config{
		Window: 24 * time.Hour, MaxPods: 100, Places: places.New(30),
		IsDevice: func(resource string) bool { return resource == gpu },
	})
}

// gpuNode has so many devices, and CPU and memory for 10 units.
func gpuNode(name string, devices int) *Node {
	return &Node{
		Name: name, CPU: 10_000, Memory: 10 << 30, Closed: Schedulable,
		Devices: []Devices{{Kind{gpu, "H100"}, devices, false}},
	}
}

// gpuPod asks for devices, and for CPU and memory in units.
func gpuPod(name, node string, devices int, cpu, memory int64, more ...gpupods.Request) *gpupods.Pod {
	p := &gpupods.Pod{
		Namespace: "ml", Name: name, UID: name, Node: node, Phase: corev1.PodRunning,
		Scheduling: &gpupods.Scheduling{Created: start.Add(-time.Hour), Amount: gpupods.Amount{CPU: cpu * 1000, Memory: memory << 30}, Requests: more},
	}
	if devices > 0 {
		p.Scheduling.Requests = append(p.Scheduling.Requests, gpupods.Request{Resource: gpu, Count: devices})
	}
	if node == "" {
		p.Phase = corev1.PodPending
	}
	return p
}

func snapshot(pods ...*gpupods.Pod) *gpupods.Snapshot { return &gpupods.Snapshot{Pods: pods} }

// The examples of what fragmentation means.
func TestFragmentation(t *testing.T) {
	for name, tt := range map[string]struct {
		free []int
		want [4]float64
	}{
		"2, 2, 2, 2": {[]int{2, 2, 2, 2}, [4]float64{0, 0, 1, 1}},
		"7, 1":       {[]int{7, 1}, [4]float64{0, 0.25, 0.5, 1}},
		"8":          {[]int{8}, [4]float64{0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			var nodes []*Node
			for i, free := range tt.free {
				nodes = append(nodes, gpuNode(fmt.Sprint("n", i), free))
			}
			f := evaluator().Evaluate(start, nodes, snapshot())
			assert.InDeltaSlice(t, tt.want[:], f.Kinds[0].Fragmentation[:], 1e-12)
			assert.True(t, math.IsNaN(f.Kinds[0].Expected), "no request is known")
		})
	}
}

func TestFragmentationIsAbsentWhereNothingIsFree(t *testing.T) {
	f := evaluator().Evaluate(start, []*Node{gpuNode("a", 2)}, snapshot(gpuPod("p", "a", 2, 1, 1)))
	assert.True(t, math.IsNaN(f.Kinds[0].Fragmentation[0]))
	assert.True(t, math.IsNaN(f.Kinds[0].Expected))
	assert.Equal(t, []NodeFigures{{"a", Kind{gpu, "H100"}, 2, 2, 0, 0}}, f.Nodes)
}

func TestStranded(t *testing.T) {
	closed := func(why Stranded) *Node {
		n := gpuNode("x", 4)
		n.Closed = why
		return n
	}
	busy := func(cpu, memory int64) *gpupods.Snapshot {
		// One device needs a unit of each; the rest of the node is taken by another pod.
		s := snapshot(gpuPod("p", "y", 1, 1, 1))
		s.Others = map[string]gpupods.Amount{"x": {CPU: cpu * 1000, Memory: memory << 30}}
		return s
	}
	for name, tt := range map[string]struct {
		node *Node
		pods *gpupods.Snapshot
		want map[Stranded]int
	}{
		"room":                    {gpuNode("x", 4), busy(5, 5), nil},
		"cordoned":                {closed(Cordoned), busy(10, 10), map[Stranded]int{Cordoned: 4}},
		"not ready":               {closed(NotReady), busy(0, 0), map[Stranded]int{NotReady: 4}},
		"tainted":                 {closed(Tainted), busy(0, 0), map[Stranded]int{Tainted: 4}},
		"CPU":                     {gpuNode("x", 4), busy(7, 0), map[Stranded]int{CPU: 1}},
		"memory":                  {gpuNode("x", 4), busy(0, 9), map[Stranded]int{Memory: 3}},
		"both, each its own":      {gpuNode("x", 4), busy(7, 9), map[Stranded]int{CPU: 1, Memory: 2}},
		"more CPU than there is":  {gpuNode("x", 4), busy(99, 0), map[Stranded]int{CPU: 4}},
		"nothing known of shares": {gpuNode("x", 4), &gpupods.Snapshot{Others: map[string]gpupods.Amount{"x": {CPU: 10_000}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := evaluator().Evaluate(start, []*Node{tt.node, gpuNode("y", 1)}, tt.pods)
			total := 0
			for reason := range NumStranded {
				assert.Equal(t, tt.want[reason], f.Kinds[0].Stranded[reason], reason)
				total += tt.want[reason]
			}
			assert.Equal(t, total, f.Nodes[0].Stranded)
			assert.Equal(t, 4, f.Nodes[0].Free)
		})
	}
}

func TestRequested(t *testing.T) {
	ended := gpuPod("ended", "a", 4, 1, 1)
	ended.Phase = corev1.PodSucceeded
	leaves := gpuPod("leaves", "a", 1, 1, 1)
	leaves.Deleted = true
	starts := gpuPod("starts", "a", 1, 1, 1)
	starts.Phase = corev1.PodPending
	lost := gpuPod("lost", "gone", 8, 1, 1)
	shared := gpupods.Request{Resource: "gpu.nvidia.com", Claim: "one", Count: 2, Allocated: true}
	f := evaluator().Evaluate(start, []*Node{gpuNode("a", 8), gpuNode("b", 1), {Name: "plain", Closed: Schedulable}}, snapshot(
		ended, leaves, starts, lost,
		gpuPod("s1", "a", 0, 1, 1, shared), gpuPod("s2", "a", 0, 1, 1, shared),
		gpuPod("too much", "b", 3, 1, 1),
	))
	assert.Equal(t, []NodeFigures{
		{"a", Kind{"gpu.nvidia.com", ""}, 0, 2, 0, 0},
		{"a", Kind{gpu, "H100"}, 8, 2, 6, 0},
		{"b", Kind{gpu, "H100"}, 1, 3, 0, 0},
	}, f.Nodes)
	assert.Equal(t, 1, f.UnknownNodes)
	assert.Equal(t, 2, f.Overcommitted)
}

func TestUnknownDevicesHaveNoFigures(t *testing.T) {
	n := gpuNode("a", 8)
	n.Devices[0].Unknown = true
	f := evaluator().Evaluate(start, []*Node{n}, snapshot(gpuPod("p", "a", 1, 1, 1)))
	assert.Empty(t, f.Nodes)
	assert.Empty(t, f.Kinds)
}

// What is usual is what the pods of the window requested, those that are gone too.
func TestUsual(t *testing.T) {
	e := evaluator()
	big, small := gpuPod("big", "b", 8, 1, 1), gpuPod("small", "b", 2, 1, 1)
	nodes := []*Node{gpuNode("a", 8), gpuNode("b", 10)}
	e.Evaluate(start, nodes, snapshot(big, small))
	f := e.Evaluate(start.Add(time.Hour), nodes, snapshot())
	// Free 8 and 10: requests of 8 use 16 of 18, and requests of 2 all.
	assert.InDelta(t, 0.8*(1-16./18), f.Kinds[0].Expected, 1e-12)
	f = e.Evaluate(start.Add(24*time.Hour+time.Second), nodes, snapshot())
	assert.True(t, math.IsNaN(f.Kinds[0].Expected))

	// A pod that ended before it was ever seen counts by its creation.
	old, recent := gpuPod("old", "a", 4, 1, 1), gpuPod("recent", "a", 4, 1, 1)
	old.Phase, recent.Phase = corev1.PodFailed, corev1.PodFailed
	old.Scheduling.Created = start.Add(-25 * time.Hour)
	assert.True(t, math.IsNaN(evaluator().Evaluate(start, nodes, snapshot(old)).Kinds[0].Expected))
	assert.False(t, math.IsNaN(evaluator().Evaluate(start, nodes, snapshot(recent)).Kinds[0].Expected))
}

// podOfAPI is a pod as the API has it, which takes any whole number from a user.
func podOfAPI(name, node, gpus, cpu, memory string) *corev1.Pod {
	list := corev1.ResourceList{gpu: resource.MustParse(gpus), "cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(start)},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// An absurd request changes no figure but the number of pods that wait.
func TestAbsurdRequests(t *testing.T) {
	keys, need := gpupods.DefaultKeys(), gpupods.Need{MaxPods: 100, Scheduling: true, Others: true}
	evaluated := func(pods ...*corev1.Pod) *Figures {
		s, err := gpupods.SnapshotOf(&keys, &need, append(pods, podOfAPI("held", "a", "2", "1", "1Gi"), podOfAPI("waits", "", "4", "1", "1Gi")), nil)
		require.NoError(t, err)
		return evaluator().Evaluate(start, []*Node{gpuNode("a", 8), gpuNode("b", 8)}, s)
	}
	want := evaluated()
	for name, tt := range map[string]struct {
		pods    []*corev1.Pod
		absurd  int
		devices int // that are waited for beside those of the others
	}{
		"a million":              {[]*corev1.Pod{podOfAPI("x", "", "1000000", "1", "1Gi")}, 1, 0},
		"as many as int64 takes": {[]*corev1.Pod{podOfAPI("x", "", "9223372036854775807", "1", "1Gi")}, 1, 0},
		"more than int64 takes":  {[]*corev1.Pod{podOfAPI("x", "", "4611686018427387904", "1", "1Gi"), podOfAPI("y", "", "4611686018427387904", "1", "1Gi")}, 2, 0},
		"fewer than none":        {[]*corev1.Pod{podOfAPI("x", "", "-8", "1", "1Gi")}, 1, 0},
		"more than a node has":   {[]*corev1.Pod{podOfAPI("x", "", "16", "1", "1Gi")}, 0, 16},
		"CPU and memory":         {[]*corev1.Pod{podOfAPI("x", "", "1000000", "9E", "9E"), podOfAPI("y", "", "1000000", "9E", "9E")}, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := evaluated(tt.pods...)
			assert.Equal(t, want.Nodes, got.Nodes)
			assert.Equal(t, want.Kinds, got.Kinds)
			require.Len(t, got.Waiting, 1)
			assert.Equal(t, 1+len(tt.pods), got.Waiting[0].Pods)
			assert.Equal(t, 4+tt.devices, got.Waiting[0].Devices)
			assert.Equal(t, tt.absurd, got.Absurd)
		})
	}

	// On a node they take what they request, as far as there is any.
	got := evaluated(podOfAPI("x", "a", "1", "9E", "9E"), podOfAPI("y", "a", "1", "9E", "9E"))
	assert.Equal(t, NodeFigures{"a", Kind{gpu, "H100"}, 8, 4, 4, 4}, got.Nodes[0])
	assert.Equal(t, want.Nodes[1], got.Nodes[1])
}

func TestUsualIsBounded(t *testing.T) {
	e := evaluator()
	forgotten := 0
	for i := range 250 {
		forgotten += e.Evaluate(start.Add(time.Duration(i)*time.Second), nil, snapshot(gpuPod(fmt.Sprint("p", i), "a", 1, 1, 1))).Forgotten
		assert.LessOrEqual(t, len(e.usual.pods), 100)
	}
	assert.Equal(t, 250, forgotten+len(e.usual.pods))
	assert.Contains(t, e.usual.pods, "p249")
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		counts map[share]int
		want   share
	}{
		{nil, share{}},
		{map[share]int{{3, 1}: 1}, share{3, 1}},
		{map[share]int{{1, 3}: 1, {1, 2}: 1}, share{1, 3}},
		{map[share]int{{1, 3}: 1, {1, 2}: 1, {9, 1}: 1}, share{1, 2}},
		{map[share]int{{0, 1}: 3, {9, 1}: 2}, share{0, 1}},
	} {
		assert.Equal(t, tt.want, median(tt.counts))
	}
	// A third of a CPU for each of three devices is enough for three.
	assert.Equal(t, 3, share{1000, 3}.enough(1000, 8))
	assert.Equal(t, 8, share{}.enough(0, 8))
	assert.Equal(t, 0, share{1, 1}.enough(-5, 8))
	assert.Equal(t, 8, shareOf(math.MaxInt64, math.MaxInt).enough(math.MaxInt64, 8))
}

func TestWaiting(t *testing.T) {
	wait := func(name, queue, reason, message string, age time.Duration, devices int, more ...gpupods.Request) *gpupods.Pod {
		p := gpuPod(name, "", devices, 1, 1, more...)
		p.Scheduling.Queue, p.Scheduling.Reason, p.Scheduling.Message, p.Scheduling.Created = queue, reason, message, start.Add(-age)
		return p
	}
	deleted := wait("deleted", "q", "", "", time.Hour, 1)
	deleted.Deleted = true
	mine := gpupods.Request{Resource: "gpu.nvidia.com", Claim: "mine", Count: 2}
	held := gpupods.Request{Resource: "gpu.nvidia.com", Claim: "held", Count: 2, Allocated: true}
	const short = "0/3 nodes are available: 1 node(s) had untolerated taint {a: }, 2 Insufficient nvidia.com/gpu."
	f := evaluator().Evaluate(start, []*Node{gpuNode("a", 1)}, snapshot(
		wait("1", "q", "Unschedulable", short, time.Minute, 4),
		wait("2", "q", "Unschedulable", short, time.Hour, 8),
		wait("3", "", "SchedulingGated", "", time.Second, 1),
		wait("4", "", "", "", -time.Second, 1),
		wait("5", "r", "", "", 0, 0, mine), wait("6", "r", "", "", 0, 1, mine),
		wait("7", "r", "", "", 0, 0, held), gpuPod("8", "a", 0, 1, 1, held),
		deleted,
	))
	ml, q, r := places.Place{Namespace: "ml"}, places.Place{Namespace: "ml", Queue: "q"}, places.Place{Namespace: "ml", Queue: "r"}
	assert.ElementsMatch(t, []Waiting{
		{q, pending.InsufficientGPU, gpu, 2, 12},
		{ml, pending.Gated, gpu, 1, 1},
		{ml, pending.NotTried, gpu, 1, 1},
		{r, pending.NotTried, "gpu.nvidia.com", 3, 2},
		{r, pending.NotTried, gpu, 1, 1},
	}, f.Waiting)
	assert.ElementsMatch(t, []Oldest{
		{q, pending.InsufficientGPU, time.Hour}, {ml, pending.Gated, time.Second}, {r, pending.NotTried, 0},
	}, f.Oldest)
	assert.Equal(t, 1, f.Negative)
}

// Beyond the limit of queues, of which a namespace has a tenth, what is summed stays complete.
func TestQueuesAreBounded(t *testing.T) {
	e := evaluator()
	var pods []*gpupods.Pod
	for i := range 5 {
		p := gpuPod(fmt.Sprint(i), "", 1, 1, 1)
		p.Scheduling.Queue = fmt.Sprint("q", i)
		pods = append(pods, p)
	}
	f := e.Evaluate(start, nil, snapshot(pods...))
	devices := 0
	for _, w := range f.Waiting {
		devices += w.Devices
	}
	assert.Equal(t, 5, devices)
	assert.Len(t, f.Waiting, 4)
	assert.True(t, slices.ContainsFunc(f.Waiting, func(w Waiting) bool { return w.Place == places.Place{Namespace: "ml"} && w.Devices == 2 }))
	assert.Equal(t, 2, e.cfg.Places.Refused())
	assert.Empty(t, e.cfg.Places.Expire(start.Add(time.Hour)))
	assert.Len(t, e.cfg.Places.Expire(start.Add(25*time.Hour)), 4)
}

func TestReasonsAreNamed(t *testing.T) {
	var all []string
	for reason := range NumStranded {
		all = append(all, reason.String())
	}
	assert.Equal(t, "cordoned not_ready tainted cpu memory", strings.Join(all, " "))
}
