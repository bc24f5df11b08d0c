// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inventory // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"

import (
	"cmp"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/age"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// Current is the one rule of what counts, in cards, bars, tables and sums: a value
// is current while it is no older than stale_after, its exporter is not frozen, and
// the summary does not leave its device out as silent. All else is stale: it is
// shown with its age, and counts nowhere.
func (d *Device) Current(j *age.Judge, t time.Time) bool { return j.Fresh(t) && d.counts() }

// counts reports whether the values of a device are current.
func (d *Device) counts() bool { return d.FrozenSince.IsZero() && !d.Silent }

// ReportedAt is how current a device is. What a frozen exporter repeats is as old as the
// exporter has been frozen.
func (d *Device) ReportedAt(j *age.Judge, t time.Time) consoleapi.Told {
	if !d.FrozenSince.IsZero() && d.FrozenSince.Before(t) {
		t = d.FrozenSince
	}
	reported := j.Reported(t)
	reported.Stale = reported.Stale || !t.IsZero() && !d.counts()
	return reported
}

// amounts are the figures of a device that add up; nil is no current value.
type amounts struct {
	used, limit, power *float64
	Capacity           *float64 // the limit that was last known
}

// AskAmounts asks for the amounts of devices; the function notes them after Wait.
func AskAmounts(q *ask.Questions, staleAfter, remembered time.Duration, s queries.Selector) func(*Inventory) {
	of := func(metric string) *model.Vector { return q.Vector(queries.OfDevices(metric, s, staleAfter)) }
	used, limit, power := of(queries.MemoryUsage), of(queries.MemoryLimit), of(queries.Power)
	capacity := q.Vector(queries.Capacity(s, remembered))
	return func(inv *Inventory) {
		put := func(v *model.Vector, to func(*Device) **float64) {
			for _, sample := range *v {
				if d := inv.Devices[PlaceOf(sample.Metric)]; d != nil {
					*to(d) = optional.Pointer(float64(sample.Value))
				}
			}
		}
		put(used, func(d *Device) **float64 { return &d.Amounts.used })
		put(limit, func(d *Device) **float64 { return &d.Amounts.limit })
		put(power, func(d *Device) **float64 { return &d.Amounts.power })
		put(capacity, func(d *Device) **float64 { return &d.Amounts.Capacity })
		for _, d := range inv.Devices {
			if d.Amounts.Capacity == nil {
				d.Amounts.Capacity = d.Amounts.limit
			}
		}
	}
}

// Values are those of a device that are current, as far as amounts know them.
func (d *Device) Values(j *age.Judge) consoleapi.Values {
	v := consoleapi.Values{MemoryTotal: d.Amounts.Capacity}
	if d.counts() {
		v.MemoryUsed, v.Power = d.Amounts.used, d.Amounts.power
	}
	if d.Current(j, d.Measured) {
		v.Utilization = d.Utilization
	}
	return v
}

// Label is what people call a device: by its index on the node, else by its id.
func (d *Device) Label() string {
	index, instance := d.Identity[queries.Index], cmp.Or(d.Identity[queries.MIGInstance], d.Identity[queries.Partition])
	switch {
	case index == "":
		return d.ID.Name
	case instance != "":
		return "GPU " + string(index) + "/" + string(instance)
	default:
		return "GPU " + string(index)
	}
}
