// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/conditions"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/age"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/boards"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// endpoints are the webhook endpoints that do not get their deliveries.
func endpoints(s store.Store, now time.Time) []consoleapi.Reason {
	return conditions.Endpoints(s.Deliveries(store.DeliveryQuery{Limit: wholeLog}), now)
}

// wrong is everything that needs attention, and the health of boards.
type wrong struct {
	*conditions.Fleet
	health *boards.Fleet
}

// askAttention asks what is wrong with devices; the function finds everything that
// needs attention after Wait, and asks once more where there is something.
func (r *reading) askAttention(s queries.Selector) func(context.Context, *inventory.Inventory) (*wrong, error) {
	events := r.store.Events(store.EventQuery{Limit: wholeLog})
	log := conditions.Read(events, r.Now)
	health := boards.Ask(r.Questions, r.options.StaleAfter, r.options.Remembered, conditions.ReadBoards(events), s)
	now := func(metric string, of ...queries.Selector) *model.Vector {
		return r.Vector(queries.FaultsNow(metric, queries.And(append(of, s)...), r.options.StaleAfter))
	}
	throttled := now(queries.Throttle, queries.OneOf(queries.Reason, conditions.Throttling...))
	remap, retired := now(queries.RowRemapFailure), now(queries.RetiredPending)
	counted := r.Vector(queries.UncorrectedCounted(s))
	gone := askGone(r.Questions, r.options, s)
	rise := askXIDs(r.Questions, s)
	return func(ctx context.Context, inv *inventory.Inventory) (*wrong, error) {
		health, err := health(ctx)
		if err != nil {
			return nil, err
		}
		xids, err := rise(ctx)
		if err != nil {
			return nil, err
		}
		suspects := []string{} // of which more is to be asked
		for id := range xids {
			suspects = append(suspects, id.Name)
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
			r.More(ctx)
			last, uncorrected = r.Vector(queries.LastXIDs(some)), r.Vector(queries.UncorrectedRise(some, day))
			if err := r.Wait(); err != nil {
				return nil, err
			}
		}
		found := map[inventory.Place]*conditions.Device{}
		t := telemetryOf(r.Judge, inv, found)
		for id, list := range xids {
			if d := found[id]; d != nil {
				for _, x := range list {
					d.XIDs = append(d.XIDs, x.Code)
				}
			}
		}
		each := func(v *model.Vector, put func(*conditions.Device, *model.Sample)) {
			for _, sample := range *v {
				if d := found[inventory.PlaceOf(sample.Metric)]; d != nil {
					put(d, sample)
				}
			}
		}
		gone(r.Judge, inv, found)
		each(throttled, func(d *conditions.Device, s *model.Sample) {
			d.Throttle = append(d.Throttle, string(s.Metric[queries.Reason]))
		})
		each(remap, func(d *conditions.Device, _ *model.Sample) { d.RowRemap = true })
		each(retired, func(d *conditions.Device, _ *model.Sample) { d.Retired = true })
		each(last, func(d *conditions.Device, s *model.Sample) {
			d.LastXID = optional.Whole(optional.Pointer(float64(s.Value)))
		})
		each(uncorrected, func(d *conditions.Device, s *model.Sample) { d.Uncorrected = float64(s.Value) })
		for id, d := range found {
			health.Note(id, d)
			t.Devices = append(t.Devices, *d)
		}
		return &wrong{conditions.Find(log, t), health}, nil
	}
}

// telemetryOf is what an inventory shows of nodes and exporters, and its devices
// by their place.
func telemetryOf(j *age.Judge, inv *inventory.Inventory, found map[inventory.Place]*conditions.Device) *conditions.Telemetry {
	t := &conditions.Telemetry{}
	for id, d := range inv.Devices {
		one := &conditions.Device{
			ID: id.Shown(), Node: d.Node.Shown(), Parent: d.Parent, Label: d.Label(), LastSeen: d.Seen, Free: d.Free,
			Current: j.Fresh(d.Seen) || d.Reported(j),
		}
		// An instance goes with its device.
		parent := inv.Devices[inventory.Place{Cluster: id.Cluster, Name: d.Parent}]
		one.Lost = d.State == consoleapi.DeviceLost && (parent == nil || parent.State != consoleapi.DeviceLost)
		for _, h := range d.Owners {
			one.Owners = append(one.Owners, conditions.Owner{Slurm: h.SlurmCluster(), Namespace: h.Namespace, Service: optional.Value(h.Service), Pod: h.Pod})
		}
		found[id] = one
	}
	for _, n := range inv.Nodes {
		if word := n.NewestWord(); !word.IsZero() {
			t.Nodes = append(t.Nodes, conditions.Node{ID: n.ID.Shown(), LastSeen: word, Lost: n.State(j) == consoleapi.NodeLost})
		}
	}
	for _, e := range inv.Exporters {
		if state := e.State(); state != consoleapi.ExporterUp && !e.Excused(j) {
			t.Exporters = append(t.Exporters, conditions.Exporter{
				Node: conditions.Place{Cluster: e.ID.Cluster, Name: e.Node()}, Address: e.ID.Address, Port: e.ID.Port,
				Frozen: state == consoleapi.ExporterFrozen, Unrecognized: state == consoleapi.ExporterUnrecognized, Vanished: state == consoleapi.ExporterUnknown, LastSeen: e.Seen,
			})
		}
	}
	return t
}

// attend gives services all their reasons and the health of their boards, and puts those
// first that need attention.
func attend(found []*service, all *wrong) {
	for _, s := range found {
		s.Devices.Health = all.health.Count(s.held)
		s.Reasons = all.Service(conditions.Service{Cluster: s.key.Cluster, Slurm: s.key.Slurm, Namespace: s.key.Namespace, Name: s.key.Service}, s.own)
		s.Attention = conditions.Kinds(s.Reasons)
	}
	slices.SortFunc(found, compareServices)
}

// askGone asks for what devices report no more; the function notes it after Wait.
// The memory of a split device is that of its instances, the power that of the board.
// What reports nothing at all, or old values, is not missing some.
func askGone(q *ask.Questions, o Options, s queries.Selector) func(*age.Judge, *inventory.Inventory, map[inventory.Place]*conditions.Device) {
	of := func(metric string) *model.Vector {
		return q.Vector(queries.Gone(metric, s, o.StaleAfter, o.Remembered))
	}
	used, power := of(queries.MemoryUsage), of(queries.Power)
	return func(j *age.Judge, inv *inventory.Inventory, found map[inventory.Place]*conditions.Device) {
		note := func(v *model.Vector, figure string) {
			for _, sample := range *v {
				if d := inv.Devices[inventory.PlaceOf(sample.Metric)]; d != nil && d.Parent == "" && !d.Split() && d.Current(j, d.Measured) {
					found[d.ID].Gone = append(found[d.ID].Gone, figure)
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
func ofFleet(found []*service, all *wrong, endpoints []consoleapi.Reason) []consoleapi.Reason {
	var own []consoleapi.Reason
	for _, s := range found {
		own = append(own, s.own...)
	}
	return all.All(own, endpoints)
}
