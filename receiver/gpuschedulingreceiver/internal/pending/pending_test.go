// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
)

func isDevice(t testing.TB) func(string) bool {
	m, err := resourcenames.New(resourcenames.Default())
	require.NoError(t, err)
	return m.Match
}

func TestMessages(t *testing.T) {
	const unschedulable = "Unschedulable"
	for _, tt := range []struct {
		reason, message string
		want            Reason
	}{
		{"", "", NotTried},
		{"SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates", Gated},
		{"SchedulerError", `running Bind plugin "DefaultBinder": etcdserver: request timed out`, SchedulerError},
		{unschedulable, "", Other},
		{unschedulable, "0/5 nodes are available: 5 node(s) had a mood.", Other},
		{"Undetermined", "", Other},

		// One control plane with a taint, two nodes without a free GPU.
		{unschedulable, "0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 2 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.", InsufficientGPU},
		// The same from a scheduler that does not name taints.
		{unschedulable, "0/7 nodes are available: 1 Insufficient nvidia.com/gpu, 3 node(s) had untolerated taint(s), 3 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: 0/7 nodes are available: 7 Preemption is not helpful for scheduling.", InsufficientGPU},
		{unschedulable, "0/4 nodes are available: 4 Insufficient amd.com/gpu.", InsufficientGPU},
		{unschedulable, "0/4 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 2 Insufficient nvidia.com/mig-1g.10gb.", InsufficientGPU},
		{unschedulable, "0/4 nodes are available: 4 Insufficient nvidia.com/gpus.", Other},
		{unschedulable, "0/4 nodes are available: 2 Insufficient memory, 2 Insufficient cpu. preemption: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu.", InsufficientCPU},
		{unschedulable, "0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient memory.", InsufficientMemory},
		{unschedulable, "0/4 nodes are available: 4 Insufficient ephemeral-storage.", Other},
		{unschedulable, "0/2 nodes are available: 2 node(s) were unschedulable.", Taint},
		{unschedulable, "0/2 nodes are available: 2 node(s) had taint {gpu: }, that the pod didn't tolerate.", Taint},
		{unschedulable, "0/9 nodes are available: 4 node(s) didn't match Pod's node affinity/selector, 5 node(s) had untolerated taint(s).", Affinity},
		{unschedulable, "0/9 nodes are available: 9 node(s) didn't match pod topology spread constraints.", Affinity},
		{unschedulable, "0/9 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 8 node(s) had volume node affinity conflict.", Volume},
		{unschedulable, `0/9 nodes are available: persistentvolumeclaim "weights" not found.`, Volume},
		{unschedulable, "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.", Claim},
		{unschedulable, `waiting for dynamic resource controller to create the resourceclaim "train-0-gpu"`, Claim},

		// Volcano and KAI.
		{unschedulable, "all nodes are unavailable: 1 plugin InterPodAffinity predicates failed node(s) didn't match pod affinity rules, 3 Insufficient nvidia.com/gpu.", InsufficientGPU},
		{unschedulable, "3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 3 Undetermined", Other},
		{unschedulable, "no nodes with enough resources were found: 7 node(s) didn't have enough resources: GPUs.", InsufficientGPU},
		{unschedulable, "no nodes with enough resources were found: 7 node(s) didn't have enough resources: CPU cores.", InsufficientCPU},
		{unschedulable, "no nodes with enough resources were found: 1 node(s) had untolerated taint {a: b}. 2 node(s) didn't have enough resources: GPU memory.", InsufficientGPU},
	} {
		assert.Equal(t, tt.want, Of(tt.reason, tt.message, isDevice(t)), "%s: %s", tt.reason, tt.message)
	}
}

func FuzzOf(f *testing.F) {
	f.Add("Unschedulable", "0/3 nodes are available: 1 node(s) had untolerated taint {a: }, 2 Insufficient nvidia.com/gpu. preemption: none")
	f.Add("Unschedulable", "didn't have enough resources: GPUs")
	f.Add("SchedulingGated", "")
	device := isDevice(f)
	f.Fuzz(func(t *testing.T, reason, message string) {
		got := Of(reason, message, device)
		if !slices.Contains(Reasons(), got) {
			t.Fatalf("%q is in no list", got)
		}
		// Nothing after preemption: decides, and a device that is short always does.
		if before, _, _ := strings.Cut(message, "preemption:"); before != "" {
			if again := Of(reason, before, device); again != got {
				t.Fatalf("%q without what follows preemption: %q", got, again)
			}
			if reason == "Unschedulable" {
				if with := Of(reason, "1 Insufficient nvidia.com/gpu, "+before, device); with != InsufficientGPU {
					t.Fatalf("%q, and a device is short", with)
				}
			}
		}
	})
}
