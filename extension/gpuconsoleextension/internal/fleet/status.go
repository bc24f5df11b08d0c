// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"context"
	"slices"
	"time"

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

// Status reads the state of the whole.
func (r *Reader) Status(ctx context.Context) (*Status, error) {
	reading := r.read(ctx)
	opening := reading.askWindow()
	services, inv, err := reading.fleet(ctx)
	if err != nil {
		return nil, err
	}
	out := &Status{Telemetry: r.telemetry(reading, inv, services), Thresholds: reading.thresholds}
	out.Telemetry.Kubernetes, out.Telemetry.Window = pointer(inv.kubernetes()), pointer(opening().Name)
	out.State = reading.stateOf(inv, services, &out.Telemetry)
	if out.State == "" {
		if out.State, err = reading.everSeen(ctx); err != nil {
			return nil, err
		}
	}
	if out.State == consoleapi.ScraperDown {
		reading.silence(inv)
	}
	reading.unblame(out, inv)
	out.Freshness = reading.freshness()
	return out, nil
}

// kubernetes reports whether telemetry names a node of Kubernetes, or a kubelet.
func (inv *inventory) kubernetes() bool {
	for _, n := range inv.nodes {
		if n.schedulable != nil || !n.allocated.IsZero() {
			return true
		}
	}
	for _, d := range inv.devices {
		if d.identity[queries.Node] != "" {
			return true
		}
	}
	return slices.ContainsFunc(inv.exporters, func(e *exporter) bool { return e.onKubernetes })
}

// unblame leaves exporters in peace for samples that the store did not take.
func (r *reading) unblame(out *Status, inv *inventory) {
	t := &out.Telemetry
	if r.unstored.Blind() && (len(inv.exporters) == 0 || slices.ContainsFunc(inv.exporters, func(e *exporter) bool { return e.excused(r) })) {
		t.ExportersUp, t.ExportersDown, t.ExportersFrozen = nil, nil, nil
	}
	down := func(e *exporter) bool { return e.known && e.state() != consoleapi.ExporterUp } // which is stored, and current
	silent := out.State == consoleapi.NotEnabled || out.State == consoleapi.ScraperDown && !slices.ContainsFunc(inv.exporters, down)
	if silent && r.unstored.Arrived() {
		out.State = consoleapi.NotStored
	}
}

// silence counts as data what devices reported, and nothing else: while no exporter
// answers, gpu_summary still evaluates, and finds no pod that reports.
func (r *reading) silence(inv *inventory) {
	var newest time.Time
	for _, d := range inv.devices {
		if d.seen.After(newest) {
			newest = d.seen
		}
	}
	if !newest.IsZero() {
		r.newest = newest
	}
}

func (r *Reader) telemetry(reading *reading, inv *inventory, services []*service) consoleapi.Telemetry {
	up, down, frozen, devices := 0, 0, 0, 0
	unwell := []consoleapi.Exporter{}
	for _, n := range inv.nodes {
		if t := n.dataTime(); !t.IsZero() {
			reading.used(t)
		}
		devices += n.counts().Devices
	}
	for _, e := range inv.exporters {
		if len(inv.nodes) == 0 {
			reading.used(e.seen) // nothing else reports
		}
		switch state := e.state(); {
		case e.excused(reading):
			continue
		case state == consoleapi.ExporterUp:
			up++
			continue
		case state == consoleapi.ExporterFrozen:
			frozen++
		default:
			down++
		}
		if len(unwell) < maxDownExporters {
			unwell = append(unwell, e.shown(reading))
		}
	}
	t := consoleapi.Telemetry{
		ExportersUp: &up, ExportersDown: &down, ExportersFrozen: &frozen, DownExporters: unwell,
		Devices: &devices, Services: pointer(len(services)), ServicesPartial: pointer(0), ServicesNoData: pointer(0), PodsWarming: pointer(0),
	}
	for _, s := range services {
		if s.Partial != nil && *s.Partial {
			*t.ServicesPartial++
		}
		if slices.ContainsFunc(s.own, func(r consoleapi.Reason) bool { return r.Kind == consoleapi.NoData }) {
			*t.ServicesNoData++
		}
		*t.PodsWarming += zero(s.Pods.Warming)
	}
	return t
}

// stateOf is the first that applies; empty if there is nothing at all to go by.
func (r *reading) stateOf(inv *inventory, services []*service, t *consoleapi.Telemetry) consoleapi.State {
	if len(inv.devices) == 0 && len(inv.nodes) == 0 && len(inv.exporters) == 0 && len(services) == 0 {
		return ""
	}
	current := false
	for _, s := range services {
		current = current || r.fresh(s.evaluated)
	}
	for _, d := range inv.devices {
		current = current || r.fresh(d.seen) || r.fresh(d.allocated)
	}
	answering := *t.ExportersUp + *t.ExportersFrozen // one that is frozen answers
	switch {
	case answering == 0 && *t.ExportersDown > 0:
		return consoleapi.ScraperDown
	case !current && (answering == 0 || len(inv.devices) > 0 || len(services) > 0):
		return consoleapi.ScraperDown
	case len(services) == 0:
		return consoleapi.NoServices
	}
	for _, s := range services {
		if s.Pods.Settled == nil || *s.Pods.Settled > 0 {
			return consoleapi.Ready
		}
	}
	if slices.ContainsFunc(services, func(s *service) bool { return above(s.Pods.Warming) }) {
		return consoleapi.WarmingUp
	}
	return consoleapi.Ready
}

// everSeen distinguishes a store that never saw GPU telemetry from one that no longer does.
func (r *reading) everSeen(ctx context.Context) (consoleapi.State, error) {
	found, _, err := r.store.Series(ctx, store.Selection{Matchers: queries.Ever(), Limit: 1})
	switch {
	case err != nil:
		return "", err
	case len(found) > 0:
		return consoleapi.ScraperDown, nil
	default:
		return consoleapi.NotEnabled, nil
	}
}
