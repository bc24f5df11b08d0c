// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlproto

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Values are readings. They are most of what a helper writes, hundreds for each board, so
// that they are written and read without reflection. It is the JSON of []Value all the same.
type Values []Value

// MarshalJSON implements json.Marshaler.
func (v Values) MarshalJSON() ([]byte, error) {
	to := append(make([]byte, 0, 48*len(v)+2), '[')
	for i := range v {
		if i > 0 {
			to = append(to, ',')
		}
		to = appendText(append(to, `{"n":`...), v[i].Name)
		if v[i].Row != "" {
			to = appendText(append(to, `,"w":`...), v[i].Row)
		}
		to = v[i].V.append(append(to, `,"v":`...))
		if v[i].Return != 0 {
			to = strconv.AppendInt(append(to, `,"r":`...), int64(v[i].Return), 10)
		}
		to = append(to, '}')
	}
	return append(to, ']'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Values) UnmarshalJSON(text []byte) error {
	if list, ok := parseValues(text); ok {
		*v = list
		return nil
	}
	var list []Value
	err := json.Unmarshal(text, &list)
	*v = list
	return err
}

// appendText appends a string.
func appendText(to []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			text, _ := json.Marshal(s) // a string always has JSON
			return append(to, text...)
		}
	}
	return append(append(append(to, '"'), s...), '"')
}

// names are those of the readings, so that a value read needs no name of its own.
var names = func() map[string]string {
	all := make(map[string]string, len(Readings))
	for i := range Readings {
		all[Readings[i].Name] = Readings[i].Name
	}
	return all
}()

// parseValues reads what MarshalJSON writes, and is false for JSON that says it another way.
func parseValues(text []byte) (Values, bool) {
	c := cursor{rest: text}
	if c.has(`[]`) {
		return Values{}, len(c.rest) == 0
	}
	list := make(Values, 0, bytes.Count(text, []byte{'{'}))
	for next := c.has(`[`); next; next = c.has(`,`) {
		var v Value
		c.need(`{"n":`)
		if name := c.text(); names[string(name)] != "" {
			v.Name = names[string(name)]
		} else {
			v.Name = string(name)
		}
		if c.has(`,"w":`) {
			v.Row = string(c.text())
		}
		c.need(`,"v":`)
		v.V = Number(c.number())
		if c.has(`,"r":`) {
			v.Return = c.integer()
		}
		c.need(`}`)
		if c.other {
			return nil, false
		}
		list = append(list, v)
	}
	c.need(`]`)
	return list, !c.other && len(c.rest) == 0
}

// parseCall reads what AppendBegin and AppendEnd write, and is false for anything else.
func parseCall(text []byte, to *Frame) bool {
	c := cursor{rest: text}
	begin := c.has(`{"begin":{`)
	if !begin {
		c.need(`{"end":{`)
	}
	var call Call
	if c.has(`"t":`) {
		call.Thread = string(c.text())
		c.need(`,`)
	}
	c.need(`"c":`)
	call.Name = string(c.text())
	if c.has(`,"r":`) {
		call.Return = c.integer()
	}
	if c.has(`,"us":`) {
		call.Micros = c.number()
	}
	c.need(`}}`)
	if c.other || len(c.rest) > 0 {
		return false
	}
	if begin {
		to.Begin = &call
	} else {
		to.End = &call
	}
	return true
}

// cursor reads text from its begin. other is that it is not as expected.
type cursor struct {
	rest  []byte
	other bool
}

// has skips a text, if it is next.
func (c *cursor) has(text string) bool {
	if c.other || len(c.rest) < len(text) || string(c.rest[:len(text)]) != text {
		return false
	}
	c.rest = c.rest[len(text):]
	return true
}

func (c *cursor) need(text string) { c.other = !c.has(text) || c.other }

// text reads a string of ASCII without escapes.
func (c *cursor) text() []byte {
	c.need(`"`)
	for i, b := range c.rest {
		switch {
		case b == '"':
			text := c.rest[:i]
			c.rest = c.rest[i+1:]
			return text
		case b < ' ' || b > '~' || b == '\\':
			c.other = true
			return nil
		}
	}
	c.other = true
	return nil
}

// digits reads a number's text, as far as its characters are those of a number of JSON.
func (c *cursor) digits() []byte {
	n := 0
	for n < len(c.rest) && (c.rest[n] >= '0' && c.rest[n] <= '9' || bytes.IndexByte([]byte("+-.eE"), c.rest[n]) >= 0) {
		n++
	}
	text := c.rest[:n]
	c.rest = c.rest[n:]
	return text
}

func (c *cursor) number() float64 {
	n, err := strconv.ParseFloat(string(c.digits()), 64)
	c.other = c.other || err != nil
	return n
}

func (c *cursor) integer() int {
	n, err := strconv.Atoi(string(c.digits()))
	c.other = c.other || err != nil
	return n
}
