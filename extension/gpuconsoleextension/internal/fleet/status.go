// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"context"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/age"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// maxDownExporters is how many exporters that are down are named.
const maxDownExporters = 20

// Status is the state of the whole.
type Status struct {
	Freshness  consoleapi.Freshness
	State      consoleapi.State
	Telemetry  consoleapi.Telemetry
	Thresholds Thresholds
}

func readStatus(ctx context.Context, r *reading) (*Status, error) {
	opening := askWindow(r.Questions)
	services, inv, err := r.fleet(ctx)
	if err != nil {
		return nil, err
	}
	out := &Status{Telemetry: telemetryOfFleet(r.Judge, inv, services), Thresholds: r.thresholds}
	out.Telemetry.Kubernetes, out.Telemetry.Window = optional.Pointer(inv.Kubernetes()), optional.Pointer(opening().Name)
	out.State = stateOf(r.Judge, inv, services, &out.Telemetry)
	if out.State == "" {
		if out.State, err = everSeen(ctx, r.store); err != nil {
			return nil, err
		}
	}
	if out.State == consoleapi.ScraperDown {
		silence(r.Judge, inv)
	}
	unblame(r.Judge, out, inv)
	out.Freshness = r.Freshness()
	return out, nil
}

// unblame leaves exporters in peace for samples that the store did not take.
func unblame(j *age.Judge, out *Status, inv *inventory.Inventory) {
	t := &out.Telemetry
	if j.Unstored.Blind() && (len(inv.Exporters) == 0 || slices.ContainsFunc(inv.Exporters, func(e *inventory.Exporter) bool { return e.Excused(j) })) {
		t.ExportersUp, t.ExportersDown, t.ExportersFrozen, t.ExportersUnrecognized = nil, nil, nil, nil
	}
	down := func(e *inventory.Exporter) bool { return e.Known && e.State() != consoleapi.ExporterUp } // which is stored, and current
	silent := out.State == consoleapi.NotEnabled || out.State == consoleapi.ScraperDown && !slices.ContainsFunc(inv.Exporters, down)
	if silent && j.Unstored.Arrived() {
		out.State = consoleapi.NotStored
	}
}

// silence counts as data what devices reported, and nothing else: while no exporter
// answers, gpu_summary still evaluates, and finds no pod that reports.
func silence(j *age.Judge, inv *inventory.Inventory) {
	var newest time.Time
	for _, d := range inv.Devices {
		if d.Seen.After(newest) {
			newest = d.Seen
		}
	}
	if !newest.IsZero() {
		j.OnlyUsed(newest)
	}
}

func telemetryOfFleet(j *age.Judge, inv *inventory.Inventory, services []*service) consoleapi.Telemetry {
	up, down, frozen, unrecognized, devices := 0, 0, 0, 0, 0
	unwell := []consoleapi.Exporter{}
	for _, n := range inv.Nodes {
		if t := n.DataTime(); !t.IsZero() {
			j.Used(t)
		}
		devices += n.Counts().Devices
	}
	for _, e := range inv.Exporters {
		if len(inv.Nodes) == 0 {
			j.Used(e.Seen) // nothing else reports
		}
		switch state := e.State(); {
		case e.Excused(j):
			continue
		case state == consoleapi.ExporterUp:
			up++
			continue
		case state == consoleapi.ExporterFrozen:
			frozen++
		case state == consoleapi.ExporterUnrecognized:
			unrecognized++
		default:
			down++
		}
		if len(unwell) < maxDownExporters {
			unwell = append(unwell, e.Shown(j))
		}
	}
	t := consoleapi.Telemetry{
		ExportersUp: &up, ExportersDown: &down, ExportersFrozen: &frozen, ExportersUnrecognized: &unrecognized, DownExporters: unwell,
		Devices: &devices, Services: optional.Pointer(len(services)), ServicesPartial: optional.Pointer(0), ServicesNoData: optional.Pointer(0), PodsWarming: optional.Pointer(0),
	}
	for _, s := range services {
		if s.Partial != nil && *s.Partial {
			*t.ServicesPartial++
		}
		if slices.ContainsFunc(s.own, func(r consoleapi.Reason) bool { return r.Kind == consoleapi.NoData }) {
			*t.ServicesNoData++
		}
		*t.PodsWarming += optional.Zero(s.Pods.Warming)
	}
	return t
}

// stateOf is the first that applies; empty if there is nothing at all to go by.
func stateOf(j *age.Judge, inv *inventory.Inventory, services []*service, t *consoleapi.Telemetry) consoleapi.State {
	if len(inv.Devices) == 0 && len(inv.Nodes) == 0 && len(inv.Exporters) == 0 && len(services) == 0 {
		return ""
	}
	current := false
	for _, s := range services {
		current = current || j.Fresh(s.evaluated)
	}
	for _, d := range inv.Devices {
		current = current || j.Fresh(d.Seen) || j.Fresh(d.Allocated)
	}
	answering := *t.ExportersUp + *t.ExportersFrozen + *t.ExportersUnrecognized
	switch {
	case answering == 0 && *t.ExportersDown > 0:
		return consoleapi.ScraperDown
	case !current && (answering == 0 || len(inv.Devices) > 0 || len(services) > 0):
		return consoleapi.ScraperDown
	case len(services) == 0:
		return consoleapi.NoServices
	}
	for _, s := range services {
		if s.Pods.Settled == nil || *s.Pods.Settled > 0 {
			return consoleapi.Ready
		}
	}
	if slices.ContainsFunc(services, func(s *service) bool { return optional.Above(s.Pods.Warming) }) {
		return consoleapi.WarmingUp
	}
	return consoleapi.Ready
}

// everSeen distinguishes a store that never saw GPU telemetry from one that no longer does.
func everSeen(ctx context.Context, s store.Store) (consoleapi.State, error) {
	found, _, err := s.Series(ctx, store.Selection{Matchers: queries.Ever(), Limit: 1})
	switch {
	case err != nil:
		return "", err
	case len(found) > 0:
		return consoleapi.ScraperDown, nil
	default:
		return consoleapi.NotEnabled, nil
	}
}
