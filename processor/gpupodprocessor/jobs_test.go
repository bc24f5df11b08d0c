// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
)

// jobs is what slurm_allocation reports of node n1: each line has a job (ID or ID:SERVICE, or - for
// free), a share and the point's attributes.
func jobs(seconds int, lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		f := strings.Fields(line)
		b.WriteString("resource k8s.node.name=n1")
		if id, service, decided := strings.Cut(f[0], ":"); id != "-" {
			fmt.Fprintf(&b, " slurm.cluster.name=hpc slurm.job.id=%s slurm.job.user=ada slurm.job.account=physics slurm.partition=gpu", id)
			if decided {
				fmt.Fprintf(&b, " service.namespace=physics service.name=%s", service)
			}
		}
		fmt.Fprintf(&b, "\nmetric gpu.allocation sum 1\n%s @%d gpu.attribution.source=slurm_job_map %s\n", f[1], seconds, strings.Join(f[2:], " "))
	}
	return b.String()
}

func slurm(order SlurmIndexOrder, cluster string) func(*Config) {
	return func(c *Config) { c.SlurmIndexOrder, c.SlurmClusterName = order, cluster }
}

// Who owns a device on a node with Slurm, beside the kubelet and the exporter's labels.
func TestOwnerFromJobs(t *testing.T) {
	const a = "hw.id=GPU-a "
	const n1 = "k8s.node.name=n1 "
	for _, tt := range []struct {
		name   string
		change []func(*Config)
		in     string // before telemetry of GPU-a
		id     string
		attrs  string
		also   string
		want   string
		source identity.Source
	}{
		{name: "a job", in: jobs(10, "7 1 "+a), want: "job 7", source: identity.SourceSlurm},
		{name: "free by the kubelet, owned by a job", in: snapshot(10, "- 0 "+a) + jobs(10, "7 1 "+a), want: "job 7", source: identity.SourceSlurm},
		{name: "free by Slurm, owned by a pod", in: snapshot(10, "ml/p/main 1 "+a) + jobs(10, "- 0 "+a), want: "ml/p/main", source: identity.SourcePodResources},
		{name: "free by both", in: snapshot(10, "- 0 "+a) + jobs(10, "- 0 "+a), source: identity.SourceFree},
		{name: "a pod and a job", in: snapshot(10, "ml/p/main 1 "+a) + jobs(10, "7 1 "+a), source: identity.SourceContested},
		{name: "a job within a pod", in: snapshot(10, "ml/p/main 1 "+a) + jobs(10, "7 1 gpu.allocation.nested=true "+a), want: "ml/p/main job 7", source: identity.SourcePodResources},
		{name: "slurmd's pod without a job", in: snapshot(10, "ml/p/main 1 "+a) + jobs(10, "- 0 gpu.allocation.nested=true "+a), want: "ml/p/main", source: identity.SourcePodResources},
		{name: "two jobs", in: jobs(10, "7 1 "+a, "8 1 "+a), source: identity.SourceContested},
		{name: "shards", in: jobs(10, "7 0.5 gpu.sharing=slurm_shared "+a, "8 0.5 gpu.sharing=slurm_shared "+a), source: identity.SourceShared},
		{name: "shards within a pod", in: snapshot(10, "ml/p/main 1 "+a) + jobs(10, "7 0.5 gpu.allocation.nested=true gpu.sharing=slurm_shared "+a, "8 0.5 gpu.allocation.nested=true gpu.sharing=slurm_shared "+a),
			want: "ml/p/main", source: identity.SourcePodResources},
		{name: "the only job on a sharded device", in: jobs(10, "7 1 gpu.sharing=slurm_shared "+a), want: "job 7", source: identity.SourceSlurm},

		{name: "an index of unknown order", in: jobs(10, "7 1 hw.id=n1/slurm/3"), attrs: n1 + "gpu.index=3", source: identity.SourceUnresolved},
		{name: "an index in PCI order", change: []func(*Config){slurm(SlurmIndexPCI, "")}, in: jobs(10, "7 1 hw.id=n1/slurm/3"), attrs: n1 + "gpu.index=3 gpu.minor=5", want: "job 7", source: identity.SourceSlurm},
		{name: "an index that is a minor", change: []func(*Config){slurm(SlurmIndexMinor, "")}, in: jobs(10, "7 1 hw.id=n1/slurm/5"), attrs: n1 + "gpu.index=3 gpu.minor=5", want: "job 7", source: identity.SourceSlurm},
		{name: "a minor that is not known", change: []func(*Config){slurm(SlurmIndexMinor, "")}, in: jobs(10, "7 1 hw.id=n1/slurm/3"), attrs: n1 + "gpu.index=3", source: identity.SourceUnresolved},
		{name: "an index where there are MIG instances", change: []func(*Config){slurm(SlurmIndexPCI, "")}, in: jobs(10, "7 1 hw.id=n1/slurm/3"), attrs: n1 + "gpu.index=3",
			also: telemetry(10, "GPU-b/1", n1+"hw.parent=GPU-b"), source: identity.SourceUnresolved},
		{name: "an index, and the exporter names the job", in: jobs(10, "7 1 hw.id=n1/slurm/3"), attrs: n1 + "hpc_job=7", want: "job 7", source: identity.SourceSlurm},
		{name: "two indices, and the exporter names the job on both", in: jobs(10, "7 1 hw.id=n1/slurm/3", "7 1 hw.id=n1/slurm/4"), attrs: n1 + "hpc_job=7",
			also: telemetry(10, "GPU-b", n1+"hpc_job=7"), want: "job 7", source: identity.SourceSlurm},
		{name: "the exporter names the job on more devices than it has", in: jobs(10, "7 1 hw.id=n1/slurm/3"), attrs: n1 + "hpc_job=7",
			also: telemetry(10, "GPU-b", n1+"hpc_job=7"), source: identity.SourceUnresolved},
		{name: "the exporter names a job on a device of another job", in: jobs(10, "7 1 hw.id=n1/slurm/3", "8 1 "+a), attrs: n1 + "hpc_job=7", want: "job 8", source: identity.SourceSlurm},
		{name: "MIG by its own id", id: "GPU-a/3", in: jobs(10, "7 1 hw.id=n1/"+mig), attrs: n1 + "hw.parent=GPU-a gpu.mig.uuid=" + mig, want: "job 7", source: identity.SourceSlurm},
		{name: "MIG by the job", id: "GPU-a/3", in: jobs(10, "7 1 hw.id=n1/"+mig), attrs: n1 + "hw.parent=GPU-a hpc_job=7", want: "job 7", source: identity.SourceSlurm},

		{name: "the exporter alone names a job", attrs: "hpc_job=7", source: identity.SourceNone},
		{name: "the exporter alone, of a cluster", change: []func(*Config){slurm("", "hpc")}, attrs: "hpc_job=7", want: "job 7", source: identity.SourceLabels},
		{name: "the exporter names a batch job of something else", change: []func(*Config){slurm("", "hpc")}, attrs: "hpc_job=7.pbs", source: identity.SourceNone},
		{name: "AMD's exporter names a job", change: []func(*Config){slurm("", "hpc")}, id: "GPU-0123456789abcdef", attrs: "job_id=7", want: "job 7", source: identity.SourceLabels},
		{name: "a job_id of something else", change: []func(*Config){slurm("", "hpc")}, attrs: "job_id=7", source: identity.SourceNone},
		{name: "a pod and a job of the exporter", change: []func(*Config){slurm("", "hpc")}, attrs: "namespace=ml pod=p hpc_job=7", want: "ml/p", source: identity.SourceLabels},
		{name: "free by the kubelet, a job by the exporter", change: []func(*Config){slurm("", "hpc")}, in: snapshot(10, "- 0 "+a), attrs: n1 + "hpc_job=7", want: "job 7", source: identity.SourceLabels},
		{name: "owned by a pod, a job by the exporter", change: []func(*Config){slurm("", "hpc")}, in: snapshot(10, "ml/p/main 1 "+a), attrs: n1 + "hpc_job=7", want: "ml/p/main", source: identity.SourcePodResources},
		{name: "a job of the exporter that Slurm's snapshot does not have", change: []func(*Config){slurm("", "hpc")}, in: jobs(10, "8 1 hw.id=GPU-b"), attrs: n1 + "hpc_job=7", source: identity.SourceNone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id := tt.id
			if id == "" {
				id = "GPU-a"
			}
			samples := telemetry(10, id, tt.attrs) + tt.also
			for order, in := range map[string]string{"allocation first": tt.in + samples, "telemetry first": samples + tt.in} {
				b := start(t, append(tt.change, noService)...)
				require.Equal(t, tt.want, ownersIn(b, in)[id], order)
				require.NotZero(t, b.p.pipeline.Tracker.Devices()[tt.source], order)
			}
			if id == "GPU-a" && strings.Contains(tt.attrs, "hpc_job") {
				// The same on a page that another program scraped.
				page := "resource " + n1 + "\nmetric m gauge 1\n1 @10 UUID=GPU-a " + strings.ReplaceAll(tt.attrs, n1, "")
				require.Equal(t, tt.want, ownersIn(start(t, append(tt.change, noService)...), tt.in+page+"\n"+tt.also)[id], "scraped")
			}
		})
	}
}

// Each job has the device under its own series, and what is decided of a job later makes others.
func TestJobsFollowEachOther(t *testing.T) {
	b := start(t)
	const ada = " slurm.cluster.name=hpc slurm.job.user=ada slurm.job.account=physics slurm.partition=gpu"
	const seven, eight = ada + " slurm.job.id=7", ada + " slurm.job.id=8"
	const train = " service.namespace=physics service.name=ada/train"
	b.feed(parse(jobs(10, "7 1 hw.id=GPU-a")))
	b.expect(telemetry(11, "GPU-a", ""), telemetry(11, "GPU-a", seven))
	b.feed(parse(jobs(20, "7:ada/train 1 hw.id=GPU-a")))
	end := func(at int, attrs string) string {
		return fmt.Sprintf("resource hw.id=GPU-a %s\nmetric hw.power gauge W\nstale @%d hw.id=GPU-a\n", attrs, at)
	}
	b.expect(telemetry(21, "GPU-a", ""), telemetry(21, "GPU-a", seven+train)+end(21, seven))
	b.feed(parse(jobs(30, "8:ada/train 1 hw.id=GPU-a")))
	b.expect(telemetry(31, "GPU-a", ""), telemetry(31, "GPU-a", eight+train)+end(31, seven+train))
	b.feed(parse("resource k8s.node.name=n1\nmetric gpu.allocation sum 1\nstale @40 gpu.attribution.source=slurm_job_map\n"))
	require.Equal(t, "job 8", b.p.pipeline.Join.Memory.Lookup("GPU-a", time.Now()).Owner.String(), "its parts may still arrive")
}

// The two managers of a node have snapshots of their own, of times of their own.
func TestManagersAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, noService)
		who := func(at int) map[string]string {
			return ownersIn(b, telemetry(at, "GPU-a", "")+telemetry(at, "GPU-b", ""))
		}
		b.feed(parse(snapshot(10, "ml/p/main 1 hw.id=GPU-a", "- 0 hw.id=GPU-b")))
		b.feed(parse(jobs(5, "7 1 hw.id=GPU-b")))
		require.Equal(t, map[string]string{"GPU-a": "ml/p/main", "GPU-b": "job 7"}, who(11))
		for at := 20; at <= 60; at += 10 {
			time.Sleep(10 * time.Second)
			b.feed(parse(snapshot(at, "ml/p/main 1 hw.id=GPU-a", "- 0 hw.id=GPU-b")))
		}
		// Slurm is silent: whether a job has what the kubelet has free is not known.
		require.Equal(t, map[string]string{"GPU-a": "ml/p/main", "GPU-b": ""}, who(61))
		require.Equal(t, 1, b.p.pipeline.Tracker.Devices()[identity.SourceExpired])
		b.feed(parse(jobs(62, "7 1 hw.id=GPU-b")))
		time.Sleep(50 * time.Second)
		b.feed(parse(jobs(110, "7 1 hw.id=GPU-b")))
		require.Equal(t, map[string]string{"GPU-a": "", "GPU-b": "job 7"}, who(111), "the kubelet is silent")
	})
}

// What a second gpu_pod gets names the owner: it changes nothing, and neither does the one that
// only ends series.
func TestJobsPassASecondProcessor(t *testing.T) {
	first, second, ends := start(t, noService), start(t, noService), start(t, func(c *Config) { c.OnlyEndSeries = true })
	for i, id := range []string{"7", "7:ada/train", "8", "8:ada/x"} {
		at := 10 * (i + 1)
		out := first.feed(parse(jobs(at, id+" 1 hw.id=GPU-a") + telemetry(at, "GPU-a", "")))
		want := format(out)
		again := second.feed(overOTLP(t, out))
		require.Equal(t, want, format(again))
		require.Equal(t, want, format(ends.feed(overOTLP(t, again))))
	}
}

// The device's logs get the job, also those of before its service was known, and keep a service
// that they have.
func TestLogsOfJobs(t *testing.T) {
	b := start(t)
	b.feed(parse(jobs(10, "7 1 hw.id=GPU-a")))
	b.feed(parse(jobs(20, "7:ada/train 1 hw.id=GPU-a")))
	f := b.p.pipeline.Join.Memory.Lookup("GPU-a", time.Now())
	require.EqualValues(t, 10e9, f.Since)
	require.Equal(t, "ada/train", f.Owner.TheJob().Service)
}
