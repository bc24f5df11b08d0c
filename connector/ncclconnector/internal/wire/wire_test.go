// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/inspector"
)

func batch() Batch {
	return Batch{
		Key: inspector.Key{ID: "0x7f", Ranks: 16, Nodes: 2, Name: "DP"}, Rank: 3, Host: "node-7", Device: "GPU-1",
		Newest: time.Unix(1_800_000_000, 0).UTC(), Operation: inspector.AllReduce,
		Sequences: []uint64{64, 32}, Durations: []time.Duration{time.Millisecond, 2 * time.Millisecond},
	}
}

// What is written is read.
func TestThereAndBack(t *testing.T) {
	alive := batch()
	alive.Operation, alive.Sequences, alive.Durations, alive.Key.Name, alive.Device = "", nil, nil, "", ""
	for _, b := range []Batch{batch(), alive} {
		r := plog.NewLogRecord()
		b.Write(r)
		got, is, ok := Read(r)
		require.True(t, is && ok)
		assert.Equal(t, b, got)
	}
}

func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(plog.LogRecord)
		is, has bool
	}{
		"as written":              {func(plog.LogRecord) {}, true, true},
		"another log record":      {func(r plog.LogRecord) { r.Attributes().Remove(id) }, false, false},
		"a rank beyond":           {func(r plog.LogRecord) { r.Attributes().PutInt("nccl.rank", 16) }, true, false},
		"no ranks":                {func(r plog.LogRecord) { r.Attributes().Remove(ranks) }, true, false},
		"more nodes than ranks":   {func(r plog.LogRecord) { r.Attributes().PutInt(nodes, 17) }, true, false},
		"another number of times": {func(r plog.LogRecord) { r.Attributes().Remove(durations) }, true, false},
		"a text for a list":       {func(r plog.LogRecord) { r.Attributes().PutStr(sequences, "1, 2") }, true, false},
		"a time below zero":       {func(r plog.LogRecord) { v, _ := r.Attributes().Get(durations); v.Slice().At(0).SetInt(-5) }, true, false},
		"a text for a time":       {func(r plog.LogRecord) { v, _ := r.Attributes().Get(durations); v.Slice().At(0).SetStr("1ms") }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			b, r := batch(), plog.NewLogRecord()
			b.Write(r)
			c.change(r)
			_, is, ok := Read(r)
			assert.Equal(t, []bool{c.is, c.has}, []bool{is, ok})
		})
	}
}

func FuzzRead(f *testing.F) {
	logs := plog.NewLogs()
	b := batch()
	b.Write(logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
	body, err := (&plog.ProtoMarshaler{}).MarshalLogs(logs)
	require.NoError(f, err)
	f.Add(body)
	f.Fuzz(func(t *testing.T, body []byte) {
		logs, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(body)
		if err != nil {
			return
		}
		for _, rl := range logs.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, r := range sl.LogRecords().All() {
					b, _, ok := Read(r)
					if !ok {
						continue
					}
					require.Less(t, b.Rank, b.Key.Ranks)
					again := plog.NewLogRecord()
					b.Write(again)
					same, _, ok := Read(again)
					require.True(t, ok)
					require.Equal(t, b, same)
				}
			}
		}
	})
}
