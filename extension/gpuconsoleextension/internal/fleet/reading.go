// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"context"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/age"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/boards"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// reading is one response in the making: everything in it is of one moment.
type reading struct {
	*ask.Questions
	*age.Judge
	store      store.Store
	options    Options
	thresholds Thresholds
}

// inventory asks for some devices; the function returns them after Wait.
func (r *reading) inventory(devices queries.Selector) func(context.Context) (*inventory.Inventory, error) {
	return inventory.Ask(r.Questions, r.Judge, inventory.Limits{Remembered: r.options.Remembered, IdleThreshold: r.thresholds.IdleThreshold, IdleFor: r.thresholds.IdleFor}, devices)
}

// show reads the gauges of devices. Questions may not be open.
func (r *reading) show(ctx context.Context, devices []*inventory.Device) (map[*inventory.Device]consoleapi.Device, error) {
	return show(ctx, r.Questions, r.Judge, r.options.StaleAfter, devices)
}

// showWithHealth is show with the health of physical devices.
func (r *reading) showWithHealth(ctx context.Context, all *boards.Fleet, devices []*inventory.Device) (map[*inventory.Device]consoleapi.Device, error) {
	shown, err := r.show(ctx, devices)
	if err != nil {
		return shown, err
	}
	for _, part := range inParts(devices, selectDevices) {
		r.More(ctx)
		details := boards.AskDetails(r.Questions, r.options.StaleAfter, selectDevices(part))
		if err := r.Wait(); err != nil {
			return nil, err
		}
		found := details()
		for _, d := range part {
			if one := shown[d]; physical(d) {
				one.Health, one.Straggler = optional.Pointer(all.Of(d, found)), found.Straggler(d.ID)
				shown[d] = one
			}
		}
	}
	return shown, nil
}

// fleet reads all services and devices. Other questions may have been asked before.
func (r *reading) fleet(ctx context.Context) ([]*service, *inventory.Inventory, error) {
	return r.servicesAndDevices(ctx, queries.All, queries.All)
}

// servicesAndDevices reads some services, with what some devices add to them.
func (r *reading) servicesAndDevices(ctx context.Context, some, devices queries.Selector) ([]*service, *inventory.Inventory, error) {
	inventory, amounts := r.inventory(devices), inventory.AskAmounts(r.Questions, r.options.StaleAfter, r.options.Remembered, devices)
	missing, newest := r.Vector(queries.MissingPods(some)), r.Vector(queries.NewestEvaluations(devices))
	found, err := services(ctx, r.Questions, r.Judge, r.options.Remembered, some)
	if err != nil {
		return nil, nil, err
	}
	inv, err := inventory(ctx)
	if err != nil {
		return nil, nil, err
	}
	amounts(inv)
	judge(inv, found, missing)
	hold(inv, found)
	return withoutEnded(found, inv, newest, r.At, r.options.gap()), inv, nil
}

// published are the thresholds that gpu_summary published, if it published them all;
// else the others.
func published(found model.Vector, others Thresholds) Thresholds {
	values := map[string]float64{}
	for _, sample := range found {
		values[string(sample.Metric[model.MetricNameLabel])] = float64(sample.Value)
	}
	seconds := func(name string) time.Duration { return time.Duration(values[name] * float64(time.Second)) }
	t := Thresholds{
		Warmup: seconds(queries.SummaryWarmup), PartialThreshold: values[queries.SummaryPartialThreshold],
		IdleThreshold: values[queries.SummaryIdleThreshold], IdleFor: seconds(queries.SummaryIdleFor), Published: true,
	}
	if len(values) < 4 {
		return others
	}
	return t
}
