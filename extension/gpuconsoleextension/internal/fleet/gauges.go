// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"

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
func (r *reading) show(ctx context.Context, devices []*device) (map[*device]consoleapi.Device, error) {
	shown := make(map[*device]consoleapi.Device, len(devices))
	if len(devices) == 0 {
		return shown, nil
	}
	some := selectDevices(devices)
	r.more(ctx)
	gauges, recent := r.vector(queries.DeviceValues(some)), r.vector(queries.RecentDeviceValues(some, r.options.StaleAfter))
	errors := r.vector(queries.UncorrectedRise(some, day))
	rise := r.askXIDs(some)
	if err := r.wait(); err != nil {
		return nil, err
	}
	xids, err := rise(ctx)
	if err != nil {
		return nil, err
	}
	by := make(map[place]*device, len(devices))
	for _, d := range devices {
		by[d.id] = d
		shown[d] = r.deviceWithout(d, xids[d.id])
	}
	young := make(map[model.Fingerprint]bool, len(*recent))
	for _, sample := range *recent {
		young[sample.Metric.Fingerprint()] = true
	}
	limits := map[*device]bool{} // with a known enforced limit
	for _, sample := range *gauges {
		d := by[placeOf(sample.Metric)]
		// Beside values that are current, an older one would look as if it were.
		if d == nil || r.current(d, d.seen) && !young[sample.Metric.Fingerprint()] {
			continue
		}
		one := shown[d]
		if putGauge(&one, sample, limits[d]) {
			limits[d] = true
		}
		shown[d] = one
	}
	for _, sample := range *errors {
		if d := by[placeOf(sample.Metric)]; d != nil {
			one := shown[d]
			one.UncorrectedErrors = pointer(max(0, float64(sample.Value)))
			shown[d] = one
		}
	}
	for d, one := range shown {
		slices.Sort(one.Throttle)
		one.Throttle = slices.Compact(one.Throttle)
		shown[d] = one
	}
	return shown, nil
}

// selectDevices selects at least these: by node if that is few names.
func selectDevices(devices []*device) queries.Selector {
	label, names := model.LabelName(""), []string{}
	for _, d := range devices {
		l := model.LabelName(queries.Node)
		if d.identity[l] == "" || label != "" && l != label {
			label = ""
			break
		}
		label = l
		if name := string(d.identity[l]); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if label != "" {
		return queries.Fits(queries.OneOf(string(label), names...))
	}
	ids := make([]string, 0, len(devices))
	for _, d := range devices {
		ids = append(ids, d.id.name)
	}
	slices.Sort(ids)
	return queries.Fits(queries.OneOf(queries.Device, slices.Compact(ids)...))
}

// deviceWithout is a device without its gauges.
func (r *reading) deviceWithout(d *device, xids []consoleapi.XIDErrors) consoleapi.Device {
	m := d.identity
	out := consoleapi.Device{
		ID: d.id.name, Parent: text(model.LabelValue(d.parent)), Index: text(m[queries.Index]), Model: text(m[queries.Model]),
		MIGProfile: text(m[queries.MIGProfile]), MIGInstance: text(m[queries.MIGInstance]),
		State: d.state, Idle: d.idle, Throttle: []string{}, XIDErrors: xids, Reasons: []consoleapi.Reason{}, Told: r.reportedOf(d, d.seen),
		Holders: slices.Clone(d.owners),
	}
	if out.Holders == nil {
		out.Holders = []consoleapi.Holder{}
	}
	slices.SortFunc(out.Holders, func(a, b consoleapi.Holder) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(value(a.Container), value(b.Container)))
	})
	if out.XIDErrors == nil {
		out.XIDErrors = []consoleapi.XIDErrors{}
	}
	return out
}

// putGauge notes a gauge, and reports whether it was the enforced power limit.
func putGauge(d *consoleapi.Device, sample *model.Sample, enforced bool) bool {
	m, v := sample.Metric, pointer(float64(sample.Value))
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
		d.XID = whole(v)
	}
	return false
}

// askXIDs asks for the XIDs of a day; the function returns them after wait, and
// asks once more if there are any.
func (r *reading) askXIDs(s queries.Selector) func(context.Context) (map[place][]consoleapi.XIDErrors, error) {
	rise, first := r.vector(queries.XIDRise(s, day)), r.vector(queries.XIDFirst(s, day))
	began, before := r.vector(queries.XIDBegan(s, day)), r.vector(queries.XIDBefore(s, day))
	return func(ctx context.Context) (map[place][]consoleapi.XIDErrors, error) {
		counted := map[model.Fingerprint]float64{}
		for _, sample := range *rise {
			counted[sample.Metric.Fingerprint()] = max(0, float64(sample.Value))
		}
		appeared, err := r.appeared(ctx, *began, *before)
		if err != nil {
			return nil, err
		}
		out := map[place][]consoleapi.XIDErrors{}
		for _, sample := range *first {
			m := sample.Metric
			n := counted[m.Fingerprint()]
			if appeared[m.Fingerprint()] {
				n += float64(sample.Value) // it was not there before: it rose from nothing
			}
			if n > 0 {
				out[placeOf(m)] = append(out[placeOf(m)], consoleapi.XIDErrors{Code: string(m[queries.XIDCode]), Count: n, LowerBound: m[queries.XIDDerived] == "true"})
			}
		}
		for _, list := range out {
			slices.SortFunc(list, func(a, b consoleapi.XIDErrors) int {
				return cmp.Or(cmp.Compare(len(a.Code), len(b.Code)), cmp.Compare(a.Code, b.Code))
			})
		}
		return out, nil
	}
}

// appeared returns the counters that were absent from an earlier sample of their
// device. One that came with the device's very first sample may be old: what an
// exporter counted before anything looked at it is not known.
func (r *reading) appeared(ctx context.Context, began, before model.Vector) (map[model.Fingerprint]bool, error) {
	old := map[model.Fingerprint]bool{}
	for _, sample := range before {
		old[sample.Metric.Fingerprint()] = true
	}
	var young model.Vector
	for _, sample := range began {
		if !old[sample.Metric.Fingerprint()] {
			young = append(young, sample)
		}
	}
	appeared := map[model.Fingerprint]bool{}
	if len(young) == 0 {
		return appeared, nil
	}
	some := devicesOf(young)
	r.more(ctx)
	watched, devices := r.vector(queries.SeenBefore(some, day)), r.vector(queries.DevicesBegan(some, day))
	if err := r.wait(); err != nil {
		return nil, err
	}
	since := map[place]time.Time{}
	for _, sample := range *devices {
		since[placeOf(sample.Metric)] = nextMinute(seconds(sample.Value))
	}
	for _, sample := range *watched {
		since[placeOf(sample.Metric)] = r.at.Add(-day)
	}
	together := map[time.Time]model.Vector{} // with their device within a minute
	for _, sample := range young {
		minute, device := nextMinute(seconds(sample.Value)), since[placeOf(sample.Metric)]
		switch {
		case device.IsZero():
		case minute.After(device):
			appeared[sample.Metric.Fingerprint()] = true
		case minute.Equal(device):
			together[minute] = append(together[minute], sample)
		}
	}
	return appeared, r.exactly(ctx, together, appeared)
}

// maxExact is how many minutes are looked into.
const maxExact = 32

// exactly looks into the minutes in which both a counter and its device began.
func (r *reading) exactly(ctx context.Context, together map[time.Time]model.Vector, appeared map[model.Fingerprint]bool) error {
	minutes := slices.SortedFunc(maps.Keys(together), func(a, b time.Time) int { return b.Compare(a) })
	var found [][2]*model.Vector
	r.more(ctx)
	for _, minute := range minutes[:min(len(minutes), maxExact)] {
		some, at := devicesOf(together[minute]), minute
		if at.After(r.at) {
			at = r.at
		}
		found = append(found, [2]*model.Vector{r.vectorAt(queries.XIDBeganExactly(some), at), r.vectorAt(queries.DevicesBeganExactly(some), at)})
	}
	if err := r.wait(); err != nil {
		return err
	}
	for i, of := range found {
		began, since := map[model.Fingerprint]model.SampleValue{}, map[place]model.SampleValue{}
		for _, sample := range *of[0] {
			began[sample.Metric.Fingerprint()] = sample.Value
		}
		for _, sample := range *of[1] {
			since[placeOf(sample.Metric)] = sample.Value
		}
		for _, sample := range together[minutes[i]] {
			if at, known := since[placeOf(sample.Metric)]; known && began[sample.Metric.Fingerprint()] > at {
				appeared[sample.Metric.Fingerprint()] = true
			}
		}
	}
	return nil
}

// nextMinute is the end of the minute that a time is in.
func nextMinute(t time.Time) time.Time { return t.Add(time.Minute - 1).Truncate(time.Minute) }

// devicesOf selects the devices of some counters.
func devicesOf(counters model.Vector) queries.Selector {
	ids := make([]string, 0, len(counters))
	for _, sample := range counters {
		ids = append(ids, string(sample.Metric[queries.Device]))
	}
	slices.Sort(ids)
	return queries.Fits(queries.OneOf(queries.Device, slices.Compact(ids)...))
}

func placeOf(m model.Metric) place {
	return place{string(m[queries.Cluster]), string(m[queries.Device])}
}
