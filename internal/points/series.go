// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package points

import (
	"encoding/binary"
	"hash/maphash"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Contents are the kinds of points that a resource has.
type Contents struct {
	Live    bool              // there are points that are no stale markers
	Newest  pcommon.Timestamp // of the live ones
	Markers bool
}

// ContentsOf looks at every point of a resource.
func ContentsOf(rm pmetric.ResourceMetrics) (c Contents) {
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			Each(m, func(_ pcommon.Map, ts pcommon.Timestamp, stale bool) {
				if stale {
					c.Markers = true
				} else {
					c.Live, c.Newest = true, max(c.Newest, ts)
				}
			})
		}
	}
	return c
}

// CountLive is the number of the points of a resource that are no stale markers.
func CountLive(rm pmetric.ResourceMetrics) (n int) {
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			Each(m, func(_ pcommon.Map, _ pcommon.Timestamp, stale bool) {
				if !stale {
					n++
				}
			})
		}
	}
	return n
}

var seed = maphash.MakeSeed()

// Key identifies a series of one resource in this process: a hash of the metric's name
// and the point's attributes, whatever their order.
func Key(metric string, attrs pcommon.Map) uint64 {
	key := maphash.String(seed, metric)
	for k, v := range attrs.All() {
		key += HashAttribute(k, v) // the sum does not depend on the order
	}
	return key
}

// HashAttribute multiplies, so that the key's hash and the value's cannot be
// exchanged.
func HashAttribute(k string, v pcommon.Value) uint64 {
	return maphash.String(seed, k)*0x9E3779B97F4A7C15 ^ hashValue(v)
}

func hashValue(v pcommon.Value) uint64 {
	var number uint64
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return maphash.String(seed, v.Str())
	case pcommon.ValueTypeInt:
		number = uint64(v.Int())
	case pcommon.ValueTypeDouble:
		number = math.Float64bits(v.Double())
	case pcommon.ValueTypeBool:
		if v.Bool() {
			number = 1
		}
	default:
		return maphash.String(seed, v.AsString())
	}
	var b [9]byte
	b[0] = byte(v.Type())
	binary.LittleEndian.PutUint64(b[1:], number)
	return maphash.Bytes(seed, b[:])
}
