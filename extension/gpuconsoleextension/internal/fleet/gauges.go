// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/age"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// day is the time over which errors are counted.
const day = 24 * time.Hour

func putPipe(v *consoleapi.Values, m model.Metric, to *float64) {
	switch m[queries.Pipe] {
	case "tensor":
		v.Tensor = to
	case "fp16":
		v.FP16 = to
	case "fp32":
		v.FP32 = to
	}
}

// show reads the gauges of devices. Questions may not be open.
func show(ctx context.Context, q *ask.Questions, j *age.Judge, staleAfter time.Duration, devices []*inventory.Device) (map[*inventory.Device]consoleapi.Device, error) {
	shown := make(map[*inventory.Device]consoleapi.Device, len(devices))
	for _, part := range inParts(devices, selectDevices) {
		if err := showPart(ctx, q, j, staleAfter, part, shown); err != nil {
			return nil, err
		}
	}
	return shown, nil
}

func showPart(ctx context.Context, q *ask.Questions, j *age.Judge, staleAfter time.Duration, devices []*inventory.Device, shown map[*inventory.Device]consoleapi.Device) error {
	some := selectDevices(devices)
	q.More(ctx)
	gauges, recent := q.Vector(queries.DeviceValues(some)), q.Vector(queries.RecentDeviceValues(some, staleAfter))
	counted := []struct {
		found *model.Vector
		to    func(*consoleapi.Device) **float64
	}{
		{q.Vector(queries.UncorrectedRise(some, day)), func(d *consoleapi.Device) **float64 { return &d.UncorrectedErrors }},
		{q.Vector(queries.CorrectedRise(some, day)), func(d *consoleapi.Device) **float64 { return &d.CorrectedErrors }},
		{q.Vector(queries.Remapped(some)), func(d *consoleapi.Device) **float64 { return &d.RemappedRows }},
		{q.Vector(queries.RemappedRise(some, day)), func(d *consoleapi.Device) **float64 { return &d.RemappedRowsRise }},
	}
	rise := askXIDs(q, some)
	if err := q.Wait(); err != nil {
		return err
	}
	xids, err := rise(ctx)
	if err != nil {
		return err
	}
	by := make(map[inventory.Place]*inventory.Device, len(devices))
	for _, d := range devices {
		by[d.ID] = d
		shown[d] = withoutGauges(j, d, xids[d.ID])
	}
	young := make(map[model.Fingerprint]bool, len(*recent))
	for _, sample := range *recent {
		young[sample.Metric.Fingerprint()] = true
	}
	limits := map[*inventory.Device]bool{} // with a known enforced limit
	for _, sample := range *gauges {
		d := by[inventory.PlaceOf(sample.Metric)]
		// Beside values that are current, an older one would look as if it were.
		if d == nil || d.Current(j, d.Seen) && !young[sample.Metric.Fingerprint()] {
			continue
		}
		one := shown[d]
		if putGauge(&one, sample, limits[d]) {
			limits[d] = true
		}
		shown[d] = one
	}
	for _, c := range counted {
		for _, sample := range *c.found {
			if d := by[inventory.PlaceOf(sample.Metric)]; d != nil {
				one := shown[d]
				*c.to(&one) = optional.Pointer(max(0, float64(sample.Value)))
				shown[d] = one
			}
		}
	}
	for _, d := range devices {
		one := shown[d]
		slices.Sort(one.Throttle)
		one.Throttle = slices.Compact(one.Throttle)
		one.NotMeasured = notMeasured(&one.Values, []*inventory.Device{d})
		shown[d] = one
	}
	return nil
}

// selectDevices selects at least these: by node if that is few names.
func selectDevices(devices []*inventory.Device) queries.Selector {
	label, names := model.LabelName(""), []string{}
	for _, d := range devices {
		l := model.LabelName(queries.Node)
		if d.Identity[l] == "" || label != "" && l != label {
			label = ""
			break
		}
		label = l
		if name := string(d.Identity[l]); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if label != "" {
		return queries.Fits(queries.OneOf(string(label), names...))
	}
	ids := make([]string, 0, len(devices))
	for _, d := range devices {
		ids = append(ids, d.ID.Name)
	}
	slices.Sort(ids)
	return queries.Fits(queries.OneOf(queries.Device, slices.Compact(ids)...))
}

// withoutGauges is a device without its gauges.
func withoutGauges(j *age.Judge, d *inventory.Device, xids []consoleapi.XIDErrors) consoleapi.Device {
	m := d.Identity
	out := consoleapi.Device{
		ID: d.ID.Name, Parent: optional.Text(model.LabelValue(d.Parent)), Index: optional.Text(m[queries.Index]),
		Vendor: optional.Text(model.LabelValue(d.Vendor())), Model: optional.Text(model.LabelValue(d.Model())),
		MIGProfile: optional.Text(m[queries.MIGProfile]), MIGInstance: optional.Text(m[queries.MIGInstance]),
		PartitionProfile: optional.Text(m[queries.PartitionMode]), Partition: optional.Text(m[queries.Partition]),
		State: d.State, Idle: d.Idle, Throttle: []string{}, XIDErrors: xids, Reasons: []consoleapi.Reason{}, Told: d.ReportedAt(j, d.Seen),
		Holders: slices.Clone(d.Owners),
	}
	if out.Holders == nil {
		out.Holders = []consoleapi.Holder{}
	}
	slices.SortFunc(out.Holders, func(a, b consoleapi.Holder) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(optional.Value(a.Container), optional.Value(b.Container)))
	})
	if out.XIDErrors == nil {
		out.XIDErrors = []consoleapi.XIDErrors{}
	}
	return out
}

// putGauge notes a gauge, and reports whether it was the enforced power limit.
func putGauge(d *consoleapi.Device, sample *model.Sample, enforced bool) bool {
	m, v := sample.Metric, optional.Pointer(float64(sample.Value))
	switch string(m[model.MetricNameLabel]) {
	case queries.Utilization:
		if m[queries.Task] == "general" {
			d.Values.Utilization = v
		}
	case queries.MemoryUsage:
		d.Values.MemoryUsed = v
	case queries.MemoryLimit:
		d.Values.MemoryTotal = v
	case queries.PipeActive:
		putPipe(&d.Values, m, v)
	case queries.SMActive:
		d.Values.SM = v
	case queries.DRAMActive:
		d.Values.DRAM = v
	case queries.Power:
		d.Values.Power = v
	case queries.PowerLimit:
		isEnforced := m[queries.LimitKind] == "enforced"
		if isEnforced || !enforced {
			d.PowerLimit = v
		}
		return isEnforced
	case queries.Temperature:
		switch m[queries.Sensor] {
		case "gpu":
			d.Temperature = v
		case "memory":
			d.MemoryTemperature = v
		}
	case queries.Throttle:
		if reason := string(m[queries.Reason]); *v != 0 && reason != "" {
			d.Throttle = append(d.Throttle, reason)
		}
	case queries.XIDLast:
		d.XID = optional.Whole(v)
	}
	return false
}
