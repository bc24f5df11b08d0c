// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// dcgm-exporter before 4.6 repeats the value of a shared device on a row for
// each of its holders. From 4.6 on it asks the driver, for two fields, what the
// processes of each holder use: those families have a row of the device that
// names no holder, and the rows of holders are shares of it. That row is how the
// two are told apart.

// shareFields are the fields with shares, and the metrics under whose names and
// in whose units they are handed to gpu_pod.
var shareFields = [...]struct {
	field  devicetable.ID
	metric *names.Metric
}{
	{devicetable.FBUsed, &names.GPUMemoryUsage},
	{devicetable.GPUUtil, &names.GPUUtilization},
}

const (
	notShared   = -1
	memoryShare = 0 // place of FBUsed in shareFields
)

// sharedOut is the place of a field in shareFields.
func sharedOut(id devicetable.ID) int {
	for i := range shareFields {
		if shareFields[i].field == id {
			return i
		}
	}
	return notShared
}

// held is a holder with its share of each of shareFields.
type held struct {
	holder
	shares [len(shareFields)]shareValue
}

// shareValue is what a page says is a holder's share. Rows that contradict each
// other say nothing.
type shareValue struct {
	v             float64 // in the base unit
	known, contra bool
}

func (s *shareValue) offer(v float64) {
	s.contra = s.contra || s.known && s.v != v
	s.v, s.known = v, true
}

// share is a row of a holder, which is a share if its family has a row of the
// whole device as well.
type share struct {
	device *device
	place  int // in the device's holders
	family *Family
	v      float64
}

// noteShare takes a row of one of shareFields.
func (t *Target) noteShare(d *device, place int, s *Series, v float64) {
	h := &s.labels.row.holder
	switch {
	case h.empty():
		d.whole = append(d.whole, s.family)
	case place != noHolder && h.shared():
		t.page.shares = append(t.page.shares, share{d, place, s.family, v})
	}
}

// settleShares decides, at the end of a page, which of its rows were shares.
func (t *Target) settleShares() {
	for _, s := range t.page.shares {
		if slices.Contains(s.device.whole, s.family) {
			s.device.holders[s.place].shares[s.family.share].offer(devicetable.All[s.family.id].Convert(s.v))
		}
	}
	clear(t.page.shares)
	t.page.shares = t.page.shares[:0]
}

// sharesSeen reports whether the exporter sees the processes on the device. One
// that does not run in the host's PID namespace sees none and says 0 for every
// holder, whatever the device as a whole uses.
func (d *device) sharesSeen() bool {
	told := false
	for i := range d.holders {
		s := &d.holders[i].shares[memoryShare]
		if s.known && s.v > 0 {
			return true
		}
		told = told || s.known
	}
	return !told || d.values[devicetable.FBUsed].v == 0
}

// putShares writes the shares beside the holder's labels, under the names and in
// the units of their metrics.
func (h *held) putShares(attrs pcommon.Map) {
	for i := range shareFields {
		s, m := h.shares[i], shareFields[i].metric
		switch {
		case !s.known || s.contra:
		case m.Int():
			attrs.PutInt(m.Name, int64(math.Round(s.v)))
		default:
			attrs.PutDouble(m.Name, s.v)
		}
	}
}
