// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"cmp"
	"iter"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
)

// survey is what the labels of a page contain about its boards: which of them are
// partitioned, and which device each row is about.
type survey struct {
	snapshot func() *gpusysfs.Snapshot
	sysfs    *gpusysfs.Snapshot // that it was made with
	serials  serials
	boards   map[string]*board // by hw.id
	rows     map[*devicemap.Labels]place
}

// place is which device a row is about.
type place struct{ board, part string }

// board is what the labels of all rows of a board contain.
type board struct {
	identity
	indexes  map[string]string  // the first gpu_id, by partition
	numbers  map[[2]string]bool // partition and gpu_id of all rows
	nameless map[string]bool    // gpu_id of the rows without a number of their partition
	model    model
	host     *gpusysfs.Device // nil where the host's sysfs does not have it
}

func newSurvey(snapshot func() *gpusysfs.Snapshot, labels iter.Seq[*devicemap.Labels]) *survey {
	s := &survey{snapshot: snapshot, sysfs: snapshot(), serials: serials{}, boards: map[string]*board{}, rows: map[*devicemap.Labels]place{}}
	identities := map[*devicemap.Labels]identity{}
	for l := range labels {
		i := readIdentity(l)
		if i.unique == 0 && i.serial == "" {
			continue
		}
		identities[l] = i
		s.serials.note(&i)
	}
	for l := range labels {
		i, ok := identities[l]
		if !ok {
			continue
		}
		id := s.board(&i)
		if id == "" {
			continue
		}
		s.rows[l] = place{board: id}
		b := s.boards[id]
		if b == nil {
			b = &board{indexes: map[string]string{}, numbers: map[[2]string]bool{}, nameless: map[string]bool{}}
			s.boards[id] = b
		}
		b.note(&i)
	}
	for host := range s.sysfs.Devices() {
		if b := s.boards[host.HwID("")]; b != nil && host.Vendor == gpusysfs.VendorAMD {
			b.host = host
		}
	}
	for _, b := range s.boards {
		b.model = findModel(b.pciID, b.series)
	}
	for l, p := range s.rows {
		if b := s.boards[p.board]; b.partitioned() {
			i := identities[l]
			if p.part = b.part(&i); p.part == "" {
				p = place{}
			}
			s.rows[l] = p
		}
	}
	return s
}

// note adds what the labels of a row contain. Where rows contradict each other the greater
// text wins, so that their order does not matter.
func (b *board) note(i *identity) {
	b.unique, b.pciID = cmp.Or(b.unique, i.unique), max(b.pciID, i.pciID)
	for _, text := range [...]struct {
		all *string
		row string
	}{{&b.serial, i.serial}, {&b.memory, i.memory}, {&b.series, i.series}, {&b.card, i.card}, {&b.profile, i.profile}} {
		*text.all = max(*text.all, text.row)
	}
	// On some drivers only the first partition has the mode.
	if i.compute != "" && (b.compute == "" || b.compute == "spx" || i.compute != "spx" && i.compute > b.compute) {
		b.compute = i.compute
	}
	if i.part == "" {
		if i.index != "" {
			b.nameless[i.index] = true
		}
		return
	}
	b.numbers[[2]string{i.part, i.index}] = true
	if index, seen := b.indexes[i.part]; !seen || i.index < index {
		b.indexes[i.part] = i.index
	}
}

// partitioned reports whether the board consists of partitions.
func (b *board) partitioned() bool { return b.compute != "" && b.compute != "spx" }

// conflicts is how many devices have the number of a partition that another one has.
func (b *board) conflicts() int { return len(b.numbers) - len(b.indexes) }

// trusted reports whether the numbers of partitions distinguish them.
func (b *board) trusted() bool {
	for index := range b.nameless {
		if b.numbered(index) == "" {
			return false
		}
	}
	return b.conflicts() == 0
}

// numbered is the number of the partition that other rows have beside a gpu_id, "" for none.
func (b *board) numbered(index string) (part string) {
	for n, other := range b.indexes {
		if other == index && (part == "" || n < part) {
			part = n
		}
	}
	return part
}

// part is the partition that a row of a partitioned board is about, "" where it cannot be
// known.
func (b *board) part(i *identity) string {
	switch {
	case b.trusted():
		return cmp.Or(i.part, b.numbered(i.index))
	case i.index == "":
		return ""
	default:
		return "gpu" + i.index
	}
}

// mode is the mode of a partitioned board, such as cpx_nps4.
func (b *board) mode() string {
	switch {
	case !b.partitioned():
		return b.profile
	case b.memory == "":
		return b.compute
	default:
		return b.compute + "_" + b.memory
	}
}

// partitions is how many partitions the board has, 0 where it is not known. The host's
// count may be older than the page: it counts in the same mode alone.
func (b *board) partitions() int {
	if b.compute == "cpx" && b.host != nil && b.host.KFDNodes > 0 && b.host.ComputePartition == b.compute {
		return b.host.KFDNodes
	}
	return b.model.partitions(b.compute)
}

// Identify implements devicemap.Survey.
func (s *survey) Identify(l *devicemap.Labels) (board, part string) {
	p := s.rows[l]
	return p.board, p.part
}

// Stale reports whether the host's boards have changed.
func (s *survey) Stale() bool { return s.snapshot() != s.sysfs }
