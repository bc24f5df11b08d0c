// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
)

// maxUnknown is how many fields of a page that are not in the table are looked at.
const maxUnknown = 256

// Unknown is a field of a page that is not in the table.
type Unknown struct {
	Field string
	// Quantity is a quantity that the page lacks and that the field may have, and Like the
	// known name that is like the field's; both are empty where no name is.
	Quantity, Like string
	// Core: the quantity is the utilization, memory or power of a device.
	Core bool
}

// String is the field with what it may be.
func (u Unknown) String() string {
	if u.Quantity == "" {
		return u.Field
	}
	return u.Field + " (" + u.Quantity + "? It is like " + u.Like + ")"
}

// weight orders fields by what is known of them.
func (u *Unknown) weight() int {
	switch {
	case u.Core:
		return 2
	case u.Like != "":
		return 1
	}
	return 0
}

// fieldNames are the names on the pages of a target: an exporter that renames its fields
// prints names that no table has, and lacks quantities.
type fieldNames struct {
	known   []bool    // by ID: the page has the field, with a value or without
	unknown []*Family // of devices, each once
	devices bool      // there are some
	// Of the page before, for which the result stands:
	knownBefore   []bool
	unknownBefore []*Family

	recognized   bool // a page had a core quantity
	unrecognized bool
	written      bool // gpu.exporter.unrecognized was
	found        []Unknown
}

func (n *fieldNames) startPage(fields int) {
	n.known, n.knownBefore = n.knownBefore, n.known
	n.unknown, n.unknownBefore = n.unknownBefore[:0], n.unknown
	if n.known == nil {
		n.known = make([]bool, fields)
	}
	clear(n.known)
}

// noted is the page of a target on which a family was noted last.
type noted struct {
	by   *fieldNames
	page uint64
}

// note notes the family of a row.
func (n *fieldNames) note(s *Series, page uint64) {
	f, here := s.family, noted{n, page}
	if f.field != nil {
		n.known[f.id] = true
		return
	}
	if board := s.labels.row.board; f.dropped || f.passed || f.noted == here || board == "" || board == DropRows || len(n.unknown) >= maxUnknown {
		return
	}
	f.noted = here
	n.unknown = append(n.unknown, f)
}

// judge finds the unknown fields that may have a quantity which the page lacks. A page has
// its families in any order.
func (n *fieldNames) judge(t *devicetable.Table, devices bool) {
	slices.SortFunc(n.unknown, func(a, b *Family) int { return strings.Compare(a.name, b.name) })
	if devices == n.devices && slices.Equal(n.known, n.knownBefore) && slices.Equal(n.unknown, n.unknownBefore) {
		return
	}
	n.devices = devices
	missing := t.Missing(func(id devicetable.ID) bool { return n.known[id] })
	core := slices.ContainsFunc(t.Quantities(), func(q devicetable.Quantity) bool {
		return q.Core && !slices.ContainsFunc(missing, func(m devicetable.Quantity) bool { return m.Name == q.Name })
	})
	n.recognized = n.recognized || core
	// A device that fails may leave nothing but its last error: then no name is unknown.
	n.unrecognized = devices && !core && (len(n.unknown) > 0 || !n.recognized)
	n.found = nil
	for _, f := range n.unknown {
		q, like := t.MaybeOf(f.name, missing)
		if like != "" || n.unrecognized {
			n.found = append(n.found, Unknown{f.name, q.Name, like, q.Core})
		}
	}
	slices.SortStableFunc(n.found, func(a, b Unknown) int { return b.weight() - a.weight() })
}
