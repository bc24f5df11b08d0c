// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
)

// An event of a device names the job that owned it, and the pod that the job was within.
func TestEventsNameTheJob(t *testing.T) {
	job := owner.OfJob(owner.Job{Cluster: "hpc", ID: "4711", User: "ada", Account: "physics", Partition: "gpu", Namespace: "physics", Service: "ada/train"})
	nested := owner.Owner{Namespace: "slurm", Pod: "slurmd-0", Container: "slurmd", Job: job.Job}
	for name, tt := range map[string]struct {
		owner owner.Owner
		body  string
		attrs map[string]string
	}{
		"a job": {job, "It was owned by job 4711 of ada (ada/train) when this was raised.", map[string]string{
			names.SlurmClusterName: "hpc", names.SlurmJobID: "4711", names.SlurmJobUser: "ada", names.SlurmJobAccount: "physics",
			names.SlurmPartition: "gpu", names.ServiceNamespace: "physics", names.ServiceName: "ada/train",
		}},
		"a job without a user": {owner.OfJob(owner.Job{ID: "7"}), "It was owned by job 7 when this was raised.", map[string]string{names.SlurmJobID: "7"}},
		"a job within a pod": {nested, "It was owned by job 4711 of ada in pod slurmd-0 in namespace slurm when this was raised.", map[string]string{
			names.SlurmJobID: "4711", names.K8sPodName: "slurmd-0", names.K8sNamespaceName: "slurm", names.ServiceName: "",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, deviceSet)
				page := func(code float64) pmetric.Metrics {
					md := last(code)(time.Now())
					for _, rm := range md.ResourceMetrics().All() {
						attrs := rm.Resource().Attributes()
						if _, device := attrs.Get(names.HwID); !device {
							continue
						}
						for _, key := range []string{names.K8sNamespaceName, names.K8sPodName, names.K8sContainerName, names.ServiceName} {
							attrs.Remove(key)
						}
						tt.owner.Put(attrs)
					}
					return md
				}
				var all []occurred
				for _, code := range []float64{0, 79, 79} {
					all = append(all, b.feed(page(code))...)
					all = append(all, b.wait(interval)...)
				}
				require.Len(t, all, 1)
				require.Contains(t, all[0].body, tt.body)
				for key, want := range tt.attrs {
					got, _ := all[0].attrs[key].(string)
					require.Equal(t, want, got, key)
				}
			})
		})
	}
}

// A service on Slurm is another one than that of the same name on Kubernetes, across a restart too.
func TestServicesOnSlurm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		train := subject.Service{Slurm: "hpc", Namespace: "physics", Name: "ada/train"}
		same := subject.Service{Namespace: "physics", Name: "ada/train"}
		d := newDisk()
		b := d.boot(t)
		events := b.feed(batch(evaluated{service: train, at: 10, partial: 1, missing: []string{"a"}}, evaluated{service: same, at: 10}))
		require.Equal(t, []string{"raised"}, states(events))
		require.Equal(t, "gpu.service.partial//physics/ada%2Ftrain/hpc", events[0].attrs["gpu.event.key"])
		require.Equal(t, map[string]any{"slurm.cluster.name": "hpc", "service.namespace": "physics", "service.name": "ada/train"}, events[0].resource)
		require.Contains(t, events[0].body, "Service ada/train of account physics on Slurm's cluster hpc is partial")
		b.stop()
		again := d.boot(t)
		defer again.stop()
		require.Empty(t, again.feed(batch(evaluated{service: same, at: 90})))
		require.Equal(t, []string{"cleared"}, states(again.feed(batch(evaluated{service: train, at: 90}))))
	})
}

// A unit of a service on Slurm that is missing is a job on a node.
func TestMissingJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		md := batch(evaluated{service: subject.Service{Slurm: "hpc", Namespace: "physics", Name: "ada/train"}, at: 10, partial: 1, missing: []string{"4711"}})
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				if m.Name() != names.PodState.Name {
					continue
				}
				for _, p := range m.Sum().DataPoints().All() {
					id, _ := p.Attributes().Get(names.K8sPodName)
					p.Attributes().PutStr(names.SlurmJobID, id.Str())
					p.Attributes().PutStr(names.K8sNodeName, "n1")
					p.Attributes().Remove(names.K8sPodName)
				}
			}
		}
		events := b.feed(md)
		require.Len(t, events, 1)
		require.Equal(t, []any{"job 4711 on n1"}, events[0].attrs[names.GPUServiceMissingPods])
		require.Contains(t, events[0].body, "settled jobs")
		require.NotContains(t, events[0].body, "pod")
	})
}
