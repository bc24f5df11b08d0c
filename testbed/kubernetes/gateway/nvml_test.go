// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/node"
	nvmllab "github.com/otelcol-gpu/otelcol-gpu/testbed/nvml"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

// instances: the kubelet has MIG-<uuid> of what a node's device plugin hands out. With the
// nvml receiver in the agent these are devices, and no owner is unknown that is known
// without it. The receiver's helper is that of bin, and the driver's library a fake one.
func (w *world) instances(t *testing.T, agents string) {
	w.t = t
	simulated, err := node.Start(t.Context(), w.Cluster, node.Options{
		Name: "mig", Labels: map[string]string{vendorLabel: "dcgm"}, Model: "H100", GPUs: 2, MIG: map[int][]string{0: {"3g.40gb", "1g.10gb", "1g.10gb"}},
	})
	require.NoError(t, err)
	t.Cleanup(simulated.Stop)
	n := &member{Node: simulated}
	require.FileExists(t, filepath.Join(filepath.Dir(w.binary), "otelcol-gpu-nvml"), "run make build")
	lab := nvmllab.Start(t, nvmllab.Options{Driver: "575", Fleet: n.Fleet(), Node: n.Name()})
	lab.Run()
	w.deploy(request{"note", "nvidia.com/mig-3g.40gb", "note", 1, 1}, request{"note-small", "nvidia.com/mig-1g.10gb", "note", 1, 1})
	w.eventually("the kubelet has given the instances away", func(context.Context) error {
		if held := n.Truth().Owners; len(held) != 2 {
			return fmt.Errorf("%d are held", len(held))
		}
		return nil
	})

	nvml := []string{"nvml.yaml", text(t, m{"receivers": m{"nvml": m{"collection_interval": "5s"}}})} // the least with lists of processes
	env := []string{"NVML_LIBRARY=" + lab.Library, "NVML_ROOT=" + lab.Root, "NVML_RELEASE_FILE=" + filepath.Join(t.TempDir(), "release")}
	var without ownership.Verdict
	for _, agent := range []struct {
		name     string
		resolved bool
		over     []string
		env      []string
	}{
		{"dcgm", false, nil, nil},
		{"dcgm and nvml", true, nvml, env},
		{"nvml", true, nvml, append(env[:len(env):len(env)], "GPU_RECEIVERS=nvml",
			"NVML_GROUPS=utilization, memory, power, temperature, clocks, throttle, profiling, io, errors, xid, inventory, processes")},
	} {
		t.Run(agent.name, func(t *testing.T) {
			w.t = t
			from := w.out.Len()
			w.startAgent(n, agents, agent.over, agent.env...)
			require.NoError(t, n.agent.WaitReady(t.Context()))
			w.allocated(n, from, agent.resolved)
			verdict := w.judgeInstances(n)
			t.Log(verdict)
			if !agent.resolved {
				without = verdict
			}
			assert.Zero(t, verdict.Wrong+verdict.Stale, "%v", verdict.Findings)
			assert.LessOrEqual(t, verdict.Unknown, without.Unknown, "%v", verdict.Findings)
		})
	}
	w.t = t
	from := w.out.Len()
	w.wait("the service is whole", from, func(s map[string]service) error { return s["note"].is(0, 2, 0) })
	w.eventually("the service has figures", func(context.Context) error {
		for _, p := range w.out.Since(from) {
			if p.Metric == names.ServiceMemoryUsage.Name && p.Service == "note" && p.Value > 0 {
				return nil
			}
		}
		return errors.New("not yet")
	})
}

// allocated waits until gpu.allocation has every instance that is held, and all else
// about it has its owner and service.
func (w *world) allocated(n *member, from int, resolved bool) {
	w.t.Helper()
	want, telemetry := map[string]string{}, map[string]string{}
	for _, d := range n.Devices() {
		owners := n.Truth().Owners[d.HWID]
		if len(owners) == 0 {
			continue
		}
		id := d.HWID
		if !resolved {
			id = n.Name() + "/" + d.MIG.UUID
		}
		want[id] = owners[0].Pod.Name + " " + strconv.FormatBool(resolved)
		telemetry[d.HWID] = owners[0].Pod.Name + " of note"
	}
	allocations, usage := map[string]string{}, map[string]string{}
	w.eventually("the instances have their owners", func(context.Context) error {
		points := w.out.Since(from)
		from += len(points)
		for _, p := range points {
			switch {
			case p.Node != n.Name() || p.Owner.Pod == "":
			case p.Ended:
				delete(allocations, p.Device) // before the layout was known it had another name
			case p.Metric == names.GPUAllocation.Name:
				allocations[p.Device] = p.Owner.Pod + " " + p.Attribute(names.GPUAllocationResolved)
			case p.Metric == names.GPUMemoryUsage.Name:
				usage[p.Device] = p.Owner.Pod + " of " + p.Service
			}
		}
		if !assert.ObjectsAreEqual(want, allocations) || !assert.ObjectsAreEqual(telemetry, usage) {
			return fmt.Errorf("allocated %v, want %v; memory of %v, want %v", allocations, want, usage, telemetry)
		}
		return nil
	})
}

// judgeInstances judges the points of two collections.
func (w *world) judgeInstances(n *member) ownership.Verdict {
	w.t.Helper()
	ledger, from, began := ownership.NewLedger(), w.out.Len(), time.Now()
	truth, states := n.Truth(), map[string]ownership.State{}
	for _, d := range n.Devices() {
		state := ownership.State{Node: n.Name(), Share: 1}
		for _, o := range truth.Owners[d.HWID] {
			state.Owners = append(state.Owners, ownership.Owner{Namespace: o.Pod.Namespace, Pod: o.Pod.Name, Container: o.Container, UID: o.Pod.UID})
		}
		states[d.HWID] = state
		if d.MIG != nil {
			states[d.GPU.UUID] = ownership.State{Node: n.Name(), Divided: true}
			ledger.Alias(n.Name()+"/"+d.MIG.UUID, d.HWID)
		}
	}
	ledger.Observe(began.Add(-time.Minute), began, states)

	next, times := from, map[time.Time]bool{}
	w.eventually("two collections", func(context.Context) error {
		points := w.out.Since(next)
		next += len(points)
		for _, p := range points {
			if p.Metric == names.GPUMemoryUsage.Name && p.Node == n.Name() && p.Time.After(began) {
				times[p.Time] = true
			}
		}
		if len(times) < 2 {
			return fmt.Errorf("%d", len(times))
		}
		return nil
	})
	var judged []ownership.Point
	for _, p := range w.out.Since(from) {
		if p.Node == n.Name() && p.Time.After(began) {
			judged = append(judged, p)
		}
	}
	return ownership.Judge(judged, ledger, ownership.Rules{Interval: time.Second + collection, Slack: collection})
}
