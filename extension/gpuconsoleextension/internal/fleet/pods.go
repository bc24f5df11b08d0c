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
	heard   time.Time // of its newest utilization
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
	inventory := reading.askInventory(queries.Is(queries.Cluster, key.Cluster))
	attention := reading.askAttention(queries.Is(queries.Cluster, key.Cluster))
	if err := reading.wait(); err != nil {
		return nil, err
	}
	out := &Pods{reading: reading, inv: inventory()}
	var err error
	if out.wrong, err = attention(ctx, out.inv); err != nil {
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
		for i, h := range d.holders {
			// A device that is shared has the holders of its replicas, which
			// are devices of their own.
			if len(d.parts) > 0 || h.Namespace != key.Namespace || hasPod(d.holders[:i], h) {
				continue
			}
			if value(h.Service) != key.Service && (h.Service != nil || found[h.Pod] == nil) {
				continue
			}
			p := of(h.Pod)
			p.devices = append(p.devices, d)
			if d.measured.After(p.heard) {
				p.heard = d.measured
			}
			if d.measured.IsZero() && d.heard.After(p.heard) && !d.alive {
				p.heard = d.heard // remembered alone
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

// Key tells one from all others.
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
			Devices: make([]consoleapi.Device, 0, len(one.devices)), Told: p.reading.told(one.heard),
		}
		var fresh []consoleapi.Values
		for _, d := range one.devices {
			device := shown[d]
			device.Reasons = p.wrong.Device(d.id.shown())
			pod.Devices = append(pod.Devices, device)
			if p.reading.fresh(d.measured) {
				fresh = append(fresh, shown[d].Values)
			}
			n := p.inv.node(d.node)
			if pod.Node == nil {
				pod.Node = text(model.LabelValue(d.node.name))
			}
			if worse(n.exporter) > worse(pod.Exporter) {
				pod.Exporter = n.exporter
			}
		}
		pod.Values = ofDevices(fresh)
		out = append(out, pod)
	}
	return out, nil
}

// ofDevices are the values of a pod: the mean of ratios and the sum of amounts,
// over its devices that have them.
func ofDevices(all []consoleapi.Values) consoleapi.Values {
	fold := func(field func(*consoleapi.Values) *float64, mean bool) *float64 {
		sum, n := 0.0, 0
		for i := range all {
			if v := field(&all[i]); v != nil {
				sum += *v
				n++
			}
		}
		if n == 0 {
			return nil
		}
		if mean {
			sum /= float64(n)
		}
		return &sum
	}
	return consoleapi.Values{
		Utilization: fold(func(v *consoleapi.Values) *float64 { return v.Utilization }, true),
		Tensor:      fold(func(v *consoleapi.Values) *float64 { return v.Tensor }, true),
		SM:          fold(func(v *consoleapi.Values) *float64 { return v.SM }, true),
		DRAM:        fold(func(v *consoleapi.Values) *float64 { return v.DRAM }, true),
		FP16:        fold(func(v *consoleapi.Values) *float64 { return v.FP16 }, true),
		FP32:        fold(func(v *consoleapi.Values) *float64 { return v.FP32 }, true),
		MemoryUsed:  fold(func(v *consoleapi.Values) *float64 { return v.MemoryUsed }, false),
		MemoryTotal: fold(func(v *consoleapi.Values) *float64 { return v.MemoryTotal }, false),
		Power:       fold(func(v *consoleapi.Values) *float64 { return v.Power }, false),
	}
}
