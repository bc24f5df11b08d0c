// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
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
func (k *Kubelet) SetFaults(f Faults) {
	f.Silent, f.Errors = maps.Clone(f.Silent), maps.Clone(f.Errors)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.faults = f
	close(k.changed)
	k.changed = make(chan struct{})
}

// SetSocketMode changes who may connect; 0 is none but root, who always may.
// A restart puts it back.
func (k *Kubelet) SetSocketMode(mode os.FileMode) error {
	k.serving.Lock()
	defer k.serving.Unlock()
	if k.served == nil {
		return fmt.Errorf("the kubelet does not serve")
	}
	return os.Chmod(k.served.socket, mode)
}

// current are the faults and what signals that they changed.
func (k *Kubelet) current() (Faults, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.faults, k.changed
}

// before is what happens to a call before it is answered.
func (k *Kubelet) before(ctx context.Context, call string, stop <-chan struct{}) error {
	if !k.admit() {
		return status.Error(codes.ResourceExhausted, "rejected by rate limit")
	}
	for {
		f, changed := k.current()
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
	f, _ := k.current()
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
func (k *Kubelet) admit() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.opts.QPS < 0 {
		return true
	}
	now := k.opts.Clock()
	k.tokens = min(k.tokens+max(now.Sub(k.refilled).Seconds(), 0)*k.opts.QPS, float64(k.opts.Burst))
	k.refilled = now
	if k.tokens < 1 {
		return false
	}
	k.tokens--
	return true
}

// gated is a listener with connections that stand still while the kubelet hangs.
type gated struct {
	net.Listener
	kubelet *Kubelet
	stop    <-chan struct{}
}

func (g *gated) Accept() (net.Conn, error) {
	c, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &gatedConn{Conn: c, gate: g, closed: make(chan struct{})}, nil
}

type gatedConn struct {
	net.Conn
	gate   *gated
	once   sync.Once
	closed chan struct{}
}

// pass waits until the kubelet does not hang; false is a connection that ended.
func (c *gatedConn) pass() bool {
	for {
		f, changed := c.gate.kubelet.current()
		if !f.Hang {
			return true
		}
		select {
		case <-changed:
		case <-c.closed:
			return false
		case <-c.gate.stop:
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
