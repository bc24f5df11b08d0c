// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package configkeys reads a component's configuration strictly. The Collector
// takes a number where a duration belongs for nanoseconds, and reports a key that
// does not exist under the name of a Go type; here both stop the start with the
// key, the value and the remedy.
package configkeys // import "github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"
)

// Unmarshal checks conf against the type of config, a pointer to a struct with
// mapstructure tags, and then reads it. It is what a Config's own Unmarshal calls.
// The error names every key that is unknown, has the wrong shape, or is a duration
// without a unit.
func Unmarshal(conf *confmap.Conf, config any) error {
	root := reflect.TypeOf(config).Elem()
	if errs := inStruct("", conf.ToStringMap(), root, root); len(errs) > 0 {
		return errors.Join(errs...)
	}
	err := conf.Unmarshal(config)
	if texts := notQuoted(err); len(texts) > 0 {
		return errors.Join(texts...)
	}
	return err
}

// unquoted is what the decoder reports where YAML reads a text without quotes as something
// else. Only the decoder knows, since a number from an environment variable is a text too.
var unquoted = regexp.MustCompile(`'([^']+)' expected type '(?:string|[a-z]+\.String)', got unconvertible type '(int|float|bool|time)[^']*'`)

func notQuoted(err error) (errs []error) {
	if err == nil {
		return nil
	}
	for _, found := range unquoted.FindAllStringSubmatch(err.Error(), -1) {
		path := strings.NewReplacer(".", "::", "[", "::", "]", "").Replace(found[1])
		what, example := "a number", "2.95"
		switch found[2] {
		case "bool":
			what, example = "true or false", "true"
		case "time":
			what, example = "a date", "2026-05-01"
		}
		errs = append(errs, fmt.Errorf("%s: is %s, where text belongs: write it in quotes, as %q", path, what, example))
	}
	return errs
}

// Keyed is a type with other keys than those of its fields, as where a table lists
// them.
type Keyed interface {
	// Keys returns a struct type that has the keys in its tags.
	Keys() reflect.Type
}

// StructOf returns the struct type that has the keys of t, and t itself where it is not
// Keyed.
func StructOf(t reflect.Type) reflect.Type {
	if k, ok := reflect.New(t).Interface().(Keyed); ok {
		return k.Keys()
	}
	return t
}

var (
	duration        = reflect.TypeFor[time.Duration]()
	unmarshaler     = reflect.TypeFor[confmap.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// inStruct checks the keys of values against those of the struct t. The component's
// configuration is of the type root.
func inStruct(path string, values map[string]any, t, root reflect.Type) (errs []error) {
	known := map[string]reflect.Type{}
	open := fields(t, known)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		at := join(path, key)
		field, found := known[key]
		switch {
		case found:
			errs = append(errs, inValue(at, values[key], field, root)...)
		case !open:
			errs = append(errs, errors.New(at+": there is no such key: "+remedy(at, key, slices.Sorted(maps.Keys(known)), root)))
		}
	}
	return errs
}

// fields collects the keys of a struct and reports whether it takes others too.
func fields(t reflect.Type, known map[string]reflect.Type) (open bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("mapstructure"), ",")
		switch {
		case name == "-":
		case strings.Contains(options, "remain"):
			open = true
		case strings.Contains(options, "squash"):
			if inner := pointed(f.Type); inner.Kind() == reflect.Struct {
				open = fields(inner, known) || open
			}
		default:
			if name == "" {
				name = f.Name
			}
			known[name] = f.Type
		}
	}
	return open
}

func inValue(path string, v any, t, root reflect.Type) (errs []error) {
	t = StructOf(pointed(t))
	switch {
	case v == nil:
	case t == duration:
		if err := checkDuration(path, v); err != nil {
			return []error{err}
		}
	case reflect.PointerTo(t).Implements(unmarshaler), reflect.PointerTo(t).Implements(textUnmarshaler):
		// It has rules of its own.
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Map:
		values, ok := v.(map[string]any)
		switch {
		case !ok:
			return []error{fmt.Errorf("%s: is %s, where keys and values belong: write them below it, indented", path, shape(v))}
		case t.Kind() == reflect.Struct:
			return inStruct(path, values, t, root)
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			errs = append(errs, inValue(join(path, key), values[key], t.Elem(), root)...)
		}
	case t.Kind() == reflect.Bool:
		if _, ok := v.(bool); !ok {
			return []error{fmt.Errorf("%s: %s is neither true nor false: write one of them", path, written(v))}
		}
	case reflect.Zero(t).CanInt(), reflect.Zero(t).CanUint(), reflect.Zero(t).CanFloat():
		if err := checkNumber(path, v, reflect.Zero(t).CanFloat()); err != nil {
			return []error{err}
		}
	case t.Kind() == reflect.Slice:
		list, _ := v.([]any)
		for i, one := range list {
			errs = append(errs, inValue(join(path, strconv.Itoa(i)), one, t.Elem(), root)...)
		}
	}
	return errs
}

// checkNumber reports a value that is no number, and how it is written as one.
func checkNumber(path string, v any, fraction bool) error {
	switch n := reflect.ValueOf(v); {
	case n.CanInt(), n.CanUint(), n.CanFloat():
		return nil
	case n.Kind() == reflect.String:
		text := strings.TrimSpace(n.String())
		percent, isPercent := strings.CutSuffix(text, "%")
		f, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
		switch {
		case err == nil && isPercent && fraction:
			return fmt.Errorf("%s: %q is no number: write %v", path, n.String(), f/100)
		case err == nil && !isPercent:
			return fmt.Errorf("%s: %q is text: write the number without quotes", path, n.String())
		}
	}
	example := "10"
	if fraction {
		example = "0.1"
	}
	return fmt.Errorf("%s: %s is no number: write one, as %s, here or in the environment variable that it is taken from", path, written(v), example)
}

// written returns a value as a person wrote it, or its shape.
func written(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case bool, int, int64, float64:
		return fmt.Sprint(v)
	}
	return shape(v)
}

func checkDuration(path string, v any) error {
	switch n := reflect.ValueOf(v); {
	case n.CanInt() && n.Int() == 0, n.CanUint() && n.Uint() == 0, n.CanFloat() && n.Float() == 0:
		return nil
	case n.CanInt(), n.CanUint(), n.CanFloat():
		return fmt.Errorf("%s: %v has no unit: write %vs for seconds; ms, m and h are units too", path, v, v)
	case n.Kind() == reflect.String:
		text := n.String()
		if _, err := time.ParseDuration(text); err != nil {
			return fmt.Errorf("%s: %q is no duration: %s", path, text, spelled(text))
		}
		return nil
	}
	return fmt.Errorf("%s: is %s, where a duration belongs: write one as 15s", path, shape(v))
}

// units are what people write that Go does not read, in hours.
var units = map[string]float64{"d": 24, "day": 24, "days": 24, "w": 7 * 24, "week": 7 * 24, "weeks": 7 * 24}

// spelled returns how a text that is no duration is written as one.
func spelled(text string) string {
	trimmed := strings.TrimSpace(text)
	unit := strings.TrimLeft(trimmed, "0123456789.")
	n, err := strconv.ParseFloat(strings.TrimSuffix(trimmed, unit), 64)
	unit = strings.ToLower(strings.TrimSpace(unit))
	if hours := n * units[unit]; err == nil && hours > 0 && hours == math.Trunc(hours) {
		return fmt.Sprintf("days and weeks are written in hours, here %.0fh", hours)
	}
	if err == nil && unit != "" {
		for _, known := range []string{"ms", "s", "m", "h"} {
			long := map[string]string{"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}[known]
			if strings.HasPrefix(long, unit) && unit != "m" {
				return fmt.Sprintf("write %v%s", n, known)
			}
		}
	}
	return "write a number and its unit (ms, s, m or h), as 15s"
}

// remedy names the key that was probably meant or the place where the key belongs, else
// all keys that exist.
func remedy(path, key string, known []string, root reflect.Type) string {
	if near := Nearest(key, known); near != "" {
		return "did you mean " + near + "?"
	}
	outer := map[string]reflect.Type{}
	fields(root, outer)
	if section, _, below := strings.Cut(path, "::"); below && outer[key] != nil {
		return fmt.Sprintf("%s belongs beside %s, not below it: move it there", key, section)
	}
	if len(known) > 12 {
		return "remove it; the component's README lists the keys"
	}
	return "use " + strings.Join(known, ", ")
}

// Nearest returns the name that a person probably meant who wrote another: the one that
// differs in few letters, else the only one that begins with what was written. It is
// empty if there is none.
func Nearest(written string, names []string) string {
	best, least := "", max(1, len(written)/3)+1
	for _, name := range names {
		if d := distance(strings.ToLower(written), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	if best != "" || len(written) < 3 {
		return best
	}
	for _, name := range names {
		if !strings.HasPrefix(name, strings.ToLower(written)) {
			continue
		}
		if best != "" {
			return ""
		}
		best = name
	}
	return best
}

// distance is how many letters have to be added, removed or changed to make one
// text the other (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

func shape(v any) string {
	switch v.(type) {
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	default:
		return "a single value"
	}
}

func pointed(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "::" + key
}
