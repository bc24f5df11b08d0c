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
// each of its owners. From 4.6 on it asks the driver, for two fields, what the
// processes of each owner use: those families have a row of the device that
// names no owner, and the rows of owners are shares of it. That row is how the
// two are distinguished.

// shareMetrics give shares their names and units, by place in an owner's shares.
var shareMetrics = [...]*names.Metric{&names.GPUMemoryUsage, &names.GPUUtilization}

const (
	notShared = iota - 1
	memoryShare
	utilizationShare
)

// place is the place of a field in an owner's shares.
func (s *Shares) place(id devicetable.ID) int {
	switch {
	case s == nil:
		return notShared
	case id == s.Memory:
		return memoryShare
	case id == s.Utilization:
		return utilizationShare
	default:
		return notShared
	}
}

// ownerShares is an owner with its shares.
type ownerShares struct {
	owner
	shares [len(shareMetrics)]shareValue
}

// shareValue is an owner's share on a page. Rows that contradict each other give none.
type shareValue struct {
	v             float64 // in the base unit
	prefer        uint8   // of the name that the row has
	known, contra bool
}

func (s *shareValue) add(v float64, prefer uint8) {
	switch {
	case !s.known || prefer > s.prefer:
		*s = shareValue{v: v, prefer: prefer, known: true}
	case prefer == s.prefer:
		s.contra = s.contra || s.v != v
	}
}

// share is a row of an owner, which is a share if its family has a row of the
// whole device as well.
type share struct {
	device *Device
	place  int // among the device's owners
	family *Family
	v      float64 // in the base unit
}

// note takes a row of one of the fields with shares, and returns it where it may be a
// share.
func (d *Device) note(place int, s *Series, field *devicetable.Field, v float64) (share, bool) {
	h := &s.labels.row.owner
	if h.empty() {
		d.owners.whole = append(d.owners.whole, s.family)
	}
	return share{d, place, s.family, field.Convert(v)}, place != noOwner && h.shared()
}

// settle decides, at the end of a page, whether the row was a share.
func (s *share) settle() {
	hs := &s.device.owners
	if slices.Contains(hs.whole, s.family) {
		hs.list[s.place].shares[s.family.share].add(s.v, s.family.prefer)
	}
}

// sharesSeen reports whether the exporter sees the processes on the device. One
// that does not run in the host's PID namespace sees none and prints 0 for every
// owner, whatever the device as a whole uses.
func (hs *owners) sharesSeen(usage float64) bool {
	known := false
	for i := range hs.list {
		s := &hs.list[i].shares[memoryShare]
		if s.known && s.v > 0 {
			return true
		}
		known = known || s.known
	}
	return !known || usage == 0
}

// putShares writes the shares beside the owner's labels, under the names and in
// the units of their metrics.
func (h *ownerShares) putShares(attrs pcommon.Map) {
	for i, m := range shareMetrics {
		s := h.shares[i]
		switch {
		case !s.known || s.contra:
		case m.Int():
			attrs.PutInt(m.Name, int64(math.Round(s.v)))
		default:
			attrs.PutDouble(m.Name, s.v)
		}
	}
}
