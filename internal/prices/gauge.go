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

// at returns the value at a time, and until when it can be taken for granted.
func (g gauge) at(key string, at time.Time) (value int64, until time.Time, ok bool) {
	until = at.Add(gaugeHolds)
	values := g[key]
	for i := len(values) - 1; i >= 0; i-- {
		v := &values[i]
		if v.from.After(at) {
			until = v.from
			continue
		}
		return v.value, until, at.Sub(v.last) <= maxGaugeAge
	}
	return 0, until, false
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

// Gauge returns the name of the gauge that intensities are taken from, and the attribute that
// has the region. It is empty without a gauge.
func (c *Carbon) Gauge() (name, attribute string) { return c.from.Metric, c.from.Attribute }

// Observe notes what the gauge reports as the intensity of a region. It returns false for what
// cannot be one.
func (c *Carbon) Observe(region string, at time.Time, gramsPerKWh float64) bool {
	return gramsPerKWh >= 0 && gramsPerKWh <= maxGrams && region != "" && c.gauge.add(region, at, int64(math.Round(gramsPerKWh*1000)))
}
