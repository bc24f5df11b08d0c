// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// MaxXIDCodes are counted for one device.
const MaxXIDCodes = 256

// OverXIDCodes is the limit that a page with more codes is over.
var OverXIDCodes = devicemap.OverLimit(MaxXIDCodes, "XID codes of one GPU")

// xidState counts the XIDs of one device from changes of its last code. The same
// code twice in a row cannot be seen that way: the counts are lower bounds.
type xidState struct {
	exact func(device string, now time.Time) bool // nil: of none
	known bool                                    // the device was seen on an earlier page
	last  int64                                   // the last code then, 0 for none
	codes map[int64]*xidCount
	total map[string]*devicemap.Cumulative // start times of the exporter's own counts
}

type xidCount struct {
	n     int64
	start pcommon.Timestamp
}

// write writes gpu.xid.errors: the exporter's own counts where it has them.
func (s *xidState) write(d *devicemap.Device, w *devicemap.Writer) {
	total := d.Rows(XIDTotal)
	last := d.Reading(XIDLast)
	switch code := int64(last.V); {
	case !last.Known():
		// 4.x exporters have no row before the first XID, and lose it when the
		// field is blank: what was known stays known.
	case total == nil && s.known && code != s.last && code != 0:
		s.count(code, d, w)
		s.last = code
	default:
		s.last = code
	}
	s.known = true
	if total != nil {
		s.writeTotal(total, d, w)
		return
	}
	if s.exact != nil && s.exact(d.ID(), w.Time().AsTime()) {
		return
	}
	for _, code := range slices.Sorted(maps.Keys(s.codes)) {
		count := s.codes[code]
		p := w.Point(&names.GPUXIDErrors)
		count.start = min(count.start, w.Time()) // the clock may be set back
		p.SetIntValue(count.n)
		p.SetStartTimestamp(count.start)
		p.Attributes().PutInt(names.GPUXIDCode, code)
		p.Attributes().PutBool(names.GPUXIDDerived, true)
	}
}

func (s *xidState) count(code int64, d *devicemap.Device, w *devicemap.Writer) {
	count := s.codes[code]
	if count == nil {
		if len(s.codes) >= MaxXIDCodes {
			w.Beyond(OverXIDCodes)
			return
		}
		if s.codes == nil {
			s.codes = map[int64]*xidCount{}
		}
		// It was 0 on the page before, so the first count of 1 is a rise.
		count = &xidCount{start: d.SeenBefore()}
		s.codes[code] = count
	}
	count.n++
}

func (s *xidState) writeTotal(rows map[string]devicemap.Reading, d *devicemap.Device, w *devicemap.Writer) {
	if s.total == nil {
		s.total = map[string]*devicemap.Cumulative{}
	}
	// An exporter that counts forgets no code: this one was restarted, and what it
	// counts of the code next has risen from 0, however high it was before.
	maps.DeleteFunc(s.total, func(text string, _ *devicemap.Cumulative) bool {
		_, counted := rows[text]
		return !counted
	})
	for _, text := range slices.Sorted(maps.Keys(rows)) {
		code, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			continue // the row of an exporter that has seen no XID
		}
		c := s.total[text]
		if c == nil {
			if len(s.total) >= MaxXIDCodes {
				w.Beyond(OverXIDCodes)
				continue
			}
			// A code that is new on a later page has risen from 0.
			c = &devicemap.Cumulative{Start: d.SeenBefore()}
			s.total[strings.Clone(text)] = c
		}
		v := rows[text].V
		p := w.Point(&names.GPUXIDErrors)
		p.SetIntValue(int64(math.Round(v)))
		p.SetStartTimestamp(c.Observe(v, w.Time()))
		p.Attributes().PutInt(names.GPUXIDCode, code)
	}
}
