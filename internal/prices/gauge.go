// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package prices

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Values of gauges that other receivers bring: prices of nodes, intensities of regions.
const (
	maxGaugeKeys   = 20_000 // nodes or regions of a gauge
	maxGaugeValues = 16     // changes of one of them
	// maxGaugeAge is how long a value holds that is not reported again.
	maxGaugeAge = 2 * time.Hour
	// gaugeHolds is how long the newest value holds before it is looked up again.
	gaugeHolds = time.Minute
)

// gauge is the values of a gauge by node or region.
type gauge map[string][]reported

// reported is a value from its first to its last report.
type reported struct {
	from, last time.Time
	value      int64
}

// add notes a value. It returns false where there are too many keys.
func (g gauge) add(key string, at time.Time, value int64) bool {
	known := g[key]
	if n := len(known); n > 0 {
		newest := &known[n-1]
		switch {
		case !at.After(newest.last):
			return true
		case newest.value == value && at.Sub(newest.last) <= maxGaugeAge:
			newest.last = at
			return true
		case n >= maxGaugeValues:
			known = append(known[:0], known[1:]...)
		}
	} else if len(g) >= maxGaugeKeys {
		for other, values := range g {
			if at.Sub(values[len(values)-1].last) > maxGaugeAge {
				delete(g, other)
			}
		}
		if len(g) >= maxGaugeKeys {
			return false
		}
	}
	g[key] = append(known, reported{at, at, value})
	return true
}

// at returns the value at a time, since when it was reported, and until when it can be taken for
// granted.
func (g gauge) at(key string, at time.Time) (value int64, from, until time.Time, ok bool) {
	until = at.Add(gaugeHolds)
	values := g[key]
	for i := len(values) - 1; i >= 0; i-- {
		v := &values[i]
		if v.from.After(at) {
			until = v.from
			continue
		}
		return v.value, v.from, until, at.Sub(v.last) <= maxGaugeAge
	}
	return 0, time.Time{}, until, false
}

// Readings are the values of gauges by name and key, as they are stored: the times of the first
// and the last report in Unix milliseconds, and the value.
type Readings map[string]map[string][][3]int64

// readings returns what may be asked for after a restart.
func (g gauge) readings(now time.Time) map[string][][3]int64 {
	all := make(map[string][][3]int64, len(g))
	for key, values := range g {
		for _, v := range values {
			if now.Sub(v.last) <= 2*maxGaugeAge {
				all[key] = append(all[key], [3]int64{v.from.UnixMilli(), v.last.UnixMilli(), v.value})
			}
		}
	}
	return all
}

// restore continues with readings. Those of a clock that was ahead, and values that cannot be,
// are left out. It returns false if there were any.
func (g gauge) restore(all map[string][][3]int64, now time.Time, possible func(value int64) bool) bool {
	ok := len(all) <= maxGaugeKeys
	for key, values := range all {
		var last time.Time
		for _, v := range values {
			r := reported{time.UnixMilli(v[0]), time.UnixMilli(v[1]), v[2]}
			if key == "" || len(g) >= maxGaugeKeys && g[key] == nil || len(g[key]) >= maxGaugeValues ||
				!r.from.After(last) || r.last.Before(r.from) || r.last.After(now) || !possible(r.value) {
				ok = false
				continue
			}
			g[key] = append(g[key], r)
			last = r.last
		}
	}
	return ok
}

func nodeOf(cluster, node string) string { return cluster + "\x00" + node }

// Gauges returns the names of the gauges that rules take prices from.
func (b *Book) Gauges() []string { return slices.Collect(maps.Keys(b.gauges)) }

// Observe notes what a gauge reports as the price of a GPU of a node for an hour. It returns
// false for what is no price. That includes 0: it looks the same as a missing price.
func (b *Book) Observe(name, cluster, node string, at time.Time, price float64) bool {
	const most = 1e9
	g := b.gauges[name]
	return g != nil && price > 0 && price < most && node != "" && g.add(nodeOf(cluster, node), at, int64(math.Round(price*nano)))
}

// Readings returns the values of the gauges that a restart needs.
func (b *Book) Readings(now time.Time) Readings {
	all := Readings{}
	for name, g := range b.gauges {
		all[name] = g.readings(now)
	}
	return all
}

// Restore continues with readings, each as of the time at which it was read. It returns false if
// some could not be used.
func (b *Book) Restore(all Readings, now time.Time) bool {
	ok := true
	for name, g := range b.gauges {
		ok = g.restore(all[name], now, func(value int64) bool { return value > 0 }) && ok
	}
	return ok
}

// Gauge returns the name of the gauge that intensities are taken from, and the attribute that
// has the region. It is empty without a gauge.
func (c *Carbon) Gauge() (name, attribute string) { return c.from.Metric, c.from.Attribute }

// Readings returns the values of the gauge that a restart needs.
func (c *Carbon) Readings(now time.Time) Readings {
	return Readings{c.from.Metric: c.gauge.readings(now)}
}

// Restore continues with readings, as Book.Restore does.
func (c *Carbon) Restore(all Readings, now time.Time) bool {
	return c.gauge.restore(all[c.from.Metric], now, func(value int64) bool { return value >= 0 && value <= maxGrams*1000 })
}

// Observe notes what the gauge reports as the intensity of a region. It returns false for what
// cannot be one.
func (c *Carbon) Observe(region string, at time.Time, gramsPerKWh float64) bool {
	return gramsPerKWh >= 0 && gramsPerKWh <= maxGrams && region != "" && c.gauge.add(region, at, int64(math.Round(gramsPerKWh*1000)))
}
