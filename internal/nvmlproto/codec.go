// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlproto

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// ErrFrame is what Read returns, wrapped, for a frame that cannot be read: the process that wrote
// it cannot be relied on, and is replaced.
var ErrFrame = errors.New("the frame cannot be read")

// Write writes a frame: four bytes of length, big endian, and the JSON of v.
func Write(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(text) > MaxFrame {
		return fmt.Errorf("%w: %d bytes are more than %d", ErrFrame, len(text), MaxFrame)
	}
	frame := make([]byte, 4, 4+len(text))
	binary.BigEndian.PutUint32(frame, uint32(len(text)))
	_, err = w.Write(append(frame, text...))
	return err
}

// AppendBegin appends the frame that announces a call, and AppendEnd that of its end: what
// Write writes, without the cost of reflection, since there are two for each call.
func AppendBegin(to []byte, call Call) []byte {
	return appendCall(to, `{"begin":`, call)
}

// AppendEnd is described at AppendBegin.
func AppendEnd(to []byte, call Call) []byte {
	return appendCall(to, `{"end":`, call)
}

// appendCall appends a frame. Names of threads and calls are the project's own: ASCII
// without anything that JSON or Go would escape.
func appendCall(to []byte, head string, call Call) []byte {
	start := len(to)
	to = append(to, 0, 0, 0, 0)
	to = append(to, head...)
	to = append(to, '{')
	if call.Thread != "" {
		to = append(strconv.AppendQuote(append(to, `"t":`...), call.Thread), ',')
	}
	to = strconv.AppendQuote(append(to, `"c":`...), call.Name)
	if call.Return != 0 {
		to = strconv.AppendInt(append(to, `,"r":`...), int64(call.Return), 10)
	}
	if call.Micros != 0 {
		to = strconv.AppendFloat(append(to, `,"us":`...), call.Micros, 'f', -1, 64)
	}
	to = append(to, "}}"...)
	binary.BigEndian.PutUint32(to[start:], uint32(len(to)-start-4))
	return to
}

// Read reads the next frame into v. It returns io.EOF at the end between two frames.
// memory is used again, and returned for the next call.
func Read(r io.Reader, v any, memory []byte) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return memory, err
	}
	n := int(binary.BigEndian.Uint32(head[:]))
	if n == 0 || n > MaxFrame {
		return memory, fmt.Errorf("%w: its length is %d", ErrFrame, n)
	}
	if cap(memory) < n {
		memory = make([]byte, n)
	}
	text := memory[:n]
	if _, err := io.ReadFull(r, text); err != nil {
		return memory, err
	}
	if frame, ok := v.(*Frame); ok && parseCall(text, frame) {
		return memory, nil
	}
	if err := json.Unmarshal(text, v); err != nil {
		return memory, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return memory, nil
}

// Number is a float64 that may be no number, which JSON has no word for.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) { return n.append(nil), nil }

func (n Number) append(to []byte) []byte {
	v := float64(n)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.AppendQuote(to, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return strconv.AppendFloat(to, v, 'g', -1, 64)
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(text []byte) error {
	s := string(text)
	if unquoted, err := strconv.Unquote(s); err == nil {
		s = unquoted
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return err
	}
	*n = Number(v)
	return nil
}
