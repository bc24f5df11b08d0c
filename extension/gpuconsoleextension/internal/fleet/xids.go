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

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// askXIDs asks for the XIDs of a day; the function returns them after Wait, and
// asks once more if there are any.
func askXIDs(q *ask.Questions, s queries.Selector) func(context.Context) (map[inventory.Place][]consoleapi.XIDErrors, error) {
	rise, first := q.Vector(queries.XIDRise(s, day)), q.Vector(queries.XIDFirst(s, day))
	began, before := q.Vector(queries.XIDBegan(s, day)), q.Vector(queries.XIDBefore(s, day))
	return func(ctx context.Context) (map[inventory.Place][]consoleapi.XIDErrors, error) {
		counted := map[model.Fingerprint]float64{}
		for _, sample := range *rise {
			counted[sample.Metric.Fingerprint()] = max(0, float64(sample.Value))
		}
		rose, err := appeared(ctx, q, *began, *before)
		if err != nil {
			return nil, err
		}
		out := map[inventory.Place][]consoleapi.XIDErrors{}
		for _, sample := range *first {
			m := sample.Metric
			n := counted[m.Fingerprint()]
			if rose[m.Fingerprint()] {
				n += float64(sample.Value) // it was not there before: it rose from nothing
			}
			if n > 0 {
				out[inventory.PlaceOf(m)] = append(out[inventory.PlaceOf(m)], consoleapi.XIDErrors{Code: string(m[queries.XIDCode]), Count: n, LowerBound: m[queries.XIDDerived] == "true"})
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
func appeared(ctx context.Context, q *ask.Questions, began, before model.Vector) (map[model.Fingerprint]bool, error) {
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
	q.More(ctx)
	watched, devices := q.Vector(queries.ReportedBefore(some, day)), q.Vector(queries.DevicesBegan(some, day))
	if err := q.Wait(); err != nil {
		return nil, err
	}
	since := map[inventory.Place]time.Time{}
	for _, sample := range *devices {
		since[inventory.PlaceOf(sample.Metric)] = nextMinute(ask.Seconds(sample.Value))
	}
	for _, sample := range *watched {
		since[inventory.PlaceOf(sample.Metric)] = q.At.Add(-day)
	}
	together := map[time.Time]model.Vector{} // with their device within a minute
	for _, sample := range young {
		minute, device := nextMinute(ask.Seconds(sample.Value)), since[inventory.PlaceOf(sample.Metric)]
		switch {
		case device.IsZero():
		case minute.After(device):
			appeared[sample.Metric.Fingerprint()] = true
		case minute.Equal(device):
			together[minute] = append(together[minute], sample)
		}
	}
	return appeared, exactly(ctx, q, together, appeared)
}

// maxExact is how many minutes are looked into.
const maxExact = 32

// exactly looks into the minutes in which both a counter and its device began.
func exactly(ctx context.Context, q *ask.Questions, together map[time.Time]model.Vector, appeared map[model.Fingerprint]bool) error {
	minutes := slices.SortedFunc(maps.Keys(together), func(a, b time.Time) int { return b.Compare(a) })
	var found [][2]*model.Vector
	q.More(ctx)
	for _, minute := range minutes[:min(len(minutes), maxExact)] {
		some, at := devicesOf(together[minute]), minute
		if at.After(q.At) {
			at = q.At
		}
		found = append(found, [2]*model.Vector{q.VectorAt(queries.XIDBeganExactly(some), at), q.VectorAt(queries.DevicesBeganExactly(some), at)})
	}
	if err := q.Wait(); err != nil {
		return err
	}
	for i, of := range found {
		began, since := map[model.Fingerprint]model.SampleValue{}, map[inventory.Place]model.SampleValue{}
		for _, sample := range *of[0] {
			began[sample.Metric.Fingerprint()] = sample.Value
		}
		for _, sample := range *of[1] {
			since[inventory.PlaceOf(sample.Metric)] = sample.Value
		}
		for _, sample := range together[minutes[i]] {
			if at, known := since[inventory.PlaceOf(sample.Metric)]; known && began[sample.Metric.Fingerprint()] > at {
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
