// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package rule describes the rules of gpu_events: what all rules have, whatever they
// are about. Everything that lists rules (the configuration, its checks, the metrics that
// are read, the README, the chart) loops over these values.
package rule

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Set is a set of rules that run in one place.
type Set string

const (
	// Device are the rules about devices and exporters, which run next to the
	// hardware.
	Device Set = "device"
	// Service are the rules about services and nodes, which run where the summary is
	// computed.
	Service Set = "service"
)

// Rule is one event: when it is raised, and how that is configured.
type Rule struct {
	Event string
	Set   Set
	// Notice is whether the event is raised only, and never cleared.
	Notice bool
	// Reads are the metrics that decide.
	Reads []Input
	// Keys are the keys of the event's configuration beside enabled.
	Keys []Key
	// Check reports keys that do not fit each other; nil if all fit.
	Check func(Settings, Refuse)
	// Doc describes the event in the README and the chart.
	Doc Doc
}

// Refuse reports the value of a key that cannot be used, with the remedy.
type Refuse func(key, format string, args ...any)

// Input is a metric that a rule reads, or those of its points that have an attribute.
type Input struct {
	Metric *names.Metric
	// Attribute and Values select points. There is one reading for each value, in this
	// order; without an attribute there is one reading.
	Attribute string
	Values    []string
	// Where restricts the points that are read by a second attribute; nil: it does not.
	Where *Where
	// Count is whether the metric counts something. It has two readings, one after the
	// other: the count, and the sum of what a delta adds.
	Count bool
	// Cumulative is whether the metric counts something of which only the count is read:
	// points of deltas are ignored.
	Cumulative bool
	// Most is the largest value; points below 0 and above Most are invalid. 0: every
	// number is valid.
	Most float64
	// Flag is whether the metric is 0 or 1; points with another value are invalid.
	Flag bool
	// ByCode is whether the points count something by its code. They are no readings:
	// the rule gets all of them.
	ByCode bool
	// Codes is whether the value of a point is a code, of which there may be several.
	// Links is whether a point is a port of the device. Like those ByCode they are no
	// readings.
	Codes, Links bool
	// Rise is whether the metric counts something of which it matters that it rises. It has
	// two readings, one after the other: the count, and by how much it rose since the last
	// page that had it. Points of deltas are ignored.
	Rise bool
}

// Where is a restriction by an attribute: to points of which it is one of Is, or none of
// Not.
type Where struct {
	Attribute string
	Is, Not   []string
	// Apart keeps the flags of different values of the attribute apart: the reading is a
	// number with a bit for each of these values, and one more for all others. Empty: it
	// does not.
	Apart []string
}

// Add adds a flag, of a point with this value of the attribute, to a reading that keeps
// them apart; NaN: there was none.
func (w *Where) Add(reading float64, value string, flag float64) float64 {
	bits := uint64(0)
	if !math.IsNaN(reading) {
		bits = uint64(reading)
	}
	if flag > 0 {
		i := slices.Index(w.Apart, value)
		if i < 0 {
			i = len(w.Apart)
		}
		bits |= 1 << i
	}
	return float64(bits)
}

// Has reports whether a point with this value of the attribute is read.
func (w *Where) Has(value string) bool {
	return (w.Is == nil || slices.Contains(w.Is, value)) && !slices.Contains(w.Not, value)
}

// Valid reports whether a point with this value is valid.
func (in *Input) Valid(v float64) bool {
	if in.Flag {
		return v == 0 || v == 1
	}
	return in.Most <= 0 || v >= 0 && v <= in.Most
}

// Same reports whether the readings of another input are those of this one.
func (in *Input) Same(other *Input) bool {
	same := in.Attribute == other.Attribute && slices.Equal(in.Values, other.Values) &&
		in.Count == other.Count && in.Cumulative == other.Cumulative && in.ByCode == other.ByCode && in.Codes == other.Codes && in.Links == other.Links &&
		in.Rise == other.Rise && in.Flag == other.Flag && in.Most == other.Most
	if !same || in.Where == nil || other.Where == nil {
		return same && in.Where == other.Where
	}
	return in.Where.Attribute == other.Where.Attribute && slices.Equal(in.Where.Is, other.Where.Is) &&
		slices.Equal(in.Where.Not, other.Where.Not) && slices.Equal(in.Where.Apart, other.Where.Apart)
}

// Doc is a row of the README's table of events, in Markdown.
type Doc struct {
	Raised   string
	Cleared  string // empty: it is a notice
	Severity string
	Key      string // the parts of the event key after the name
	Chart    string // a comment in the chart's values; empty: none
}

// Key is one key of an event's configuration.
type Key struct {
	Name    string
	Default any // a time.Duration, float64, int or bool
	// Check returns why a value cannot be used, and the remedy; empty: it can.
	Check func(value any) string
	// Schema is the JSON schema of the key in the chart's values.
	Schema string
	// FromInterval is whether the chart computes the default from its collection
	// interval, where the key is empty.
	FromInterval bool
}

const (
	// MostCount is the largest count that is valid: a float64 counts no further.
	MostCount = 1 << 53
	// MostCode is the largest number that can be a code of an error.
	MostCode = math.MaxInt32
)

// MaxFor is the longest duration of a rule.
const MaxFor = 24 * time.Hour

// Duration is a key with a duration between least and most, inclusive.
func Duration(name string, byDefault, least, most time.Duration) Key {
	return Key{Name: name, Default: byDefault, Schema: `{"$ref": "#/definitions/duration"}`, Check: func(value any) string {
		if v := value.(time.Duration); v < least || v > most {
			return fmt.Sprintf("%s: set it to %s or more, and to %s at most", v, least, most)
		}
		return ""
	}}
}

// Count is a key with a whole number between least and most, inclusive.
func Count(name string, byDefault, least, most int) Key {
	schema := fmt.Sprintf(`{"type": "integer", "minimum": %d, "maximum": %d}`, least, most)
	return Key{Name: name, Default: byDefault, Schema: schema, Check: func(value any) string {
		if v := value.(int); v < least || v > most {
			return fmt.Sprintf("%d: set it to %d or more, and to %d at most", v, least, most)
		}
		return ""
	}}
}

// Switch is a key with true or false.
func Switch(name string, byDefault bool) Key {
	return Key{Name: name, Default: byDefault, Schema: `{"type": "boolean"}`, Check: func(any) string { return "" }}
}

// Number is a key with a number, of which the chart knows the least and the greatest.
// check may be nil.
func Number(name string, byDefault, least, greatest float64, check func(float64) string) Key {
	schema := fmt.Sprintf(`{"type": "number", "minimum": %g, "maximum": %g}`, least, greatest)
	return Key{Name: name, Default: byDefault, Schema: schema, Check: func(value any) string {
		if check == nil {
			return ""
		}
		return check(value.(float64))
	}}
}
