// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"fmt"
	"iter"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
)

// Lack is what a page lacks that gives no device.
type Lack uint8

const (
	LacksNothing Lack = iota // there are devices
	LacksDCGM                // samples, none of a DCGM family
	LacksValues              // GPUs are named, and no row of them has a value
	LacksDevices             // DCGM families, and no row names a GPU
	LacksRows                // samples, all of which relabelling drops
)

// lack is what the page lacks, with the evidence in words.
func (p *Page) lack() (Lack, string) {
	if len(p.Rows) == 0 {
		return LacksRows, fmt.Sprintf("samples: %d, all dropped by metric_relabel_configs or a limit", p.Samples)
	}
	dcgm, named := 0, map[string]bool{}
	for _, row := range p.Rows {
		if !row.Series.family.dcgm {
			continue
		}
		dcgm++
		if uuid := row.Series.labels.row.uuid; uuid != "" && len(named) < maxDevices {
			named[uuid] = true
		}
	}
	switch {
	case dcgm == 0:
		return LacksDCGM, fmt.Sprintf("samples: %d, of DCGM: 0, first: %.100s", p.Samples, p.Rows[0].Series.family.name)
	case len(named) > 0:
		return LacksValues, fmt.Sprintf("GPUs: %d, rows: %d, values: 0", len(named), dcgm)
	default:
		return LacksDevices, fmt.Sprintf("samples of DCGM: %d, of a GPU: 0", dcgm)
	}
}

// Name is the name of the series' family.
func (s *Series) Name() string { return s.family.name }

// Labels are the labels of the series by their keys, sorted.
func (s *Series) Labels() iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for _, l := range s.labels.all {
			if !yield(l.key, l.value) {
				return
			}
		}
	}
}

// HasValue reports whether v is a value of the series at all, as Map decides it.
func (s *Series) HasValue(v float64) bool {
	_, ok := check(v, s.family.id, s.family.known)
	return ok
}

// Field is the field of the series' family, if the field table has it.
func (s *Series) Field() (devicetable.ID, bool) { return s.family.id, s.family.known }
