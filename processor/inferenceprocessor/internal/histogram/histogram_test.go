// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package histogram

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func same(v float64) float64    { return v }
func seconds(v float64) float64 { return v / 1000 } // from milliseconds

func pointOf(bounds []float64, buckets []uint64, sum float64) pmetric.HistogramDataPoint {
	p := pmetric.NewHistogramDataPoint()
	p.ExplicitBounds().FromRaw(bounds)
	p.BucketCounts().FromRaw(buckets)
	for _, n := range buckets {
		p.SetCount(p.Count() + n)
	}
	p.SetSum(sum)
	return p
}

func TestValid(t *testing.T) {
	nan, inf, least := math.NaN(), math.Inf(1), math.SmallestNonzeroFloat64
	for _, tt := range []struct {
		name    string
		bounds  []float64
		buckets []uint64
		sum     float64
		more    uint64 // count beyond the buckets
		convert func(float64) float64
		want    bool
	}{
		{name: "of two buckets", bounds: []float64{1}, buckets: []uint64{2, 3}, sum: 4, want: true},
		{name: "a first bound of 0", bounds: []float64{0, 1}, buckets: []uint64{0, 2, 3}, want: true},
		{name: "a negative bound", bounds: []float64{-1, 1}, buckets: []uint64{0, 2, 3}, want: true},
		{name: "all in one bucket", buckets: []uint64{5}, sum: 4, want: true},
		{name: "sum and count alone", more: 5, sum: 4, want: true},
		{name: "nothing observed", bounds: []float64{1}, buckets: []uint64{0, 0}, want: true},
		{name: "the greatest exact count", bounds: []float64{1}, buckets: []uint64{1 << 53, 0}, want: true},
		{name: "bounds fall", bounds: []float64{2, 1}, buckets: []uint64{1, 1, 1}},
		{name: "bounds stand still", bounds: []float64{1, 1}, buckets: []uint64{1, 1, 1}},
		{name: "bounds that conversion makes one", bounds: []float64{least, 2 * least}, buckets: []uint64{1, 1, 1}, convert: seconds},
		{name: "a bound is infinite", bounds: []float64{1, inf}, buckets: []uint64{1, 1, 1}},
		{name: "a bound is no number", bounds: []float64{nan}, buckets: []uint64{1, 1}},
		{name: "too few buckets", bounds: []float64{1, 2}, buckets: []uint64{1, 1}},
		{name: "too many buckets", bounds: []float64{1}, buckets: []uint64{1, 1, 1}},
		{name: "bounds alone", bounds: []float64{1}},
		{name: "fewer in buckets than counted", bounds: []float64{1}, buckets: []uint64{2, 3}, more: 1},
		{name: "more in buckets than counted", bounds: []float64{1}, buckets: []uint64{2, 3}, more: math.MaxUint64},
		{name: "a bucket that fell", bounds: []float64{1, 2}, buckets: []uint64{5, math.MaxUint64 - 1, 3}},
		{name: "buckets that overflow", bounds: []float64{1, 2, 3}, buckets: []uint64{1 << 63, 1 << 63, 4, 1}},
		{name: "more than a page counts exactly", bounds: []float64{1}, buckets: []uint64{1<<53 + 1, 0}},
		{name: "a count alone that fell", more: math.MaxUint64 - 1},
		{name: "a sum that is no number", bounds: []float64{1}, buckets: []uint64{2, 3}, sum: nan},
		{name: "sum and count alone, no number", more: 5, sum: nan},
		{name: "an infinite sum", bounds: []float64{1}, buckets: []uint64{2, 3}, sum: inf},
		{name: "a negative sum", bounds: []float64{1}, buckets: []uint64{2, 3}, sum: -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := pointOf(tt.bounds, tt.buckets, tt.sum)
			p.SetCount(p.Count() + tt.more)
			if tt.convert == nil {
				tt.convert = same
			}
			assert.Equal(t, tt.want, Valid(p, tt.convert))
		})
	}
	p := pointOf([]float64{1}, []uint64{2, 3}, 0)
	p.RemoveSum()
	assert.True(t, Valid(p, same), "without a sum")
}

func exponentialOf(scale int32, zero uint64, positive, negative []uint64) pmetric.ExponentialHistogramDataPoint {
	p := pmetric.NewExponentialHistogramDataPoint()
	p.SetScale(scale)
	p.SetZeroCount(zero)
	p.SetCount(zero)
	for buckets, counts := range map[pmetric.ExponentialHistogramDataPointBuckets][]uint64{p.Positive(): positive, p.Negative(): negative} {
		buckets.BucketCounts().FromRaw(counts)
		for _, n := range counts {
			p.SetCount(p.Count() + n)
		}
	}
	p.SetSum(7)
	return p
}

func TestValidExponential(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(pmetric.ExponentialHistogramDataPoint)
		want   bool
	}{
		{"sound", func(pmetric.ExponentialHistogramDataPoint) {}, true},
		{"count too high", func(p pmetric.ExponentialHistogramDataPoint) { p.SetCount(p.Count() + 1) }, false},
		{"count too low", func(p pmetric.ExponentialHistogramDataPoint) { p.SetCount(p.Count() - 1) }, false},
		{"count below that of zeros", func(p pmetric.ExponentialHistogramDataPoint) { p.SetCount(p.ZeroCount() - 1) }, false},
		{"a bucket that fell", func(p pmetric.ExponentialHistogramDataPoint) { p.Positive().BucketCounts().SetAt(0, math.MaxUint64) }, false},
		{"more than a page counts exactly", func(p pmetric.ExponentialHistogramDataPoint) {
			p.SetCount(p.Count() + 1<<53)
			p.SetZeroCount(p.ZeroCount() + 1<<53)
		}, false},
		{"a sum that is no number", func(p pmetric.ExponentialHistogramDataPoint) { p.SetSum(math.NaN()) }, false},
	} {
		p := exponentialOf(3, 2, []uint64{1, 0, 4}, []uint64{1})
		tt.change(p)
		assert.Equal(t, tt.want, ValidExponential(p, same), tt.name)
	}
}

// One layout is the same bounds in the vocabulary's unit, and nothing else.
func TestLayout(t *testing.T) {
	of := func(convert func(float64) float64, bounds ...float64) uint32 {
		return Layout(pointOf(bounds, nil, 0).ExplicitBounds(), 64, convert)
	}
	first := of(same, 0, 0.1, 2.5)
	assert.Equal(t, first, of(same, 0, 0.1, 2.5))
	assert.Equal(t, first, of(seconds, 0, 100, 2500), "milliseconds of the same")
	assert.Equal(t, first, of(same, math.Copysign(0, -1), 0.1, 2.5), "a zero has no sign")
	seen := map[uint32]bool{first: true, None: true, Exponential: true}
	for _, bounds := range [][]float64{{0, 0.1}, {0.1, 2.5}, {0, 0.1, 2.6}, {0, 0.1, 2.5, 5}, {0, math.Nextafter(0.1, 1), 2.5}, {0}, {1}} {
		layout := of(same, bounds...)
		assert.False(t, seen[layout], "%v", bounds)
		seen[layout] = true
	}
	bounds := pointOf([]float64{1, 2, 3, 4}, nil, 0).ExplicitBounds()
	assert.Equal(t, Layout(bounds, 4, same), Layout(bounds, 64, same), "both leave all")
	assert.NotEqual(t, Layout(bounds, 3, same), Layout(bounds, 4, same))
	assert.NotEqual(t, Layout(bounds, 3, same), Layout(bounds, 2, same))
	assert.Equal(t, None, of(same))
	assert.Equal(t, "none", Text(None))
	assert.Equal(t, "0000002a", Text(42))
	assert.Regexp(t, "^[0-9a-f]{8}$", Text(first))
}

// A layout is published: another hash would begin every series again.
func TestLayoutStays(t *testing.T) {
	p := pointOf([]float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}, nil, 0)
	assert.Equal(t, "630ab86e", Text(Layout(p.ExplicitBounds(), 64, same)))
}

func TestThin(t *testing.T) {
	for _, tt := range []struct {
		name    string
		max     int
		advised []float64
		bounds  []float64
		buckets []uint64
	}{
		{"few enough", 5, nil, []float64{1, 2, 3, 4, 5}, []uint64{1, 2, 4, 8, 16, 32}},
		{"nearest to the advised", 2, []float64{2.1, 4.9}, []float64{2, 5}, []uint64{3, 28, 32}},
		{"one bound for two advised, another from the rest", 2, []float64{2.1, 2.2}, []float64{2, 3}, []uint64{3, 4, 56}},
		{"advised beyond both ends", 2, []float64{-7, 70}, []float64{1, 5}, []uint64{1, 30, 32}},
		{"none advised", 1, nil, []float64{3}, []uint64{7, 56}},
		{"more advised than stay", 1, []float64{4, 1}, []float64{4}, []uint64{15, 48}},
		{"no bound", 0, nil, []float64{}, []uint64{63}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := pointOf([]float64{1, 2, 3, 4, 5}, []uint64{1, 2, 4, 8, 16, 32}, 9)
			p.Exemplars().AppendEmpty().SetDoubleValue(2.5)
			Thin(p, tt.max, tt.advised)
			assert.Equal(t, tt.bounds, append([]float64{}, p.ExplicitBounds().AsRaw()...))
			assert.Equal(t, tt.buckets, p.BucketCounts().AsRaw())
			assert.Equal(t, uint64(63), p.Count())
			assert.InDelta(t, 9, p.Sum(), 0)
			assert.Equal(t, 1, p.Exemplars().Len())
		})
	}
}

// below is how many observations of a point are at most each of its bounds.
func below(p pmetric.HistogramDataPoint) map[float64]uint64 {
	at, sum := map[float64]uint64{}, uint64(0)
	for i := range p.ExplicitBounds().Len() {
		sum += p.BucketCounts().At(i)
		at[p.ExplicitBounds().At(i)] = sum
	}
	return at
}

// requireThinned: what Thin left is exact at each bound, and depends on bounds alone.
func requireThinned(t *testing.T, p pmetric.HistogramDataPoint, most int, advised []float64) {
	before := below(p)
	thin := pmetric.NewHistogramDataPoint()
	p.CopyTo(thin)
	Thin(thin, most, advised)
	require.True(t, Valid(thin, same))
	require.Equal(t, min(most, len(before)), thin.ExplicitBounds().Len())
	for bound, n := range below(thin) {
		require.Contains(t, before, bound)
		require.Equal(t, before[bound], n, bound)
	}
	other := pointOf(p.ExplicitBounds().AsRaw(), make([]uint64, p.BucketCounts().Len()), 0)
	Thin(other, most, advised)
	require.Equal(t, thin.ExplicitBounds().AsRaw(), other.ExplicitBounds().AsRaw())
	require.Equal(t, Layout(thin.ExplicitBounds(), 64, same), Layout(other.ExplicitBounds(), 64, same))
}

func TestThinIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		bounds := make([]float64, 1+r.IntN(200))
		for i := range bounds {
			bounds[i] = r.ExpFloat64() * 10
		}
		slices.Sort(bounds)
		bounds = slices.Compact(bounds)
		buckets := make([]uint64, len(bounds)+1)
		for i := range buckets {
			buckets[i] = r.Uint64N(1 << 20)
		}
		advised := make([]float64, r.IntN(20))
		for i := range advised {
			advised[i] = r.ExpFloat64() * 10
		}
		requireThinned(t, pointOf(bounds, buckets, 1), r.IntN(80), advised)
	}
}

// An exponential histogram is converted by moving its buckets, or not at all.
func TestConvertExponential(t *testing.T) {
	by := func(factor float64) func(float64) float64 {
		return func(v float64) float64 { return v * factor }
	}
	for _, tt := range []struct {
		name    string
		scale   int32
		factor  float64
		offset  int32
		want    bool
		shifted int32
	}{
		{name: "by 1", scale: 3, factor: 1, want: true},
		{name: "by 2", scale: 0, factor: 2, want: true, shifted: 1},
		{name: "by 1024, finer", scale: 3, factor: 1024, want: true, shifted: 80},
		{name: "by a quarter", scale: 1, factor: 0.25, want: true, shifted: -4},
		{name: "by 16, coarser", scale: -2, factor: 16, want: true, shifted: 1},
		{name: "by 8 of which buckets are not multiples", scale: -2, factor: 8},
		{name: "by a thousandth", scale: 3, factor: 0.001},
		{name: "by a negative number", scale: 0, factor: -2},
		{name: "by 0", scale: 0, factor: 0},
		{name: "beyond the range of offsets", scale: 20, factor: 1024, offset: math.MaxInt32},
		{name: "a scale that no double needs", scale: 40, factor: 2},
		{name: "a scale that is nonsense", scale: -70, factor: 2},
		{name: "the least scale", scale: math.MinInt32, factor: 2},
		{name: "a sum beyond the range of a double", scale: 0, factor: math.Ldexp(1, 1023)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := exponentialOf(tt.scale, 2, []uint64{1, 4}, []uint64{1})
			p.Positive().SetOffset(tt.offset)
			p.SetZeroThreshold(0.5)
			p.SetMin(-3)
			p.SetMax(4)
			before := pmetric.NewExponentialHistogramDataPoint()
			p.CopyTo(before)
			require.Equal(t, tt.want, ConvertExponential(p, by(tt.factor)))
			want := pmetric.NewExponentialHistogramDataPoint()
			before.CopyTo(want)
			if tt.want {
				want.Positive().SetOffset(tt.offset + tt.shifted)
				want.Negative().SetOffset(tt.shifted)
				want.SetZeroThreshold(0.5 * tt.factor)
				want.SetSum(7 * tt.factor)
				want.SetMin(-3 * tt.factor)
				want.SetMax(4 * tt.factor)
			}
			require.Equal(t, want, p)
		})
	}
}

// FuzzHistogram reads bounds and buckets: what is valid stays so, exact at each bound,
// when it is thinned, and nothing panics.
func FuzzHistogram(f *testing.F) {
	encode := func(bounds []float64, buckets ...uint64) (b []byte) {
		for i, n := range buckets {
			if i < len(bounds) {
				b = binary.LittleEndian.AppendUint64(b, math.Float64bits(bounds[i]))
			}
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		return b
	}
	f.Add(encode([]float64{0, 0.1, 2.5}, 1, 2, 3, 4), uint8(2), int32(3), 1.0)
	f.Add(encode([]float64{1, 1}, 1, math.MaxUint64, 3), uint8(1), int32(-70), 2.0)
	f.Add(encode(nil, 9), uint8(0), int32(20), 0.001)
	f.Fuzz(func(t *testing.T, in []byte, most uint8, scale int32, factor float64) {
		var bounds []float64
		var buckets []uint64
		for i := 0; len(in) >= 8; i++ {
			v := binary.LittleEndian.Uint64(in)
			if in = in[8:]; i%2 == 0 && len(in) >= 8 {
				bounds = append(bounds, math.Float64frombits(v))
			} else {
				buckets = append(buckets, v)
			}
		}
		convert := func(v float64) float64 { return v * factor }
		p := pointOf(bounds, buckets, float64(len(in)))
		if Valid(p, convert) {
			for i := range bounds {
				p.ExplicitBounds().SetAt(i, convert(bounds[i]))
			}
			require.True(t, Valid(p, same))
			require.Equal(t, Layout(p.ExplicitBounds(), 64, same), Layout(pointOf(bounds, nil, 0).ExplicitBounds(), 64, convert))
			requireThinned(t, p, int(most), bounds)
		}
		e := exponentialOf(scale, 0, buckets, nil)
		valid := ValidExponential(e, convert)
		if ConvertExponential(e, convert) {
			require.Equal(t, valid, ValidExponential(e, same))
		}
	})
}

// BenchmarkPoint is what a point of 20 bounds costs here: its checks and its layout.
func BenchmarkPoint(b *testing.B) {
	bounds := make([]float64, 20)
	buckets := make([]uint64, len(bounds)+1)
	for i := range bounds {
		bounds[i], buckets[i] = float64(i+1)*50, uint64(i)
	}
	p := pointOf(bounds, buckets, 100)
	b.ReportAllocs()
	for b.Loop() {
		if !Valid(p, seconds) || Layout(p.ExplicitBounds(), 64, seconds) == None {
			b.Fatal("not valid")
		}
	}
}

// BenchmarkThin is one of 1,024 bounds, of which 64 stay. Copying the point is timed too.
func BenchmarkThin(b *testing.B) {
	bounds := make([]float64, 1024)
	buckets := make([]uint64, len(bounds)+1)
	for i := range bounds {
		bounds[i], buckets[i] = float64(i+1), 1
	}
	from, p := pointOf(bounds, buckets, 100), pmetric.NewHistogramDataPoint()
	b.ReportAllocs()
	for b.Loop() {
		from.CopyTo(p)
		Thin(p, 64, bounds[:14])
	}
}

// TestChecksAllocateNothing holds what the benchmark shows.
func TestChecksAllocateNothing(t *testing.T) {
	p := pointOf([]float64{1, 2, 3}, []uint64{1, 2, 3, 4}, 5)
	bounds := p.ExplicitBounds()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if !Valid(p, seconds) || Layout(bounds, 64, seconds) == None {
			t.Fatal("not valid")
		}
	}))
}
