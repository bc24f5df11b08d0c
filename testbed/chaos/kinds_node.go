// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/breakable"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
)

// exporterKinds are faults of an exporter: of its server, its pages, and what
// they report.
func exporterKinds() []*kind {
	page := func(name string, mode breakable.PageMode, counts ...string) *kind {
		k := &kind{name: "exporter_" + name, silent: mode.Silent(), recovery: soon}
		switch {
		case len(counts) > 0:
			k.counts = counter{counts[0], counts[1:]}
		case k.silent:
			k.counts = counter{"otelcol_dcgm_receiver_scrapes", []string{"outcome", "!ok"}}
		}
		k.begin = func(_ *world, f *fault) (func() error, error) {
			return func() error { return f.node.exporter.Set(breakable.PageWell) }, f.node.exporter.Set(mode)
		}
		return k
	}
	sim := func(name string, draw func(f *fault) gpusim.Fault) *kind {
		k := &kind{name: name, recovery: soon}
		k.begin = func(_ *world, f *fault) (func() error, error) {
			spec := draw(f)
			spec.Node = f.node.name
			status, err := f.node.fleet.StartFault(spec)
			return func() error { _, err := f.node.fleet.EndFault(status.ID); return err }, err
		}
		return k
	}
	return []*kind{
		page("down", breakable.PageDown), page("hang", breakable.PageHang), page("drip", breakable.PageDrip), page("slow", breakable.PageSlow),
		page("error", breakable.PageError), page("garbage", breakable.PageGarbage), page("html", breakable.PageHTML), page("cut", breakable.PageCut),
		page("huge", breakable.PageHuge), page("bomb", breakable.PageBomb), page("reset", breakable.PageReset), page("hostile", breakable.PageHostile),
		page("duplicates", breakable.PageDuplicates, "otelcol_dcgm_receiver_rows_refused"),
		// Two counts of one GPU's XIDs, with two starts.
		{name: "exporter_twice", harmless: true, recovery: soon, counts: counter{name: "otelcol_gpu_pod_points_duplicate"}, begin: func(_ *world, f *fault) (func() error, error) {
			return f.node.secondExporter()
		}},
		sim("exporter_frozen", func(*fault) gpusim.Fault { return gpusim.Fault{Kind: gpusim.ExporterFrozen} }),
		sim("clock_skew", func(f *fault) gpusim.Fault {
			return gpusim.Fault{Kind: gpusim.ClockSkew, Timestamps: true, Skew: gpusim.Duration([]time.Duration{-time.Hour, -time.Minute, time.Minute, time.Hour}[f.rand.IntN(4)])}
		}),
		sim("gpu_lost", func(f *fault) gpusim.Fault {
			return gpusim.Fault{Kind: gpusim.GPULost, Device: string(rune('0' + f.rand.IntN(4)))}
		}),
		sim("sentinel", func(*fault) gpusim.Fault { return gpusim.Fault{Kind: gpusim.Sentinel} }),
		sim("throttle", func(f *fault) gpusim.Fault {
			return gpusim.Fault{Kind: gpusim.ThermalThrottle, Device: string(rune('0' + f.rand.IntN(4)))}
		}),
	}
}

// kubeletKinds are faults of a kubelet's pod-resources API.
func kubeletKinds() []*kind {
	faults := func(name string, deaf bool, what kubelet.Faults) *kind {
		call := "allocatable"
		if deaf {
			call = "list"
		}
		counts := counter{"otelcol_gpu_allocation_calls", []string{"call", call, "outcome", "!ok"}}
		if what.Delay > 0 {
			counts = counter{}
		}
		return &kind{name: "kubelet_" + name, deaf: deaf, recovery: soon, counts: counts, begin: func(_ *world, f *fault) (func() error, error) {
			f.node.kubelet.SetFaults(what)
			return func() error { f.node.kubelet.SetFaults(kubelet.Faults{}); return nil }, nil
		}}
	}
	restart := func(name string, stop func(*kubelet.Kubelet)) *kind {
		counts := counter{"otelcol_gpu_allocation_calls", []string{"call", "list", "outcome", "!ok"}}
		return &kind{name: "kubelet_" + name, deaf: true, recovery: soon, counts: counts, begin: func(_ *world, f *fault) (func() error, error) {
			stop(f.node.kubelet)
			return func() error {
				// Its plugins register some time after it is back.
				f.node.kubelet.SetDevices(gpuResource, nil)
				if err := f.node.kubelet.Serve(f.node.socket); err != nil {
					return err
				}
				time.Sleep(interval)
				f.node.mu.Lock()
				defer f.node.mu.Unlock()
				return f.node.announce()
			}, nil
		}}
	}
	refused := errors.New("the kubelet does not want to")
	return []*kind{
		faults("hang", true, kubelet.Faults{Hang: true}),
		faults("silent", true, kubelet.Faults{Silent: map[string]bool{kubelet.List: true}}),
		faults("error", true, kubelet.Faults{Errors: map[string]error{kubelet.List: refused}}),
		faults("slow", false, kubelet.Faults{Delay: interval / 3}),
		// It was restarted, and the API server has not named its pods to it: what
		// they hold is not free.
		{name: "kubelet_no_pods", deaf: true, recovery: soon, begin: func(_ *world, f *fault) (func() error, error) {
			f.node.kubelet.Stop()
			f.node.kubelet.SetFaults(kubelet.Faults{NoPods: true})
			return func() error { f.node.kubelet.SetFaults(kubelet.Faults{}); return nil }, f.node.kubelet.Serve(f.node.socket)
		}},
		faults("no_allocatable", false, kubelet.Faults{Errors: map[string]error{kubelet.GetAllocatableResources: refused}}),
		faults("silent_allocatable", false, kubelet.Faults{Silent: map[string]bool{kubelet.GetAllocatableResources: true}}),
		restart("stop", (*kubelet.Kubelet).Stop), restart("kill", (*kubelet.Kubelet).Kill),
		{name: "kubelet_forgets", recovery: soon, begin: func(_ *world, f *fault) (func() error, error) {
			f.node.kubelet.SetDevices(gpuResource, nil)
			return func() error {
				f.node.mu.Lock()
				defer f.node.mu.Unlock()
				return f.node.announce()
			}, nil
		}},
		{name: "kubelet_bad_ids", recovery: soon, counts: counter{name: "otelcol_gpu_allocation_entries_refused"}, begin: func(_ *world, f *fault) (func() error, error) {
			bad := kubelet.BadIDs()
			ghost := kubelet.Pod{Namespace: "hostile", Name: "ghost", UID: newUID()}
			err := f.node.kubelet.Force(ghost, container, gpuResource, kubelet.Devices(bad[0], bad[2], bad[3], bad[6])...)
			return func() error { f.node.kubelet.Release(ghost); return nil }, err
		}},
	}
}

// podKinds are what people and controllers do to pods and GPUs.
func podKinds() []*kind {
	some := func(f *fault) pod {
		pods := f.node.Pods()
		return pods[f.rand.IntN(len(pods))]
	}
	like := func(w *world, p pod) *pod {
		next := w.newPod(p.service)
		next.resource, next.count, next.load = p.resource, p.count, p.load
		return next
	}
	nothing := func() error { return nil }
	return []*kind{
		{name: "pod_more", changes: true, recovery: soon + warmup, begin: func(w *world, f *fault) (func() error, error) {
			if f.node.free(gpuResource) == 0 {
				return nothing, nil
			}
			p := w.newPod("chat")
			return func() error { return f.node.remove(p.name) }, f.node.place(p)
		}},
		{name: "pod_replaced", changes: true, recovery: soon + warmup, begin: func(w *world, f *fault) (func() error, error) {
			p := some(f)
			return nothing, f.node.replace(p.name, like(w, p))
		}},
		{name: "pod_renewed", changes: true, recovery: soon + warmup, begin: func(w *world, f *fault) (func() error, error) {
			p := some(f)
			next := like(w, p)
			next.name = p.name // as a StatefulSet does
			return nothing, f.node.replace(p.name, next)
		}},
		{name: "pod_away", changes: true, recovery: soon + warmup, begin: func(w *world, f *fault) (func() error, error) {
			p := some(f)
			return func() error { return f.node.place(like(w, p)) }, f.node.remove(p.name)
		}},
		{name: "pods_storm", changes: true, recovery: soon + warmup, begin: func(w *world, f *fault) (func() error, error) {
			for range 6 {
				p := some(f)
				if err := f.node.replace(p.name, like(w, p)); err != nil {
					return nil, err
				}
				time.Sleep(interval / 5)
			}
			return nothing, nil
		}},
		{name: "mig_reconfigure", changes: true, node: "mig", recovery: soon + warmup, begin: func(_ *world, f *fault) (func() error, error) {
			const board = 4
			set := func(layout []string) error {
				return f.node.reshape(2*interval, func() error { return f.node.fleet.SetMIG(f.node.name, board, layout) })
			}
			return func() error { return set(layouts[0]) }, set(layouts[f.rand.IntN(len(layouts))])
		}},
		{name: "sharing_changed", changes: true, node: "shared", recovery: soon + warmup, begin: func(_ *world, f *fault) (func() error, error) {
			set := func(replicas int) error {
				return f.node.reshape(interval, func() error { f.node.replicas = replicas; return nil })
			}
			return func() error { return set(2) }, set([]int{1, 3, 4}[f.rand.IntN(3)])
		}},
	}
}

// exporterPod puts the exporter's pod into the API server, in the node's network.
func (n *node) exporterPod() { n.exporterPodAt("nvidia-dcgm-exporter-"+n.name, "127.0.0.1") }

func (n *node) exporterPodAt(name, address string) {
	started := time.Now().UTC().Format(time.RFC3339)
	n.api.Put("pods", "gpu-operator", name, m{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": m{"namespace": "gpu-operator", "name": name, "uid": name, "creationTimestamp": started, "labels": m{"app": "nvidia-dcgm-exporter"}},
		"spec":     m{"nodeName": n.name, "hostNetwork": true, "containers": []m{{"name": "nvidia-dcgm-exporter", "image": "example.com/dcgm-exporter"}}},
		"status": m{
			"phase": "Running", "podIP": address, "hostIP": address, "startTime": started, "conditions": []m{{"type": "Ready", "status": "True"}},
		},
	})
}

// secondExporter is another exporter's pod on the node, which began later, as beside
// that of a cloud's own. End takes it away.
func (n *node) secondExporter() (end func() error, err error) {
	const address = "127.0.0.2"
	_, port, err := net.SplitHostPort(n.exporter.Addr())
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, port))
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: n.exporter, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }() // ends with Close
	name := "nvidia-dcgm-exporter-second-" + n.name
	n.exporterPodAt(name, address)
	return func() error {
		n.api.Delete("pods", "gpu-operator", name)
		return server.Close()
	}, nil
}
