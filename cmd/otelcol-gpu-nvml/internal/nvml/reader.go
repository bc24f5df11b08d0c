// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"encoding/binary"
	"strconv"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// maxFans is how many fans of a board are read.
const maxFans = 16

// reader reads readings of one device.
type reader struct {
	c        *Caller
	d        Device
	known    *known
	readings []nvmlproto.Reading
	ended    bool // the board is lost, or the library unusable

	values  []nvmlproto.Value
	refused []nvmlproto.Refused
	answers map[nvmlproto.Method]written // of methods that answer several readings at once
	fields  map[string][]nvmlproto.Value // by the reading's name; nil before they were read
}

// written is what a function returned and wrote.
type written struct {
	r       Return
	numbers []number
}

// read reads one reading.
func (r *reader) read(of *nvmlproto.Reading) {
	switch of.Method {
	case nvmlproto.MethodGPM:
	case nvmlproto.MethodField:
		if r.fields == nil {
			r.readFields()
		}
		r.values = append(r.values, r.fields[of.Name]...)
	case nvmlproto.MethodFans:
		r.readFans(of)
	case nvmlproto.MethodLicence:
		if i := r.known.identity; i != nil && i.board.Virtual == virtualGuest {
			r.readLicence(of)
		}
	default:
		r.readNumber(of)
	}
}

// readNumber reads a number of a function of layouts.
func (r *reader) readNumber(of *nvmlproto.Reading) {
	functions := layouts[of.Method]
	if len(functions) == 0 {
		return
	}
	w, asked := r.answers[of.Method]
	if !asked {
		w = r.call(of, functions)
		if !functions[len(functions)-1].passed {
			if r.answers == nil {
				r.answers = map[nvmlproto.Method]written{}
			}
			r.answers[of.Method] = w
		}
	}
	at := of.Argument
	if len(w.numbers) == 1 {
		at = 0
	}
	switch {
	case w.r != Success:
		r.failed(of, "", w.r)
	case at >= len(w.numbers):
		r.failed(of, "", FunctionNotFound) // the function that answers has no such number
	default:
		r.got(of, "", w.numbers[at])
	}
}

// call makes the call of a reading.
func (r *reader) call(of *nvmlproto.Reading, functions []layout) written {
	argument := uint64(0)
	variants := make([]variant, len(functions))
	for i := range functions {
		f := &functions[i]
		if f.passed {
			argument = uint64(of.Argument)
		}
		variants[i] = variant{f.symbol, func(symbol string) Return {
			address := r.c.clear(layoutSize)
			binary.LittleEndian.PutUint32(r.c.bytes(), f.word)
			arguments := make([]uintptr, 0, 3)
			arguments = append(arguments, uintptr(r.d))
			if f.passed {
				arguments = append(arguments, uintptr(of.Argument))
			}
			arguments = append(arguments, address)
			if f.second {
				arguments = append(arguments, r.c.at(layoutSize/8))
			}
			return r.c.invoke(symbol, label(of, symbol), arguments...)
		}}
	}
	which, result := r.c.ask(r.d, call{string(of.Method), argument}, variants...)
	if result != Success {
		return written{r: result}
	}
	f := functions[which]
	w := written{numbers: make([]number, len(f.places))}
	for i, p := range f.places {
		w.numbers[i] = p.read(r.c.bytes())
	}
	return w
}

// label is what a call is announced as: the function, with what distinguishes its uses.
func label(of *nvmlproto.Reading, symbol string) string {
	return symbol + of.Symbol()[len(of.Method):]
}

// readFans reads the speed of each fan. Older libraries have that of the first alone.
func (r *reader) readFans(of *nvmlproto.Reading) {
	fans, result := deviceNumber(r.c, r.d, "nvmlDeviceGetNumFans")
	switch {
	case result == FunctionNotFound:
		fans = 1
	case result != Success:
		r.failed(of, "", result)
		return
	case fans > maxFans:
		r.refuse(of, nvmlproto.ReasonLimit)
	}
	for fan := range min(fans, maxFans) {
		row := strconv.Itoa(int(fan))
		variants := []variant{{"nvmlDeviceGetFanSpeed_v2", func(symbol string) Return {
			return r.c.invoke(symbol, symbol+"("+row+")", uintptr(r.d), uintptr(fan), r.c.clear(4))
		}}}
		if fan == 0 {
			variants = append(variants, variant{"nvmlDeviceGetFanSpeed", func(symbol string) Return {
				return r.c.invoke(symbol, symbol, uintptr(r.d), r.c.clear(4))
			}})
		}
		if _, result := r.c.ask(r.d, call{string(of.Method), uint64(fan)}, variants...); result != Success {
			if r.failed(of, row, result); r.ended {
				return
			}
			continue
		}
		r.got(of, row, place{0, unsigned32}.read(r.c.bytes()))
	}
}

// readLicence reads whether a vGPU guest has a licence, 1 or 0: that a feature is licensed.
// nvmlGridLicensableFeatures_t has 860 bytes: supported@0, count@4, and from 8 on at most
// three features of 284 bytes, with their state at 4.
func (r *reader) readLicence(of *nvmlproto.Reading) {
	const size, head, feature, most = 860, 8, 284, 3
	_, result := r.c.ask(r.d, call{name: string(of.Method)}, variant{"nvmlDeviceGetGridLicensableFeatures_v4", func(symbol string) Return {
		return r.c.invoke(symbol, symbol, uintptr(r.d), r.c.clear(size))
	}})
	memory := r.c.bytes()
	if result == Success && binary.LittleEndian.Uint32(memory) == 0 {
		result = NotSupported
	}
	if result != Success {
		r.failed(of, "", result)
		return
	}
	licensed := number{known: true}
	for i := range min(binary.LittleEndian.Uint32(memory[4:]), most) {
		if binary.LittleEndian.Uint32(memory[head+int(i)*feature+4:]) != 0 {
			licensed.value = 1
		}
	}
	r.got(of, "", licensed)
}

// got adds a value.
func (r *reader) got(of *nvmlproto.Reading, row string, n number) {
	if !n.known {
		r.refuse(of, nvmlproto.ReasonAllOnes)
		return
	}
	r.values = append(r.values, nvmlproto.Value{Name: of.Name, Row: row, V: nvmlproto.Number(n.value)})
}

// failed adds what was returned instead of a value.
func (r *reader) failed(of *nvmlproto.Reading, row string, result Return) {
	r.ended = r.ended || result.Lost() || result.Unusable()
	r.values = append(r.values, nvmlproto.Value{Name: of.Name, Row: row, Return: int(result)})
}

// refuse counts a value that cannot be relied on.
func (r *reader) refuse(of *nvmlproto.Reading, reason string) {
	r.refused = append(r.refused, nvmlproto.Refused{Call: of.Symbol(), Reason: reason, N: 1})
}
