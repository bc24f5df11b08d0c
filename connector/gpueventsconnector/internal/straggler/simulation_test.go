// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// job is a service that runs for days: boards with clocks of their own, noise, and phases.
type job struct {
	random  *rand.Rand
	members []*Member
	own     []float64    // of each board, as a fraction of the model's clock
	recent  [][5]float64 // minutes of each board, which make its mean
	minutes int

	shift  []float64 // of each board in this phase
	common float64   // of all of them
	left   int       // minutes of this phase
	phases int
}

// newJob makes a job of boards with that standard deviation.
func newJob(random *rand.Rand, boards int, spread float64) *job {
	j := &job{random: random, own: make([]float64, boards), shift: make([]float64, boards), recent: make([][5]float64, boards)}
	for i := range boards {
		j.members = append(j.members, &Member{})
		j.own[i] = 1 + spread*random.NormFloat64()
	}
	return j
}

// phase begins another phase, of 16 minutes to an hour. All boards are limited by power or
// not. In every sixth phase a third of them or more have another load than the others,
// and another sixth is one board that does something else for five minutes at most.
func (j *job) phase() {
	j.left, j.common = 15+j.random.IntN(45), 1-0.15*j.random.Float64()
	clear(j.shift)
	boards := len(j.shift)
	switch j.phases++; j.phases % 2 * j.random.IntN(3) {
	case 1:
		down := -0.15 - 0.15*j.random.Float64()
		for i := range boards/3 + 1 + j.random.IntN(boards/3) {
			j.shift[i] = down
		}
	case 2:
		j.left = j.random.IntN(5)
		j.shift[j.random.IntN(boards)] = -0.3 * j.random.Float64()
	}
}

// minute goes on by one minute. The mean of a board's minute has a noise of 1 %.
func (j *job) minute(peers *Peers) {
	if j.left--; j.left < 0 {
		j.phase()
	}
	for i, m := range j.members {
		r := &j.recent[i]
		r[j.minutes%5] = j.common * j.own[i] * (1 + j.shift[i] + 0.01*j.random.NormFloat64())
		m.Clock = (r[0] + r[1] + r[2] + r[3] + r[4]) / 5
	}
	if j.minutes++; j.minutes >= 5 {
		peers.Compare(j.members)
	}
}

// run returns how often each board became slow.
func (j *job) run(peers *Peers, minutes int) []int {
	flags, before := make([]int, len(j.members)), make([]bool, len(j.members))
	for range minutes {
		j.minute(peers)
		for i, m := range j.members {
			if m.Slow && !before[i] {
				flags[i]++
			}
			before[i] = m.Slow
		}
	}
	return flags
}

// A board that is called slow is slow: in 10,000 days of a board, at most one is flagged
// although its own clock is above nine tenths of its peers'. Jobs of 6 to 65 boards run
// for a week each.
func TestFalsePositives(t *testing.T) {
	const days = 7
	var peers Peers
	gpuDays, right, wrong := 0, 0, 0
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 2))
		for until := gpuDays + 10_000; gpuDays < until; {
			boards := 6 + random.IntN(60)
			j := newJob(random, boards, 0.03+0.05*random.Float64())
			flags := j.run(&peers, days*24*60)
			median := middle(slices.Clone(j.own))
			for i, n := range flags {
				if j.own[i] > LowClock*median {
					wrong += n
				} else {
					right += n
				}
			}
			gpuDays += days * boards
		}
	}
	t.Logf("%d GPU-days: %d flags of boards that are slow, %d of others", gpuDays, right, wrong)
	assert.LessOrEqual(t, wrong*10_000, gpuDays)
	assert.Positive(t, right, "boards that are slow are flagged")
}

// A board that becomes 20 % slower than 15 others with a spread of 3 % is reported within
// 15 minutes.
func TestDetection(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var peers Peers
	took := map[int]int{}
	for range 500 {
		j := newJob(random, 16, 0.03)
		spread(j.own, 0.03)
		j.left, j.common = math.MaxInt, 1 // one phase
		for range 30 {
			j.minute(&peers)
		}
		slow := random.IntN(16)
		j.own[slow] = 0.8 * middle(slices.Clone(j.own))
		minutes := 0
		for ; !j.members[slow].Slow && minutes < 60; minutes++ {
			j.minute(&peers)
		}
		took[minutes]++
	}
	t.Log("boards by minutes until they were reported:", took)
	for minutes, boards := range took {
		assert.LessOrEqual(t, minutes, 15, boards)
	}
}

// spread makes the standard deviation of the values exact.
func spread(values []float64, deviation float64) {
	mean, square := 0., 0.
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		square += (v - mean) * (v - mean) / float64(len(values))
	}
	for i, v := range values {
		values[i] = 1 + (v-mean)*deviation/math.Sqrt(square)
	}
}
