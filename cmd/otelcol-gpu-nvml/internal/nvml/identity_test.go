// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

const uuid = "GPU-1cb3fa11-ee25-dd45-f294-611104a0ae6c"

func identityFunctions() map[string]function {
	return map[string]function{
		"nvmlDeviceGetUUID":         writesText(uuid),
		"nvmlDeviceGetName":         writesText("NVIDIA H100 80GB HBM3"),
		"nvmlDeviceGetSerial":       returns(3),
		"nvmlDeviceGetVbiosVersion": writesText("96.00.99.00.01"),
		"nvmlDeviceGetPciInfo_v3":   func(a ...uintptr) Return { copy(at(a[1], 68)[36:], "00000000:81:00.0"); return Success },
		"nvmlDeviceGetMinorNumber":  writes32(3),
		"nvmlDeviceGetIndex":        writes32(0),
		"nvmlDeviceGetArchitecture": writes32(9),
	}
}

func TestIdentify(t *testing.T) {
	minor, index := 3, 0
	good := nvmlproto.Board{UUID: uuid, Name: "NVIDIA H100 80GB HBM3", VBIOS: "96.00.99.00.01", PCI: "00000000:81:00.0", Arch: 9, Minor: &minor, Index: &index}
	refusedText := func(symbol string) []nvmlproto.Refused {
		return []nvmlproto.Refused{{Call: symbol, Reason: nvmlproto.ReasonText, N: 1}}
	}
	for name, c := range map[string]struct {
		symbol string
		do     function
		want   func(b *nvmlproto.Board)
		r      Return
	}{
		"whole":                {want: func(*nvmlproto.Board) {}},
		"a name without end":   {symbol: "nvmlDeviceGetName", do: writesText(strings.Repeat("x", 200)), want: func(b *nvmlproto.Board) { b.Name, b.Refused = "", refusedText("nvmlDeviceGetName") }},
		"not UTF-8":            {symbol: "nvmlDeviceGetName", do: writesText("H100 \xff"), want: func(b *nvmlproto.Board) { b.Name, b.Refused = "", refusedText("nvmlDeviceGetName") }},
		"a control character":  {symbol: "nvmlDeviceGetVbiosVersion", do: writesText("96\n00"), want: func(b *nvmlproto.Board) { b.VBIOS, b.Refused = "", refusedText("nvmlDeviceGetVbiosVersion") }},
		"no UUID of a GPU":     {symbol: "nvmlDeviceGetUUID", do: writesText("GPU-1"), want: func(b *nvmlproto.Board) { b.UUID, b.Refused = "", refusedText("nvmlDeviceGetUUID") }},
		"no address":           {symbol: "nvmlDeviceGetPciInfo_v3", do: returns(0), want: func(b *nvmlproto.Board) { b.PCI, b.Refused = "", refusedText("nvmlDeviceGetPciInfo_v3") }},
		"an unknown minor":     {symbol: "nvmlDeviceGetMinorNumber", do: writes32(1<<32 - 1), want: func(b *nvmlproto.Board) { b.Minor = nil }},
		"the UUID fails":       {symbol: "nvmlDeviceGetUUID", do: returns(999), r: 999},
		"lost at the name":     {symbol: "nvmlDeviceGetName", do: returns(15), r: 15},
		"lost at the index":    {symbol: "nvmlDeviceGetIndex", do: returns(28), r: 28},
		"library not usable":   {symbol: "nvmlDeviceGetName", do: returns(1), r: 1},
		"a name not this time": {symbol: "nvmlDeviceGetName", do: returns(10), want: func(b *nvmlproto.Board) { b.Name = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			functions := identityFunctions()
			if c.symbol != "" {
				functions[c.symbol] = c.do
			}
			f, caller := newFake(functions)
			var got nvmlproto.Board
			require.Equal(t, c.r, caller.Identify(board, &got))
			if c.want == nil {
				return
			}
			want := good
			c.want(&want)
			assert.Equal(t, want, got)
			f.taken()
			again := nvmlproto.Board{}
			require.Equal(t, Success, caller.Identify(board, &again))
			assert.Equal(t, want, again)
			if name != "a name not this time" {
				assert.Empty(t, f.taken(), "it does not change")
			}
		})
	}
}

func TestHandlesAndTexts(t *testing.T) {
	f, caller := newFake(map[string]function{
		"nvmlInit_v2":                returns(0),
		"nvmlShutdown":               returns(0),
		"nvmlDeviceGetCount_v2":      writes32(8),
		"nvmlSystemGetDriverVersion": func(a ...uintptr) Return { copy(at(a[0], int(a[1])), "550.54.15"); return Success },
		"nvmlDeviceGetHandleByPciBusId_v2": func(a ...uintptr) Return {
			if string(at(a[0], 13)) != "0000:81:00.0\x00" {
				return NotFound
			}
			put64(a[1], 0, uint64(board))
			return Success
		},
		"nvmlDeviceGetHandleByIndex_v2": func(a ...uintptr) Return { put64(a[1], 0, uint64(board)+uint64(a[0])); return Success },
	})
	assert.Equal(t, Success, caller.Init())
	count, r := caller.Count()
	assert.Equal(t, Success, r)
	assert.Equal(t, 8, count)
	driver, r := caller.Driver()
	assert.Equal(t, Success, r)
	assert.Equal(t, "550.54.15", driver)
	_, r = caller.NVML()
	assert.Equal(t, FunctionNotFound, r)
	d, r := caller.ByPCI("0000:81:00.0")
	assert.Equal(t, Success, r)
	assert.Equal(t, board, d)
	d, r = caller.ByIndex(2)
	assert.Equal(t, Success, r)
	assert.Equal(t, board+2, d)
	assert.Equal(t, Success, caller.Shutdown())
	assert.Equal(t, "return 9", caller.ErrorString(9))

	text := make([]uint64, 4)
	copy(bytesOf(text), "Driver Not Loaded")
	f.functions["nvmlErrorString"] = func(...uintptr) uintptr { return addressOf(text) }
	_, other := newFake(nil)
	other.library.functions = f
	assert.Equal(t, "Driver Not Loaded", other.ErrorString(9))
}
