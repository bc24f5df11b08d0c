// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"bytes"
	"unicode/utf8"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// virtualGuest is the virtualization mode of a board in a vGPU guest.
const virtualGuest = 2

// identity is what hardly ever changes of a board.
type identity struct {
	board   nvmlproto.Board // its strings and numbers alone
	refused []nvmlproto.Refused
}

// identify reads an identity. It returns the return of reading the UUID, or that which ended
// reading before: no board of this library answers, or this one is lost.
func identify(c *Caller, d Device) (identity, Return, bool) {
	var (
		i       identity
		result  Return
		settled = true // no value is missing that the next scrape may have
	)
	ended := func(r Return) bool {
		settled = settled && (r == Success || r.Unavailable())
		if r.Lost() || r.Unusable() {
			result = r
			return true
		}
		return false
	}
	for _, s := range []struct {
		symbol string
		length int
		to     *string
		valid  func(string) bool
	}{
		{"nvmlDeviceGetUUID", nameLength, &i.board.UUID, deviceid.IsGPU},
		{"nvmlDeviceGetName", nameLength, &i.board.Name, nil},
		{"nvmlDeviceGetSerial", serialLength, &i.board.Serial, nil},
		{"nvmlDeviceGetVbiosVersion", vbiosLength, &i.board.VBIOS, nil},
	} {
		text, ok, r := deviceText(c, d, s.symbol, s.length)
		if s.to == &i.board.UUID {
			result = r
		}
		if ended(r) {
			return i, result, false
		}
		if r == Success && (!ok || s.valid != nil && !s.valid(text)) {
			i.refused = append(i.refused, nvmlproto.Refused{Call: s.symbol, Reason: nvmlproto.ReasonText, N: 1})
			continue
		}
		*s.to = text
	}
	address, ok, r := pciInfo(c, d)
	if ended(r) {
		return i, result, false
	}
	if r == Success && !ok {
		i.refused = append(i.refused, nvmlproto.Refused{Call: "nvmlDeviceGetPciInfo_v3", Reason: nvmlproto.ReasonText, N: 1})
	} else {
		i.board.PCI = address
	}
	for _, n := range []struct {
		symbol string
		set    func(int)
	}{
		{"nvmlDeviceGetMinorNumber", func(n int) { i.board.Minor = &n }},
		{"nvmlDeviceGetIndex", func(n int) { i.board.Index = &n }},
		{"nvmlDeviceGetArchitecture", func(n int) { i.board.Arch = n }},
		{"nvmlDeviceGetVirtualizationMode", func(n int) { i.board.Virtual = n }},
	} {
		number, r := deviceNumber(c, d, n.symbol)
		if ended(r) {
			return i, result, false
		}
		if r == Success && number != allOnes32 {
			n.set(int(number))
		}
	}
	return i, result, settled && result == Success
}

// deviceText reads a string of a device, and reports whether it is one.
func deviceText(c *Caller, d Device, symbol string, length int) (text string, ok bool, r Return) {
	_, r = c.ask(d, call{name: symbol}, variant{symbol, func(s string) Return {
		return c.invoke(s, s, uintptr(d), c.clear(length), uintptr(length))
	}})
	if r != Success {
		return "", false, r
	}
	text, ok = readText(c.bytes()[:length])
	return text, ok, Success
}

// deviceNumber reads an unsigned number of 32 bits.
func deviceNumber(c *Caller, d Device, symbol string) (uint32, Return) {
	_, r := c.ask(d, call{name: symbol}, variant{symbol, func(s string) Return {
		return c.invoke(s, s, uintptr(d), c.clear(4))
	}})
	return uint32(c.memory[0]), r
}

// pciInfo reads the address of nvmlPciInfo_t, 68 bytes: busId is 32 bytes from byte 36 on.
func pciInfo(c *Caller, d Device) (address string, ok bool, r Return) {
	_, r = c.ask(d, call{name: "nvmlDeviceGetPciInfo"}, variant{"nvmlDeviceGetPciInfo_v3", func(s string) Return {
		return c.invoke(s, s, uintptr(d), c.clear(68))
	}})
	if r != Success {
		return "", false, r
	}
	address, ok = readText(c.bytes()[36:68])
	return address, ok && deviceid.IsPCI(deviceid.PCIAddress(address)), Success
}

// readText returns a string of the library, and whether it is one: with an end, in UTF-8,
// without control characters.
func readText(buffer []byte) (string, bool) {
	end := bytes.IndexByte(buffer, 0)
	if end < 0 || !utf8.Valid(buffer[:end]) {
		return "", false
	}
	text := string(buffer[:end])
	return text, safetext.Strip(text, len(buffer)*utf8.UTFMax) == text
}
