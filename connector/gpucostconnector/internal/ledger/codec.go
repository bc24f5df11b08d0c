// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"sync"
)

// format is the first byte of a state. Older ones are read too: withoutListed does not have which
// boards gpu.allocation listed, withoutChanges no times at which a counter of energy changed
// either, and withoutSlurm no clusters of Slurm either.
const (
	format         = 8
	withoutListed  = 7
	withoutChanges = 6
	withoutSlurm   = 5
)

// maxState bounds what a state may unpack to.
const maxState = 64 << 20

// ErrState is the error of a state that was not written by Encode, or is not whole.
var ErrState = errors.New("it is damaged, or of another version")

// writers are large, and a state is written often.
var writers = sync.Pool{New: func() any {
	z, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic("the level exists")
	}
	return z
}}

// seal compresses a state and appends its checksum.
func seal(body []byte) []byte {
	out := bytes.NewBuffer(append(make([]byte, 0, len(body)/2), format))
	z := writers.Get().(*flate.Writer)
	defer writers.Put(z)
	z.Reset(out)
	if _, err := z.Write(body); err != nil || z.Close() != nil {
		panic("a buffer takes everything")
	}
	return binary.LittleEndian.AppendUint32(out.Bytes(), crc32.ChecksumIEEE(out.Bytes()))
}

// unseal returns the state that was sealed.
func unseal(state []byte) ([]byte, error) {
	if len(state) < 5 || state[0] < withoutSlurm || state[0] > format {
		return nil, ErrState
	}
	packed := state[:len(state)-4]
	if crc32.ChecksumIEEE(packed) != binary.LittleEndian.Uint32(state[len(packed):]) {
		return nil, ErrState
	}
	body, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed[1:])), maxState+1))
	if err != nil || len(body) > maxState {
		return nil, ErrState
	}
	return body, nil
}

type writer struct {
	b     []byte
	texts map[string]int
	list  []string
	// classes are numbered from 1; 0 is one that follows.
	classes map[Class]int
}

func (w *writer) num(values ...int64) {
	for _, v := range values {
		w.b = binary.AppendVarint(w.b, v)
	}
}

func (w *writer) text(values ...string) {
	for _, v := range values {
		i, known := w.texts[v]
		if !known {
			i = len(w.list)
			w.texts[v], w.list = i, append(w.list, v)
		}
		w.num(int64(i))
	}
}

// raw writes a text that is the only one of its kind.
func (w *writer) raw(v string) {
	w.num(int64(len(v)))
	w.b = append(w.b, v...)
}

func (w *writer) flag(v bool) {
	w.b = append(w.b, 0)
	if v {
		w.b[len(w.b)-1] = 1
	}
}

// reader reads what writer wrote. Once something does not fit, bad is true and the values
// are 0.
type reader struct {
	b       []byte
	list    []string
	bad     bool
	format  byte
	classes []*Class
}

func (r *reader) num(values ...*int64) {
	for _, v := range values {
		n, length := binary.Varint(r.b)
		if r.bad = r.bad || length <= 0; r.bad {
			*v = 0
			continue
		}
		*v, r.b = n, r.b[length:]
	}
}

func (r *reader) one() (v int64) { r.num(&v); return v }

// within is a number from 0 to below limit.
func (r *reader) within(limit int64) int64 {
	v := r.one()
	if r.bad = r.bad || v < 0 || v >= limit; r.bad {
		return 0
	}
	return v
}

// length is a number of things of at least one byte each.
func (r *reader) length() int { return int(r.within(int64(len(r.b)) + 1)) }

func (r *reader) text(values ...*string) {
	for _, v := range values {
		if i := r.within(int64(len(r.list))); !r.bad {
			*v = r.list[i]
		}
	}
}

// cluster is that of Slurm.
func (r *reader) cluster(value *string) {
	if r.format > withoutSlurm {
		r.text(value)
	}
}

func (r *reader) raw() string {
	n := r.length()
	if r.bad = r.bad || n > len(r.b); r.bad {
		return ""
	}
	v := string(r.b[:n])
	r.b = r.b[n:]
	return v
}

func (r *reader) flag() bool {
	if r.bad = r.bad || len(r.b) == 0 || r.b[0] > 1; r.bad {
		return false
	}
	v := r.b[0] == 1
	r.b = r.b[1:]
	return v
}
