// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package usagelog

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"
	"unique"

	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// A file is lines, each behind its checksum in eight hexadecimal digits:
//
//	k NUMBER JSON                 a key
//	r SLOT KEY FLAGS REVISION …   a row of it; 9 amounts follow, the last one plus 1
//
// Of several rows of a key and slot the one with the highest revision counts.
const (
	checksumDigits = 8
	keyLine        = 'k'
	rowLine        = 'r'
	maxLine        = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errDamaged = errors.New("a damaged line")

// finish puts the checksum before what follows from, and ends the line.
func finish(text []byte, from int) []byte {
	sum := crc32.Checksum(text[from+checksumDigits+1:], castagnoli)
	copy(text[from:], fmt.Sprintf("%08x ", sum))
	return append(text, '\n')
}

const blank = "         " // of the checksum

func appendKey(text []byte, number uint32, k key) ([]byte, error) {
	value, err := json.Marshal(k.Value())
	if err != nil {
		return nil, err
	}
	from := len(text)
	text = append(text, blank...)
	text = append(text, keyLine, ' ')
	text = strconv.AppendUint(text, uint64(number), 10)
	text = append(append(text, ' '), value...)
	return finish(text, from), nil
}

func appendRow(text []byte, at cell, r row) []byte {
	from := len(text)
	text = append(text, blank...)
	text = append(text, rowLine)
	for _, n := range []uint64{uint64(at.slot), uint64(at.key), uint64(r.flags), uint64(r.revision)} {
		text = strconv.AppendUint(append(text, ' '), n, 10)
	}
	for _, n := range r.numbers() {
		text = strconv.AppendInt(append(text, ' '), n, 10)
	}
	return finish(text, from)
}

// read puts a line without its line feed into an open page. Keys have the numbers that
// they have in the file, by ids.
func (p *page) read(line []byte, ids map[uint32]key) error {
	const head = checksumDigits + 1
	if len(line) < head+2 || line[checksumDigits] != ' ' {
		return errDamaged
	}
	sum, err := strconv.ParseUint(string(line[:checksumDigits]), 16, 32)
	if err != nil || uint32(sum) != crc32.Checksum(line[head:], castagnoli) {
		return errDamaged
	}
	kind, fields := line[head], fields{text: line[head+1:]}
	if kind == keyLine {
		number := fields.next()
		var k usage.Key
		if fields.bad || number > 1<<32-1 || json.Unmarshal(fields.text, &k) != nil || k.Validate() != nil {
			return errDamaged
		}
		ids[uint32(number)] = unique.Make(k)
		p.damaged = p.number(ids[uint32(number)]) != uint32(number) || p.damaged
		return nil
	}
	slot, number, flags, revision := fields.next(), fields.next(), fields.next(), fields.next()
	var numbers [9]int64
	for i := range numbers {
		numbers[i] = fields.next()
	}
	k, known := ids[uint32(number)]
	if kind != rowLine || fields.bad || len(fields.text) > 0 || !known || number > 1<<32-1 || slot >= int64(p.slots()) || flags >= 1<<flagBits || revision > 1<<32-1 {
		return errDamaged
	}
	r := row{revision: uint32(revision), flags: uint8(flags)}
	r.setNumbers(numbers)
	u := usage.Row{Key: k.Value(), Hour: p.at(uint8(slot)), Day: p.days, Revision: r.revision, Amounts: r.Amounts}
	if u.ValidateAmounts() != nil {
		return errDamaged
	}
	at := cell{slot: uint8(slot), key: p.number(k), unknown: p.days && r.Carbon < 0}
	if known, is := p.cells[at]; !is || known.revision < r.revision {
		p.put(at, r)
	}
	p.lines++
	return nil
}

// fields are numbers, each behind a space.
type fields struct {
	text []byte
	bad  bool
}

// next is the next number, which is not below 0.
func (f *fields) next() (n int64) {
	i := 1
	if len(f.text) == 0 || f.text[0] != ' ' {
		f.bad = true
		return 0
	}
	for ; i < len(f.text) && f.text[i] >= '0' && f.text[i] <= '9'; i++ {
		if n > (1<<63-10)/10 {
			f.bad = true
			return 0
		}
		n = n*10 + int64(f.text[i]-'0')
	}
	f.bad = f.bad || i == 1
	f.text = f.text[i:]
	return n
}

// text is the lines of some cells, or of all, behind those of the keys from a number on.
func (p *page) text(cells []cell, keysFrom int) ([]byte, error) {
	text := make([]byte, 0, 96*len(cells))
	var err error
	for n := keysFrom; n < len(p.keys); n++ {
		if text, err = appendKey(text, uint32(n), p.keys[n]); err != nil {
			return nil, err
		}
	}
	for _, at := range cells {
		text = appendRow(text, at, p.cells[at])
	}
	return text, nil
}

// Names of files: hours-2026-11-23.log, days-2026-11.log.
const (
	hoursPrefix, daysPrefix = "hours-", "days-"
	extension               = ".log"
	dayLayout, monthLayout  = "2006-01-02", "2006-01"
)

func (p period) name() string {
	if p.days {
		return daysPrefix + p.start.Format(monthLayout) + extension
	}
	return hoursPrefix + p.start.Format(dayLayout) + extension
}

// periodOf is the period of a file; false for other names.
func periodOf(name string) (p period, is bool) {
	if t, err := time.Parse(hoursPrefix+dayLayout+extension, name); err == nil {
		p = dayOf(t)
	} else if t, err := time.Parse(daysPrefix+monthLayout+extension, name); err == nil {
		p = monthOf(t)
	}
	return p, !p.start.IsZero() && p.name() == name
}
