// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package day

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

// lookEvery is how often the truth is looked at.
const lookEvery = 25 * time.Millisecond

// adminClaim is the claim that asks for adminAccess: it lets its pod look at
// devices and holds none.
const adminClaim = namespace + "/admin"

// watch keeps the ledger until the test ends.
func (w *world) watch() {
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			w.look()
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	})
	w.t.Cleanup(func() { close(stop); done.Wait() })
}

func (w *world) look() {
	w.looking.Lock()
	defer w.looking.Unlock()
	before := time.Now()
	all := map[string]ownership.State{}
	for _, n := range w.nodes {
		n.states(w.ledger, all)
	}
	w.ledger.Observe(before, time.Now(), all)
}

// states adds what is true of the node's devices now.
func (n *member) states(ledger *ownership.Ledger, to map[string]ownership.State) {
	devices, truth, replicas := n.Devices(), n.Truth(), int(n.replicas.Load())
	for _, d := range devices {
		of := func(id string, share float64) ownership.State {
			return ownership.State{Node: n.Name(), Owners: ownersOf(truth.Owners[id]), Share: share}
		}
		if d.MIG != nil {
			to[d.GPU.UUID] = ownership.State{Node: n.Name(), Divided: true}
			ledger.Alias(n.Name()+"/"+d.MIG.UUID, d.HWID)
		}
		if replicas == 1 {
			to[d.HWID] = of(d.HWID, 1)
			continue
		}
		to[d.HWID] = ownership.State{Node: n.Name(), Divided: true}
		for i := range replicas {
			id := kubelet.ReplicaID(d.HWID, i)
			to[id] = of(id, 1/float64(replicas))
		}
	}
}

func ownersOf(list []kubelet.Owner) (out []ownership.Owner) {
	for _, h := range list {
		if h.Claim != adminClaim {
			out = append(out, ownership.Owner{Namespace: h.Pod.Namespace, Pod: h.Pod.Name, Container: h.Container, UID: h.Pod.UID})
		}
	}
	slices.SortFunc(out, func(a, b ownership.Owner) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

// readings are what the physical devices do. A GPU in MIG mode has the memory of
// its instances and no utilization.
func readings(devices []gpusim.DeviceTruth) map[string]ownership.Reading {
	utilization, memory, power := ownership.Reading{}, ownership.Reading{}, ownership.Reading{}
	for _, d := range devices {
		if d.MIG == "" {
			utilization[d.UUID] = d.Utilization
		}
		memory[d.UUID] += float64(d.MemoryUsedMiB) * (1 << 20)
		power[d.UUID] = d.PowerWatts
	}
	return map[string]ownership.Reading{names.GPUUtilization.Name: utilization, names.GPUMemoryUsage.Name: memory, names.HwPower.Name: power}
}
