// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func acquire(t *testing.T, l *Limiter, peer string) *Ticket {
	t.Helper()
	ticket, reason := l.Acquire(peer)
	require.Equal(t, None, reason)
	return ticket
}

func refused(t *testing.T, l *Limiter, peer string, want Reason) {
	t.Helper()
	_, reason := l.Acquire(peer)
	assert.Equal(t, want, reason)
}

func TestLimits(t *testing.T) {
	l := New(3, 2)
	a := acquire(t, l, "a")
	acquire(t, l, "a")
	refused(t, l, "a", RequestsPerPeer)
	b := acquire(t, l, "b")
	refused(t, l, "b", Requests)
	refused(t, l, "a", RequestsPerPeer)
	a.Release()
	a.Release() // counts once
	assert.Equal(t, 2, l.InFlight())
	acquire(t, l, "a")
	b.Release()
	assert.Equal(t, map[string]int{"a": 2}, l.peers, "a peer without request is forgotten")
}

// The orders in which a stream's end, and its handler's begin and end, can come.
func TestTicket(t *testing.T) {
	begin, ended, release := (*Ticket).Begin, (*Ticket).Ended, (*Ticket).Release
	for name, c := range map[string]struct {
		steps []func(*Ticket)
		want  []int
	}{
		"answered":                        {[]func(*Ticket){begin, release, ended}, []int{1, 0, 0}},
		"ended while it is handled":       {[]func(*Ticket){begin, ended, release}, []int{1, 1, 0}},
		"ended before it is handled":      {[]func(*Ticket){ended, begin, release}, []int{0, 1, 0}},
		"never handled: no such service":  {[]func(*Ticket){ended}, []int{0}},
		"answered, and its context later": {[]func(*Ticket){begin, ended, release, ended}, []int{1, 1, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(1, 1)
			ticket := acquire(t, l, "a")
			for i, step := range c.steps {
				step(ticket)
				assert.Equal(t, c.want[i], l.InFlight(), i)
			}
		})
	}
}
