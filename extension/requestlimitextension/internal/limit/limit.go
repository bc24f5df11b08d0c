// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package limit counts requests that are worked on, in all and for each peer.
package limit // import "github.com/otelcol-gpu/otelcol-gpu/extension/requestlimitextension/internal/limit"

import "sync"

// Reason is why a request is refused.
type Reason string

const (
	// None is no reason: the request is worked on.
	None Reason = ""
	// Requests is that there are too many in all.
	Requests Reason = "requests"
	// RequestsPerPeer is that there are too many of this peer.
	RequestsPerPeer Reason = "requests_per_peer"
)

// Limiter counts. It is safe for concurrent use.
type Limiter struct {
	most, mostOfPeer int

	mu    sync.Mutex
	all   int
	peers map[string]int // those with a request: all of them at most
}

// New returns a Limiter of most requests, and mostOfPeer of them from one peer.
func New(most, mostOfPeer int) *Limiter {
	return &Limiter{most: most, mostOfPeer: mostOfPeer, peers: map[string]int{}}
}

// Acquire counts a request of peer, until Release of the ticket. It refuses with a
// reason if there are too many; then there is no ticket.
func (l *Limiter) Acquire(peer string) (*Ticket, Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.peers[peer] >= l.mostOfPeer:
		return nil, RequestsPerPeer
	case l.all >= l.most:
		return nil, Requests
	}
	t := &Ticket{limiter: l, peer: peer}
	t.take()
	return t, None
}

// InFlight is how many requests are counted.
func (l *Limiter) InFlight() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// Ticket is a request that is counted while its stream is open or its handler runs.
type Ticket struct {
	limiter     *Limiter
	peer        string
	held, began bool
}

// take and give are called with the limiter's lock held.
func (t *Ticket) take() {
	t.held = true
	t.limiter.all++
	t.limiter.peers[t.peer]++
}

func (t *Ticket) give() {
	if !t.held {
		return
	}
	t.held = false
	t.limiter.all--
	if t.limiter.peers[t.peer]--; t.limiter.peers[t.peer] == 0 {
		delete(t.limiter.peers, t.peer)
	}
}

// Begin notes that the request's handler begins. A peer that ended the stream before
// counts again: what it sent is decoded all the same.
func (t *Ticket) Begin() {
	t.limiter.mu.Lock()
	defer t.limiter.mu.Unlock()
	if t.began = true; !t.held {
		t.take()
	}
}

// Ended notes that the stream ended. A handler that began still counts.
func (t *Ticket) Ended() {
	t.limiter.mu.Lock()
	defer t.limiter.mu.Unlock()
	if !t.began {
		t.give()
	}
}

// Release counts the request no longer: its handler returned.
func (t *Ticket) Release() {
	t.limiter.mu.Lock()
	defer t.limiter.mu.Unlock()
	t.give()
}
