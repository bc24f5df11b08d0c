// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package spool // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/spool"

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/known"
)

// stored is what a store held at the start.
type stored struct {
	Events     []*delivery.Item     // in order of arrival
	Deliveries []*delivery.Delivery // in order of arrival
	Next       uint64               // number
	Damaged    []error
}

// Load reads everything. What makes no sense is left out and returned as damaged.
// An error means that the storage could not be read.
func (s *Store) Load(ctx context.Context) (*stored, error) {
	out, err := s.loadAll(ctx)
	if err != nil {
		return nil, s.unreadable(err)
	}
	for _, it := range out.Events {
		it.Refs++ // until it is forgotten
	}
	return out, nil
}

// unreadable is the error of a storage that cannot be read: what it holds is not
// known, and must not be written over.
func (s *Store) unreadable(err error) error {
	if !errors.Is(err, errOtherVersion) {
		err = fmt.Errorf("see that its disk answers and is not full; what it holds is untouched: %w", err)
	}
	return fmt.Errorf("storage: %s cannot be read: %w", s.id, err)
}

// LoadIDs reads the ids of known events. It returns how many make no sense.
func (s *Store) LoadIDs(ctx context.Context, ids *known.IDs) (damaged int, err error) {
	damaged, err = ids.Load(func(keys []string) ([][]byte, error) { return s.Read(ctx, keys) })
	if err != nil {
		return 0, s.unreadable(err)
	}
	return damaged, nil
}

func (s *Store) loadAll(ctx context.Context) (*stored, error) {
	s.gone, s.limits = map[string]string{}, map[string]Limit{}
	texts, err := s.Read(ctx, []string{metaKey, goneKey, limitsKey})
	if err != nil {
		return nil, err
	}
	out := &stored{}
	if texts[0] == nil {
		return out, nil
	}
	meta, err := decodeMeta(texts[0])
	if errors.Is(err, errOtherVersion) {
		return nil, err
	}
	if err != nil {
		out.Damaged = append(out.Damaged, err)
		return out, nil
	}
	if texts[1] != nil {
		if err := json.Unmarshal(texts[1], &s.gone); err != nil || s.gone == nil {
			s.gone = map[string]string{}
			out.Damaged = append(out.Damaged, errors.New("read which receivers are gone"))
		}
	}
	if texts[2] != nil {
		if err := json.Unmarshal(texts[2], &s.limits); err != nil || s.limits == nil {
			s.limits = map[string]Limit{}
			out.Damaged = append(out.Damaged, errors.New("read which receivers limit the rate"))
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
const maxSlots = 10_000_000

func (s *Store) loadEvents(ctx context.Context, high int, out *stored) (map[int]*delivery.Item, error) {
	texts, err := s.Read(ctx, keysBelow(high, eventKey))
	if err != nil {
		return nil, err
	}
	s.events.high = high
	bySlot := map[int]*delivery.Item{}
	for slot, text := range slices.Backward(texts) { // so that low ones are handed out first
		if text == nil {
			s.events.give(slot)
			continue
		}
		it, err := decodeEvent(text)
		if err != nil {
			out.Damaged = append(out.Damaged, err)
			s.change(func(set setter) { set(eventKey(slot), nil) })
			s.events.give(slot)
			continue
		}
		it.Slot = slot
		bySlot[slot] = it
		out.Next = max(out.Next, it.Number+1)
	}
	out.Events = slices.SortedFunc(maps.Values(bySlot), func(a, b *delivery.Item) int { return cmp.Compare(a.Number, b.Number) })
	return bySlot, nil
}

func (s *Store) loadRows(ctx context.Context, high int, events map[int]*delivery.Item, out *stored) error {
	texts, err := s.Read(ctx, keysBelow(high, rowKey))
	if err != nil {
		return err
	}
	s.rows.high = high
	grouped := map[[2]string]*delivery.Delivery{}
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
			out.Damaged = append(out.Damaged, err)
			s.change(func(set setter) { set(rowKey(slot), nil) })
			s.rows.give(slot)
			continue
		}
		it.Refs++
		it.Expect(1)
		out.Next = max(out.Next, row.Number+1)
		p := &delivery.Part{Item: it, Number: row.Number, Row: slot, Received: row.Received}
		key := [2]string{row.Receiver, row.Group}
		d := grouped[key]
		if d == nil || row.Group == "" {
			d = &delivery.Delivery{Endpoint: row.Receiver, Group: row.Group, State: row.State}
			out.Deliveries = append(out.Deliveries, d)
		}
		if row.Group != "" {
			grouped[key] = d
		}
		d.Parts = append(d.Parts, p)
	}
	for _, d := range out.Deliveries {
		slices.SortFunc(d.Parts, func(a, b *delivery.Part) int { return cmp.Compare(a.Number, b.Number) })
	}
	slices.SortFunc(out.Deliveries, delivery.ByNumber)
	return nil
}

func keysBelow(n int, key func(int) string) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = key(i)
	}
	return keys
}
