// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/cgroupowner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/internal/podnames"
)

const (
	uuid = "GPU-0a11ce00-0001-4000-8000-000000000001"
	gib  = 1 << 30
)

var (
	podA, podB = "0a11ce00-0001-4000-8000-00000000000a", "0a11ce00-0001-4000-8000-00000000000b"
	idA, idB   = strings.Repeat("a", 64), strings.Repeat("b", 64)
)

func pod(uid, id string) string { return "0::/kubepods/burstable/pod" + uid + "/" + id + "\n" }

// host is a /proc with processes.
type host struct {
	t    *testing.T
	root string
}

func newHost(t *testing.T) *host { return &host{t, t.TempDir()} }

func (h *host) process(pid, start int, name, cgroup string) {
	folder := filepath.Join(h.root, "proc", fmt.Sprint(pid))
	require.NoError(h.t, os.MkdirAll(folder, 0o755))
	for file, text := range map[string]string{
		"stat":   fmt.Sprintf("%d (a) b) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0\n", pid, start),
		"cgroup": cgroup, "comm": name + "\n",
	} {
		require.NoError(h.t, os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600))
	}
}

func (h *host) table(opts Options) *Table {
	opts.Root = h.root
	if opts.Pods == nil {
		opts.Pods = &podnames.Registry{}
	}
	return New(opts)
}

func on(p *nvmlproto.Processes) []nvmlproto.Board {
	return []nvmlproto.Board{{Thread: "0000:3b:00.0", UUID: uuid, Processes: p}}
}

func compute(pid int, memory float64) nvmlproto.Process {
	return nvmlproto.Process{PID: pid, Type: "compute", Memory: nvmlproto.Number(memory)}
}

func instance(gi int) *int { return &gi }

// lines are the points of a device as text.
func lines(t *Table, rows []Row) []string {
	metrics := pmetric.NewMetricSlice()
	t.Write(rows, uuid, time.Unix(1, 0), metrics)
	var all []string
	for _, m := range metrics.All() {
		var points pmetric.NumberDataPointSlice
		if m.Type() == pmetric.MetricTypeSum {
			points = m.Sum().DataPoints()
		} else {
			points = m.Gauge().DataPoints()
		}
		for _, p := range points.All() {
			value := fmt.Sprint(p.DoubleValue())
			if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
				value = fmt.Sprintf("%.1fGi", float64(p.IntValue())/gib)
			}
			text := strings.TrimPrefix(m.Name(), "gpu.process.") + " " + value
			for k, v := range p.Attributes().All() {
				if k != "hw.id" {
					text += " " + k + "=" + strings.NewReplacer(idA, "A", idB, "B", podA, "podA", podB, "podB").Replace(v.AsString())
				}
			}
			all = append(all, text)
		}
	}
	return all
}

func TestRows(t *testing.T) {
	h := newHost(t)
	h.process(10, 1, "python3", pod(podA, idA))
	h.process(11, 1, "python3", pod(podA, idA))
	h.process(20, 1, "vllm", pod(podB, idB))
	h.process(30, 1, "solver", "12:devices:/slurm/uid_1/job_7/step_0\n")
	h.process(40, 1, "served", "0::/system.slice/served.service\n")
	h.process(50, 1, "Xorg", "0::/user.slice/user-1000.slice/session-1.scope\n")
	for name, tc := range map[string]struct {
		by      By
		max     int
		p       nvmlproto.Processes
		want    []string
		refused map[string]int
	}{
		"by container": {
			by: Container,
			p: nvmlproto.Processes{
				List: []nvmlproto.Process{compute(10, 4*gib), compute(11, 2*gib), compute(20, 5*gib), compute(30, gib), compute(40, gib/2), {PID: 50, Type: "graphics", Memory: gib / 4}},
				Busy: []nvmlproto.Utilization{{PID: 10, SM: 60, Memory: 30}, {PID: 11, SM: 50}, {PID: 99, SM: 1}},
			},
			want: []string{
				"memory.usage 6.0Gi gpu.process.type=compute container.id=A k8s.pod.uid=podA",
				"memory.usage 5.0Gi gpu.process.type=compute container.id=B k8s.pod.uid=podB",
				"memory.usage 1.0Gi gpu.process.type=compute slurm.job.id=7",
				"memory.usage 0.5Gi gpu.process.type=compute systemd.unit=served.service",
				"memory.usage 0.2Gi gpu.process.type=graphics gpu.process.owner=other",
				"utilization 1 gpu.process.type=compute container.id=A k8s.pod.uid=podA gpu.process.task=sm",
				"utilization 0.3 gpu.process.type=compute container.id=A k8s.pod.uid=podA gpu.process.task=memory",
				"utilization 0 gpu.process.type=compute container.id=A k8s.pod.uid=podA gpu.process.task=encoder",
				"utilization 0 gpu.process.type=compute container.id=A k8s.pod.uid=podA gpu.process.task=decoder",
			},
		},
		"by process": {
			by: Process,
			p:  nvmlproto.Processes{List: []nvmlproto.Process{compute(10, 4*gib), compute(11, 2*gib), compute(50, gib)}},
			want: []string{
				"memory.usage 4.0Gi process.pid=10 gpu.process.type=compute process.executable.name=python3 container.id=A k8s.pod.uid=podA",
				"memory.usage 2.0Gi process.pid=11 gpu.process.type=compute process.executable.name=python3 container.id=A k8s.pod.uid=podA",
				"memory.usage 1.0Gi process.pid=50 gpu.process.type=compute process.executable.name=Xorg gpu.process.owner=other",
			},
		},
		"in several lists": {
			by: Container,
			p:  nvmlproto.Processes{List: []nvmlproto.Process{{PID: 10, Type: "graphics", Memory: 3 * gib}, compute(10, 3*gib), {PID: 20, Type: "compute", Memory: gib}, {PID: 20, Type: "mps", Memory: gib}}},
			want: []string{
				"memory.usage 3.0Gi gpu.process.type=compute container.id=A k8s.pod.uid=podA",
				"memory.usage 1.0Gi gpu.process.type=mps container.id=B k8s.pod.uid=podB",
			},
		},
		"memory that is not known": {
			by:   Container,
			p:    nvmlproto.Processes{List: []nvmlproto.Process{compute(10, -1), compute(11, gib), compute(20, gib)}},
			want: []string{"memory.usage 1.0Gi gpu.process.type=compute container.id=B k8s.pod.uid=podB"},
		},
		"a process that has ended": {
			by:   Container,
			p:    nvmlproto.Processes{List: []nvmlproto.Process{compute(10, gib), compute(77, gib)}},
			want: []string{"memory.usage 1.0Gi gpu.process.type=compute container.id=A k8s.pod.uid=podA", "memory.usage 1.0Gi gpu.process.type=compute gpu.process.owner=unknown"},
		},
		"more than the limit": {
			by: Process, max: 1,
			p: nvmlproto.Processes{List: []nvmlproto.Process{compute(10, 4*gib), compute(11, 2*gib), compute(20, gib)}, Left: 5},
			want: []string{
				"memory.usage 4.0Gi process.pid=10 gpu.process.type=compute process.executable.name=python3 container.id=A k8s.pod.uid=podA",
				"memory.usage 3.0Gi gpu.process.type=compute gpu.process.owner=other",
			},
			refused: map[string]int{ReasonLimit: 7},
		},
		"refused": {
			by: Container,
			p: nvmlproto.Processes{
				List: []nvmlproto.Process{compute(0, gib), {PID: 10, Type: "new", Memory: gib}, {PID: 10, Type: "compute", GI: instance(-2)}, compute(20, gib)},
				Busy: []nvmlproto.Utilization{{PID: 20, SM: 101}},
			},
			want:    []string{"memory.usage 1.0Gi gpu.process.type=compute container.id=B k8s.pod.uid=podB"},
			refused: map[string]int{ReasonProcess: 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			refused := map[string]int{}
			table := h.table(Options{By: tc.by, Max: tc.max, Refused: func(reason string, n int) { refused[reason] += n }})
			assert.Equal(t, tc.want, lines(table, table.Resolve(on(&tc.p))[uuid]))
			if tc.refused == nil {
				tc.refused = map[string]int{}
			}
			assert.Equal(t, tc.refused, refused)
			assert.False(t, table.Foreign())
		})
	}
}

func TestInstances(t *testing.T) {
	h := newHost(t)
	h.process(10, 1, "python3", pod(podA, idA))
	table := h.table(Options{By: Container})
	rows := table.Resolve(on(&nvmlproto.Processes{List: []nvmlproto.Process{
		{PID: 10, Type: "compute", Memory: gib, GI: instance(5)}, {PID: 10, Type: "compute", Memory: 2 * gib, GI: instance(6)},
	}}))
	assert.Len(t, rows, 2)
	assert.EqualValues(t, gib, rows[uuid+"/5"][0].Memory)
	assert.EqualValues(t, 2*gib, rows[uuid+"/6"][0].Memory)

	boards := on(&nvmlproto.Processes{List: []nvmlproto.Process{compute(10, gib)}})
	boards[0].Lost = true
	assert.Empty(t, table.Resolve(boards))
	assert.Empty(t, table.Resolve(on(nil)), "not asked for")
}

// A number that is used again is another process.
func TestNumbersAreUsedAgain(t *testing.T) {
	h := newHost(t)
	table := h.table(Options{By: Process})
	resolve := func() Row {
		return table.Resolve(on(&nvmlproto.Processes{List: []nvmlproto.Process{compute(10, gib)}}))[uuid][0]
	}
	h.process(10, 1, "first", pod(podA, idA))
	assert.Equal(t, "first", resolve().Name)
	h.process(10, 1, "renamed", pod(podB, idB))
	assert.Equal(t, "first", resolve().Name, "a process is read once")
	h.process(10, 2, "second", pod(podB, idB))
	assert.Equal(t, "second", resolve().Name)
	assert.Equal(t, Owner{Owner: cgroupowner.Owner{ContainerID: idB, PodUID: podB}}, resolve().Owner)
	require.NoError(t, os.Remove(filepath.Join(h.root, "proc/10/comm")))
	require.NoError(t, os.Symlink("/usr/bin/python3.12 (deleted)", filepath.Join(h.root, "proc/10/exe")))
	h.process(10, 3, "third", pod(podB, idB))
	assert.Equal(t, "python3.12", resolve().Name)
	assert.Len(t, table.proc.known, 1)
	table.Resolve(on(&nvmlproto.Processes{}))
	assert.Empty(t, table.proc.known)
}

// Without the host's PID namespace nothing is known of the driver's numbers.
func TestForeign(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace string
		pids      []int
		want      bool
	}{
		"none is there":                   {"", []int{100, 101}, true},
		"no process":                      {"", nil, false},
		"one has ended":                   {"pid:[4026531836]", []int{10, 100}, false},
		"the only one has ended":          {"pid:[4026531836]", []int{100}, false},
		"one is there by chance":          {"pid:[4026532000]", []int{10, 100}, true},
		"all are there, in a virtual one": {"pid:[4026532000]", []int{10}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.process(10, 1, "otelcol-gpu", pod(podA, idA))
			if tc.namespace != "" {
				require.NoError(t, os.MkdirAll(filepath.Join(h.root, "proc/self/ns"), 0o755))
				require.NoError(t, os.Symlink(tc.namespace, filepath.Join(h.root, "proc/self/ns/pid")))
			}
			table := h.table(Options{By: Container})
			var list []nvmlproto.Process
			for _, pid := range tc.pids {
				list = append(list, compute(pid, gib))
			}
			rows := table.Resolve(on(&nvmlproto.Processes{List: list}))[uuid]
			assert.Equal(t, tc.want, table.Foreign())
			for _, r := range rows {
				assert.True(t, !tc.want || r.Owner == Owner{Other: OwnerUnknown}, r)
			}
		})
	}
}

func TestHolders(t *testing.T) {
	h := newHost(t)
	h.process(10, 1, "python3", pod(podA, idA))
	h.process(11, 1, "python3", pod(podA, idA))
	h.process(20, 1, "vllm", pod(podB, idB))
	pods := &podnames.Registry{}
	table := h.table(Options{By: Process, Pods: pods})
	require.True(t, pods.Wanted())
	both := []nvmlproto.Process{compute(10, gib), compute(11, 2*gib), compute(20, -1)}
	busy := []nvmlproto.Utilization{{PID: 10, SM: 20}, {PID: 11, SM: 30}}
	holders := func(list []nvmlproto.Process) []Holder {
		return table.Holders(table.Resolve(on(&nvmlproto.Processes{List: list, Busy: busy}))[uuid])
	}
	assert.Empty(t, holders(both), "no pod's name is known")
	pods.Publish([]podnames.Pod{{UID: podA, Namespace: "team", Name: "llm-0", Containers: map[string]string{idA: "server"}}})
	named := Holder{Namespace: "team", Pod: "llm-0", Container: "server", PodUID: podA, Memory: 3 * gib, HasMemory: true, Utilization: 0.5, HasUtilization: true}
	assert.Equal(t, []Holder{named}, holders(both))
	pods.Publish([]podnames.Pod{
		{UID: podA, Namespace: "team", Name: "llm-0", Containers: map[string]string{idA: "server"}},
		{UID: podB, Namespace: "other", Name: "llm-1", Containers: map[string]string{idB: "main"}},
	})
	assert.Equal(t, []Holder{{Namespace: "other", Pod: "llm-1", Container: "main", PodUID: podB}, named}, holders(both))
	assert.Empty(t, holders(both[:2]), "one container has the device alone")
}

func TestDue(t *testing.T) {
	now := time.Unix(1000, 0)
	table := New(Options{By: Container, Pods: &podnames.Registry{}})
	assert.True(t, table.Due(now))
	assert.False(t, table.Due(now.Add(Every-time.Second)))
	now = now.Add(Every - time.Millisecond)
	assert.True(t, table.Due(now), "a scrape of an interval of 5s, 1 ms early after a late one")
	assert.True(t, table.Due(now.Add(Every)))
	assert.True(t, table.Due(now), "the clock was set back")
	assert.False(t, New(Options{By: Off}).Due(now))
}
