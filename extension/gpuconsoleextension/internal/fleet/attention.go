// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"context"
	"slices"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/conditions"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// Endpoints are the webhook endpoints that do not get their deliveries. It asks
// the metric store nothing.
func (r *Reader) Endpoints() []consoleapi.Reason {
	return conditions.Endpoints(r.store.Deliveries(store.DeliveryQuery{Limit: wholeLog}), r.options.Now())
}

// askAttention asks what is wrong with devices; the function finds everything that
// needs attention after wait, and asks once more where there is something.
func (r *reading) askAttention(s queries.Selector) func(context.Context, *inventory) (*conditions.Fleet, error) {
	log := conditions.Read(r.store.Events(store.EventQuery{Limit: wholeLog}), r.now)
	now := func(metric string, of ...queries.Selector) *model.Vector {
		return r.vector(queries.FaultsNow(metric, queries.And(append(of, s)...), r.options.StaleAfter))
	}
	throttled := now(queries.Throttle, queries.OneOf(queries.Reason, conditions.Throttling...))
	remap, retired := now(queries.RowRemapFailure), now(queries.RetiredPending)
	counted := r.vector(queries.UncorrectedCounted(s))
	gone := r.askGone(s)
	rise := r.askXIDs(s)
	return func(ctx context.Context, inv *inventory) (*conditions.Fleet, error) {
		xids, err := rise(ctx)
		if err != nil {
			return nil, err
		}
		suspects := []string{} // of which more is to be asked
		for id := range xids {
			suspects = append(suspects, id.name)
		}
		for _, e := range log.Notices {
			if id, _ := e.Resource[names.HwID].(string); id != "" {
				suspects = append(suspects, id)
			}
		}
		for _, sample := range *counted {
			suspects = append(suspects, string(sample.Metric[queries.Device]))
		}
		last, uncorrected := &model.Vector{}, &model.Vector{}
		if len(suspects) > 0 {
			slices.Sort(suspects)
			some := queries.And(s, queries.Fits(queries.OneOf(queries.Device, slices.Compact(suspects)...)))
			r.more(ctx)
			last, uncorrected = r.vector(queries.LastXIDs(some)), r.vector(queries.UncorrectedRise(some, day))
			if err := r.wait(); err != nil {
				return nil, err
			}
		}
		found := map[place]*conditions.Device{}
		t := r.telemetryOf(inv, found)
		for id, list := range xids {
			if d := found[id]; d != nil {
				for _, x := range list {
					d.XIDs = append(d.XIDs, x.Code)
				}
			}
		}
		each := func(v *model.Vector, put func(*conditions.Device, *model.Sample)) {
			for _, sample := range *v {
				if d := found[placeOf(sample.Metric)]; d != nil {
					put(d, sample)
				}
			}
		}
		gone(inv, found)
		each(throttled, func(d *conditions.Device, s *model.Sample) {
			d.Throttle = append(d.Throttle, string(s.Metric[queries.Reason]))
		})
		each(remap, func(d *conditions.Device, _ *model.Sample) { d.RowRemap = true })
		each(retired, func(d *conditions.Device, _ *model.Sample) { d.Retired = true })
		each(last, func(d *conditions.Device, s *model.Sample) { d.LastXID = whole(pointer(float64(s.Value))) })
		each(uncorrected, func(d *conditions.Device, s *model.Sample) { d.Uncorrected = float64(s.Value) })
		for _, d := range found {
			t.Devices = append(t.Devices, *d)
		}
		return conditions.Find(log, t), nil
	}
}

func (p place) shown() conditions.Place { return conditions.Place{Cluster: p.cluster, Name: p.name} }

// telemetryOf is what an inventory shows of nodes and exporters, and its devices
// by their place.
func (r *reading) telemetryOf(inv *inventory, found map[place]*conditions.Device) *conditions.Telemetry {
	t := &conditions.Telemetry{}
	for id, d := range inv.devices {
		one := &conditions.Device{
			ID: id.shown(), Node: d.node.shown(), Parent: d.parent, Label: d.label(), LastSeen: d.seen, Free: d.free,
			Current: r.fresh(d.seen) || d.reported(r),
		}
		// An instance goes with its device.
		parent := inv.devices[place{id.cluster, d.parent}]
		one.Lost = d.state == consoleapi.DeviceLost && (parent == nil || parent.state != consoleapi.DeviceLost)
		for _, h := range d.owners {
			one.Owners = append(one.Owners, conditions.Owner{Namespace: h.Namespace, Service: value(h.Service), Pod: h.Pod})
		}
		found[id] = one
	}
	for _, n := range inv.nodes {
		if word := n.newestWord(); !word.IsZero() {
			t.Nodes = append(t.Nodes, conditions.Node{ID: n.id.shown(), LastSeen: word, Lost: r.nodeState(n) == consoleapi.NodeLost})
		}
	}
	for _, e := range inv.exporters {
		if state := e.state(); state != consoleapi.ExporterUp && !e.excused(r) {
			t.Exporters = append(t.Exporters, conditions.Exporter{
				Node: conditions.Place{Cluster: e.id.cluster, Name: e.node()}, Address: e.id.address, Port: e.id.port,
				Frozen: state == consoleapi.ExporterFrozen, Vanished: state == consoleapi.ExporterUnknown, LastSeen: e.seen,
			})
		}
	}
	return t
}

// label is what people call a device: by its index on the node, else by its id.
func (d *device) label() string {
	index, instance := d.identity[queries.Index], d.identity[queries.MIGInstance]
	switch {
	case index == "":
		return d.id.name
	case instance != "":
		return "GPU " + string(index) + "/" + string(instance)
	default:
		return "GPU " + string(index)
	}
}

// attend gives services all their reasons, and puts those first that need attention.
func attend(found []*service, all *conditions.Fleet) {
	for _, s := range found {
		s.Reasons = all.Service(conditions.Service{Cluster: s.key.Cluster, Namespace: s.key.Namespace, Name: s.key.Service}, s.own)
		s.Attention = conditions.Kinds(s.Reasons)
	}
	slices.SortFunc(found, compareServices)
}

// askGone asks for what devices report no more; the function notes it after wait.
// The memory of a split device is that of its instances, the power that of the board.
// What reports nothing at all, or old values, is not missing some.
func (r *reading) askGone(s queries.Selector) func(*inventory, map[place]*conditions.Device) {
	of := func(metric string) *model.Vector {
		return r.vector(queries.Gone(metric, s, r.options.StaleAfter, r.options.Remembered))
	}
	used, power := of(queries.MemoryUsage), of(queries.Power)
	return func(inv *inventory, found map[place]*conditions.Device) {
		note := func(v *model.Vector, figure string) {
			for _, sample := range *v {
				if d := inv.devices[placeOf(sample.Metric)]; d != nil && d.parent == "" && !d.split() && r.current(d, d.measured) {
					found[d.id].Gone = append(found[d.id].Gone, figure)
				}
			}
		}
		note(used, "memory usage")
		note(power, "power")
	}
}

// maxReasons is how many reasons of the fleet are listed.
const maxReasons = 50

// ofFleet is everything that needs attention.
func (r *Reader) ofFleet(found []*service, all *conditions.Fleet) []consoleapi.Reason {
	var own []consoleapi.Reason
	for _, s := range found {
		own = append(own, s.own...)
	}
	return all.All(own, r.Endpoints())
}
