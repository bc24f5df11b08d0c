// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kernellog

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

var now = time.Unix(1_800_000_000, 0)

// Whatever a record has, it is read as a line or counted; what is huge is not read.
func TestHostileRecords(t *testing.T) {
	const line = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
	for name, tc := range map[string]struct {
		fill func(plog.LogRecord)
		want Outcome // Used: a line is returned
	}{
		"a line":               {func(r plog.LogRecord) { r.Body().SetStr(line) }, Used},
		"no body":              {func(plog.LogRecord) {}, Other},
		"a number":             {func(r plog.LogRecord) { r.Body().SetInt(79) }, Other},
		"bytes":                {func(r plog.LogRecord) { r.Body().SetEmptyBytes().FromRaw([]byte(line)) }, Other},
		"a list":               {func(r plog.LogRecord) { r.Body().SetEmptySlice().AppendEmpty().SetStr(line) }, Other},
		"a message of bytes":   {func(r plog.LogRecord) { r.Body().SetEmptyMap().PutEmptyBytes("MESSAGE") }, Other},
		"binary":               {func(r plog.LogRecord) { r.Body().SetStr("NVRM: Xid\x00 (PCI:\xfe") }, Invalid},
		"a mark within":        {func(r plog.LogRecord) { r.Body().SetStr("a[1]: segfault in " + line) }, Other},
		"a huge line":          {func(r plog.LogRecord) { r.Body().SetStr(line + strings.Repeat("x", 1<<24)) }, Invalid},
		"a mark far behind":    {func(r plog.LogRecord) { r.Body().SetStr(strings.Repeat("x", 1<<24) + line) }, Other},
		"the journal's kernel": {journal("kernel", line), Used},
		"the journal's others": {journal("syslog", line), Other},
		"a clock ahead": {func(r plog.LogRecord) {
			r.Body().SetStr(line)
			r.SetTimestamp(pcommon.NewTimestampFromTime(now.Add(time.Hour)))
		}, Used},
	} {
		t.Run(name, func(t *testing.T) {
			logs := plog.NewLogs()
			tc.fill(logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
			var r Reader
			lines := r.Read(logs, now)
			if tc.want != Used {
				assert.Empty(t, lines)
				assert.Equal(t, map[Outcome]int64{tc.want: 1}, r.TakeCounts())
				return
			}
			require.Len(t, lines, 1)
			assert.Equal(t, 79, lines[0].Code)
			assert.Equal(t, pcommon.NewTimestampFromTime(now), lines[0].At)
		})
	}
}

func journal(from, line string) func(plog.LogRecord) {
	return func(r plog.LogRecord) {
		r.Body().SetEmptyMap().PutStr("_TRANSPORT", from)
		r.Body().Map().PutStr("MESSAGE", line)
	}
}

// Of a million lines in a second those that fit are read, and all others are counted.
func TestAMillionLines(t *testing.T) {
	const batch, batches = 10_000, 100
	logs := plog.NewLogs()
	records := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for range batch {
		records.AppendEmpty().Body().SetStr("NVRM: Xid (PCI:0000:3b:00): 45, pid=4712, name=server, Ch 00000010")
	}
	var r Reader
	read := 0
	for range batches {
		read += len(r.Read(logs, now))
	}
	assert.Equal(t, MaxPerSecond, read)
	assert.Equal(t, map[Outcome]int64{Refused: batch*batches - MaxPerSecond}, r.TakeCounts())
	assert.Len(t, r.Read(logs, now.Add(time.Second)), MaxPerSecond)
}

// A line and a page are about one XID where both are near each other; each of them counts
// what the other has not.
func TestPairing(t *testing.T) {
	at := func(seconds float64) pcommon.Timestamp {
		return pcommon.NewTimestampFromTime(now.Add(time.Duration(seconds * float64(time.Second))))
	}
	var p Pairing
	line := func(seconds float64) (counts bool) {
		fresh, again := p.Line(at(seconds), at(1e6))
		return fresh && !again
	}
	rise := func(by int64, from, to float64) int64 { return p.Rise(by, at(from), at(to)) }
	assert.True(t, line(1))
	assert.False(t, line(1), "read before")
	assert.False(t, line(0), "a later one was read")
	assert.Zero(t, rise(1, 0, 15), "the log had it")
	assert.EqualValues(t, 1, rise(1, 15, 30))
	assert.False(t, line(29), "the page had it")
	assert.True(t, line(29.5), "one more")
	assert.True(t, line(29.6))
	assert.EqualValues(t, 3, rise(5, 30, 45), "two of them are known")
	assert.True(t, line(1000), "the page had others")
	assert.EqualValues(t, 1, rise(1, 5000, 5015), "the log had others")

	saved, lines := p.Saved()
	p = Restored(saved, lines)
	assert.False(t, line(1000))

	fresh, _ := p.Line(at(10), at(10))
	assert.True(t, fresh, "the clock was set back")
}
