// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/conditions"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// pod is what is known of a pod without its gauges.
type pod struct {
	name    string
	state   consoleapi.PodState
	devices []*device
	seen    time.Time // of its newest utilization
	newest  *device   // the device of it
}

// Pods are all pods of a service.
type Pods struct {
	reading *reading
	inv     *inventory
	wrong   *conditions.Fleet
	list    []*pod
}

// Pods reads the pods of a service: missing and degraded ones first, then by name;
// nil is an unknown service.
func (r *Reader) Pods(ctx context.Context, key Key) (*Pods, error) {
	reading := r.read(ctx)
	states := reading.vector(queries.PodStates(key.selector()))
	attention := reading.askAttention(queries.Is(queries.Cluster, key.Cluster))
	_, inv, err := reading.servicesAndDevices(ctx, key.selector(), queries.Is(queries.Cluster, key.Cluster))
	if err != nil {
		return nil, err
	}
	out := &Pods{reading: reading, inv: inv}
	if out.wrong, err = attention(ctx, inv); err != nil {
		return nil, err
	}
	found := map[string]*pod{}
	of := func(name string) *pod {
		if found[name] == nil {
			found[name] = &pod{name: name, state: consoleapi.PodUnknown}
			out.list = append(out.list, found[name])
		}
		return found[name]
	}
	for _, sample := range *states {
		name := string(sample.Metric[queries.Pod])
		if name == "" || sample.Value != 1 {
			continue
		}
		switch s := consoleapi.PodState(sample.Metric[queries.StateOfPod]); s {
		case consoleapi.PodReporting, consoleapi.PodDegraded, consoleapi.PodMissing, consoleapi.PodWarming, consoleapi.PodNotRunning:
			of(name).state = s
		}
	}
	for _, d := range out.inv.devices {
		for i, h := range d.owners {
			// A device that is shared has the owners of its replicas, which
			// are devices of their own.
			if len(d.parts) > 0 || h.Namespace != key.Namespace || hasPod(d.owners[:i], h) {
				continue
			}
			if value(h.Service) != key.Service && (h.Service != nil || found[h.Pod] == nil) {
				continue
			}
			p := of(h.Pod)
			p.devices = append(p.devices, d)
			if t := d.lastWord(); t.After(p.seen) {
				p.seen, p.newest = t, d
			}
		}
	}
	if len(out.list) == 0 {
		reading.more(ctx)
		if known, err := reading.services(ctx, key.selector()); err != nil || len(known) == 0 {
			return nil, err
		}
	}
	slices.SortFunc(out.list, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(podRank(a.state), podRank(b.state)), compareNatural(a.name, b.name))
	})
	return out, nil
}

// hasPod reports whether a pod is named already: two of its containers may hold
// one device.
func hasPod(all []consoleapi.Holder, h consoleapi.Holder) bool {
	return slices.ContainsFunc(all, func(one consoleapi.Holder) bool { return one.Namespace == h.Namespace && one.Pod == h.Pod })
}

func podRank(s consoleapi.PodState) int {
	switch s {
	case consoleapi.PodMissing:
		return 0
	case consoleapi.PodDegraded:
		return 1
	default:
		return 2
	}
}

// Freshness of the pods.
func (p *Pods) Freshness() consoleapi.Freshness { return p.reading.freshness() }

// Len is how many there are.
func (p *Pods) Len() int { return len(p.list) }

// Key distinguishes one from all others.
func (p *Pods) Key(i int) string { return p.list[i].name }

// Page returns some of them with the gauges of their devices.
func (p *Pods) Page(ctx context.Context, from, to int) ([]consoleapi.Pod, error) {
	list := p.list[from:to]
	var devices []*device
	for _, one := range list {
		for _, d := range one.devices {
			if !slices.Contains(devices, d) {
				devices = append(devices, d)
			}
		}
	}
	shown, err := p.reading.show(ctx, devices)
	if err != nil {
		return nil, err
	}
	out := make([]consoleapi.Pod, 0, len(list))
	for _, one := range list {
		slices.SortFunc(one.devices, compareDevices)
		pod := consoleapi.Pod{
			Pod: one.name, State: one.state, Exporter: consoleapi.ExporterUnknown,
			Devices: make([]consoleapi.Device, 0, len(one.devices)),
		}
		if one.newest != nil {
			pod.Told = p.reading.reportedOf(one.newest, one.seen)
		}
		for _, d := range one.devices {
			device := shown[d]
			device.Reasons = p.wrong.Device(d.id.shown())
			pod.Devices = append(pod.Devices, device)
			n := p.inv.node(d.node)
			if pod.Node == nil {
				pod.Node = text(model.LabelValue(d.node.name))
			}
			if worse(n.exporter) > worse(pod.Exporter) {
				pod.Exporter = n.exporter
			}
		}
		pod.Values, pod.Coverage = over(p.reading.measured(one.devices, shown))
		if pod.Stale { // as they were, with their age
			pod.Values = lastValues(one.devices, shown)
		}
		out = append(out, pod)
	}
	return out, nil
}

// lastValues are the values that devices last had.
func lastValues(devices []*device, shown map[*device]consoleapi.Device) consoleapi.Values {
	all := make([]measured, 0, len(devices))
	for _, d := range devices {
		v := shown[d].Values
		v.MemoryTotal = d.amounts.capacity
		all = append(all, measured{d, v})
	}
	values, _ := over(all)
	return values
}
