// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/sharing"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/nodefake"
)

// sharedOf is what schedulers wrote on pods, on a node of boards with 80 GiB.
func sharedOf(scheduler string, pods ...*corev1.Pod) *Shared {
	s := &Shared{
		Reader: &sharing.Reader{Schedulers: []*sharing.Scheduler{sharing.Named(scheduler)}, Reservations: []string{"kai-resource-reservation"}},
		Pods:   map[types.NamespacedName]sharing.Pod{}, Memory: 81920, Listed: true, Fresh: true,
	}
	for _, p := range pods {
		if kept, ok := s.Reader.Keep(p); ok {
			s.Pods[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = kept
		}
	}
	return s
}

// written is a pod with one container, main, and an annotation of a scheduler.
func written(name, key, value string, labels ...string) *corev1.Pod {
	return nodefake.Annotated("ml", name, map[string]string{key: value}, labels...)
}

func vgpu(name, board string, memory int) *corev1.Pod {
	return written(name, "hami.io/vgpu-devices-allocated", fmt.Sprintf("%s,NVIDIA,%d,0:;", board, memory))
}

// slots are n ids of HAMi's device plugin for a board.
func slots(board string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(board, "-", i)
	}
	return ids
}

func built(t *testing.T, n node, s *Shared, old *Snapshot) (*Snapshot, Tally) {
	t.Helper()
	got, tl := newBuilder(t).Build(answer(&n, 1), View{Shared: s}, old)
	again, _ := newBuilder(t).Build(answer(&n, 7), View{Shared: s}, old)
	require.True(t, got.SameAs(again), "whatever the order of the kubelet")
	return got, tl
}

func emitted(s *Snapshot) []string { return lines(s.Metrics(&Origin{Node: "node-a"})) }

func unusable(tl Tally) (out []string) {
	for _, u := range tl.Unusable {
		out = append(out, fmt.Sprint(u.Scheduler, " ", u.Pod, " ", sharing.Problem(u.Err)))
	}
	return out
}

func TestHAMi(t *testing.T) {
	n := node{Devices: map[string][]string{gpuName: slices.Concat(slots(gpuA, 4), slots(gpuB, 4))}}
	// The kubelet gave some of them parts of another board.
	for i, id := range []string{gpuB + "-0", gpuA + "-0", gpuA + "-1", gpuB + "-1"} {
		n.Pods = append(n.Pods, holds("ml", fmt.Sprint("q", i), gpuName, id))
	}
	quarters := []*corev1.Pod{vgpu("q0", gpuA, 20480), vgpu("q1", gpuA, 20480), vgpu("q2", gpuA, 20480), vgpu("q3", gpuA, 20480)}
	s, tl := built(t, n, sharedOf("hami", quarters...), nil)
	assert.Equal(t, []string{
		"-/-/- " + gpuB + " 0 nvidia.com/gpu hami true",
		"ml/q0/main " + gpuA + "::0 0.25 nvidia.com/gpu hami true",
		"ml/q1/main " + gpuA + "::1 0.25 nvidia.com/gpu hami true",
		"ml/q2/main " + gpuA + "::2 0.25 nvidia.com/gpu hami true",
		"ml/q3/main " + gpuA + "::3 0.25 nvidia.com/gpu hami true",
	}, emitted(s))
	assert.Equal(t, States{Held: 4, Free: 1}, s.States)
	assert.Empty(t, tl.Unusable)

	// A part keeps its number.
	n.Pods = n.Pods[1:]
	s, _ = built(t, n, sharedOf("hami", quarters[1:]...), s)
	assert.Equal(t, "ml/q1/main "+gpuA+"::1 0.25 nvidia.com/gpu hami true", emitted(s)[1])

	// A pod that the annotation does not place may have any board: none is free.
	n.Pods = append(n.Pods, holds("ml", "odd", gpuName, gpuB+"-3"))
	s, tl = built(t, n, sharedOf("hami", append(quarters[1:], vgpu("odd", gpuC, 20480))...), s)
	assert.Equal(t, []string{
		"ml/odd/main node-a/" + gpuB + "-3 0.25 nvidia.com/gpu time_slicing false",
		"ml/q1/main " + gpuA + "::1 0.25 nvidia.com/gpu hami true",
		"ml/q2/main " + gpuA + "::2 0.25 nvidia.com/gpu hami true",
		"ml/q3/main " + gpuA + "::3 0.25 nvidia.com/gpu hami true",
	}, emitted(s))
	assert.Equal(t, []string{"hami ml/odd unknown_device"}, unusable(tl))

	// A pod that has ended holds nothing, although the kubelet lists it.
	done := vgpu("odd", gpuA, 20480)
	done.Status.Phase = corev1.PodSucceeded
	s, tl = built(t, n, sharedOf("hami", append(quarters[1:], done)...), s)
	assert.Equal(t, "-/-/- "+gpuB+" 0 nvidia.com/gpu hami true", emitted(s)[0])
	assert.Len(t, emitted(s), 4)
	assert.Empty(t, tl.Unusable)

	// An init container, which the kubelet does not list, may use what it was granted until it ends.
	starts := written("starts", "hami.io/vgpu-devices-allocated", gpuB+",NVIDIA,1024,0:;;")
	starts.Spec.InitContainers = []corev1.Container{{Name: "fetch"}}
	n.Pods[len(n.Pods)-1] = pod{Namespace: "ml", Name: "starts"}
	s, tl = built(t, n, sharedOf("hami", append(quarters[1:], starts)...), s)
	assert.Zero(t, s.States.Free)
	assert.Empty(t, tl.Unusable)
	starts.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}}
	s, _ = built(t, n, sharedOf("hami", append(quarters[1:], starts)...), s)
	assert.Equal(t, "-/-/- "+gpuB+" 0 nvidia.com/gpu hami true", emitted(s)[0])

	// An annotation takes nothing from what the kubelet resolves.
	whole := node{Devices: map[string][]string{gpuName: {gpuA}}, Pods: []pod{holds("ml", "whole", gpuName, gpuA)}}
	s, tl = built(t, whole, sharedOf("hami", vgpu("whole", gpuA, 1)), nil)
	assert.Empty(t, tl.Unusable)
	assert.Equal(t, []string{"ml/whole/main " + gpuA + " 1 nvidia.com/gpu none true"}, emitted(s))

	// What the node's plugin registered decides about memory; scaled memory has scaled boards.
	scaled := sharedOf("hami", vgpu("q1", gpuA, 20480))
	scaled.Boards = map[string]sharing.Boards{"hami": {gpuA: {ID: gpuA, Memory: 163840}}}
	s, _ = built(t, node{Devices: n.Devices, Pods: n.Pods[:1]}, scaled, nil)
	assert.Equal(t, "ml/q1/main "+gpuA+"::0 0.125 nvidia.com/gpu hami true", emitted(s)[1])
	alone := sharedOf("hami", vgpu("q1", gpuA, 81920))
	s, _ = built(t, node{Devices: n.Devices, Pods: n.Pods[:1]}, alone, nil)
	assert.Equal(t, "ml/q1/main "+gpuA+" 1 nvidia.com/gpu hami true", emitted(s)[1], "a board with one owner is not divided")

	unknown := sharedOf("hami", vgpu("q1", gpuA, 20480))
	unknown.Memory, unknown.Listed = 0, false
	_, tl = built(t, node{Devices: n.Devices, Pods: n.Pods[:1]}, unknown, nil)
	assert.Empty(t, tl.Unusable, "the node is not known yet")
	unknown.Listed = true
	_, tl = built(t, node{Devices: n.Devices, Pods: n.Pods[:1]}, unknown, nil)
	assert.Equal(t, []string{"hami ml/q1 unknown_memory"}, unusable(tl))
}

// The resource of a device plugin has the name that it was installed with. Where it is one of
// resource_names, all is as with the default; a pod with another one has what is not free.
func TestRenamedResource(t *testing.T) {
	const renamed = "nvidia.com/vgpu"
	n := node{
		Devices: map[string][]string{renamed: slices.Concat(slots(gpuA, 2), slots(gpuB, 2))},
		Pods:    []pod{holds("ml", "a", renamed, gpuB+"-0"), holds("ml", "b", renamed, gpuA+"-0")},
	}
	shared := func(schedulers ...string) *Shared {
		s := sharedOf("hami", vgpu("a", gpuA, 20480), vgpu("b", gpuA, 40960))
		s.Reader.Schedulers = nil
		for _, name := range schedulers {
			s.Reader.Schedulers = append(s.Reader.Schedulers, sharing.Named(name))
		}
		s.Boards = map[string]sharing.Boards{"hami": {gpuA: {ID: gpuA, Memory: 81920}, gpuB: {ID: gpuB, Memory: 81920}}}
		return s
	}
	want := []string{
		"-/-/- " + gpuB + " 0 nvidia.com/vgpu hami true",
		"ml/a/main " + gpuA + "::0 0.25 nvidia.com/vgpu hami true",
		"ml/b/main " + gpuA + "::1 0.5 nvidia.com/vgpu hami true",
	}
	for _, schedulers := range [][]string{{"hami"}, {"koordinator", "hami", "volcano"}} {
		b := newBuilder(t, func(b *Builder) { b.Read.Resources = matcher(t, renamed, gpuName) })
		s, tl := b.Build(answer(&n, 1), View{Shared: shared(schedulers...)}, nil)
		assert.Equal(t, want, emitted(s))
		assert.Empty(t, tl.Unusable)
	}

	// It is not one of resource_names.
	s, tl := built(t, n, shared("hami"), nil)
	assert.Equal(t, []string{"-/-/- " + gpuB + " 0 nvidia.com/gpu hami true"}, emitted(s))
	assert.Equal(t, []string{"hami ml/a unlisted", "hami ml/b unlisted"}, unusable(tl))
	odd := shared("hami")
	odd.Pods[types.NamespacedName{Namespace: "ml", Name: "b"}] = sharing.Pod{Scheduler: sharing.Named("hami"), Err: sharing.ErrMalformed}
	s, tl = built(t, n, odd, nil)
	assert.Empty(t, emitted(s), "b may have any board")
	assert.Equal(t, []string{"hami ml/a unlisted", "hami ml/b malformed"}, unusable(tl))

	// HAMi is not read: a part with the name of its resource is not Volcano's.
	n = node{Devices: map[string][]string{gpuName: slots(gpuA, 1)}}
	s, _ = built(t, n, shared("volcano"), nil)
	assert.Equal(t, []string{"-/-/- node-a/" + gpuA + "-0 0 nvidia.com/gpu time_slicing false"}, emitted(s))
}

func TestSharedAttributes(t *testing.T) {
	n := node{Devices: map[string][]string{gpuName: slots(gpuA, 2)}, Pods: []pod{holds("ml", "a", gpuName, gpuA+"-0")}}
	s, _ := built(t, n, sharedOf("hami", written("a", "hami.io/vgpu-devices-allocated", gpuA+",NVIDIA,20480,30:;")), nil)
	p := s.Metrics(&Origin{Node: "node-a"}).ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0)
	assert.Equal(t, map[string]any{
		"hw.id": gpuA + "::0", "k8s.resource.name": "nvidia.com/gpu", "gpu.attribution.source": "annotation", "gpu.sharing": "hami",
		"gpu.allocation.resolved": true, "gpu.allocation.share": 0.25, "gpu.allocation.share.cores": 0.3,
	}, p.Attributes().AsRaw())
	assert.InDelta(t, 0.25, p.DoubleValue(), 0)
}

func TestVolcano(t *testing.T) {
	const resource = "volcano.sh/vgpu-number"
	n := node{Devices: map[string][]string{resource: slots(gpuA, 10)}, Pods: []pod{holds("ml", "a", resource, gpuA+"-7")}}
	v := sharedOf("volcano", written("a", "volcano.sh/vgpu-ids-new", gpuA+",NVIDIA,8192,0:"))
	v.Boards = map[string]sharing.Boards{"volcano": {gpuA: {ID: gpuA, Memory: 16384}}}
	b := newBuilder(t, func(b *Builder) { b.Read.Resources = matcher(t, resource) })
	s, tl := b.Build(answer(&n, 1), View{Shared: v}, nil)
	assert.Equal(t, []string{"ml/a/main " + gpuA + "::0 0.5 " + resource + " volcano true"}, emitted(s))
	assert.Empty(t, tl.Unusable)
}

func TestKoordinator(t *testing.T) {
	allocated := func(name string, minor, ratio int) *corev1.Pod {
		return written(name, "scheduling.koordinator.sh/device-allocated",
			fmt.Sprintf(`{"gpu":[{"minor":%d,"resources":{"koordinator.sh/gpu-memory-ratio":%d,"koordinator.sh/gpu-core":0}}]}`, minor, ratio))
	}
	n := node{Pods: []pod{{Namespace: "ml", Name: "a"}, {Namespace: "ml", Name: "b"}}}
	v := sharedOf("koordinator", allocated("a", 0, 50), allocated("b", 0, 25), allocated("c", 1, 100))
	v.Boards = map[string]sharing.Boards{"koordinator": {"0": {ID: gpuA}, "1": {ID: gpuB}}}
	s, tl := built(t, n, v, nil)
	assert.Equal(t, []string{
		"-/-/- " + gpuB + " 0 koordinator.sh/gpu koordinator true", // c is not in the kubelet's list: it does not run here
		"ml/a/main " + gpuA + "::0 0.5 koordinator.sh/gpu koordinator true",
		"ml/b/main " + gpuA + "::1 0.25 koordinator.sh/gpu koordinator true",
	}, emitted(s))
	assert.Empty(t, tl.Unusable)

	v = sharedOf("koordinator", allocated("a", 0, 50), allocated("b", 2, 25))
	v.Boards = map[string]sharing.Boards{"koordinator": {"0": {ID: gpuA}, "1": {ID: gpuB}}}
	s, tl = built(t, n, v, nil)
	assert.Equal(t, []string{
		"ml/a/main " + gpuA + "::0 0.5 koordinator.sh/gpu koordinator true",
		"ml/b/main node-a/koordinator/ml/b/0 0.25 koordinator.sh/gpu koordinator false",
	}, emitted(s))
	assert.Equal(t, []string{"koordinator ml/b unknown_device"}, unusable(tl))
	assert.Equal(t, States{Held: 1, Unresolved: 1}, s.States)

	// A device plugin that lists the boards too makes none of them free.
	n.Devices = map[string][]string{gpuName: {gpuA, gpuB}}
	v = sharedOf("koordinator", allocated("a", 0, 50))
	v.Boards = map[string]sharing.Boards{"koordinator": {"0": {ID: gpuA}, "1": {ID: gpuB}}}
	s, _ = built(t, n, v, nil)
	assert.Equal(t, []string{
		"-/-/- " + gpuB + " 0 nvidia.com/gpu none true",
		"ml/a/main " + gpuA + "::0 0.5 koordinator.sh/gpu koordinator true",
	}, emitted(s))

	// A pod that was not read, or is not placed, may have any of them.
	for _, v := range []*Shared{sharedOf("koordinator", allocated("a", 0, 50), allocated("b", 2, 25)), sharedOf("koordinator", allocated("a", 0, 50))} {
		v.Boards = map[string]sharing.Boards{"koordinator": {"0": {ID: gpuA}, "1": {ID: gpuB}}}
		v.Fresh = len(v.Pods) > 1
		s, _ = built(t, n, v, nil)
		assert.Zero(t, s.States.Free)
	}
}

// The reservation pod has the board for the kubelet, and is no owner at any time.
func TestKAI(t *testing.T) {
	const reservations = "kai-resource-reservation"
	reserving := nodefake.Annotated(reservations, "r", map[string]string{"run.ai/reserve_for_gpu_index": gpuA}, "runai-gpu-group", "g1")
	half := written("half", "gpu-fraction", "0.5", "runai-gpu-group", "g1")
	quarter := written("quarter", "gpu-memory", "20480", "runai-gpu-group", "g1")
	n := node{
		Devices: map[string][]string{gpuName: {gpuA, gpuB}},
		Pods: []pod{
			holds(reservations, "r", gpuName, gpuA), holds("ml", "whole", gpuName, gpuB),
			{Namespace: "ml", Name: "half"}, {Namespace: "ml", Name: "quarter"},
		},
	}
	others := "ml/whole/main " + gpuB + " 1 nvidia.com/gpu none true"
	s, tl := built(t, n, sharedOf("kai", reserving, half, quarter), nil)
	assert.Equal(t, []string{
		"ml/half/main " + gpuA + "::0 0.5 nvidia.com/gpu kai true",
		"ml/quarter/main " + gpuA + "::1 0.25 nvidia.com/gpu kai true", others,
	}, emitted(s))
	assert.Empty(t, tl.Unusable)

	s, _ = built(t, n, sharedOf("kai", reserving), nil)
	assert.Equal(t, []string{"-/-/- " + gpuA + " 0 nvidia.com/gpu kai true", others}, emitted(s), "a group without members")
	s, _ = built(t, n, sharedOf("kai"), nil)
	assert.Equal(t, []string{others}, emitted(s), "pods were not listed yet: nothing is known about the board")

	other := nodefake.Annotated(reservations, "r", map[string]string{"run.ai/reserve_for_gpu_index": gpuC}, "runai-gpu-group", "g1")
	s, tl = built(t, n, sharedOf("kai", other, half), nil)
	assert.Equal(t, []string{"ml/half/main node-a/kai/ml/half/0 0.5 nvidia.com/gpu kai false", others}, emitted(s))
	assert.Equal(t, []string{"kai ml/half unknown_device"}, unusable(tl))

	s, tl = built(t, n, sharedOf("kai", reserving, half, written("quarter", "gpu-fraction", "2", "runai-gpu-group", "g1")), nil)
	assert.Equal(t, []string{"ml/half/main " + gpuA + "::0 0.5 nvidia.com/gpu kai true", others}, emitted(s))
	assert.Equal(t, []string{"kai ml/quarter share"}, unusable(tl))

	// Of a board that is shared by time-slicing too, nothing is known but that it is not free.
	sliced := node{
		Devices: map[string][]string{gpuName: replicas(gpuA, 2)},
		Pods:    []pod{holds(reservations, "r", gpuName, gpuA+"::0"), {Namespace: "ml", Name: "half"}},
	}
	s, tl = built(t, sliced, sharedOf("kai", reserving, half), nil)
	assert.Equal(t, []string{
		"-/-/- " + gpuA + "::1 0 nvidia.com/gpu time_slicing true", "ml/half/main node-a/kai/ml/half/0 0.5 nvidia.com/gpu kai false",
	}, emitted(s))
	assert.Equal(t, []string{"kai ml/half unknown_device"}, unusable(tl))

	// Without sharing it is as the kubelet has it.
	s, _ = built(t, n, nil, nil)
	assert.Contains(t, emitted(s), reservations+"/r/main "+gpuA+" 1 nvidia.com/gpu none true")
}

func TestBoardsOfTheNode(t *testing.T) {
	object := nodeOf(false, "nvidia.com/gpu.memory", "81920")
	object.Annotations = map[string]string{"hami.io/node-nvidia-register": gpuA + ",10,81920,100,A100,0,true:"}
	keep := func(r NodeReader, object *corev1.Node) *Node {
		kept, ok := r.Keep(object)
		require.True(t, ok)
		return &kept
	}
	with := NodeReader{Schedulers: []*sharing.Scheduler{sharing.Named(names.SharingHAMi)}}
	boards, memory := keep(with, object).Boards()
	assert.Equal(t, map[string]sharing.Boards{"hami": {gpuA: {ID: gpuA, Memory: 81920}}}, boards)
	assert.Equal(t, int64(81920), memory)
	again := keep(with, object)
	assert.True(t, keep(with, object).Equal(again))
	assert.False(t, keep(NodeReader{}, object).Equal(again))
	boards, memory = (*Node)(nil).Boards()
	assert.Empty(t, boards)
	assert.Zero(t, memory)
	_, ok := (&sharing.Reader{}).Keep(&metav1.Status{})
	assert.False(t, ok)
}
