// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle decides, without I/O, which boards are asked, which are left alone, and
// when the driver is.
package lifecycle

import (
	"maps"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/host"
)

const (
	// A board that the kernel may suspend is left alone for rest after idleScrapes in which
	// nothing used it, so that it can be. If it is not suspended then, something else keeps
	// it awake, and it is read for restAgain, which doubles up to restAtMost.
	idleScrapes = 4
	rest        = 2 * time.Minute
	restAgain   = time.Hour
	restAtMost  = 24 * time.Hour
	// driverMemory is what may be in use without a process. What the driver reserves is in
	// it where it is not known apart.
	driverMemory         = 64 << 20
	driverReservedMemory = 1 << 30
	// A board that has left its bus is looked for by a new helper, first after lookAfter.
	// The driver's library does not find it again by itself.
	lookAfter = 5 * time.Minute
	lookAgain = time.Hour
	// A board that helpers crash for is left out for leaveOut after maxCrashes of them.
	maxCrashes = 3
	leaveOut   = 10 * time.Minute
)

// Why a helper has to be replaced.
const (
	ReasonDriver = "driver" // another driver is loaded, or none
	ReasonBoards = "boards" // the driver has other boards: the library lists them when it starts
	ReasonLost   = "lost"   // to look for a board that was lost
)

// Plan is what is asked in a scrape.
type Plan struct {
	Read    []string // addresses of boards
	ByIndex bool     // all boards, of a host without their PCI functions
	Managed map[string]bool
	// Suspended and Resting boards are left alone; Resting ones so that they are suspended.
	Suspended, Resting []string
	Beyond             int // boards over nvmlproto.MaxBoards
}

// Boards is what is known of the boards from scrape to scrape.
type Boards struct {
	Wake bool // nothing is left alone

	driver string   // when the helper was started
	bound  []string // likewise
	boards map[string]*board

	crashes  int      // in a row
	suspects []string // boards with calls under way at each of them
}

type board struct {
	idle      int       // scrapes in a row
	restUntil time.Time // of the rest that is under way
	restNext  time.Time // earliest begin of the next
	rests     int       // in a row that did not suspend it
	outUntil  time.Time // because of crashes
	lost      bool
	gone      bool // to this helper
	look      time.Time
}

func (b *Boards) board(address string) *board {
	if b.boards == nil {
		b.boards = map[string]*board{}
	}
	x := b.boards[address]
	if x == nil {
		x = &board{}
		b.boards[address] = x
	}
	return x
}

// Plan decides what is asked of a host now. stuck are the boards with calls under way.
func (b *Boards) Plan(now time.Time, h *host.Snapshot, stuck []string) Plan {
	p := Plan{Managed: map[string]bool{}}
	bound := h.Bound()
	if len(bound) == 0 {
		p.ByIndex = h.Device
		return p
	}
	maps.DeleteFunc(b.boards, func(address string, _ *board) bool { return !slices.Contains(bound, address) })
	for _, f := range h.Boards {
		if !slices.Contains(bound, f.PCI) {
			continue
		}
		p.Managed[f.PCI] = f.Managed
		x := b.board(f.PCI)
		if f.Suspended {
			x.restUntil, x.restNext, x.rests = time.Time{}, time.Time{}, 0
		} else if !x.restUntil.IsZero() && !now.Before(x.restUntil) {
			x.restNext = now.Add(min(restAgain<<min(x.rests, 5), restAtMost))
			x.restUntil, x.rests = time.Time{}, x.rests+1
		}
		switch {
		case f.Suspended && !b.Wake:
			x.idle = 0
			p.Suspended = append(p.Suspended, f.PCI)
		case f.Managed && !b.Wake && now.Before(x.restUntil):
			p.Resting = append(p.Resting, f.PCI)
		case x.gone, now.Before(x.outUntil), slices.Contains(stuck, f.PCI):
		case len(p.Read) >= nvmlproto.MaxBoards:
			p.Beyond++
		default:
			p.Read = append(p.Read, f.PCI)
		}
	}
	return p
}

// Started notes that a helper was started on a host. It looks for boards that were lost.
func (b *Boards) Started(h *host.Snapshot) {
	b.driver, b.bound = h.Driver, h.Bound()
	for _, x := range b.boards {
		x.gone = false
	}
}

// Replace is why the helper that runs has to be replaced, empty if it has not.
func (b *Boards) Replace(now time.Time, h *host.Snapshot) string {
	switch {
	case h.Driver != b.driver:
		return ReasonDriver
	case !slices.Equal(h.Bound(), b.bound):
		return ReasonBoards
	}
	for _, x := range b.boards {
		if x.gone && !now.Before(x.look) {
			return ReasonLost
		}
	}
	return ""
}

// Answered notes what boards answered to a plan. It returns those that are lost since.
func (b *Boards) Answered(now time.Time, p *Plan, boards []nvmlproto.Board) (lost []string) {
	b.crashes, b.suspects = 0, nil
	for i := range boards {
		a := &boards[i]
		x := b.board(a.Thread)
		if a.Lost || nvmlproto.Lost(a.Return) {
			if !x.lost {
				lost = append(lost, a.Thread)
				x.look = now.Add(lookAfter)
			} else if !now.Before(x.look) {
				x.look = now.Add(lookAgain)
			}
			x.lost, x.gone = true, true
			continue
		}
		x.lost = false
		if !p.Managed[a.Thread] || !idle(a) {
			x.idle = 0
			continue
		}
		if x.idle++; x.idle >= idleScrapes && !now.Before(x.restNext) {
			x.idle, x.restUntil = 0, now.Add(rest)
		}
	}
	return lost
}

// idle reports whether a board is known to be used by nothing: not by a process that waits
// for requests with its memory allocated either.
func idle(b *nvmlproto.Board) bool {
	if busy, known := value(b, "utilization.gpu"); !known || busy != 0 {
		return false
	}
	if b.Processes != nil && len(b.Processes.List)+b.Processes.Left > 0 {
		return false
	}
	used, known := value(b, "memory.used")
	without := float64(driverReservedMemory)
	if _, apart := value(b, "memory.reserved"); apart {
		without = driverMemory
	}
	return known && used <= without || !known && b.Processes != nil
}

// value returns a reading of a board, if the library gave it.
func value(b *nvmlproto.Board, name string) (v float64, known bool) {
	for _, v := range b.Values {
		if v.Name == name {
			return float64(v.V), v.Return == nvmlproto.Success
		}
	}
	return 0, false
}

// Crashed notes that a helper ended while calls for some boards were under way. It returns
// the board that is left out from now on, if it was in each of the last crashes.
func (b *Boards) Crashed(now time.Time, calling []string) string {
	if len(calling) == 0 {
		return ""
	}
	both := slices.DeleteFunc(slices.Clone(b.suspects), func(s string) bool { return !slices.Contains(calling, s) })
	if len(both) == 0 {
		both, b.crashes = slices.Clone(calling), 0
	}
	b.suspects = both
	if b.crashes++; b.crashes < maxCrashes || len(both) > 1 {
		return ""
	}
	b.board(both[0]).outUntil = now.Add(leaveOut)
	b.crashes, b.suspects = 0, nil
	return both[0]
}

// Lost is how many boards have left their bus.
func (b *Boards) Lost() int {
	n := 0
	for _, x := range b.boards {
		if x.lost {
			n++
		}
	}
	return n
}
