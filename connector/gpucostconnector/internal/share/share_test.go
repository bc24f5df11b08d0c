// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/migprofile"
)

func TestFromFloat(t *testing.T) {
	for _, tt := range []struct {
		in   float64
		want Fraction
	}{
		{1, Whole},
		{1.0 / 3, Fraction{1, 3}},
		{3.0 / 7, Fraction{3, 7}},
		{0.25, Fraction{1, 4}},
		{0.3, Fraction{3, 10}},
		{20000.0 / 81559, Fraction{20000, 81559}},
		{1e-9, Fraction{1, MaxDenominator}},
		{math.Nextafter(0.5, 1), Fraction{1, 2}},
		{0, Fraction{}},
		{-0.5, Fraction{}},
		{1.01, Fraction{}},
		{math.NaN(), Fraction{}},
		{math.Inf(1), Fraction{}},
	} {
		got, ok := FromFloat(tt.in)
		assert.Equal(t, tt.want, got, "%v", tt.in)
		assert.Equal(t, tt.want != Fraction{}, ok, "%v", tt.in)
	}
}

// The share that a float was computed from comes back, whatever the board's memory is.
func TestEveryFractionComesBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		q := 1 + r.Int64N(MaxDenominator)
		p := 1 + r.Int64N(q)
		want, _ := Of(p, q)
		got, ok := FromFloat(float64(p) / float64(q))
		require.True(t, ok)
		require.Equal(t, want, got)
	}
}

func TestReplica(t *testing.T) {
	assert.Equal(t, Fraction{1, 4}, Replica(Whole, 4))
	assert.Equal(t, Fraction{3, 28}, Replica(Fraction{3, 7}, 4))
	assert.Equal(t, Fraction{3, 7}, Replica(Fraction{3, 7}, 0))
	assert.Equal(t, Fraction{}, Fraction{}.Times(Whole))
	assert.False(t, Fraction{}.Valid())
}

func TestInstance(t *testing.T) {
	const h100, h200, a100, a30 = 81_559, 143_771, 40_960, 24_576
	for _, tt := range []struct {
		model, profile        string
		memory                int64
		compute, byMem, byTwo Fraction
	}{
		{"NVIDIA H100 80GB HBM3", "3g.40gb", h100, Fraction{3, 7}, Fraction{1, 2}, Fraction{13, 28}},
		{"NVIDIA H100 80GB HBM3", "1g.10gb", h100, Fraction{1, 7}, Fraction{1, 8}, Fraction{15, 112}},
		{"NVIDIA H100 80GB HBM3", "1g.10gb+me", h100, Fraction{1, 7}, Fraction{1, 8}, Fraction{15, 112}},
		{"NVIDIA H100 80GB HBM3", "1g.20gb", h100, Fraction{1, 7}, Fraction{1, 4}, Fraction{11, 56}},
		{"NVIDIA H100 80GB HBM3", "1c.4g.40gb", h100, Fraction{4, 7}, Fraction{1, 2}, Fraction{15, 28}},
		{"NVIDIA H100 80GB HBM3", "7g.80gb", h100, Whole, Whole, Whole},
		{"NVIDIA H100 80GB HBM3", "3g.40gb", 0, Fraction{3, 7}, Fraction{1, 2}, Fraction{13, 28}},
		{"NVIDIA H200", "1g.35gb", h200, Fraction{1, 7}, Fraction{1, 4}, Fraction{11, 56}},
		{"NVIDIA A100-PCIE-40GB", "2g.10gb", a100, Fraction{2, 7}, Fraction{1, 4}, Fraction{15, 56}},
		{"NVIDIA A30", "2g.12gb", a30, Fraction{1, 2}, Fraction{1, 2}, Fraction{1, 2}},
		{"NVIDIA A30", "1g.6gb", 0, Fraction{1, 4}, Fraction{1, 4}, Fraction{1, 4}},
	} {
		profile, ok := migprofile.Parse(tt.profile)
		require.True(t, ok)
		slices, found := SlicesOf(tt.model, nil)
		require.True(t, found, tt.model)
		for by, want := range map[MIGBy]Fraction{ByCompute: tt.compute, ByMemory: tt.byMem, ByMean: tt.byTwo} {
			got, estimated, ok := Instance(profile, slices, by, tt.memory)
			assert.True(t, ok && !estimated)
			assert.Equal(t, want, got, "%s %s %s", tt.model, tt.profile, by)
		}
	}
}

func TestUnknownModel(t *testing.T) {
	slices, found := SlicesOf("Board 9000", nil)
	assert.False(t, found)
	got, estimated, ok := Instance(migprofile.Profile{Compute: 1, MemoryGB: 12}, slices, ByCompute, 48*1024)
	assert.True(t, ok && estimated)
	assert.Equal(t, Fraction{1, 4}, got)
	_, _, ok = Instance(migprofile.Profile{Compute: 1, MemoryGB: 12}, slices, ByCompute, 0)
	assert.False(t, ok)

	slices, found = SlicesOf("Board 9000", []ModelSlices{{"board 9000", Slices{6, 6}}})
	assert.True(t, found)
	assert.Equal(t, Slices{6, 6}, slices)
	slices, _ = SlicesOf("NVIDIA H20-3e", nil)
	assert.Equal(t, Slices{7, 8}, slices, "an H20 with more memory")
	slices, _ = SlicesOf("NVIDIA A300", nil)
	assert.Zero(t, slices, "an A300 is no A30")
}

// In no layout that NVIDIA supports do the instances exceed their board.
func TestLayoutsFit(t *testing.T) {
	layouts := map[Slices][][]string{
		{7, 8}: {
			{"7g.80gb"},
			{"4g.40gb", "3g.40gb"},
			{"4g.40gb", "2g.20gb", "1g.10gb"},
			{"4g.40gb", "1g.10gb", "1g.10gb", "1g.10gb"},
			{"3g.40gb", "3g.40gb"},
			{"3g.40gb", "2g.20gb", "1g.10gb"},
			{"3g.40gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb"},
			{"2g.20gb", "2g.20gb", "2g.20gb", "1g.10gb"},
			{"1g.20gb", "1g.20gb", "1g.20gb", "1g.20gb"},
			{"1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb"},
		},
		{4, 4}: {
			{"4g.96gb"}, {"2g.48gb", "2g.48gb"}, {"2g.48gb", "1g.24gb", "1g.24gb"}, {"1g.24gb", "1g.24gb", "1g.24gb", "1g.24gb"},
		},
		{2, 2}: {{"2g.48gb"}, {"1g.24gb", "1g.24gb"}},
	}
	memory := map[Slices]int64{{7, 8}: 81_559, {4, 4}: 97_887, {2, 2}: 48_935}
	for _, m := range known {
		for _, layout := range layouts[m.Slices] {
			for _, by := range []MIGBy{ByCompute, ByMemory, ByMean} {
				shares := make([]Fraction, len(layout))
				for i, name := range layout {
					p, ok := migprofile.Parse(name)
					require.True(t, ok)
					shares[i], _, ok = Instance(p, m.Slices, by, memory[m.Slices])
					require.True(t, ok)
				}
				weights := make([]int64, len(shares))
				whole, over := Divide(shares, weights)
				assert.False(t, over, "%s %v by %s: %v", m.Model, layout, by, shares)
				for i, s := range shares {
					assert.Equal(t, s.P*whole, weights[i]*s.Q)
				}
			}
		}
	}
}

func TestDivide(t *testing.T) {
	weights := make([]int64, 4)
	whole, over := Divide([]Fraction{{1, 2}, {1, 3}, {}, {1, 7}}, weights)
	assert.False(t, over)
	assert.Equal(t, int64(42), whole)
	assert.Equal(t, []int64{21, 14, 0, 6}, weights)

	whole, over = Divide([]Fraction{{1, 2}, {1, 2}, {1, 2}, {1, 2}}, weights)
	assert.True(t, over, "four halves are scaled to quarters")
	assert.Equal(t, int64(4), whole)
	assert.Equal(t, []int64{1, 1, 1, 1}, weights)
}

func TestPartition(t *testing.T) {
	memory, cores := Fraction{1, 4}, Fraction{1, 2}
	assert.Equal(t, memory, Partition(memory, cores, VGPUByMemory))
	assert.Equal(t, cores, Partition(memory, cores, VGPUByCores))
	assert.Equal(t, memory, Partition(memory, Fraction{}, VGPUByCores), "no limit of cores")
}

// Whatever the shares and the intervals: the parts add up, none is below 0, and none is
// ever more than some milliseconds from its exact due.
func TestApportion(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		shares := make([]Fraction, 1+r.IntN(12))
		for i := range shares {
			q := 1 + r.Int64N(200)
			shares[i], _ = Of(1+r.Int64N(q), q*int64(len(shares)))
		}
		weights := make([]int64, len(shares)+1)
		whole, over := Divide(shares, weights[:len(shares)])
		require.False(t, over)
		rest := whole
		for _, w := range weights[:len(shares)] {
			rest -= w
		}
		weights[len(shares)] = rest
		carried, parts, sums := make([]int64, len(weights)), make([]int64, len(weights)), make([]int64, len(weights))
		elapsed := int64(0)
		for range 200 {
			amount := r.Int64N(20_000) / (1 + r.Int64N(20_000))
			Apportion(amount, weights, whole, carried, parts)
			elapsed += amount
			total := int64(0)
			for i, p := range parts {
				require.GreaterOrEqual(t, p, int64(0))
				total += p
				sums[i] += p
				require.Equal(t, weights[i]*elapsed, sums[i]*whole+carried[i])
				require.LessOrEqual(t, max(carried[i], -carried[i]), 3*whole)
			}
			require.Equal(t, amount, total)
		}
	}
}
