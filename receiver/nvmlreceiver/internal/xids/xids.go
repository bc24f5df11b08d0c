// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package xids counts the XIDs of NVIDIA boards from two sources, of which each is known to
// miss some: events of the driver's library and lines of the kernel log. Of each code on a
// board the larger of both counts is taken.
package xids

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/internal/xid"
)

const (
	// delay is from the arrival of an XID to the count that has it: both sources have had
	// their turn by then.
	delay = 2 * time.Second
	// patience is for how long an XID waits for a board whose address is not known, such as
	// before the first answer of the driver.
	patience = 2 * time.Minute

	maxCodes   = 256     // of a board with its instances
	maxBoards  = 1024    // and addresses of boards
	maxPending = 1 << 16 // kinds of XIDs that wait, each once in a tenth of a second
	maxGI      = 255
)

// Source is where an XID was reported.
type Source int

// The sources.
const (
	Events    Source = iota // of the driver's library
	KernelLog               // lines of it
	sources
)

// String is the source as the metric of the receiver names it.
func (s Source) String() string { return [...]string{"events", "kernel_log"}[s] }

// Why an XID is not counted.
const (
	ReasonLine    = "line"    // of the kernel log, that cannot be read
	ReasonCode    = "code"    // beyond 31 bits
	ReasonAddress = "address" // of no board that is known
	ReasonUUID    = "uuid"    // the kernel log names another board at this address
	ReasonLimit   = "limit"   // of codes, instances or boards
)

// Options are what a Counter reports while it counts. Both functions may be called by
// several goroutines at a time, and nil.
type Options struct {
	Counted func(from Source, n int)                // XIDs that arrived
	Refused func(from Source, reason string, n int) // and were not counted, see the Reason constants
}

// Count is how often a code came on a device.
type Count struct {
	Code  int
	N     int64
	Start time.Time // since when is counted
	Rose  bool      // N is higher than at the time before
}

// Device is what a board, or an instance, has had.
type Device struct {
	Counts []Count // ascending by their codes, none of them 0
	Last   int     // the newest code
	Rose   bool    // one of the counts rose
}

// Counter counts. It is safe for concurrent use.
type Counter struct {
	opts  Options
	began time.Time

	mu      sync.Mutex
	boards  map[string]*board // by hw.id
	places  map[string]string // hw.id by the address of a board, or what stands for it
	lines   map[string]string // the same, as the kernel log names it
	pending map[arrival]waiting
	arrived uint64 // number of the newest arrival
}

// arrival is when and where XIDs came.
type arrival struct {
	from  Source
	place string    // hw.id of the board if the source names it, else its address
	gi    int       // noInstance: of the board
	code  int       // positive
	at    time.Time // to a tenth of a second
}

// waiting is how many arrived, and the number of the newest.
type waiting struct {
	n      int
	number uint64
}

const noInstance = -1

// board is what was counted of one board.
type board struct{ codes map[int]*code }

type code struct {
	n        [sources]map[int]int64 // by instance
	reported map[int]*reported      // by instance
}

// reported is what Due returns of a code. It never falls.
type reported struct {
	n, before int64
	newest    uint64 // number of the newest arrival
}

// New returns a Counter that knows no board yet. began is since when is counted.
func New(began time.Time, opts Options) *Counter {
	if opts.Counted == nil {
		opts.Counted = func(Source, int) {}
	}
	if opts.Refused == nil {
		opts.Refused = func(Source, string, int) {}
	}
	return &Counter{
		opts: opts, began: began, boards: map[string]*board{}, pending: map[arrival]waiting{},
		places: map[string]string{}, lines: map[string]string{},
	}
}

// Boards adds what is known of boards: the hw.id (GPU-<uuid>) by the thread of the helper,
// which is a PCI address or an index. What is known stays: a board that fell off the bus is
// not there any more when its XIDs arrive.
func (c *Counter) Boards(byThread map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for thread, id := range byThread {
		place := placeOf(thread)
		was, known := c.places[place]
		switch {
		case was == id:
		case known:
			delete(c.lines, place) // another board since then
			c.places[place] = id
		case len(c.places) < maxBoards:
			c.places[place] = id
		}
	}
}

// placeOf is a thread without the function of its PCI address, which the kernel log does not
// have.
func placeOf(thread string) string {
	if address := deviceid.PCIAddress(thread); deviceid.IsPCI(address) {
		return address[:len(address)-len(".0")]
	}
	return thread
}

// Event takes what the driver's library reported, now.
func (c *Counter) Event(e *nvmlproto.Event) {
	place := e.UUID
	if !deviceid.HasGPU(place) {
		place = placeOf(e.Thread)
	}
	for _, x := range e.XID {
		switch {
		case x.Code == 0 || x.N <= 0: // no XID
		case x.Code > math.MaxInt32:
			c.opts.Refused(Events, ReasonCode, x.N)
		default:
			gi := noInstance
			if x.GI != nil {
				gi = *x.GI
			}
			c.add(arrival{from: Events, place: place, gi: gi, code: int(x.Code)}, x.N)
		}
	}
}

// Line takes a line of the kernel log, now. It ignores a line that has no XID of a board.
func (c *Counter) Line(text string) {
	if address, uuid, ok := xid.ParseBoard(text); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		if _, known := c.lines[address]; known || len(c.lines) < maxBoards {
			c.lines[address] = uuid
		}
		return
	}
	switch l := xid.Parse(text); {
	case l.Kind == xid.Invalid && xid.KindOf(text) == xid.GPU:
		c.opts.Refused(KernelLog, ReasonLine, 1)
	case l.Kind != xid.GPU || l.Code == 0:
	default:
		gi := noInstance
		if l.InInstance {
			gi = l.Instance
		}
		c.add(arrival{from: KernelLog, place: l.PCI, gi: gi, code: l.Code}, 1)
	}
}

// add has the XIDs of an arrival wait.
func (c *Counter) add(a arrival, n int) {
	a.at = time.Now().Truncate(100 * time.Millisecond)
	c.opts.Counted(a.from, n)
	c.mu.Lock()
	_, known := c.pending[a]
	full := !known && len(c.pending) >= maxPending || a.gi > maxGI || a.gi < noInstance
	if !full {
		c.arrived++
		c.pending[a] = waiting{c.pending[a].n + n, c.arrived}
	}
	c.mu.Unlock()
	if full {
		c.opts.Refused(a.from, ReasonLimit, n)
	}
}

// Due returns the counts of all devices that have had an XID, by their hw.id, with all XIDs
// that arrived two seconds ago or earlier. A count is never smaller than it was.
func (c *Counter) Due(now time.Time) map[string]Device {
	c.mu.Lock()
	defer c.mu.Unlock()
	var due []arrival
	for a := range c.pending {
		// A clock that was set back makes an XID due.
		if age := now.Sub(a.at); age >= delay || age < 0 {
			due = append(due, a)
		}
	}
	// In the order of arrival, and divided among instances when all are counted.
	sort.Slice(due, func(i, j int) bool { return c.pending[due[i]].number < c.pending[due[j]].number })
	changed := map[*code]uint64{}
	for _, a := range due {
		c.settle(a, now, changed)
	}
	for x, number := range changed {
		x.divide(number)
	}
	out := map[string]Device{}
	for id, b := range c.boards {
		newest := map[string]uint64{}
		for number, x := range b.codes {
			for gi, t := range x.reported {
				device := id
				if gi != noInstance {
					device = deviceid.MIG(id, strconv.Itoa(gi))
				}
				d, rose := out[device], t.n > t.before
				t.before = t.n
				d.Counts = append(d.Counts, Count{Code: number, N: t.n, Start: c.began, Rose: rose})
				d.Rose = d.Rose || rose
				if t.newest > newest[device] {
					newest[device], d.Last = t.newest, number
				}
				out[device] = d
			}
		}
	}
	for _, d := range out {
		sort.Slice(d.Counts, func(i, j int) bool { return d.Counts[i].Code < d.Counts[j].Code })
	}
	return out
}

// settle counts an arrival that has waited, or refuses it, or lets it wait for its board. It
// adds the code to changed.
func (c *Counter) settle(a arrival, now time.Time, changed map[*code]uint64) {
	id, reason := c.boardOf(a)
	if reason == ReasonAddress && now.Sub(a.at) < patience && !now.Before(a.at) {
		return
	}
	w := c.pending[a]
	delete(c.pending, a)
	if reason == "" {
		if x := c.code(id, a); x != nil {
			x.add(a.from, a.gi, int64(w.n))
			changed[x] = w.number
			return
		}
		reason = ReasonLimit
	}
	c.opts.Refused(a.from, reason, w.n)
}

// boardOf is the hw.id of the board that an XID is about, or why there is none.
func (c *Counter) boardOf(a arrival) (id, reason string) {
	if deviceid.HasGPU(a.place) {
		return a.place, ""
	}
	id, known := c.places[a.place]
	named, logged := c.lines[a.place]
	switch {
	case a.from == KernelLog && known && logged && !strings.EqualFold(id, named):
		return "", ReasonUUID
	case known:
		return id, ""
	case a.from == KernelLog && logged:
		return named, ""
	}
	return "", ReasonAddress
}

// code is that of an arrival on a board; nil where there is no room for it.
func (c *Counter) code(id string, a arrival) *code {
	b := c.boards[id]
	if b == nil {
		if len(c.boards) >= maxBoards {
			return nil
		}
		b = &board{}
		c.boards[id] = b
	}
	x := b.codes[a.code]
	if x == nil {
		if len(b.codes) >= maxCodes {
			return nil
		}
		x = &code{reported: map[int]*reported{}}
		if b.codes == nil {
			b.codes = map[int]*code{}
		}
		b.codes[a.code] = x
	}
	return x
}

func (x *code) add(from Source, gi int, n int64) {
	if x.n[from] == nil {
		x.n[from] = map[int]int64{}
	}
	x.n[from][gi] += n
}

// divide divides the larger count among the board and its instances: an instance has what one
// source gives to it, the board has the rest.
func (x *code) divide(number uint64) {
	var total [sources]int64
	of := map[int]int64{}
	for from := range x.n {
		for gi, n := range x.n[from] {
			total[from] += n
			if gi != noInstance {
				of[gi] = max(of[gi], n)
			}
		}
	}
	rest := slices.Max(total[:])
	for gi, n := range of {
		rest -= n
		x.raise(gi, n, number)
	}
	x.raise(noInstance, rest, number)
}

// raise raises a count. Where the other source knew the instance later, the board keeps what
// it has had.
func (x *code) raise(gi int, n int64, number uint64) {
	t := x.reported[gi]
	switch {
	case t == nil && n > 0:
		x.reported[gi] = &reported{n: n, newest: number}
	case t != nil && n > t.n:
		t.n, t.newest = n, number
	}
}
