// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"maps"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The calls of the pod-resources API, as Faults names them.
const (
	List                    = "List"
	GetAllocatableResources = "GetAllocatableResources"
	Get                     = "Get"
)

// Faults are what is wrong with the API. The zero value is a healthy kubelet.
// An absent socket is Stop, one that refuses connections is Kill; ids, pods and
// answers that are wrong or huge come from Force, SetDevices, BadIDs and ManyIDs.
type Faults struct {
	// Hang is a kubelet that is stopped in its tracks: connections are made and
	// not a byte comes back.
	Hang bool
	// Silent are calls that are taken and never answered.
	Silent map[string]bool
	// Errors are what calls fail with: Unimplemented("List"), or any other.
	Errors map[string]error
	Delay  time.Duration // before every answer
	// NoPods is a kubelet that is back and has not read its pods from the API server
	// yet: List answers, and names none. What was given away stays given.
	NoPods bool
}

// Unimplemented is the response of a kubelet that is too old for a call.
func Unimplemented(call string) error {
	return status.Errorf(codes.Unimplemented, "unknown method %s for service v1.PodResourcesLister", call)
}

// SetFaults replaces the faults, from now on.
func (k *Kubelet) SetFaults(f Faults) { k.gate.set(f) }

// gate is what a call meets before it is answered: faults and the rate limit of all
// clients together.
type gate struct {
	qps, burst float64
	clock      func() time.Time

	mu       sync.Mutex // guards what follows; never held over I/O
	faults   Faults
	changed  chan struct{} // closed when the faults change
	tokens   float64
	refilled time.Time
}

func (g *gate) set(f Faults) {
	f.Silent, f.Errors = maps.Clone(f.Silent), maps.Clone(f.Errors)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = f
	close(g.changed)
	g.changed = make(chan struct{})
}

// current are the faults and what signals that they changed.
func (g *gate) current() (Faults, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.faults, g.changed
}

// before is what happens to a call before it is answered.
func (g *gate) before(ctx context.Context, call string, stop <-chan struct{}) error {
	if !g.admit() {
		return status.Error(codes.ResourceExhausted, "rejected by rate limit")
	}
	for {
		f, changed := g.current()
		if !f.Silent[call] {
			break
		}
		select {
		case <-changed:
		case <-stop:
			return status.Error(codes.Unavailable, "the kubelet stops")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f, _ := g.current()
	if f.Delay > 0 {
		wait := time.NewTimer(f.Delay)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-stop:
			return status.Error(codes.Unavailable, "the kubelet stops")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return f.Errors[call]
}

// admit takes a token of the rate limit.
func (g *gate) admit() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.qps < 0 {
		return true
	}
	now := g.clock()
	g.tokens = min(g.tokens+max(now.Sub(g.refilled).Seconds(), 0)*g.qps, g.burst)
	g.refilled = now
	if g.tokens < 1 {
		return false
	}
	g.tokens--
	return true
}

// gated is a listener with connections that stand still while the kubelet hangs.
type gated struct {
	net.Listener
	gate *gate
	stop <-chan struct{}
}

func (g *gated) Accept() (net.Conn, error) {
	c, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &gatedConn{Conn: c, listener: g, closed: make(chan struct{})}, nil
}

type gatedConn struct {
	net.Conn
	listener *gated
	once     sync.Once
	closed   chan struct{}
}

// pass waits until the kubelet does not hang; false is a connection that ended.
func (c *gatedConn) pass() bool {
	for {
		f, changed := c.listener.gate.current()
		if !f.Hang {
			return true
		}
		select {
		case <-changed:
		case <-c.closed:
			return false
		case <-c.listener.stop:
			return false
		}
	}
}

func (c *gatedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.pass() {
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *gatedConn) Write(b []byte) (int, error) {
	if !c.pass() {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c *gatedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
