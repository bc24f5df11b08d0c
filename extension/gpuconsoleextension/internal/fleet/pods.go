// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// pod is what is known of a pod without its gauges.
type pod struct {
	name    string
	state   consoleapi.PodState
	devices []*inventory.Device
	job     *consoleapi.Job   // on Slurm
	node    model.LabelValue  // of the job
	seen    time.Time         // of its newest utilization
	newest  *inventory.Device // the device of it
}

// Pods are all pods of a service.
type Pods struct {
	reading *reading
	inv     *inventory.Inventory
	wrong   *wrong
	list    []*pod
}

func readPods(ctx context.Context, r *reading, key Key) (*Pods, error) {
	states := r.Vector(queries.PodStates(key.Selector()))
	attention := r.askAttention(queries.Is(queries.Cluster, key.Cluster))
	_, inv, err := r.servicesAndDevices(ctx, key.Selector(), queries.Is(queries.Cluster, key.Cluster))
	if err != nil {
		return nil, err
	}
	out := &Pods{reading: r, inv: inv}
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
		name := inventory.UnitOf(sample.Metric)
		if name == "" || sample.Value != 1 {
			continue
		}
		switch s := consoleapi.PodState(sample.Metric[queries.StateOfPod]); s {
		case consoleapi.PodReporting, consoleapi.PodDegraded, consoleapi.PodMissing, consoleapi.PodWarming, consoleapi.PodNotRunning:
			p := of(name)
			p.state = s
			if p.job = inventory.JobOf(sample.Metric); p.job != nil {
				p.node = sample.Metric[queries.Node]
			}
		}
	}
	for _, d := range out.inv.Devices {
		for i, h := range d.Owners {
			// A device that is shared has the owners of its replicas, which
			// are devices of their own.
			if len(d.Parts) > 0 && !d.Whole() || h.Namespace != key.Namespace || h.SlurmCluster() != key.Slurm || hasPod(d.Owners[:i], h) {
				continue
			}
			if optional.Value(h.Service) != key.Service && (h.Service != nil || found[h.Pod] == nil) {
				continue
			}
			p := of(h.Pod)
			if key.Slurm != "" && h.Job != nil {
				p.job = h.Job // which has its user, too
			}
			p.devices = append(p.devices, d)
			if d.Seen.After(p.seen) { // by whichever of its values
				p.seen, p.newest = d.Seen, d
			}
		}
	}
	if len(out.list) == 0 {
		r.More(ctx)
		if known, err := services(ctx, r.Questions, r.Judge, r.options.Remembered, key.Selector()); err != nil || len(known) == 0 {
			return nil, err
		}
	}
	slices.SortFunc(out.list, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(podRank(a.state), podRank(b.state)), inventory.CompareNatural(a.name, b.name))
	})
	return out, nil
}

// hasPod reports whether a pod is named already: two of its containers may hold
// one device.
func hasPod(all []consoleapi.Holder, h consoleapi.Holder) bool {
	return slices.ContainsFunc(all, func(one consoleapi.Holder) bool {
		return one.Namespace == h.Namespace && one.Pod == h.Pod && one.SlurmCluster() == h.SlurmCluster()
	})
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
func (p *Pods) Freshness() consoleapi.Freshness { return p.reading.Freshness() }

// Len is how many there are.
func (p *Pods) Len() int { return len(p.list) }

// Key distinguishes one from all others.
func (p *Pods) Key(i int) string { return p.list[i].name }

// Page returns some of them with the gauges of their devices.
func (p *Pods) Page(ctx context.Context, from, to int) ([]consoleapi.Pod, error) {
	list := p.list[from:to]
	var devices []*inventory.Device
	for _, one := range list {
		for _, d := range one.devices {
			if !slices.Contains(devices, d) {
				devices = append(devices, d)
			}
		}
	}
	shown, err := p.reading.showWithHealth(ctx, p.wrong.health, devices)
	if err != nil {
		return nil, err
	}
	out := make([]consoleapi.Pod, 0, len(list))
	for _, one := range list {
		slices.SortFunc(one.devices, inventory.CompareDevices)
		pod := consoleapi.Pod{
			Pod: one.name, State: one.state, Exporter: consoleapi.ExporterUnknown,
			Devices: make([]consoleapi.Device, 0, len(one.devices)), Job: one.job, Node: optional.Text(one.node),
		}
		if one.newest != nil {
			pod.Told = one.newest.ReportedAt(p.reading.Judge, one.seen)
		}
		for _, d := range one.devices {
			device := shown[d]
			device.Reasons = p.wrong.Device(d.ID.Shown())
			pod.Devices = append(pod.Devices, device)
			n := p.inv.Node(d.Node)
			if pod.Node == nil {
				pod.Node = optional.Text(model.LabelValue(d.Node.Name))
			}
			if inventory.Worse(n.Exporter) > inventory.Worse(pod.Exporter) {
				pod.Exporter = n.Exporter
			}
		}
		pod.Values, pod.Coverage = over(figures(p.reading.Judge, one.devices, shown))
		if pod.Stale { // as they were, with their age
			pod.Values = lastValues(one.devices, shown)
		}
		pod.NotMeasured = notMeasured(&pod.Values, one.devices)
		out = append(out, pod)
	}
	return out, nil
}

// lastValues are the values that devices last had.
func lastValues(devices []*inventory.Device, shown map[*inventory.Device]consoleapi.Device) consoleapi.Values {
	all := make([]measured, 0, len(devices))
	for _, d := range devices {
		v := shown[d].Values
		v.MemoryTotal = d.Amounts.Capacity
		all = append(all, measured{d, v})
	}
	values, _ := over(all)
	return values
}
