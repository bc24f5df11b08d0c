// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package histogram checks, converts and thins histograms without ever interpolating:
// what it returns is exact at every bound that is left.
package histogram // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/histogram"

import (
	"fmt"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// exact is the greatest count that a page's floating point numbers hold exactly. A
// scraper turns a bucket that is less than the one below it into a count above it.
const exact = 1 << 53

// Valid reports whether the counts of a point can be those of a histogram: bounds rise,
// and the buckets add up to the count. A point without bounds and buckets is one of
// which only sum and count are known.
func Valid(p pmetric.HistogramDataPoint) bool {
	bounds, buckets := p.ExplicitBounds(), p.BucketCounts()
	if buckets.Len() == 0 {
		return bounds.Len() == 0
	}
	if buckets.Len() != bounds.Len()+1 {
		return false
	}
	for i := range bounds.Len() {
		if b := bounds.At(i); math.IsNaN(b) || math.IsInf(b, 0) || i > 0 && b <= bounds.At(i-1) {
			return false
		}
	}
	var sum uint64
	for i := range buckets.Len() {
		n := buckets.At(i)
		if n > exact {
			return false
		}
		sum += n
	}
	return sum == p.Count() && !math.IsNaN(p.Sum()) && !math.IsInf(p.Sum(), 0)
}

// Layout identifies the bounds of a point after conversion. It is None for a point
// without bounds.
func Layout(bounds pcommon.Float64Slice, convert func(float64) float64) uint32 {
	if bounds.Len() == 0 {
		return None
	}
	var (
		d    xxhash.Digest
		text [8]byte
	)
	d.Reset()
	for i := range bounds.Len() {
		bits := math.Float64bits(convert(bounds.At(i)))
		for j := range text {
			text[j] = byte(bits >> (8 * j))
		}
		_, _ = d.Write(text[:])
	}
	if h := uint32(d.Sum64()); h != None {
		return h
	}
	return None + 1
}

// None is the layout of a point without bounds.
const None uint32 = 0

// Text is the value of inference.bounds for a layout.
func Text(layout uint32) string {
	if layout == None {
		return "none"
	}
	return fmt.Sprintf("%08x", layout)
}

// Convert converts bounds and sum in place.
func Convert(p pmetric.HistogramDataPoint, convert func(float64) float64) {
	bounds := p.ExplicitBounds()
	for i := range bounds.Len() {
		bounds.SetAt(i, convert(bounds.At(i)))
	}
	if p.HasSum() {
		p.SetSum(convert(p.Sum()))
	}
	if p.HasMin() {
		p.SetMin(convert(p.Min()))
	}
	if p.HasMax() {
		p.SetMax(convert(p.Max()))
	}
}

// Thin leaves at most max bounds in a point by joining buckets. Those stay that are
// nearest to the advised ones, and then every so many of the others.
func Thin(p pmetric.HistogramDataPoint, max int, advised []float64) {
	bounds := p.ExplicitBounds().AsRaw()
	if len(bounds) <= max {
		return
	}
	keep := make([]bool, len(bounds))
	kept := 0
	mark := func(i int) {
		if kept < max && !keep[i] {
			keep[i] = true
			kept++
		}
	}
	for _, a := range advised {
		mark(nearest(bounds, a))
	}
	for left, i := max-kept, 0; i < left; i++ {
		mark((2*i + 1) * len(bounds) / (2 * left))
	}
	for i := 0; kept < max; i++ {
		mark(i)
	}
	counts := p.BucketCounts().AsRaw()
	var (
		newBounds []float64
		newCounts []uint64
		sum       uint64
	)
	for i, b := range bounds {
		sum += counts[i]
		if keep[i] {
			newBounds, newCounts = append(newBounds, b), append(newCounts, sum)
			sum = 0
		}
	}
	p.ExplicitBounds().FromRaw(newBounds)
	p.BucketCounts().FromRaw(append(newCounts, sum+counts[len(bounds)]))
}

// nearest is the place of the bound that is nearest to v.
func nearest(bounds []float64, v float64) int {
	i, _ := slices.BinarySearch(bounds, v)
	if i == len(bounds) || i > 0 && v-bounds[i-1] < bounds[i]-v {
		return i - 1
	}
	return i
}

// ConvertExponential multiplies the values of an exponential histogram by 2 to the
// power of a whole number, in place, which moves its buckets. By another factor it
// cannot be done exactly, and nothing is changed.
func ConvertExponential(p pmetric.ExponentialHistogramDataPoint, convert func(float64) float64) bool {
	fraction, exponent := math.Frexp(convert(1))
	if fraction != 0.5 {
		return false
	}
	exponent--
	if exponent == 0 {
		return true
	}
	if p.Scale() < 0 && exponent%(1<<-p.Scale()) != 0 {
		return false
	}
	offset := int32(exponent)
	if p.Scale() >= 0 {
		offset <<= p.Scale()
	} else {
		offset >>= -p.Scale()
	}
	p.Positive().SetOffset(p.Positive().Offset() + offset)
	p.Negative().SetOffset(p.Negative().Offset() + offset)
	p.SetZeroThreshold(convert(p.ZeroThreshold()))
	if p.HasSum() {
		p.SetSum(convert(p.Sum()))
	}
	if p.HasMin() {
		p.SetMin(convert(p.Min()))
	}
	if p.HasMax() {
		p.SetMax(convert(p.Max()))
	}
	return true
}
