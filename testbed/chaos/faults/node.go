// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/breakable"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
)

// exporterKinds are faults of an exporter: of its server, its pages, and what
// they report.
func exporterKinds() []*Kind {
	page := func(name string, mode breakable.PageMode, counts ...string) *Kind {
		k := &Kind{name: "exporter_" + name, silent: mode.Silent(), recovery: soon}
		switch {
		case len(counts) > 0:
			k.counts = counter{counts[0], counts[1:]}
		case k.silent:
			k.counts = counter{"otelcol_dcgm_receiver_scrapes", []string{"outcome", "!ok"}}
		}
		k.begin = func(_ *Scene, f *Fault) (func() error, error) {
			return func() error { return f.node.Exporter.Set(breakable.PageWell) }, f.node.Exporter.Set(mode)
		}
		return k
	}
	sim := func(name string, draw func(f *Fault) gpusim.Fault) *Kind {
		k := &Kind{name: name, recovery: soon}
		k.begin = func(_ *Scene, f *Fault) (func() error, error) {
			spec := draw(f)
			spec.Node = f.node.Name
			status, err := f.node.GPUs.StartFault(spec)
			return func() error { _, err := f.node.GPUs.EndFault(status.ID); return err }, err
		}
		return k
	}
	return []*Kind{
		page("down", breakable.PageDown), page("hang", breakable.PageHang), page("drip", breakable.PageDrip), page("slow", breakable.PageSlow),
		page("error", breakable.PageError), page("garbage", breakable.PageGarbage), page("html", breakable.PageHTML), page("cut", breakable.PageCut),
		page("huge", breakable.PageHuge), page("bomb", breakable.PageBomb), page("reset", breakable.PageReset), page("hostile", breakable.PageHostile),
		page("duplicates", breakable.PageDuplicates, "otelcol_dcgm_receiver_rows_refused"),
		// Two counts of one GPU's XIDs, with two starts.
		{name: "exporter_twice", harmless: true, recovery: soon, counts: counter{name: "otelcol_gpu_pod_points_duplicate"}, begin: func(_ *Scene, f *Fault) (func() error, error) {
			return f.node.SecondExporter()
		}},
		sim("exporter_frozen", func(*Fault) gpusim.Fault { return gpusim.Fault{Kind: gpusim.ExporterFrozen} }),
		sim("clock_skew", func(f *Fault) gpusim.Fault {
			return gpusim.Fault{Kind: gpusim.ClockSkew, Timestamps: true, Skew: gpusim.Duration([]time.Duration{-time.Hour, -time.Minute, time.Minute, time.Hour}[f.rand.IntN(4)])}
		}),
		sim("gpu_lost", func(f *Fault) gpusim.Fault {
			return gpusim.Fault{Kind: gpusim.GPULost, Device: string(rune('0' + f.rand.IntN(4)))}
		}),
		sim("sentinel", func(*Fault) gpusim.Fault { return gpusim.Fault{Kind: gpusim.Sentinel} }),
		sim("throttle", func(f *Fault) gpusim.Fault {
			return gpusim.Fault{Kind: gpusim.ThermalThrottle, Device: string(rune('0' + f.rand.IntN(4)))}
		}),
	}
}

// kubeletKinds are faults of a kubelet's pod-resources API.
func kubeletKinds() []*Kind {
	faults := func(name string, deaf bool, what kubelet.Faults) *Kind {
		call := "allocatable"
		if deaf {
			call = "list"
		}
		counts := counter{"otelcol_gpu_allocation_calls", []string{"call", call, "outcome", "!ok"}}
		if what.Delay > 0 {
			counts = counter{}
		}
		return &Kind{name: "kubelet_" + name, deaf: deaf, recovery: soon, counts: counts, begin: func(_ *Scene, f *Fault) (func() error, error) {
			f.node.Kubelet.SetFaults(what)
			return func() error { f.node.Kubelet.SetFaults(kubelet.Faults{}); return nil }, nil
		}}
	}
	restart := func(name string, stop func(*kubelet.Kubelet)) *Kind {
		counts := counter{"otelcol_gpu_allocation_calls", []string{"call", "list", "outcome", "!ok"}}
		return &Kind{name: "kubelet_" + name, deaf: true, recovery: soon, counts: counts, begin: func(_ *Scene, f *Fault) (func() error, error) {
			stop(f.node.Kubelet)
			return func() error {
				// Its plugins register some time after it is back.
				f.node.Kubelet.SetDevices(fleet.GPU, nil)
				if err := f.node.Kubelet.Serve(f.node.Socket); err != nil {
					return err
				}
				time.Sleep(pace.Interval)
				return f.node.Announce()
			}, nil
		}}
	}
	refused := errors.New("the kubelet does not want to")
	return []*Kind{
		faults("hang", true, kubelet.Faults{Hang: true}),
		faults("silent", true, kubelet.Faults{Silent: map[string]bool{kubelet.List: true}}),
		faults("error", true, kubelet.Faults{Errors: map[string]error{kubelet.List: refused}}),
		faults("slow", false, kubelet.Faults{Delay: pace.Interval / 3}),
		// It was restarted, and the API server has not named its pods to it: what
		// they hold is not free.
		{name: "kubelet_no_pods", deaf: true, recovery: soon, begin: func(_ *Scene, f *Fault) (func() error, error) {
			f.node.Kubelet.Stop()
			f.node.Kubelet.SetFaults(kubelet.Faults{NoPods: true})
			return func() error { f.node.Kubelet.SetFaults(kubelet.Faults{}); return nil }, f.node.Kubelet.Serve(f.node.Socket)
		}},
		faults("no_allocatable", false, kubelet.Faults{Errors: map[string]error{kubelet.GetAllocatableResources: refused}}),
		faults("silent_allocatable", false, kubelet.Faults{Silent: map[string]bool{kubelet.GetAllocatableResources: true}}),
		restart("stop", (*kubelet.Kubelet).Stop), restart("kill", (*kubelet.Kubelet).Kill),
		{name: "kubelet_forgets", recovery: soon, begin: func(_ *Scene, f *Fault) (func() error, error) {
			f.node.Kubelet.SetDevices(fleet.GPU, nil)
			return func() error {
				return f.node.Announce()
			}, nil
		}},
		{name: "kubelet_bad_ids", recovery: soon, counts: counter{name: "otelcol_gpu_allocation_entries_refused"}, begin: func(_ *Scene, f *Fault) (func() error, error) {
			bad := kubelet.BadIDs()
			ghost := kubelet.Pod{Namespace: "hostile", Name: "ghost", UID: fleet.NewUID()}
			err := f.node.Kubelet.Force(ghost, fleet.Container, fleet.GPU, kubelet.Devices(bad[0], bad[2], bad[3], bad[6])...)
			return func() error { f.node.Kubelet.Release(ghost); return nil }, err
		}},
	}
}

// podKinds are what people and controllers do to pods and GPUs.
func podKinds() []*Kind {
	some := func(f *Fault) fleet.Pod {
		pods := f.node.Pods()
		return pods[f.rand.IntN(len(pods))]
	}
	like := func(s *Scene, p fleet.Pod) *fleet.Pod {
		next := s.Fleet.NewPod(p.Service)
		next.Resource, next.Count, next.Load = p.Resource, p.Count, p.Load
		return next
	}
	nothing := func() error { return nil }
	return []*Kind{
		{name: "pod_more", changes: true, recovery: soon + pace.Warmup, begin: func(s *Scene, f *Fault) (func() error, error) {
			if f.node.Free(fleet.GPU) == 0 {
				return nothing, nil
			}
			p := s.Fleet.NewPod("chat")
			return func() error { return f.node.Remove(p.Name) }, f.node.Place(p)
		}},
		{name: "pod_replaced", changes: true, recovery: soon + pace.Warmup, begin: func(s *Scene, f *Fault) (func() error, error) {
			p := some(f)
			return nothing, f.node.Replace(p.Name, like(s, p))
		}},
		{name: "pod_renewed", changes: true, recovery: soon + pace.Warmup, begin: func(s *Scene, f *Fault) (func() error, error) {
			p := some(f)
			next := like(s, p)
			next.Name = p.Name // as a StatefulSet does
			return nothing, f.node.Replace(p.Name, next)
		}},
		{name: "pod_away", changes: true, recovery: soon + pace.Warmup, begin: func(s *Scene, f *Fault) (func() error, error) {
			p := some(f)
			return func() error { return f.node.Place(like(s, p)) }, f.node.Remove(p.Name)
		}},
		{name: "pods_storm", changes: true, recovery: soon + pace.Warmup, begin: func(s *Scene, f *Fault) (func() error, error) {
			for range 6 {
				p := some(f)
				if err := f.node.Replace(p.Name, like(s, p)); err != nil {
					return nil, err
				}
				time.Sleep(pace.Interval / 5)
			}
			return nothing, nil
		}},
		{name: "mig_reconfigure", changes: true, node: "mig", recovery: soon + pace.Warmup, begin: func(_ *Scene, f *Fault) (func() error, error) {
			const board = 4
			drawn := fleet.Layouts[f.rand.IntN(len(fleet.Layouts))]
			return func() error { return f.node.Partition(board, fleet.Layouts[0]) }, f.node.Partition(board, drawn)
		}},
		{name: "sharing_changed", changes: true, node: "shared", recovery: soon + pace.Warmup, begin: func(_ *Scene, f *Fault) (func() error, error) {
			return func() error { return f.node.Share(2) }, f.node.Share([]int{1, 3, 4}[f.rand.IntN(3)])
		}},
	}
}
