// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestMoments(t *testing.T) {
	draw := func(seed uint64, kills int) []float64 {
		r := &run{Options: Options{Kills: kills}, rand: rand.New(rand.NewPCG(seed, 1))}
		return r.moments()
	}
	assert.Empty(t, draw(1, 0))
	for seed := range uint64(100) {
		moments := draw(seed, 3)
		assert.Equal(t, moments, draw(seed, 3))
		assert.Len(t, moments, 3)
		assert.True(t, slices.IsSorted(moments))
		assert.Less(t, moments[0], 0.2, "while events are still sent")
		assert.Less(t, moments[2], 0.6)
	}
	assert.NotEqual(t, draw(1, 3), draw(2, 3))
}

// Sending waits for the slowest of the receivers that set the pace, and stops
// waiting where they get nothing any more.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := &run{Options: Options{Events: 2000, Out: &out}}
		for n := range len(profiles) {
			r.receivers = append(r.receivers, &Receiver{Name: nameOf(n), answered: map[string]bool{}})
		}
		mayGo := r.pace()
		assert.True(t, mayGo(99))
		assert.False(t, mayGo(100))

		well, breaking := r.receivers[0], r.receivers[2]
		request := &Request{WebhookID: "e1"}
		well.answer(request, 200)
		assert.False(t, mayGo(100), "the slower one has nothing yet")
		breaking.answer(request, 503)
		assert.False(t, mayGo(100), "what is refused is not got")
		time.Sleep(stallTime - time.Second)
		breaking.answer(request, 200)
		assert.True(t, mayGo(100))
		assert.False(t, mayGo(101))
		time.Sleep(stallTime)
		assert.False(t, mayGo(101))
		time.Sleep(time.Second)
		assert.True(t, mayGo(2000))
		assert.Contains(t, out.String(), "goes on without waiting")
	})
}

func TestBounds(t *testing.T) {
	for _, tc := range []struct {
		peak usage
		want string
	}{
		{usage{memory: 200 << 20, goroutines: 200}, ""},
		{usage{memory: 200 << 20}, "bounds: memory and goroutines could not be measured"},
		{usage{goroutines: 200}, "bounds: memory and goroutines could not be measured"},
		{usage{memory: 1 << 30, goroutines: 200}, "bounds: 1024 MiB of memory, more than 257"},
		{usage{memory: 200 << 20, goroutines: 10_000}, "bounds: 10000 goroutines, more than 550"},
	} {
		r := &run{Options: Options{Events: 150, Receivers: 10}, process: &process{peak: tc.peak}}
		var want []string
		if tc.want != "" {
			want = []string{tc.want}
		}
		assert.Equal(t, want, r.bounds())
	}
}
