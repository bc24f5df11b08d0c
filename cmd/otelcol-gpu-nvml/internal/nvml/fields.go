// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// nvmlFieldValue_t, 40 bytes: id@0, scope@4, time@8 (µs), latency@16, type@24, return@28 and
// value@32.
const fieldSize = 40

// maxLinks is how many NVLinks a board has at most (NVML_NVLINK_MAX_LINKS).
const maxLinks = 18

// Types of a field value.
const (
	typeDouble = iota
	typeUnsigned32
	typeUnsignedLong
	typeUnsigned64
	typeSigned64
	typeSigned32
	typeUnsigned16
	typeNone = 0xff // that no library writes
)

// nvlink is how the bytes over NVLink are read: as the counters of all links, or as the sum
// of each link's. The first that answers is kept, since both count from another time.
type nvlink struct {
	data, links bool
	// answered are the links that a reading's sum has had: a sum without one of them would
	// fall.
	answered map[string]map[uint32]bool
}

// field is a field value that is asked for.
type field struct {
	id, scope uint32
}

// asked is a field value's answer.
type asked struct {
	r       Return
	value   number
	refused string
}

// readFields reads the field values of all readings in one call. A value is found by its id
// and scope in what the library wrote, never by its place.
func (r *reader) readFields() {
	r.fields = map[string][]nvmlproto.Value{}
	answers := map[field]asked{}
	var asking []field
	want := func(f field) {
		if _, twice := answers[f]; twice {
			return
		}
		if result := r.c.remembered(r.d, f.call()); result != Success {
			answers[f] = asked{r: result}
			return
		}
		answers[f] = asked{r: Unknown}
		asking = append(asking, f)
	}
	for i := range r.readings {
		if of := &r.readings[i]; of.Method == nvmlproto.MethodField && !r.otherNVLink(of) {
			for _, f := range fieldsOf(of) {
				want(f)
			}
		}
	}
	r.ask(asking, answers)
	for i := range r.readings {
		if of := &r.readings[i]; of.Method == nvmlproto.MethodField && !of.Links {
			r.field(of, answers)
		}
	}
	for i := range r.readings {
		if of := &r.readings[i]; of.Links {
			r.links(of, answers)
		}
	}
	for i := range r.readings {
		if of := &r.readings[i]; of.Method == nvmlproto.MethodField && r.otherNVLink(of) {
			delete(r.fields, of.Name)
		}
	}
}

// otherNVLink is whether a reading is of the way of reading NVLink that is not used.
func (r *reader) otherNVLink(of *nvmlproto.Reading) bool {
	return of.Links && r.known.nvlink.data || isData(of) && r.known.nvlink.links
}

// isData is whether a reading is a counter of the bytes of all links.
func isData(of *nvmlproto.Reading) bool {
	return of.Method == nvmlproto.MethodField && of.Scope == allOnes32
}

// fieldsOf are the field values that a reading needs.
func fieldsOf(of *nvmlproto.Reading) []field {
	if !of.Links {
		return []field{{uint32(of.Argument), of.Scope}}
	}
	all := make([]field, maxLinks)
	for link := range all {
		all[link] = field{uint32(of.Argument), uint32(link)}
	}
	return all
}

// call is what a field value is remembered as.
func (f field) call() call {
	return call{string(nvmlproto.MethodField), uint64(f.id)<<32 | uint64(f.scope)}
}

// ask makes the call, and notes the answers.
func (r *reader) ask(asking []field, answers map[field]asked) {
	if len(asking) == 0 {
		return
	}
	const symbol = string(nvmlproto.MethodField)
	// Room for as many again: a library with longer entries must not reach other memory.
	words := r.c.room(2 * len(asking) * fieldSize / 8)
	memory := bytesOf(words)
	for i, f := range asking {
		entry := memory[i*fieldSize:]
		binary.LittleEndian.PutUint32(entry, f.id)
		binary.LittleEndian.PutUint32(entry[4:], f.scope)
		// What the library does not touch is no value.
		binary.LittleEndian.PutUint32(entry[24:], typeNone)
		binary.LittleEndian.PutUint32(entry[28:], uint32(Unknown))
	}
	_, result := r.c.ask(r.d, call{name: symbol}, variant{symbol, func(string) Return {
		return r.c.invoke(symbol, symbol, uintptr(r.d), uintptr(len(asking)), addressOf(words))
	}})
	if result != Success {
		r.ended = r.ended || result.Lost() || result.Unusable()
		for _, f := range asking {
			answers[f] = asked{r: result}
		}
		return
	}
	found := map[field]bool{}
	for i := range asking {
		entry := memory[i*fieldSize : (i+1)*fieldSize]
		f := field{binary.LittleEndian.Uint32(entry), binary.LittleEndian.Uint32(entry[4:])}
		if _, wanted := answers[f]; !wanted || found[f] {
			r.refused = append(r.refused, nvmlproto.Refused{Call: symbol, Reason: nvmlproto.ReasonField, N: 1})
			continue
		}
		found[f] = true
		answers[f] = decodeField(f.id, entry)
		returned := Return(int32(binary.LittleEndian.Uint32(entry[28:])))
		r.c.remember(r.d, f.call(), 0, returned)
		r.ended = r.ended || returned.Lost() || returned.Unusable()
	}
}

// decodeField reads the answer in a field value.
func decodeField(id uint32, entry []byte) asked {
	const volatileCorrected, aggregateUncorrected = 3, 6
	if r := Return(int32(binary.LittleEndian.Uint32(entry[28:]))); r != Success {
		return asked{r: r}
	}
	// ECC is off: the library writes a 0, with no time.
	if id >= volatileCorrected && id <= aggregateUncorrected && binary.LittleEndian.Uint64(entry[8:]) == 0 {
		return asked{r: NotSupported}
	}
	value, ok := fieldNumber(binary.LittleEndian.Uint32(entry[24:]), entry[32:])
	switch {
	case !ok:
		return asked{refused: nvmlproto.ReasonType}
	case !value.known:
		return asked{refused: nvmlproto.ReasonAllOnes}
	}
	return asked{value: value}
}

// fieldNumber reads a value of a type, and reports whether there is such a type. Some drivers
// mark integers as floating-point numbers: all fields that are read are integers. Bits that
// are an integer only above 2^61, and a floating-point number otherwise, are the latter.
func fieldNumber(kind uint32, value []byte) (number, bool) {
	bits := binary.LittleEndian.Uint64(value)
	switch kind {
	case typeDouble:
		if f := math.Float64frombits(bits); bits >= 1<<61 && f >= 0 && !math.IsInf(f, 0) {
			return number{f, true}, true
		}
		return number{float64(bits), bits != allOnes64}, true
	case typeUnsigned32:
		return number{float64(uint32(bits)), uint32(bits) != allOnes32}, true
	case typeUnsignedLong, typeUnsigned64:
		return number{float64(bits), bits != allOnes64}, true
	case typeSigned64:
		return number{float64(int64(bits)), true}, true
	case typeSigned32:
		return number{float64(int32(uint32(bits))), true}, true
	case typeUnsigned16:
		return number{float64(uint16(bits)), uint16(bits) != 1<<16-1}, true
	}
	return number{}, false
}

// field notes the value of a reading of one field value.
func (r *reader) field(of *nvmlproto.Reading, answers map[field]asked) {
	a, ok := answers[fieldsOf(of)[0]]
	switch {
	case !ok: // of the other way of reading NVLink
	case a.refused != "":
		r.refused = append(r.refused, nvmlproto.Refused{Call: fieldName(of), Reason: a.refused, N: 1})
	case a.r != Success:
		r.fields[of.Name] = []nvmlproto.Value{{Name: of.Name, Return: int(a.r)}}
	default:
		r.fields[of.Name] = []nvmlproto.Value{{Name: of.Name, V: nvmlproto.Number(a.value.value)}}
		if isData(of) {
			r.known.nvlink.data = true
		}
	}
}

// links notes the sum over the links of a reading. A link that never answered does not
// exist; without one that answered before there is no sum.
func (r *reader) links(of *nvmlproto.Reading, answers map[field]asked) {
	if r.known.nvlink.data {
		return
	}
	k := &r.known.nvlink
	if k.answered == nil {
		k.answered = map[string]map[uint32]bool{}
	}
	if k.answered[of.Name] == nil {
		k.answered[of.Name] = map[uint32]bool{}
	}
	var (
		sum     float64
		there   = k.answered[of.Name]
		missing Return
		failed  Return
	)
	for _, f := range fieldsOf(of) {
		a := answers[f]
		switch {
		case a.refused != "":
			r.refused = append(r.refused, nvmlproto.Refused{Call: fieldName(of), Reason: a.refused, N: 1})
			missing = Unknown
		case a.r == Success:
			there[f.scope] = true
			sum += a.value.value
		default:
			if a.r == InvalidArgument && !there[f.scope] { // no link has this number
				r.c.remember(r.d, f.call(), 0, NotSupported)
			}
			if failed == Success {
				failed = a.r
			}
			if there[f.scope] {
				missing = a.r
			}
		}
	}
	switch {
	case missing != Success:
		r.fields[of.Name] = []nvmlproto.Value{{Name: of.Name, Return: int(missing)}}
	case len(there) == 0:
		r.fields[of.Name] = []nvmlproto.Value{{Name: of.Name, Return: int(failed)}}
	default:
		k.links = true
		r.fields[of.Name] = []nvmlproto.Value{{Name: of.Name, V: nvmlproto.Number(sum)}}
	}
}

// fieldName is what a field value is counted as.
func fieldName(of *nvmlproto.Reading) string {
	return of.Symbol() + "(" + strconv.Itoa(of.Argument) + ")"
}
