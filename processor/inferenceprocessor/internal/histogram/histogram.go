// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package histogram checks, converts and thins histograms without ever interpolating:
// what it returns is exact at every bound that is left.
package histogram // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/histogram"

import (
	"encoding/binary"
	"encoding/hex"
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
// before and after conversion, and the buckets add up to the count. A point without
// bounds and buckets is one of which only sum and count are known.
func Valid(p pmetric.HistogramDataPoint, convert func(float64) float64) bool {
	return counts(p, convert) && rise(p.ExplicitBounds(), convert)
}

// counts is Valid but for the bounds.
func counts(p pmetric.HistogramDataPoint, convert func(float64) float64) bool {
	if p.Count() > exact || !sound(convert(p.Sum())) {
		return false
	}
	bounds, buckets := p.ExplicitBounds().Len(), p.BucketCounts()
	if buckets.Len() == 0 {
		return bounds == 0
	}
	left, ok := without(p.Count(), buckets)
	return ok && left == 0 && buckets.Len() == bounds+1
}

func rise(bounds pcommon.Float64Slice, convert func(float64) float64) bool {
	below := math.Inf(-1)
	for i := range bounds.Len() {
		b := convert(bounds.At(i))
		if !finite(b) || b <= below {
			return false
		}
		below = b
	}
	return true
}

// Last remembers the bounds of the last valid point of a family: most others of it have
// the same.
type Last struct {
	bounds pcommon.Float64Slice
	layout uint32
	any    bool
}

// Layout is Valid and Layout of a point. Its family is converted as it was before.
func (l *Last) Layout(p pmetric.HistogramDataPoint, most int, convert func(float64) float64) (layout uint32, ok bool) {
	if !counts(p, convert) {
		return 0, false
	}
	bounds := p.ExplicitBounds()
	if l.any && bounds.Equal(l.bounds) {
		return l.layout, true
	}
	if !rise(bounds, convert) {
		return 0, false
	}
	if !l.any {
		l.bounds, l.any = pcommon.NewFloat64Slice(), true
	}
	bounds.CopyTo(l.bounds)
	l.layout = Layout(bounds, most, convert)
	return l.layout, true
}

// Possible reports whether a histogram can have a count and a sum.
func Possible(count, sum float64) bool { return count <= exact && sound(sum) }

// ValidExponential is Valid for an exponential histogram.
func ValidExponential(p pmetric.ExponentialHistogramDataPoint, convert func(float64) float64) bool {
	if p.Count() > exact || p.ZeroCount() > p.Count() || !sound(convert(p.Sum())) {
		return false
	}
	left, ok := without(p.Count()-p.ZeroCount(), p.Positive().BucketCounts())
	if ok {
		left, ok = without(left, p.Negative().BucketCounts())
	}
	return ok && left == 0
}

// without takes the counts of buckets from count, and reports whether there was enough:
// a sum of them could overflow.
func without(count uint64, buckets pcommon.UInt64Slice) (left uint64, ok bool) {
	for i := range buckets.Len() {
		n := buckets.At(i)
		if n > count {
			return 0, false
		}
		count -= n
	}
	return count, true
}

// sound reports whether a sum can be one of times, tokens or the like.
func sound(sum float64) bool { return finite(sum) && sum >= 0 }

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Layout identifies the bounds of a valid point after conversion, and those that Thin
// leaves: at most so many. None is the layout of a point without bounds.
func Layout(bounds pcommon.Float64Slice, most int, convert func(float64) float64) uint32 {
	if bounds.Len() == 0 {
		return None
	}
	var (
		d    xxhash.Digest
		room [8 * 32]byte // the hash is faster with many at once
	)
	d.Reset()
	text := room[:0]
	for i := range bounds.Len() {
		b := convert(bounds.At(i))
		if b == 0 {
			b = 0 // and not -0
		}
		text = binary.LittleEndian.AppendUint64(text, math.Float64bits(b))
		if len(text) == len(room) {
			_, _ = d.Write(text)
			text = room[:0]
		}
	}
	if bounds.Len() > most {
		text = binary.LittleEndian.AppendUint64(text, uint64(most))
	}
	_, _ = d.Write(text)
	return min(max(uint32(d.Sum64()), None+1), Exponential-1)
}

// Layouts that are no hash.
const (
	None        uint32 = 0              // of a point without bounds
	Exponential uint32 = math.MaxUint32 // of an exponential histogram
)

// Text is the value of inference.bounds for a layout.
func Text(layout uint32) string {
	if layout == None {
		return "none"
	}
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], layout)
	return hex.EncodeToString(b[:])
}

// Thin leaves at most max bounds in a valid point by joining buckets. Those stay that are
// nearest to the advised ones, and then every so many of the others. Which do depends on
// the bounds alone.
func Thin(p pmetric.HistogramDataPoint, max int, advised []float64) {
	if p.ExplicitBounds().Len() <= max {
		return
	}
	bounds := p.ExplicitBounds().AsRaw()
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
	n, sum := 0, uint64(0)
	for i, b := range bounds {
		sum += counts[i]
		if keep[i] {
			bounds[n], counts[n] = b, sum
			n, sum = n+1, 0
		}
	}
	counts[n] = sum + counts[len(bounds)]
	p.ExplicitBounds().FromRaw(bounds[:n])
	p.BucketCounts().FromRaw(counts[:n+1])
}

// nearest is the place of the bound that is nearest to v.
func nearest(bounds []float64, v float64) int {
	i, _ := slices.BinarySearch(bounds, v)
	if i == len(bounds) || i > 0 && v-bounds[i-1] < bounds[i]-v {
		return i - 1
	}
	return i
}

// maxScale is the greatest scale of an exponential histogram, either way. Within it
// offsets that move do not overflow; a double has no values that need more.
const maxScale = 20

// ConvertExponential multiplies the values of an exponential histogram by 2 to the
// power of a whole number, in place, which moves its buckets. By another factor it
// cannot be done exactly, nor where values would leave the range of a double or buckets
// would be split: then nothing is changed.
func ConvertExponential(p pmetric.ExponentialHistogramDataPoint, convert func(float64) float64) bool {
	fraction, exponent := math.Frexp(convert(1))
	if fraction != 0.5 {
		return false
	}
	exponent--
	if exponent == 0 {
		return true
	}
	var move int64 // of the buckets, by this many
	switch scale := p.Scale(); {
	case scale > maxScale || scale < -maxScale:
		return false
	case scale >= 0:
		move = int64(exponent) << scale
	case exponent%(1<<-scale) != 0:
		return false
	default:
		move = int64(exponent) >> -scale
	}
	positive, negative := int64(p.Positive().Offset())+move, int64(p.Negative().Offset())+move
	for _, offset := range []int64{positive, negative} {
		if offset != int64(int32(offset)) {
			return false
		}
	}
	for _, v := range []float64{p.ZeroThreshold(), p.Sum(), p.Min(), p.Max()} {
		if !finite(convert(v)) {
			return false
		}
	}
	p.Positive().SetOffset(int32(positive))
	p.Negative().SetOffset(int32(negative))
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
