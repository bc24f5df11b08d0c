// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
)

// still is for how long an exporter's values have stood still.
type still struct {
	sum   uint64 // of energy and clocks of all devices
	pages int
	since time.Time
	moved bool // a page differed from the one before it, at since
}

// observe reports whether the host engine behind the exporter hangs: energy and all
// clocks of every device, of which sum is a hash, have the same value on FrozenAfter
// pages and for FrozenFor. Nothing is known until a page differed from the one before
// it, or both limits have passed.
func (s *still) observe(sum uint64, now time.Time, opts *Options) (frozen, known bool) {
	switch {
	case s.pages == 0 || now.Before(s.since): // the first page, or the clock was set back
		*s = still{sum: sum, since: now}
	case sum != s.sum:
		*s = still{sum: sum, since: now, moved: true}
	}
	s.pages++
	if now.Sub(s.since) < opts.FrozenFor {
		return false, s.moved
	}
	frozen = s.pages >= opts.FrozenAfter
	return frozen, frozen
}

// movement is a hash of what always moves on a page, and whether there is any: energy
// always rises on a board that measures it, and a page without energy proves nothing.
func (p *pageState) movement(m *Moving) (sum uint64, measured bool) {
	h := fnv.New64a()
	var buf [8]byte
	for _, d := range p.order {
		if d.parent != nil {
			continue
		}
		h.Write([]byte(d.id))
		for i, ids := range [...][]devicetable.ID{m.Energy, m.Clocks} {
			for _, id := range ids {
				x := d.values[id]
				measured = measured || i == 0 && x.rank != rankNone
				binary.LittleEndian.PutUint64(buf[:], math.Float64bits(x.V))
				h.Write(buf[:])
			}
		}
	}
	return h.Sum64(), measured
}
