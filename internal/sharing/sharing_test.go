// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	gpuA = "GPU-aaaaaaaa-0000-0000-0000-000000000000"
	gpuB = "GPU-bbbbbbbb-0000-0000-0000-000000000000"
)

// all reads what every scheduler writes.
var all = Reader{Schedulers: schedulers, Reservations: []string{"kai-resource-reservation", "runai-reservation"}}

func read[T any](t testing.TB, file string) *T {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	object := new(T)
	require.NoError(t, json.Unmarshal(text, object))
	return object
}

func kept(t *testing.T, file string) Pod {
	t.Helper()
	pod, ok := all.Keep(read[corev1.Pod](t, file))
	require.True(t, ok)
	return pod
}

func TestPods(t *testing.T) {
	for file, want := range map[string]Pod{
		"hami-pod.json": {Scheduler: hami, Starting: true, Grants: []Grant{
			{Container: "server", Board: gpuA, Memory: 20480, Cores: 0.3},
			{Container: "worker", Board: gpuA, Memory: 8192},
			{Container: "worker", Board: gpuB, Memory: 81920, Cores: 1},
		}},
		"volcano-pod.json":     {Scheduler: volcano, Grants: []Grant{{Container: "train", Board: gpuB, Memory: 4096, Cores: 0.5}}},
		"koordinator-pod.json": {Scheduler: koordinator, Grants: []Grant{{Container: "embed", Board: "1", Share: 0.5, Cores: 0.5}}},
		"kai-pod.json": {Scheduler: kai, Grants: []Grant{
			{Container: "notebook", Board: "g1", Memory: 20480}, {Container: "notebook", Board: "g2", Memory: 20480},
		}},
		"kai-reservation-pod.json": {Scheduler: kai, Group: "g1", ReservedID: gpuA},
	} {
		assert.Equal(t, want, kept(t, filepath.Join("testdata", file)), file)
	}
}

func TestBoards(t *testing.T) {
	two := Boards{gpuA: {ID: gpuA, Memory: 81920}, gpuB: {ID: gpuB, Memory: 81920}}
	node := read[corev1.Node](t, "testdata/hami-node.json")
	assert.Equal(t, two, hami.Boards(node))
	assert.Nil(t, volcano.Boards(node))
	assert.Nil(t, kai.Boards(node))
	assert.Equal(t, Boards{gpuB: {ID: gpuB, Memory: 32768}}, volcano.Boards(read[corev1.Node](t, "testdata/volcano-node.json")))

	of := func(text string) Boards {
		return hami.Boards(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"hami.io/node-nvidia-register": text}}})
	}
	assert.Equal(t, two, of(`[{"id":"`+gpuA+`","count":10,"devmem":81920,"health":true},{"id":"`+gpuB+`","index":1,"devmem":81920}]`))
	assert.Empty(t, of(`[{"id":`))
	assert.Empty(t, of("nonsense"))
	assert.Empty(t, of("GPU-x,10,81920,100,:"+gpuA+",10,many,:"+gpuB+",10,0,:"))
	assert.Empty(t, of(gpuA+",10,81920:"+strings.Repeat(" ", MaxAnnotation)))

	device := func(change func(devices []any)) Boards {
		text, err := os.ReadFile("testdata/koordinator-device.json")
		require.NoError(t, err)
		u := &unstructured.Unstructured{}
		require.NoError(t, u.UnmarshalJSON(text))
		devices, _, err := unstructured.NestedSlice(u.Object, "spec", "devices")
		require.NoError(t, err)
		change(devices)
		require.NoError(t, unstructured.SetNestedSlice(u.Object, devices, "spec", "devices"))
		return KoordinatorBoards(u.Object)
	}
	assert.Equal(t, Boards{"0": {ID: gpuA}, "1": {ID: gpuB}}, device(func([]any) {}))
	assert.Empty(t, device(func(d []any) { d[1].(map[string]any)["minor"] = int64(0) }), "which of them is meant is not known")
	assert.Equal(t, Boards{"1": {ID: gpuB}}, device(func(d []any) { delete(d[0].(map[string]any), "minor") }))
	assert.Empty(t, KoordinatorBoards(map[string]any{"spec": map[string]any{"devices": "none"}}))
	assert.Empty(t, KoordinatorBoards(map[string]any{"spec": 7}))
}

// What a scheduler cannot have meant is refused whole, with one word for it.
func TestUnusable(t *testing.T) {
	for name, tt := range map[string]struct {
		file   string
		change func(*corev1.Pod)
		want   string
	}{
		"HAMi, too long":             {"hami-pod.json", annotate("hami.io/vgpu-devices-allocated", strings.Repeat(";", MaxAnnotation+1)), "too_long"},
		"HAMi, another container":    {"hami-pod.json", annotate("hami.io/vgpu-devices-allocated", gpuA+",NVIDIA,1,0:;"), "malformed"},
		"HAMi, nothing":              {"hami-pod.json", annotate("hami.io/vgpu-devices-allocated", ";;;"), "malformed"},
		"HAMi, no number":            {"hami-pod.json", annotate("hami.io/vgpu-devices-allocated", ";"+gpuA+",NVIDIA,much,0:;;"), "malformed"},
		"HAMi, three fields":         {"hami-pod.json", annotate("hami.io/vgpu-devices-allocated", ";"+gpuA+",NVIDIA,1:;;"), "malformed"},
		"HAMi, no memory":            {"hami-pod.json", annotate("hami.io/vgpu-devices-allocated", ";"+gpuA+",NVIDIA,0,0:;;"), "share"},
		"HAMi, negative memory":      {"hami-pod.json", annotate("hami.io/vgpu-devices-allocated", ";"+gpuA+",NVIDIA,-5,0:;;"), "share"},
		"HAMi, too many cores":       {"hami-pod.json", annotate("hami.io/vgpu-devices-allocated", ";"+gpuA+",NVIDIA,5,101:;;"), "malformed"},
		"HAMi, too many devices":     {"hami-pod.json", annotate("hami.io/vgpu-devices-allocated", ";"+strings.Repeat("G,N,1,0:", maxGrants+1)+";;"), "malformed"},
		"Volcano, no number":         {"volcano-pod.json", annotate("volcano.sh/vgpu-ids-new", gpuB+",NVIDIA,1,all:"), "malformed"},
		"Koordinator, no JSON":       {"koordinator-pod.json", annotate(koordinatorAnnotation, "{"), "malformed"},
		"Koordinator, no minor":      {"koordinator-pod.json", annotate(koordinatorAnnotation, `{"gpu":[{"resources":{"koordinator.sh/gpu-memory-ratio":50}}]}`), "malformed"},
		"Koordinator, no ratio":      {"koordinator-pod.json", annotate(koordinatorAnnotation, `{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-memory":"16Gi"}}]}`), "share"},
		"Koordinator, huge ratio":    {"koordinator-pod.json", annotate(koordinatorAnnotation, `{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-memory-ratio":"1e999999999"}}]}`), "share"},
		"Koordinator, two of a half": {"koordinator-pod.json", annotate(koordinatorAnnotation, `{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-memory-ratio":200}}]}`), "share"},
		"KAI, no board yet":          {"kai-pod.json", func(p *corev1.Pod) { p.Labels = nil }, "unknown_device"},
		"KAI, one board is missing":  {"kai-pod.json", func(p *corev1.Pod) { delete(p.Labels, "runai-gpu-group/g2") }, "malformed"},
		"KAI, no number of devices":  {"kai-pod.json", annotate(kaiDevices, "0"), "malformed"},
		"KAI, no fraction":           {"kai-pod.json", annotate(kaiFraction, "half"), "malformed"},
		"KAI, NaN":                   {"kai-pod.json", annotate(kaiFraction, "NaN"), "share"},
		"KAI, above 1":               {"kai-pod.json", annotate(kaiFraction, "1.5"), "share"},
		"KAI, 0":                     {"kai-pod.json", annotate(kaiFraction, "0"), "share"},
		"KAI, memory":                {"kai-pod.json", annotate(kaiMemory, "20Gi"), "malformed"},
		"KAI, no memory":             {"kai-pod.json", annotate(kaiMemory, "-1"), "share"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := read[corev1.Pod](t, filepath.Join("testdata", tt.file))
			tt.change(pod)
			got, ok := all.Keep(pod)
			require.True(t, ok)
			assert.Empty(t, got.Grants)
			assert.Equal(t, tt.want, Problem(got.Err))
		})
	}
}

func annotate(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

// Lists without init containers, as in older versions, and with all containers.
func TestContainersOfVGPUs(t *testing.T) {
	pod := read[corev1.Pod](t, "testdata/hami-pod.json")
	pod.Annotations["hami.io/vgpu-devices-allocated"] = gpuA + ",NVIDIA,1024,0:;;"
	got, _ := all.Keep(pod)
	require.NoError(t, got.Err)
	assert.Equal(t, []Grant{{Container: "server", Board: gpuA, Memory: 1024}}, got.Grants)

	// HAMi 2.10 may leave out the slots of some init containers, and has written more slots than
	// there are containers: which one a slot is of is not known then.
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: "again"})
	for text, want := range map[string][]Grant{
		";;;" + gpuA + ",NVIDIA,1024,0:;":                      {{Container: "worker", Board: gpuA, Memory: 1024}},
		";" + gpuA + ",NVIDIA,1024,0:;":                        {{Container: "worker", Board: gpuA, Memory: 1024}},
		";;" + gpuA + ",NVIDIA,1024,0:;":                       nil,
		gpuA + ",NVIDIA,1024,0:;":                              nil,
		gpuA + ",NVIDIA,1024,0:;;,,0,0:;,,0,0:;":               nil,
		";;" + gpuA + ",NVIDIA,1024,0:;;;" + gpuB + ",N,1,0:;": nil,
	} {
		pod.Annotations["hami.io/vgpu-devices-allocated"] = text
		got, _ = all.Keep(pod)
		assert.Equal(t, want, got.Grants, text)
		assert.Equal(t, want == nil, got.Err != nil, text)
	}

	pod = read[corev1.Pod](t, "testdata/volcano-pod.json")
	pod.Annotations["volcano.sh/vgpu-ids-new"] = ";" + gpuB + ",NVIDIA,4096,50:"
	got, _ = all.Keep(pod)
	require.NoError(t, got.Err)
	assert.Equal(t, kept(t, "testdata/volcano-pod.json"), got)
}

func TestFind(t *testing.T) {
	boards := Boards{"a": {ID: gpuA, Memory: 81920}, "b": {ID: gpuB}}
	for want, g := range map[string]Grant{
		"":               {Board: "a", Memory: 20480},
		"unknown_device": {Board: "c", Memory: 20480},
		"unknown_memory": {Board: "b", Memory: 20480},
		"share":          {Board: "a", Memory: 81921},
	} {
		id, share, err := boards.Find(g)
		if want == "" {
			require.NoError(t, err)
			assert.Equal(t, gpuA, id)
			assert.InDelta(t, 0.25, share, 0)
			continue
		}
		assert.Equal(t, want, Problem(err))
	}
	_, share, err := boards.Find(Grant{Board: "b", Share: 0.5})
	require.NoError(t, err, "a share needs no memory")
	assert.InDelta(t, 0.5, share, 0)
	for of, want := range map[float64]float64{0.5: 0.5, 1.5: 0, 0: 0} {
		_, share, err := boards.Find(Grant{Board: "c", Share: of})
		require.ErrorIs(t, err, ErrUnknownDevice)
		assert.InDelta(t, want, share, 0)
	}
}

func TestKeep(t *testing.T) {
	pod := read[corev1.Pod](t, "testdata/hami-pod.json")
	assert.Equal(t, []*Scheduler{hami}, Detect(pod))
	_, ok := (&Reader{Schedulers: []*Scheduler{volcano, kai}}).Keep(pod)
	assert.False(t, ok, "only the schedulers that are asked for")
	pod.Status.Phase = corev1.PodSucceeded
	got, ok := all.Keep(pod)
	assert.True(t, ok)
	assert.Equal(t, Pod{Scheduler: hami, Ended: true}, got)
	_, ok = all.Keep("no pod")
	assert.False(t, ok)
	assert.Empty(t, Detect(&corev1.Pod{}))

	// Who may write annotations may not have a board of others for nothing: a reservation
	// counts in its namespace alone.
	pod = read[corev1.Pod](t, "testdata/kai-reservation-pod.json")
	assert.True(t, IsReservation(pod))
	assert.False(t, (&Reader{Schedulers: []*Scheduler{hami}, Reservations: all.Reservations}).Reserves(pod.Namespace))
	pod.Namespace = "ml"
	_, ok = all.Keep(pod)
	assert.False(t, ok)
	assert.False(t, IsReservation(pod))

	assert.Equal(t, []string{"hami", "volcano", "koordinator", "kai"}, Names())
	assert.Same(t, kai, Named("kai"))
	assert.Nil(t, Named("slurm"))
}

// Pods of a real cluster with Run:ai, where they are at hand.
func TestRunAI(t *testing.T) {
	const samples = "../../../shared/data/k8s_pods"
	if _, err := os.Stat(samples); err != nil {
		t.Skip("samples are not there")
	}
	member := kept(t, filepath.Join(samples, "runai-fractional-pod.json"))
	reservation := kept(t, filepath.Join(samples, "runai-fractional-reservation-pod.json"))
	require.NoError(t, member.Err)
	require.Len(t, member.Grants, 1)
	assert.Equal(t, reservation.Group, member.Grants[0].Board)
	assert.Equal(t, Grant{Container: "frac-1", Board: reservation.Group, Share: 0.5}, member.Grants[0])
	assert.Equal(t, "GPU-8983c66a-23df-e63b-4c2f-afcae9ec79b3", reservation.ReservedID)
	_, ok := all.Keep(read[corev1.Pod](t, filepath.Join(samples, "runai-mig-7g-pod.json")))
	assert.False(t, ok, "a MIG instance is no share")
}

// check is what holds for every pod, whatever was written on it.
func check(t *testing.T, pod *corev1.Pod) {
	got, ok := all.Keep(pod)
	if !ok {
		return
	}
	if got.Err != nil || got.Ended {
		assert.Empty(t, got.Grants)
	}
	if got.Err != nil {
		assert.Contains(t, []string{"too_long", "malformed", "share", "unknown_device"}, Problem(got.Err))
		return
	}
	assert.LessOrEqual(t, len(got.Grants), maxGrants)
	for _, g := range got.Grants {
		assert.NotEqual(t, g.Memory > 0, g.Share > 0, "one of them")
		assert.True(t, g.Memory >= 0 && g.Share >= 0 && g.Share <= 1 && g.Cores >= 0 && g.Cores <= 1, g)
		assert.NotEmpty(t, g.Board)
	}
}

func fuzzed(f *testing.F, file string, keys ...string) {
	pod := read[corev1.Pod](f, filepath.Join("testdata", file))
	seed := ""
	for _, key := range keys {
		seed += pod.Annotations[key] + "\n"
	}
	f.Add(strings.TrimSuffix(seed, "\n"))
	f.Fuzz(func(t *testing.T, text string) {
		pod := pod.DeepCopy()
		texts := strings.Split(text, "\n")
		for i, key := range keys {
			if delete(pod.Annotations, key); i < len(texts) {
				pod.Annotations[key] = texts[i]
			}
		}
		check(t, pod)
		for _, s := range schedulers {
			for _, board := range s.Boards(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
				"hami.io/node-nvidia-register": text, "volcano.sh/node-vgpu-register": text,
			}}}) {
				assert.Positive(t, board.Memory)
			}
		}
	})
}

func FuzzHAMi(f *testing.F)    { fuzzed(f, "hami-pod.json", "hami.io/vgpu-devices-allocated") }
func FuzzVolcano(f *testing.F) { fuzzed(f, "volcano-pod.json", "volcano.sh/vgpu-ids-new") }

func FuzzKoordinator(f *testing.F) {
	device, err := os.ReadFile("testdata/koordinator-device.json")
	require.NoError(f, err)
	f.Add(read[corev1.Pod](f, "testdata/koordinator-pod.json").Annotations[koordinatorAnnotation], device)
	f.Fuzz(func(t *testing.T, annotation string, device []byte) {
		pod := read[corev1.Pod](t, "testdata/koordinator-pod.json")
		pod.Annotations[koordinatorAnnotation] = annotation
		check(t, pod)
		u := &unstructured.Unstructured{}
		if u.UnmarshalJSON(device) != nil {
			return
		}
		for _, board := range KoordinatorBoards(u.Object) {
			assert.True(t, strings.HasPrefix(board.ID, "GPU-"))
		}
	})
}

func FuzzKAI(f *testing.F) {
	f.Add("", "20480", "2", "g1")
	f.Add("0.5", "", "", "g1")
	f.Fuzz(func(t *testing.T, fraction, memory, devices, group string) {
		pod := read[corev1.Pod](t, "testdata/kai-pod.json")
		maps.Copy(pod.Annotations, map[string]string{kaiFraction: fraction, kaiMemory: memory, kaiDevices: devices})
		pod.Labels = map[string]string{kaiGroup: group, kaiGroup + "/g2": "g2"}
		check(t, pod)
		pod.Namespace, pod.Annotations[kaiReserved] = "runai-reservation", fraction
		reserving, _ := all.Keep(pod)
		assert.True(t, reserving.ReservedID == "" || strings.HasPrefix(reserving.ReservedID, "GPU-"))
	})
}

func TestEveryProblemHasAWord(t *testing.T) {
	words := []string{}
	for _, err := range []error{ErrTooLong, ErrMalformed, ErrShare, ErrUnknownDevice, ErrUnknownMemory} {
		words = append(words, Problem(err))
	}
	slices.Sort(words)
	assert.Len(t, slices.Compact(words), 5)
}
