// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Whatever comes in whatever order, grouped or not, tried again or not: nothing
// is lost, nothing is taken twice at once, the end of one delivery comes before
// the start of the next with a key in common, and the queue is empty at the end.
func TestQueueKeepsOrderAndLosesNothing(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playQueue(t, rand.New(rand.NewPCG(seed, 7))) }) //nolint:gosec // a test
		})
	}
}

func playQueue(t *testing.T, chance *rand.Rand) {
	const deliveries = 300
	limits := Limits{Size: 50, Workers: 1 + chance.IntN(5), Group: 1 + chance.IntN(4)}
	q := NewQueue(limits, time.Duration(chance.IntN(3))*time.Second)

	var mu sync.Mutex
	roll := func(n int) int { mu.Lock(); defer mu.Unlock(); return chance.IntN(n) }
	last, flying, ended := map[string]uint64{}, map[string]bool{}, map[uint64]bool{}
	begin := func(d *Delivery) {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range d.Parts {
			if d.Attempts == 0 {
				assert.Greater(t, p.Number, last[p.Key], "key %s", p.Key)
			}
			last[p.Key] = p.Number
		}
		for _, key := range d.keys() {
			assert.False(t, flying[key], key)
			flying[key] = true
		}
	}
	end := func(d *Delivery, done bool) {
		mu.Lock()
		defer mu.Unlock()
		for _, key := range d.keys() {
			flying[key] = false
		}
		for _, p := range d.Parts {
			assert.False(t, ended[p.Number], "twice")
			ended[p.Number] = done
		}
	}
	var workers sync.WaitGroup
	work := func() {
		for d := q.Next(); d != nil; d = q.Next() {
			begin(d)
			time.Sleep(time.Duration(roll(3)) * time.Second)
			again := d.Attempts < 3 && roll(3) == 0
			d.Attempts++
			end(d, !again)
			if roll(20) == 0 {
				q.Pause(time.Now().Add(time.Duration(roll(20)) * time.Second))
			}
			if again {
				q.Retry(d, time.Duration(roll(30))*time.Second)
			} else {
				q.Done(d)
			}
		}
	}
	hire := func() {
		for range q.MissingWorkers() {
			workers.Go(work)
		}
	}
	hire()
	accepted := 0
	for n := range uint64(deliveries) {
		if !q.Reserve() {
			time.Sleep(time.Duration(roll(10)) * time.Second)
			continue
		}
		accepted++
		ev := &event.Event{Event: eventrecord.Event{ID: fmt.Sprint(n), Key: fmt.Sprint("k", roll(8))}}
		if node := roll(4); node > 0 {
			ev.Resource = map[string]any{names.K8sNodeName: fmt.Sprint("n", node)}
		}
		require.True(t, q.Put(&Delivery{Parts: []*Part{{Item: &Item{Event: ev}, Number: n + 1}}}))
		switch roll(40) {
		case 0:
			limits.Workers = 1 + roll(5)
			q.Configure(limits)
			hire()
		case 1:
			q.EndWaits()
		case 2:
			time.Sleep(time.Duration(roll(5)) * time.Second)
		}
	}
	if roll(2) == 0 {
		time.Sleep(time.Hour)
	}
	q.Close(nil, time.Now().Add(time.Hour))
	workers.Wait()
	require.Empty(t, q.Drain())
	require.Zero(t, q.waiting)
	done := 0
	for _, d := range ended {
		if d {
			done++
		}
	}
	require.Equal(t, accepted, done)
	require.Greater(t, accepted, 50)
}
