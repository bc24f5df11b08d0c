// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package spool // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/spool"

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/journal"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/known"
	"github.com/otelcol-gpu/otelcol-gpu/internal/durable"
)

// Store keeps events and deliveries across restarts, in numbered slots, since a
// storage client cannot list what it holds. A nil store keeps nothing.
type Store struct {
	*journal.Journal
	id component.ID // of the storage extension

	slots  sync.Mutex // held before the journal's own
	rows   slots
	events slots
	gone   map[string]string // receiver: fingerprint of its configuration
	limits map[string]Limit  // by receiver
}

// Open opens the storage extension. Failed is called for each failure,
// recovered for the first success after failures; damaged is why the extension
// uses another file than before, nil if it does not.
func Open(ctx context.Context, host component.Host, id, exporter component.ID, failed func(operation string, err error), recovered func()) (s *Store, damaged, err error) {
	client, damaged, err := durable.Open(ctx, host, component.KindExporter, id, exporter)
	if err != nil {
		return nil, nil, err
	}
	return &Store{Journal: journal.New(client, failed, recovered), id: id}, damaged, nil
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
func (s *Store) change(f func(set setter)) {
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

func (s *Store) setMeta(set setter) {
	text, _ := json.Marshal(storedMeta{Version: schemaVersion, Rows: s.rows.high, Events: s.events.high}) // numbers only
	set(metaKey, text)
}

// Add stores new events and deliveries of one part each. What cannot be stored
// now is marked, and stored as soon as that is possible. It reports whether all
// is stored.
func (s *Store) Add(items []*delivery.Item, deliveries []*delivery.Delivery) bool {
	if s == nil {
		return true
	}
	texts := make([][]byte, len(items))
	for i, it := range items {
		texts[i], _ = encodeEvent(it) // times beyond year 9999 alone fail, and no log record has one
	}
	s.change(func(set setter) {
		for i, it := range items {
			it.Slot = s.events.take()
			it.Refs++ // by who adds it, until it is forgotten
			set(eventKey(it.Slot), texts[i])
		}
		for _, d := range deliveries {
			p := d.Parts[0]
			p.Row = s.rows.take()
			p.Refs++
			text, _ := encodeRow(d, p)
			set(rowKey(p.Row), text)
		}
	})
	if s.Flush() == nil {
		return true
	}
	for _, d := range deliveries {
		d.Parts[0].Unstored = true
	}
	return false
}

// Ended reports whether nothing can be stored any more.
func (s *Store) Ended() bool { return s != nil && s.Closed() }

// Holds reports whether a start would find the delivery, at whatever point of its
// attempts. The caller holds the lock of its queue.
func (s *Store) Holds(d *delivery.Delivery) bool {
	if s == nil {
		return false
	}
	for _, p := range d.Parts {
		if !p.Unstored {
			continue
		}
		if !s.Journal.Holds(rowKey(p.Row)) || !s.Journal.Holds(eventKey(p.Slot)) {
			return false
		}
		p.Unstored = false // what is written of it later replaces what is there
	}
	return true
}

// Save stores the state of a delivery.
func (s *Store) Save(d *delivery.Delivery) {
	if s == nil {
		return
	}
	s.change(func(set setter) {
		for _, p := range d.Parts {
			if text, err := encodeRow(d, p); err == nil {
				set(rowKey(p.Row), text)
			}
		}
	})
}

// SaveNow is save, and waits until that is done. It reports false where that
// fails, which is counted and tried again; the delivery goes on.
func (s *Store) SaveNow(d *delivery.Delivery) bool {
	if s == nil {
		return true
	}
	s.Save(d)
	return s.Flush() == nil
}

// Remove ends deliveries.
func (s *Store) Remove(deliveries ...*delivery.Delivery) {
	if s == nil || len(deliveries) == 0 {
		return
	}
	s.change(func(set setter) {
		for _, d := range deliveries {
			for _, p := range d.Parts {
				set(rowKey(p.Row), nil)
				s.rows.give(p.Row)
				s.release(set, p.Item)
			}
		}
	})
}

// Forget releases events that are no longer kept for replay.
func (s *Store) Forget(items []*delivery.Item) {
	if s == nil || len(items) == 0 {
		return
	}
	s.change(func(set setter) {
		for _, it := range items {
			s.release(set, it)
		}
	})
}

// release removes the event when nothing needs it any more.
func (s *Store) release(set setter, it *delivery.Item) {
	if it.Refs--; it.Refs == 0 {
		set(eventKey(it.Slot), nil)
		s.events.give(it.Slot)
	}
}

// SetGone remembers, or forgets, that a receiver of this configuration is gone.
func (s *Store) SetGone(receiver, fingerprint string, gone bool) {
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

// GoneReceivers are the receivers that are remembered as gone, with the
// fingerprints of their configurations.
func (s *Store) GoneReceivers() map[string]string {
	s.slots.Lock()
	defer s.slots.Unlock()
	return maps.Clone(s.gone)
}

// Limit is until when a receiver of that configuration gets nothing, because it limits the rate.
type Limit struct {
	Fingerprint string    `json:"fingerprint"`
	Until       time.Time `json:"until"`
}

// SetLimit stores the rate limit of a receiver; the zero Limit is no limit.
func (s *Store) SetLimit(receiver string, l Limit) {
	if s == nil {
		return
	}
	s.change(func(set setter) {
		if s.limits[receiver] == l {
			return
		}
		if l == (Limit{}) {
			delete(s.limits, receiver)
		} else {
			s.limits[receiver] = l
		}
		text, _ := json.Marshal(s.limits) // no time beyond year 9999
		set(limitsKey, text)
	})
}

// Limits are the stored rate limits, by receiver.
func (s *Store) Limits() map[string]Limit {
	s.slots.Lock()
	defer s.slots.Unlock()
	return maps.Clone(s.limits)
}

// WriteIDs stores the ids of a batch with the next transaction.
func (s *Store) WriteIDs(batch *known.Batch) {
	if s != nil {
		s.change(batch.Write)
	}
}
