// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
)

// ofJob is what slurm_allocation reports of a device of a job, and what the device does.
type ofJob struct {
	job          owner.Job
	pod          string // slurmd runs in it
	node, device string
	value        float64 // utilization; below 0: the device is silent
}

// feed takes in, of each device, its allocation and its utilization.
func (w *world) feed(all ...ofJob) Tally {
	md := pmetric.NewMetrics()
	at := pcommon.NewTimestampFromTime(w.now)
	for _, is := range all {
		o := owner.OfJob(is.job)
		allocation := resource(md, o, is.node)
		p := names.GPUAllocation.Init(allocation).AppendEmpty()
		p.SetTimestamp(at)
		p.SetDoubleValue(1)
		if o.IsZero() {
			p.SetDoubleValue(0)
		}
		p.Attributes().PutStr(names.HwID, is.device)
		p.Attributes().PutBool(names.GPUAllocationResolved, true)
		if is.pod != "" {
			p.Attributes().PutBool(names.GPUAllocationNested, true)
			o.Namespace, o.Pod = "slurm", is.pod
		}
		if is.value < 0 {
			continue
		}
		p = names.GPUUtilization.Init(resource(md, o, is.node)).AppendEmpty()
		p.SetTimestamp(at)
		p.SetDoubleValue(is.value)
		p.Attributes().PutStr(names.HwID, is.device)
		p.Attributes().PutStr(names.HwGPUTask, "general")
	}
	md.MarkReadOnly()
	return w.s.Observe(md, w.now)
}

func resource(md pmetric.Metrics, o owner.Owner, node string) pmetric.Metric {
	rm := md.ResourceMetrics().AppendEmpty()
	attrs := rm.Resource().Attributes()
	attrs.PutStr(names.K8sNodeName, node)
	o.Put(attrs)
	if o.Pod != "" {
		attrs.PutStr(names.ServiceName, "slurmd")
	}
	return rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
}

// shown is the mean utilization of each service, and the state of each of its units.
func (w *world) shown() []string {
	e := w.s.Evaluate(w.now)
	var out []string
	for _, rm := range e.Metrics("v").ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				out = append(out, texts(m)...)
			}
		}
	}
	slices.Sort(out)
	return out
}

func texts(m pmetric.Metric) (out []string) {
	switch m.Name() {
	case names.ServiceUtilization.Name:
		for _, p := range m.Gauge().DataPoints().All() {
			if !p.Flags().NoRecordedValue() {
				out = append(out, fmt.Sprintf("%s %.2f", values(p.Attributes()), p.DoubleValue()))
			}
		}
	case names.PodState.Name:
		for _, p := range m.Sum().DataPoints().All() {
			if p.IntValue() == 1 {
				out = append(out, values(p.Attributes()))
			}
		}
	}
	return out
}

func values(attrs pcommon.Map) string {
	all := attrs.AsRaw()
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, fmt.Sprintf("%s=%v", key, all[key]))
	}
	return strings.Join(parts, " ")
}

const (
	ofTrain = "service.name=ada/train service.namespace=physics slurm.cluster.name=hpc"
	ofEval  = "service.name=ada/eval service.namespace=physics slurm.cluster.name=hpc"
)

func unitIs(state, node, id, service string) string {
	return fmt.Sprintf("gpu.pod.state=%s k8s.node.name=%s %s slurm.cluster.name=hpc slurm.job.id=%s", state, node, strings.TrimSuffix(service, " slurm.cluster.name=hpc"), id)
}

// Jobs of one name are one service, and each job is a unit on each of its nodes: one that falls
// silent is missing, one that ends is gone, and its device is the next job's.
func TestJobsAreServices(t *testing.T) {
	for name, source := range map[string]Source{"seen": Seen, "allocation": Allocation} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Expected = source })
			train := owner.Job{Cluster: "hpc", ID: "4711", User: "ada", Account: "physics", Partition: "gpu", Namespace: "physics", Service: "ada/train"}
			other, next := train, train
			other.ID = "4712"
			next.ID, next.Service = "4713", "ada/eval"
			run := func(d time.Duration, all ...ofJob) {
				for range int(d / (15 * time.Second)) {
					w.now = w.now.Add(15 * time.Second)
					require.False(t, func() bool { tally := w.feed(all...); return tally.Any() }())
					w.s.Evaluate(w.now)
				}
			}
			both := []ofJob{{train, "", "gpu-1", "GPU-a", 0.5}, {train, "", "gpu-2", "GPU-b", 0.7}, {other, "", "gpu-2", "GPU-c", 0.9}}
			run(5*time.Minute, both...)
			require.Equal(t, []string{
				unitIs("reporting", "gpu-1", "4711", ofTrain), unitIs("reporting", "gpu-2", "4711", ofTrain), unitIs("reporting", "gpu-2", "4712", ofTrain),
				ofTrain + " 0.70",
			}, w.shown())

			both[1].value = -1
			run(5*time.Minute, both...)
			require.Contains(t, w.shown(), unitIs("missing", "gpu-2", "4711", ofTrain))
			both[1].value = 0.7

			// The first job is over; another one has its device on gpu-1.
			run(11*time.Minute, ofJob{next, "", "gpu-1", "GPU-a", 0.1}, ofJob{owner.Job{}, "", "gpu-2", "GPU-b", 0}, both[2])
			require.Equal(t, []string{
				unitIs("reporting", "gpu-1", "4713", ofEval), unitIs("reporting", "gpu-2", "4712", ofTrain),
				ofEval + " 0.10", ofTrain + " 0.90",
			}, w.shown())
		})
	}
}

// A job of which the service is not decided yet is in no service, and no fault.
func TestJobWithoutService(t *testing.T) {
	for _, source := range []Source{Seen, Allocation, Kubernetes} {
		w := newWorld(t, func(c *Config) { c.Expected = source })
		undecided := owner.Job{Cluster: "hpc", ID: "4711", User: "ada", Account: "physics", Partition: "gpu"}
		tally := w.feed(ofJob{undecided, "", "gpu-1", "GPU-a", 0.5})
		require.False(t, tally.Any())
		pods, services := w.s.Tracked()
		require.Zero(t, pods+services)
	}
}

// Where slurmd runs in a pod, the pod is the unit, and what slurm_allocation reports of the
// job is not counted beside it.
func TestJobsWithinPods(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Expected = Seen })
	train := owner.Job{Cluster: "hpc", ID: "4711", User: "ada", Account: "physics", Partition: "gpu", Namespace: "physics", Service: "ada/train"}
	for range 20 {
		w.now = w.now.Add(15 * time.Second)
		w.feed(ofJob{train, "slurmd-0", "gpu-1", "GPU-a", 0.5})
		w.s.Evaluate(w.now)
	}
	require.Equal(t, []string{
		"gpu.pod.state=reporting k8s.namespace.name=slurm k8s.pod.name=slurmd-0 service.name=slurmd",
		"k8s.namespace.name=slurm service.name=slurmd 0.50",
	}, w.shown())
}

// Jobs that were seen before a start are known after it.
func TestJobsThatWereSeen(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Expected = Seen })
	train := owner.Job{Cluster: "hpc", ID: "4711", User: "ada", Account: "physics", Partition: "gpu", Namespace: "physics", Service: "ada/train"}
	w.feed(ofJob{train, "", "gpu-1", "GPU-a", 0.5})
	w.s.Evaluate(w.now)
	seen := w.s.Seen()
	cfg := defaults()
	cfg.Expected = Seen
	later := New(cfg, w.now.Add(time.Minute))
	require.Zero(t, later.Restore(seen))
	require.Equal(t, seen[0].Name, later.Seen()[0].Name)
	require.Equal(t, "job 4711 on gpu-1", readable(seen[0].Name))
}

// A cluster without accounting has no accounts.
func TestJobsWithoutAccount(t *testing.T) {
	for _, source := range []Source{Seen, Allocation} {
		w := newWorld(t, func(c *Config) { c.Expected = source })
		train := owner.Job{Cluster: "hpc", ID: "4711", User: "ada", Partition: "gpu", Service: "ada/train"}
		for range 20 {
			w.now = w.now.Add(15 * time.Second)
			tally := w.feed(ofJob{train, "", "gpu-1", "GPU-a", 0.5})
			require.False(t, tally.Any())
			w.s.Evaluate(w.now)
		}
		require.Equal(t, []string{
			"gpu.pod.state=reporting k8s.node.name=gpu-1 service.name=ada/train slurm.cluster.name=hpc slurm.job.id=4711",
			"service.name=ada/train slurm.cluster.name=hpc 0.50",
		}, w.shown())
	}
}
