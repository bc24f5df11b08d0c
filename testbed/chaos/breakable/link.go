// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package breakable

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// LinkMode is what a link does with connections.
type LinkMode int

const (
	LinkWell   LinkMode = iota
	LinkRefuse          // nothing listens, and open connections are reset
	LinkHang            // connections are made and not a byte goes through
	LinkReset           // every connection is reset when it has lived for a moment
	LinkSlow            // every piece comes late
	LinkCut             // every connection is reset after some bytes, in mid-stream
)

const (
	linkLife  = 300 * time.Millisecond
	linkDelay = 150 * time.Millisecond
	linkBytes = 40_000
)

// Link is the network between an agent and the gateway: a TCP proxy that can be
// broken.
type Link struct {
	addr string // where it listens
	to   string

	mu       sync.Mutex // guards what follows; never held over I/O
	mode     LinkMode
	listener net.Listener
	conns    map[*net.TCPConn]bool // both ends of all connections
	changed  chan struct{}         // closed and replaced with every change of the mode
	closed   bool
	work     sync.WaitGroup
}

// NewLink listens on a port of loopback and connects to an address. Close ends it.
func NewLink(port int, to string) (*Link, error) {
	l := &Link{addr: collector.Address(port), to: to, conns: map[*net.TCPConn]bool{}, changed: make(chan struct{})}
	return l, l.open()
}

// Addr is host:port where it listens.
func (l *Link) Addr() string { return l.addr }

// Set changes the mode. Connections are reset, but for a hang, which leaves
// them as they are, and its end, which lets them go on.
func (l *Link) Set(mode LinkMode) error {
	l.mu.Lock()
	keep := mode == LinkHang || mode == LinkWell && l.mode == LinkHang
	l.mode = mode
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	if !keep {
		l.reset()
	}
	if mode == LinkRefuse {
		l.shut()
		return nil
	}
	return l.open()
}

// Close ends the link and returns when nothing of it runs.
func (l *Link) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	_ = l.Set(LinkRefuse)
	l.work.Wait()
}

func (l *Link) open() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil || l.closed {
		return nil
	}
	listener, err := net.Listen("tcp", l.addr)
	if err != nil {
		return err
	}
	l.listener = listener
	l.work.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return // shut
			}
			l.work.Go(func() { l.serve(c.(*net.TCPConn)) })
		}
	})
	return nil
}

func (l *Link) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil {
		_ = l.listener.Close()
		l.listener = nil
	}
}

// reset resets all connections.
func (l *Link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
}

// keep notes a connection, or closes it where there should be none.
func (l *Link) keep(c *net.TCPConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mode == LinkRefuse {
		_ = c.Close()
		return false
	}
	l.conns[c] = true
	return true
}

func (l *Link) drop(c *net.TCPConn) {
	_ = c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

func (l *Link) serve(near *net.TCPConn) {
	if !l.keep(near) {
		return
	}
	defer l.drop(near)
	c, err := net.DialTimeout("tcp", l.to, 5*time.Second)
	if err != nil {
		return
	}
	far := c.(*net.TCPConn)
	if !l.keep(far) {
		return
	}
	defer l.drop(far)
	if mode, _ := l.now(); mode == LinkReset {
		timer := time.AfterFunc(linkLife, func() {
			_ = near.SetLinger(0)
			_ = near.Close()
			_ = far.Close()
		})
		defer timer.Stop()
	}
	var both sync.WaitGroup
	both.Go(func() { l.carry(far, near) })
	both.Go(func() { l.carry(near, far) })
	both.Wait()
}

func (l *Link) now() (LinkMode, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mode, l.changed
}

// carry copies from one end to the other and ends both when one has ended.
func (l *Link) carry(to, from *net.TCPConn) {
	defer to.Close()
	defer from.Close()
	carried := 0
	piece := make([]byte, 16<<10)
	for {
		n, err := from.Read(piece)
		mode, changed := l.now()
		for mode == LinkHang {
			<-changed
			mode, changed = l.now()
		}
		if mode == LinkSlow {
			time.Sleep(linkDelay)
		}
		if carried += n; mode == LinkCut && carried > linkBytes {
			_ = from.SetLinger(0)
			_ = to.SetLinger(0)
			_, _ = to.Write(piece[:n/2])
			return
		}
		if n > 0 {
			if _, err := to.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if err != io.EOF {
				_ = to.SetLinger(0)
			}
			return
		}
	}
}
