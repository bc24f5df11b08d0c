// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func pod(namespace, name, container string) Owner {
	return Owner{Namespace: namespace, Pod: name, Container: container}
}

var train = Job{Cluster: "hpc", ID: "4711", User: "ada", Account: "physics", Partition: "gpu", Namespace: "physics", Service: "ada/train"}

func TestAttributes(t *testing.T) {
	for _, o := range []Owner{{}, pod("ml", "chat-0", ""), pod("ml", "chat-0", "main"), OfJob(train), OfJob(Job{ID: "7"})} {
		attrs := pcommon.NewMap()
		attrs.PutStr(names.HwID, "GPU-a")
		o.Put(attrs)
		require.Equal(t, o, Of(attrs))
		require.Equal(t, o.IsZero(), attrs.Len() == 1, "what is empty is not written")
		require.Equal(t, o, o.Clone())
	}
	attrs := pcommon.NewMap()
	attrs.PutInt(names.K8sPodName, 7)
	require.Equal(t, Owner{}, Of(attrs), "a name is a string")
}

func TestOwner(t *testing.T) {
	main, sidecar := Owner{Namespace: "ml", Pod: "chat-0", Container: "main"}, Owner{Namespace: "ml", Pod: "chat-0", Container: "sidecar"}
	require.True(t, main.SamePod(sidecar))
	require.False(t, main.SamePod(Owner{Namespace: "web", Pod: "chat-0", Container: "main"}))
	require.Equal(t, main.Whole(), sidecar.Whole())
	require.Equal(t, "ml/chat-0/main", main.String())
	require.Equal(t, "ml/chat-0", main.Whole().String())
	require.Empty(t, Owner{}.String())

	for _, o := range []Owner{{}, main, main.Whole()} {
		require.True(t, o.Valid(), o)
	}
	for _, o := range []Owner{pod("", "chat-0", ""), pod("ml", "", ""), pod("ml", "", "main"), pod("", "", "main")} {
		require.False(t, o.Valid(), o)
	}

	ordered := []Owner{{}, pod("a", "z", ""), pod("b", "a", "c"), pod("b", "a", "d"), pod("b", "b", "")}
	shuffled := []Owner{ordered[3], ordered[4], ordered[0], ordered[2], ordered[1]}
	slices.SortFunc(shuffled, Owner.Compare)
	require.Equal(t, ordered, shuffled)
}

// A job that is decided to be of a service is another owner than before, and the same job.
func TestJobs(t *testing.T) {
	undecided := train
	undecided.Namespace, undecided.Service = "", ""
	other := train
	other.Cluster = "hpc2"
	a, b, c := OfJob(train), OfJob(undecided), OfJob(other)
	require.NotEqual(t, a, b)
	require.True(t, a.SamePod(b) && a.Is(b))
	require.False(t, a.Is(c))
	require.False(t, a.SamePod(c))
	require.False(t, a.SamePod(Owner{}))
	require.Equal(t, a, a.Whole())
	require.True(t, a.IsJob() && a.Valid() && !a.IsZero())
	require.False(t, Owner{}.IsJob() || pod("ml", "chat-0", "").IsJob())
	require.Equal(t, train, a.TheJob())
	require.Equal(t, Job{}, Owner{}.TheJob())
	require.Equal(t, Owner{}, OfJob(Job{Cluster: "hpc"}), "a job has an id")
	require.Equal(t, "job 4711", a.String())
	require.Negative(t, b.Compare(a))
	require.Zero(t, a.Compare(OfJob(train)))

	// slurmd in a pod: both, and the service is the pod's.
	nested := pod("slurm", "slurmd-0", "slurmd")
	nested.Job = a.Job
	attrs := pcommon.NewMap()
	nested.Put(attrs)
	require.False(t, has(attrs, names.ServiceName))
	attrs.PutStr(names.ServiceName, "slurmd")
	require.Empty(t, Of(attrs).TheJob().Service)
	require.Equal(t, "slurm/slurmd-0/slurmd job 4711", nested.String())
	require.True(t, nested.SamePod(pod("slurm", "slurmd-0", "slurmd")), "with and without the job")
	require.False(t, nested.Is(pod("slurm", "slurmd-0", "slurmd")))

	// A service that is there stays.
	attrs = pcommon.NewMap()
	attrs.PutStr(names.ServiceName, "app")
	a.Put(attrs)
	require.Equal(t, "app", Of(attrs).TheJob().Service)
	require.False(t, has(attrs, names.ServiceNamespace))
}

func has(attrs pcommon.Map, key string) bool {
	_, ok := attrs.Get(key)
	return ok
}
