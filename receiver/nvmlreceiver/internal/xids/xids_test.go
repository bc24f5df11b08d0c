// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package xids

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

const (
	address  = "0000:3b:00.0"
	uuid     = "GPU-0a11ce00-0001-4000-8000-000000000001"
	address2 = "0000:5e:00.0"
	uuid2    = "GPU-0a11ce00-0002-4000-8000-000000000002"
)

func instance(gi int) *int { return &gi }

func event(xids ...nvmlproto.XID) *nvmlproto.Event {
	return &nvmlproto.Event{Thread: address, UUID: uuid, XID: xids}
}

func line(code int) string { return fmt.Sprintf("NVRM: Xid (PCI:0000:3b:00): %d, text", code) }

func lineOf(gi, code int) string {
	return fmt.Sprintf("NVRM: Xid (PCI:0000:3b:00 GPU-I:%02d GPU-CI:00): %d, text", gi, code)
}

// counts are those of all devices: by hw.id and code.
func counts(devices map[string]Device) map[string]map[int]int64 {
	all := map[string]map[int]int64{}
	for id, d := range devices {
		all[id] = map[int]int64{}
		for _, c := range d.Counts {
			all[id][c.Code] = c.N
		}
	}
	return all
}

type refusal struct {
	from   Source
	reason string
}

// counter returns a Counter with two boards, and what it refuses.
func counter(opts Options) (*Counter, map[refusal]int) {
	refused := map[refusal]int{}
	var mu sync.Mutex
	opts.Refused = func(from Source, reason string, n int) {
		mu.Lock()
		defer mu.Unlock()
		refused[refusal{from, reason}] += n
	}
	c := New(time.Now(), opts)
	c.Boards(map[string]string{address: uuid, address2: uuid2})
	return c, refused
}

func TestLargerCountOfBothSources(t *testing.T) {
	type by = map[string]map[int]int64
	for name, tc := range map[string]struct {
		feed    func(c *Counter)
		want    by
		refused map[refusal]int
	}{
		"events alone": {
			feed: func(c *Counter) { c.Event(event(nvmlproto.XID{Code: 31, N: 3}, nvmlproto.XID{Code: 13, N: 1})) },
			want: by{uuid: {31: 3, 13: 1}},
		},
		"log alone": {
			feed: func(c *Counter) { c.Line(line(79)); c.Line(line(79)); c.Line("NVRM: GPU 0000:3b:00.0: off") },
			want: by{uuid: {79: 2}},
		},
		"both": {
			feed: func(c *Counter) {
				c.Event(event(nvmlproto.XID{Code: 31, N: 2}))
				c.Line(line(31))
				c.Line(line(79))
			},
			want: by{uuid: {31: 2, 79: 1}},
		},
		"without a UUID": {
			feed: func(c *Counter) { c.Event(&nvmlproto.Event{Thread: address2, XID: []nvmlproto.XID{{Code: 48, N: 1}}}) },
			want: by{uuid2: {48: 1}},
		},
		"an instance, by both": {
			feed: func(c *Counter) {
				c.Event(event(nvmlproto.XID{Code: 94, GI: instance(5), N: 1}))
				c.Line(lineOf(5, 94))
			},
			want: by{uuid + "/5": {94: 1}},
		},
		"an instance, by one": {
			feed: func(c *Counter) {
				c.Event(event(nvmlproto.XID{Code: 94, N: 1}))
				c.Line(lineOf(5, 94))
				c.Line(line(94))
			},
			want: by{uuid + "/5": {94: 1}, uuid: {94: 1}},
		},
		"instances apart": {
			feed: func(c *Counter) {
				c.Line(lineOf(1, 13))
				c.Line(lineOf(2, 13))
				c.Event(event(nvmlproto.XID{Code: 13, N: 5}))
			},
			want: by{uuid + "/1": {13: 1}, uuid + "/2": {13: 1}, uuid: {13: 3}},
		},
		"no XID": {
			feed: func(c *Counter) {
				c.Event(event(nvmlproto.XID{N: 1}, nvmlproto.XID{Code: 3}))
				c.Line(line(0))
				c.Line("")
			},
			want: by{},
		},
		"unknown to the driver": {
			feed: func(c *Counter) { c.Event(event(nvmlproto.XID{Code: 999, N: 1})) },
			want: by{uuid: {999: 1}},
		},
		"beyond 31 bits": {
			feed: func(c *Counter) {
				c.Event(event(nvmlproto.XID{Code: math.MaxInt32 + 1, N: 2}, nvmlproto.XID{Code: math.MaxInt32, N: 1}))
				c.Line("NVRM: Xid (PCI:0000:3b:00): 2147483648, text")
			},
			want:    by{uuid: {math.MaxInt32: 1}},
			refused: map[refusal]int{{Events, ReasonCode}: 2, {KernelLog, ReasonLine}: 1},
		},
		"lines that cannot be read": {
			feed:    func(c *Counter) { c.Line("NVRM: Xid (invalid): 79"); c.Line("nvidia-nvswitch0: SXid (x): y") },
			want:    by{},
			refused: map[refusal]int{{KernelLog, ReasonLine}: 1},
		},
		"unknown addresses": {
			feed: func(c *Counter) {
				c.Line("NVRM: Xid (PCI:0000:ff:00): 79, text")
				c.Event(&nvmlproto.Event{Thread: "#7", XID: []nvmlproto.XID{{Code: 31, N: 4}}})
			},
			want:    by{},
			refused: map[refusal]int{{KernelLog, ReasonAddress}: 1, {Events, ReasonAddress}: 4},
		},
		"a board that only the log names": {
			feed: func(c *Counter) {
				c.Line("NVRM: GPU at PCI:0000:ff:00: GPU-0a11ce00-0003-4000-8000-000000000003")
				c.Line("NVRM: Xid (PCI:0000:ff:00): 79, text")
			},
			want: by{"GPU-0a11ce00-0003-4000-8000-000000000003": {79: 1}},
		},
		"another board at the address": {
			feed: func(c *Counter) {
				c.Line("NVRM: GPU at PCI:0000:3b:00: " + uuid2)
				c.Line(line(79))
				c.Line("NVRM: GPU at PCI:0000:5e:00: " + uuid2)
				c.Line("NVRM: Xid (PCI:0000:5e:00): 79, text")
			},
			want:    by{uuid2: {79: 1}},
			refused: map[refusal]int{{KernelLog, ReasonUUID}: 1},
		},
		"too many codes": {
			feed: func(c *Counter) {
				for code := range maxCodes + 2 {
					c.Event(event(nvmlproto.XID{Code: uint64(1 + code), GI: instance(code % 7), N: 1}))
				}
				c.Event(event(nvmlproto.XID{Code: 1, GI: instance(1000), N: 1}))
			},
			refused: map[refusal]int{{Events, ReasonLimit}: 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, refused := counter(Options{})
				tc.feed(c)
				assert.Empty(t, c.Due(time.Now()), "before both sources had their turn")
				time.Sleep(delay)
				c.Due(time.Now())
				time.Sleep(patience)
				got := counts(c.Due(time.Now()))
				if tc.want != nil {
					assert.Equal(t, tc.want, got)
				}
				if tc.refused == nil {
					tc.refused = map[refusal]int{}
				}
				assert.Equal(t, tc.refused, refused)
				for id, codes := range got {
					assert.LessOrEqual(t, len(codes), maxCodes, id)
				}
			})
		})
	}
}

// A source that is later than the other adds nothing, and what one has missed is in the count
// by the other.
func TestCountsNeverFall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c, _ := counter(Options{})
		due := func(wait time.Duration) Device {
			time.Sleep(wait)
			return c.Due(time.Now())[uuid]
		}
		c.Event(event(nvmlproto.XID{Code: 31, N: 1}))
		first := due(delay)
		assert.Equal(t, Device{Counts: []Count{{Code: 31, N: 1, Start: began, Rose: true}}, Last: 31, Rose: true}, first)
		assert.Equal(t, Device{Counts: []Count{{Code: 31, N: 1, Start: began}}, Last: 31}, due(0))

		// The line is late and names an instance: the board keeps what it has had.
		c.Line(lineOf(1, 31))
		assert.Equal(t, []Count{{Code: 31, N: 1, Start: began}}, due(delay).Counts)
		assert.Equal(t, map[int]int64{31: 1}, counts(c.Due(time.Now()))[uuid+"/1"])

		// The board fell off the bus: its address is still known, and no XID is lost.
		c.Boards(map[string]string{address2: uuid2})
		c.Line(line(79))
		last := due(delay)
		assert.Equal(t, 79, last.Last)
		assert.Len(t, last.Counts, 2)
		assert.True(t, last.Rose)
	})
}

// Lines that arrive before the driver has answered wait for it.
func TestBoardsThatAreKnownLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(time.Now(), Options{})
		c.Line(line(79))
		time.Sleep(time.Minute)
		assert.Empty(t, c.Due(time.Now()))
		c.Boards(map[string]string{address: uuid})
		assert.Equal(t, map[string]map[int]int64{uuid: {79: 1}}, counts(c.Due(time.Now())))

		// Another board comes to the address.
		c.Line("NVRM: GPU at PCI:0000:3b:00: " + uuid)
		c.Boards(map[string]string{address: uuid2})
		c.Line(line(79))
		time.Sleep(delay)
		assert.Equal(t, int64(1), counts(c.Due(time.Now()))[uuid2][79])
	})
}

// 10,000 XIDs within a second, of each source alone and of both at once.
func TestBurst(t *testing.T) {
	const burst = 10_000
	events := func(c *Counter) {
		for i := range burst {
			c.Event(event(nvmlproto.XID{Code: uint64(1 + i%100), GI: [...]*int{nil, instance(1)}[i/100%2], N: 1}))
			if i%100 == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	lines := func(c *Counter) {
		for i := range burst {
			if code := 1 + i%100; i/100%2 == 0 {
				c.Line(line(code))
			} else {
				c.Line(lineOf(1, code))
			}
			if i%100 == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	for name, feed := range map[string][]func(*Counter){"events": {events}, "log": {lines}, "both": {events, lines}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				counted := 0
				var mu sync.Mutex
				c, refused := counter(Options{Counted: func(_ Source, n int) {
					mu.Lock()
					defer mu.Unlock()
					counted += n
				}})
				var all sync.WaitGroup
				for _, f := range feed {
					all.Go(func() { f(c) })
				}
				// Counts are read meanwhile.
				total := int64(0)
				for range 50 {
					time.Sleep(100 * time.Millisecond)
					sum := int64(0)
					for _, codes := range counts(c.Due(time.Now())) {
						for _, n := range codes {
							sum += n
						}
					}
					require.GreaterOrEqual(t, sum, total)
					total = sum
				}
				all.Wait()
				assert.EqualValues(t, burst, total)
				assert.Equal(t, burst*len(feed), counted)
				assert.Empty(t, refused)
			})
		})
	}
}
