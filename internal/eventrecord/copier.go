// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package eventrecord

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// copier turns attribute values into values that encoding/json knows, within
// the limits of one event.
type copier struct {
	left      int // bytes that may still be taken
	truncated bool
}

// take reports whether n more bytes fit.
func (c *copier) take(n int) bool {
	if n > c.left {
		c.truncated = true
		return false
	}
	c.left -= n
	return true
}

func (c *copier) object(m pcommon.Map, depth int, without ...string) map[string]any {
	out := make(map[string]any, min(m.Len(), MaxEntries))
	for key, value := range m.All() {
		if slices.Contains(without, key) {
			continue
		}
		if len(out) == MaxEntries {
			c.truncated = true
			break
		}
		key = safetext.Strip(key, MaxName)
		if !c.take(len(key) + ValueBytes) {
			break
		}
		if v, ok := c.value(value, depth); ok {
			out[key] = v
		}
	}
	return out
}

func (c *copier) value(v pcommon.Value, depth int) (any, bool) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return c.text(safetext.Strip(v.Str(), MaxValue))
	case pcommon.ValueTypeBool:
		return v.Bool(), true
	case pcommon.ValueTypeInt:
		return v.Int(), true
	case pcommon.ValueTypeDouble:
		f := v.Double()
		if math.IsNaN(f) || math.IsInf(f, 0) { // JSON has no number for these
			return c.text(strconv.FormatFloat(f, 'g', -1, 64))
		}
		return f, true
	case pcommon.ValueTypeBytes:
		b := v.Bytes().AsRaw()
		if len(b) > MaxValue { // base64 has no room for an ellipsis
			b, c.truncated = b[:MaxValue], true
		}
		return c.text(base64.StdEncoding.EncodeToString(b))
	case pcommon.ValueTypeMap:
		if depth == MaxDepth {
			c.truncated = true
			return nil, false
		}
		return c.object(v.Map(), depth+1), true
	case pcommon.ValueTypeSlice:
		if depth == MaxDepth {
			c.truncated = true
			return nil, false
		}
		return c.list(v.Slice(), depth+1), true
	default:
		return nil, true
	}
}

func (c *copier) text(s string) (any, bool) {
	return s, c.take(len(s))
}

func (c *copier) list(s pcommon.Slice, depth int) []any {
	out := make([]any, 0, min(s.Len(), MaxEntries))
	for _, value := range s.All() {
		if len(out) == MaxEntries {
			c.truncated = true
			break
		}
		if !c.take(ValueBytes) {
			break
		}
		if v, ok := c.value(value, depth); ok {
			out = append(out, v)
		}
	}
	return out
}
