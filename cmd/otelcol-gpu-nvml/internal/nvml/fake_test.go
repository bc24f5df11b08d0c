// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/otelcol-gpu-nvml/internal/library"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// board is the handle of the board in the tests.
const board Device = 0x1000

// fake is a library of Go functions.
type fake struct {
	functions map[string]library.Function
	now       time.Time
	calls     []string // that were announced
}

// function is what a function of a fake does: it returns what it gets from its arguments.
type function = func(a ...uintptr) Return

func newFake(functions map[string]function) (*fake, *Caller) {
	f := &fake{functions: map[string]library.Function{}, now: time.Unix(1_700_000_000, 0)}
	for symbol, do := range functions {
		f.set(symbol, do)
	}
	return f, New(f, func() time.Time { return f.now }).Caller(f)
}

func (f *fake) set(symbol string, do function) {
	f.functions[symbol] = func(a ...uintptr) uintptr { return uintptr(uint32(do(a...))) }
}

func (f *fake) Find(symbol string) (library.Function, bool) {
	if _, ok := f.functions[symbol]; !ok {
		return nil, false
	}
	return func(a ...uintptr) uintptr { return f.functions[symbol](a...) }, true
}

func (f *fake) Path() string { return "/fake" }

func (f *fake) Begin(call string) { f.calls = append(f.calls, call) }

func (f *fake) End(call string, _ Return, _ float64) {
	if f.calls[len(f.calls)-1] != call {
		panic("another call began: " + call)
	}
}

// taken returns the calls since it was last called.
func (f *fake) taken() []string {
	calls := f.calls
	f.calls = nil
	return calls
}

// at is the memory at an address that a function was given. Inlined, it stops the compiler of
// Go 1.26.8 with an internal error.
//
//go:noinline
func at(address uintptr, size int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), size)
}

func put32(address uintptr, offset int, v uint32) {
	binary.LittleEndian.PutUint32(at(address, offset+4)[offset:], v)
}

func put64(address uintptr, offset int, v uint64) {
	binary.LittleEndian.PutUint64(at(address, offset+8)[offset:], v)
}

func get32(address uintptr, offset int) uint32 {
	return binary.LittleEndian.Uint32(at(address, offset+4)[offset:])
}

func get64(address uintptr, offset int) uint64 {
	return binary.LittleEndian.Uint64(at(address, offset+8)[offset:])
}

// returns is a function that does nothing but return.
func returns(r Return) function { return func(...uintptr) Return { return r } }

// writes32 is a function that writes a number where its last argument points to.
func writes32(v uint32) function {
	return func(a ...uintptr) Return { put32(a[len(a)-1], 0, v); return Success }
}

// writesText is a function that writes a string, with or without its end.
func writesText(text string) function {
	return func(a ...uintptr) Return { copy(at(a[1], int(a[2])), text); return Success }
}

// named are the readings of these names.
func named(t *testing.T, names ...string) []nvmlproto.Reading {
	t.Helper()
	var all []nvmlproto.Reading
	for _, name := range names {
		i := slices.IndexFunc(nvmlproto.Readings, func(r nvmlproto.Reading) bool { return r.Name == name })
		if i < 0 {
			t.Fatalf("there is no reading %s", name)
		}
		all = append(all, nvmlproto.Readings[i])
	}
	return all
}
