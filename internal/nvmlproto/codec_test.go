// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlproto

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFramesArriveAsTheyWereWritten(t *testing.T) {
	minor := 3
	sent := []Frame{
		{Hello: &Hello{Version: Version, Build: "0.1.0"}},
		{Begin: &Call{Thread: "0000:3b:00.0", Name: "nvmlDeviceGetPowerUsage"}},
		{Board: &Board{ID: 7, UUID: "GPU-1", Minor: &minor, Values: []Value{
			{Name: "energy", V: 1 << 53}, {Name: "gpm.sm", V: Number(math.Inf(1))}, {Name: "power.usage", Return: 3},
		}}},
	}
	var pipe bytes.Buffer
	for _, f := range sent {
		require.NoError(t, Write(&pipe, f))
	}
	var memory []byte
	for _, want := range sent {
		var got Frame
		var err error
		memory, err = Read(&pipe, &got, memory)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := Read(&pipe, &Frame{}, memory)
	assert.Equal(t, io.EOF, err)
}

func TestFramesThatCannotBeRead(t *testing.T) {
	for name, bytesOf := range map[string]string{
		"no length":    "\x00\x00\x00\x00",
		"too long":     "\x00\x20\x00\x00{}",
		"not JSON":     "\x00\x00\x00\x02no",
		"not a number": "\x00\x00\x00\x23" + `{"board":{"values":[{"v":"many"}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(bytes.NewBufferString(bytesOf), &Frame{}, nil)
			assert.ErrorIs(t, err, ErrFrame)
		})
	}
	_, err := Read(bytes.NewBufferString("\x00\x00\x00\x09{}"), &Frame{}, nil)
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestNumbersThatAreNone(t *testing.T) {
	text, err := json.Marshal(Number(math.NaN()))
	require.NoError(t, err)
	var back Number
	require.NoError(t, json.Unmarshal(text, &back))
	assert.True(t, math.IsNaN(float64(back)))
}

// FuzzValues: read by hand, values are what encoding/json makes of them.
func FuzzValues(f *testing.F) {
	for _, text := range []string{
		`[]`, `null`, `{}`, `[{"n":"energy","v":1e+21},{"n":"x","w":"0","v":-0.5,"r":3}]`, `[{"v":1,"n":"x"}]`,
		`[{"n":"x\u0041","v":1}]`, `[{"n":"x","v":"NaN"}]`, `[{"n":"x","v":1,"r":1.5}]`, `[{"n":"x","v":1},]`, ` [ {"n":"x"} ] `,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want []Value
		var got Values
		err := json.Unmarshal(text, &got)
		if wantErr := json.Unmarshal(text, &want); wantErr != nil {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Len(t, got, len(want))
		for i := range want {
			if !math.IsNaN(float64(want[i].V)) {
				require.Equal(t, want[i], got[i])
			}
		}
		back, err := json.Marshal(got)
		require.NoError(t, err)
		plain, err := json.Marshal([]Value(got))
		require.NoError(t, err)
		if got != nil {
			require.Equal(t, string(plain), string(back))
		}
	})
}

// FuzzRead: whatever a helper writes, reading it ends.
func FuzzRead(f *testing.F) {
	var pipe bytes.Buffer
	_ = Write(&pipe, Frame{Event: &Event{Thread: "a", XID: []XID{{Code: 79, N: 2}}}})
	f.Add(pipe.Bytes())
	f.Add([]byte("\x00\x00\x00\x02{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		var memory []byte
		for {
			var frame Frame
			var err error
			if memory, err = Read(r, &frame, memory); err != nil {
				return
			}
			if frame.Board != nil && len(frame.Board.Values) > 0 {
				require.NoError(t, Write(io.Discard, frame))
			}
		}
	})
}

// TestReadings: no name twice, no field id whose meaning moved between drivers.
func TestReadings(t *testing.T) {
	seen := map[string]bool{}
	for i := range Readings {
		r := &Readings[i]
		assert.False(t, seen[r.Name], r.Name)
		seen[r.Name] = true
		if r.Method == MethodField {
			assert.False(t, r.Argument >= 251 || r.Argument == 199 || r.Argument == 200, r.Name)
		}
	}
}

func TestAppendedCallsAreFrames(t *testing.T) {
	for _, call := range []Call{
		{Name: "nvmlInit_v2"},
		{Thread: "0000:81:00.0", Name: "nvmlDeviceGetClockInfo(1)", Return: 15, Micros: 12.75},
		{Thread: "#3", Name: "nvmlDeviceGetFieldValues", Return: 999, Micros: 60_000_000},
	} {
		var begin, end bytes.Buffer
		require.NoError(t, Write(&begin, Frame{Begin: &call}))
		require.NoError(t, Write(&end, Frame{End: &call}))
		assert.Equal(t, begin.String(), string(AppendBegin(nil, call)))
		assert.Equal(t, begin.String()+end.String(), string(AppendEnd(AppendBegin(nil, call), call)))
	}
}

func TestReadingIn(t *testing.T) {
	for _, r := range Readings {
		assert.True(t, r.In([]Group{r.Group}), r.Name)
		assert.False(t, r.In([]Group{GroupXID}), r.Name)
		assert.Equal(t, r.Name == "memory.total", r.In([]Group{GroupInventory}) && r.Group != GroupInventory, r.Name)
	}
}
