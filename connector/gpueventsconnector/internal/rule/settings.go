// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"fmt"
	"reflect"
	"time"
)

// Enabled is the key that every rule has.
const Enabled = "enabled"

// Settings are the values of an event's configuration, by key: a bool for enabled, and
// values of the types of the rule's defaults. A key that is not set is zero.
type Settings map[string]any

// Defaults returns new settings with the rule's defaults.
func (r *Rule) Defaults() Settings {
	s := Settings{Enabled: true}
	for _, k := range r.Keys {
		s[k.Name] = k.Default
	}
	return s
}

// Validate reports every key of the settings that cannot be used.
func (r *Rule) Validate(s Settings) (errs []error) {
	refuse := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("events::%s::%s: "+format, append([]any{r.Event, key}, args...)...))
	}
	for key, value := range s {
		if want, known := r.typeOf(key); !known {
			refuse(key, "there is no such key: remove it")
		} else if reflect.TypeOf(value) != want {
			refuse(key, "%v is not a %s: set it to one", value, want)
		}
	}
	if len(errs) > 0 {
		return errs
	}
	for _, k := range r.Keys {
		value, set := s[k.Name]
		if !set {
			refuse(k.Name, "is not set: the default is %v", k.Default)
		} else if problem := k.Check(value); problem != "" {
			refuse(k.Name, "%s", problem)
		}
	}
	if r.Check != nil {
		r.Check(s, refuse)
	}
	return errs
}

func (r *Rule) typeOf(key string) (t reflect.Type, known bool) {
	if key == Enabled {
		return reflect.TypeFor[bool](), true
	}
	for _, k := range r.Keys {
		if k.Name == key {
			return reflect.TypeOf(k.Default), true
		}
	}
	return nil, false
}

// Enabled reports whether the rule is on.
func (s Settings) Enabled() bool { on, _ := s[Enabled].(bool); return on }

// Duration returns the value of a key with a duration.
func (s Settings) Duration(key string) time.Duration { v, _ := s[key].(time.Duration); return v }

// Number returns the value of a key with a number.
func (s Settings) Number(key string) float64 { v, _ := s[key].(float64); return v }

// Count returns the value of a key with a whole number.
func (s Settings) Count(key string) int { v, _ := s[key].(int); return v }

// On returns the value of a key with true or false.
func (s Settings) On(key string) bool { v, _ := s[key].(bool); return v }

// Type returns a struct type with a field for every rule, and for each of its keys
// below that: what the decoder of the configuration knows of events.
func Type(rules []*Rule) reflect.Type {
	fields := make([]reflect.StructField, len(rules))
	for i, r := range rules {
		keys := []reflect.StructField{field(0, Enabled, reflect.TypeFor[bool]())}
		for j, k := range r.Keys {
			keys = append(keys, field(j+1, k.Name, reflect.TypeOf(k.Default)))
		}
		fields[i] = field(i, r.Event, reflect.StructOf(keys))
	}
	return reflect.StructOf(fields)
}

func field(i int, key string, t reflect.Type) reflect.StructField {
	return reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: t, Tag: reflect.StructTag(fmt.Sprintf(`mapstructure:%q`, key))}
}

// Write sets a field of Type to the settings; a key that is not set keeps its value.
func (r *Rule) Write(s Settings, field reflect.Value) {
	set := func(i int, key string) {
		if v := reflect.ValueOf(s[key]); v.IsValid() && v.Type() == field.Field(i).Type() {
			field.Field(i).Set(v)
		}
	}
	set(0, Enabled)
	for i, k := range r.Keys {
		set(i+1, k.Name)
	}
}

// Read returns the settings in a field of Type.
func (r *Rule) Read(field reflect.Value) Settings {
	s := Settings{Enabled: field.Field(0).Bool()}
	for i, k := range r.Keys {
		s[k.Name] = field.Field(i + 1).Interface()
	}
	return s
}
