// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/journal"
)

// store keeps events and deliveries over a restart, in numbered slots, since a
// storage client cannot list what it holds. A nil store keeps nothing.
type store struct {
	*journal.Journal

	slots  sync.Mutex // held before the journal's own
	rows   slots
	events slots
	gone   map[string]string // receiver: fingerprint of its configuration
}

// slots hands out the lowest numbers that it can without searching.
type slots struct {
	free []int
	high int // all handed out are below
}

func (s *slots) take() int {
	if n := len(s.free); n > 0 {
		slot := s.free[n-1]
		s.free = s.free[:n-1]
		return slot
	}
	s.high++
	return s.high - 1
}

func (s *slots) give(slot int) { s.free = append(s.free, slot) }

type setter = func(key string, value []byte)

// change changes what is to be stored, all of it in one transaction.
func (s *store) change(f func(set setter)) {
	s.slots.Lock()
	defer s.slots.Unlock()
	high := [2]int{s.rows.high, s.events.high}
	s.Want(func(set func(string, []byte)) {
		f(set)
		if high != [2]int{s.rows.high, s.events.high} {
			s.setMeta(set)
		}
	})
}

func (s *store) setMeta(set setter) {
	text, _ := json.Marshal(storedMeta{Version: schemaVersion, Rows: s.rows.high, Events: s.events.high}) // numbers only
	set(metaKey, text)
}

// add stores new events and deliveries of one part each. What cannot be stored
// now is marked, and stored as soon as that is possible. It returns how many
// deliveries those are.
func (s *store) add(items []*item, offers []offer) (unstored int) {
	if s == nil {
		return 0
	}
	texts := make([][]byte, len(items))
	for i, it := range items {
		texts[i], _ = encodeEvent(it) // times beyond year 9999 alone fail, and no log record has one
	}
	s.change(func(set setter) {
		for i, it := range items {
			it.slot = s.events.take()
			it.needed++ // by who adds it, until it is forgotten
			set(eventKey(it.slot), texts[i])
		}
		for _, o := range offers {
			p := o.delivery.parts[0]
			p.row = s.rows.take()
			p.needed++
			text, _ := encodeRow(o.receiver.name, o.delivery, p)
			set(rowKey(p.row), text)
		}
	})
	if s.Flush() == nil {
		return 0
	}
	for _, o := range offers {
		o.delivery.parts[0].unstored = true
	}
	return len(offers)
}

// ended reports whether nothing can be stored any more.
func (s *store) ended() bool { return s != nil && s.Closed() }

// holds reports whether a start would find the delivery, at whatever point of its
// attempts. The caller holds the lock of its queue.
func (s *store) holds(d *delivery) bool {
	if s == nil {
		return false
	}
	for _, p := range d.parts {
		if !p.unstored {
			continue
		}
		if !s.Holds(rowKey(p.row)) || !s.Holds(eventKey(p.slot)) {
			return false
		}
		p.unstored = false // what is written of it later replaces what is there
	}
	return true
}

// save stores the state of a delivery.
func (s *store) save(receiver string, d *delivery) {
	if s == nil {
		return
	}
	s.change(func(set setter) {
		for _, p := range d.parts {
			if text, err := encodeRow(receiver, d, p); err == nil {
				set(rowKey(p.row), text)
			}
		}
	})
}

// saveNow is save, and waits until that is done. It reports false where that
// fails, which is counted and tried again; the delivery goes on.
func (s *store) saveNow(receiver string, d *delivery) bool {
	if s == nil {
		return true
	}
	s.save(receiver, d)
	return s.Flush() == nil
}

// remove ends deliveries.
func (s *store) remove(deliveries ...*delivery) {
	if s == nil || len(deliveries) == 0 {
		return
	}
	s.change(func(set setter) {
		for _, d := range deliveries {
			for _, p := range d.parts {
				set(rowKey(p.row), nil)
				s.rows.give(p.row)
				s.release(set, p.item)
			}
		}
	})
}

// forget releases events that are no longer kept for replay.
func (s *store) forget(items []*item) {
	if s == nil || len(items) == 0 {
		return
	}
	s.change(func(set setter) {
		for _, it := range items {
			s.release(set, it)
		}
	})
}

// release removes the event when nobody needs it any more.
func (s *store) release(set setter, it *item) {
	if it.needed--; it.needed == 0 {
		set(eventKey(it.slot), nil)
		s.events.give(it.slot)
	}
}

// setGone remembers, or forgets, that a receiver of this configuration is gone.
func (s *store) setGone(receiver, fingerprint string, gone bool) {
	if s == nil {
		return
	}
	s.change(func(set setter) {
		if gone {
			s.gone[receiver] = fingerprint
		} else if _, known := s.gone[receiver]; !known {
			return
		} else {
			delete(s.gone, receiver)
		}
		text, _ := json.Marshal(s.gone) // texts only
		set(goneKey, text)
	})
}

// stored is what a store held at the start.
type stored struct {
	events     []*item // in order of arrival
	deliveries map[*delivery]string
	next       uint64 // number
	damaged    []error
}

// load reads everything. What makes no sense is left out and told as damaged; an
// error says that it could not be read.
func (s *store) load(ctx context.Context) (*stored, error) {
	s.gone = map[string]string{}
	texts, err := s.Read(ctx, []string{metaKey, goneKey})
	if err != nil {
		return nil, err
	}
	out := &stored{deliveries: map[*delivery]string{}}
	if texts[0] == nil {
		return out, nil
	}
	meta, err := decodeMeta(texts[0])
	if errors.Is(err, errOtherVersion) {
		return nil, err
	}
	if err != nil {
		out.damaged = append(out.damaged, err)
		return out, nil
	}
	if texts[1] != nil {
		if err := json.Unmarshal(texts[1], &s.gone); err != nil || s.gone == nil {
			s.gone = map[string]string{}
			out.damaged = append(out.damaged, errors.New("read which receivers are gone"))
		}
	}
	events, err := s.loadEvents(ctx, meta.Events, out)
	if err != nil {
		return nil, err
	}
	if err := s.loadRows(ctx, meta.Rows, events, out); err != nil {
		return nil, err
	}
	return out, nil
}

func decodeMeta(text []byte) (meta storedMeta, err error) {
	if err := json.Unmarshal(text, &meta); err != nil {
		return meta, fmt.Errorf("read the table of contents: %w", err)
	}
	if meta.Version != schemaVersion {
		return meta, fmt.Errorf("%w (schema %d, this one reads %d): start the version that wrote it, which delivers what waits there, or name another storage; what it holds is untouched", errOtherVersion, meta.Version, schemaVersion)
	}
	if meta.Rows < 0 || meta.Rows > maxSlots || meta.Events < 0 || meta.Events > maxSlots {
		return meta, errors.New("the table of contents makes no sense")
	}
	return meta, nil
}

var errOtherVersion = errors.New("it was written by another version of the exporter")

// maxSlots is more than can ever be in use: full queues of 100 receivers.
const maxSlots = 100 * maxQueueSize

func (s *store) loadEvents(ctx context.Context, high int, out *stored) (map[int]*item, error) {
	texts, err := s.Read(ctx, keysBelow(high, eventKey))
	if err != nil {
		return nil, err
	}
	s.events.high = high
	bySlot := map[int]*item{}
	for slot, text := range slices.Backward(texts) { // so that low ones are handed out first
		if text == nil {
			s.events.give(slot)
			continue
		}
		it, err := decodeEvent(text)
		if err != nil {
			out.damaged = append(out.damaged, err)
			s.change(func(set setter) { set(eventKey(slot), nil) })
			s.events.give(slot)
			continue
		}
		it.slot = slot
		bySlot[slot] = it
		out.next = max(out.next, it.number+1)
	}
	out.events = slices.SortedFunc(maps.Values(bySlot), func(a, b *item) int { return cmp.Compare(a.number, b.number) })
	return bySlot, nil
}

func (s *store) loadRows(ctx context.Context, high int, events map[int]*item, out *stored) error {
	texts, err := s.Read(ctx, keysBelow(high, rowKey))
	if err != nil {
		return err
	}
	s.rows.high = high
	grouped := map[[2]string]*delivery{}
	for slot, text := range slices.Backward(texts) {
		if text == nil {
			s.rows.give(slot)
			continue
		}
		row, err := decodeRow(text)
		it := events[row.Event]
		if err == nil && (it == nil || it.ID != row.EventID) {
			err = errors.New("a stored delivery has lost its event")
		}
		if err != nil {
			out.damaged = append(out.damaged, err)
			s.change(func(set setter) { set(rowKey(slot), nil) })
			s.rows.give(slot)
			continue
		}
		it.needed++
		out.next = max(out.next, row.Number+1)
		p := &part{item: it, number: row.Number, row: slot, received: row.Received}
		key := [2]string{row.Receiver, row.Group}
		d := grouped[key]
		if d == nil || row.Group == "" {
			d = &delivery{group: row.Group, state: row.state}
			out.deliveries[d] = row.Receiver
		}
		if row.Group != "" {
			grouped[key] = d
		}
		d.parts = append(d.parts, p)
	}
	for d := range out.deliveries {
		slices.SortFunc(d.parts, func(a, b *part) int { return cmp.Compare(a.number, b.number) })
	}
	return nil
}

func keysBelow(n int, key func(int) string) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = key(i)
	}
	return keys
}
