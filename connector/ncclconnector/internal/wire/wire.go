// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire has the log records that nccl on a node sends to nccl where the ranks meet: durations
// of a sample of the collectives of one rank.
package wire

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/inspector"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// Attributes of a record, beside those that metrics have too.
const (
	id        = "nccl.communicator.id"
	name      = "nccl.communicator.name"
	ranks     = "nccl.communicator.ranks"
	nodes     = "nccl.communicator.nodes"
	sequences = "nccl.sequences"
	durations = "nccl.durations" // nanoseconds
)

// Limits of a record.
const (
	maxSamples = 1000
	maxText    = 256
	maxRanks   = 1 << 20
)

// Batch is what one rank has done since the last one.
type Batch struct {
	Key    inspector.Key
	Rank   int
	Host   string
	Device string // hw.id, "" where it is not certain
	Newest time.Time
	// Operation has some durations, or none: then it only shows that the rank lives.
	Operation string
	Sequences []uint64
	Durations []time.Duration
}

// Write writes b as the attributes of r.
func (b *Batch) Write(r plog.LogRecord) {
	r.SetTimestamp(pcommon.NewTimestampFromTime(b.Newest))
	r.SetSeverityNumber(plog.SeverityNumberDebug)
	attrs := r.Attributes()
	attrs.PutStr(id, b.Key.ID)
	attrs.PutInt(ranks, int64(b.Key.Ranks))
	attrs.PutInt(nodes, int64(b.Key.Nodes))
	attrs.PutInt(names.NCCLRank, int64(b.Rank))
	for key, v := range map[string]string{name: b.Key.Name, names.NCCLHost: b.Host, names.HwID: b.Device, names.NCCLOperation: b.Operation} {
		if v != "" {
			attrs.PutStr(key, v)
		}
	}
	if len(b.Sequences) == 0 {
		return
	}
	s, d := attrs.PutEmptySlice(sequences), attrs.PutEmptySlice(durations)
	s.EnsureCapacity(len(b.Sequences))
	d.EnsureCapacity(len(b.Durations))
	for i := range b.Sequences {
		s.AppendEmpty().SetInt(int64(b.Sequences[i]))
		d.AppendEmpty().SetInt(int64(b.Durations[i]))
	}
}

// Read reads such a record. is is false for every other log record; ok is false for one that states
// what cannot be.
func Read(r plog.LogRecord) (b Batch, is, ok bool) {
	attrs := r.Attributes()
	b.Key.ID = points.Str(attrs, id)
	if b.Key.ID == "" {
		return b, false, false
	}
	number := func(key string) int {
		v, has := attrs.Get(key)
		if !has || v.Type() != pcommon.ValueTypeInt || v.Int() < 0 || v.Int() > maxRanks {
			return -1
		}
		return int(v.Int())
	}
	b.Key.Ranks, b.Key.Nodes, b.Key.Name, b.Rank = number(ranks), number(nodes), points.Str(attrs, name), number(names.NCCLRank)
	b.Host, b.Device, b.Operation = points.Str(attrs, names.NCCLHost), points.Str(attrs, names.HwID), points.Str(attrs, names.NCCLOperation)
	b.Newest = r.Timestamp().AsTime()
	for _, text := range [...]string{b.Key.ID, b.Key.Name, b.Host, b.Device, b.Operation} {
		if len(text) > maxText {
			return b, true, false
		}
	}
	if b.Key.Ranks < 1 || b.Key.Nodes < 1 || b.Key.Nodes > b.Key.Ranks || b.Rank < 0 || b.Rank >= b.Key.Ranks {
		return b, true, false
	}
	s, d := list(attrs, sequences), list(attrs, durations)
	if len(s) != len(d) || len(s) > maxSamples {
		return b, true, false
	}
	for i := range s {
		if s[i] < 0 || d[i] <= 0 || d[i] > int64(time.Hour) {
			return b, true, false
		}
		b.Sequences, b.Durations = append(b.Sequences, uint64(s[i])), append(b.Durations, time.Duration(d[i]))
	}
	return b, true, true
}

// list are the integers of an attribute; what is none is -1.
func list(attrs pcommon.Map, key string) (all []int64) {
	v, has := attrs.Get(key)
	if !has || v.Type() != pcommon.ValueTypeSlice {
		return nil
	}
	for _, one := range v.Slice().All() {
		n := int64(-1)
		if one.Type() == pcommon.ValueTypeInt {
			n = one.Int()
		}
		all = append(all, n)
	}
	return all
}
