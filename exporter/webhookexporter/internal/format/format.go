// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package format writes the bodies of requests. A format is one file, with its
// settings, their validation and its body, and one entry in formats.
package format // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/format"

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
)

// formats are all formats, in the order in which the documentation lists them.
// The first one is the default.
var formats = []Format{standard, slack, pagerDuty, alertmanager, convox}

// Config is the part of an endpoint's configuration that determines the bodies of
// its requests. Settings that only one format has are a struct in that format's
// file, embedded here.
type Config struct {
	// Format of the request's body; empty is the default.
	Format string `mapstructure:"format"`

	PagerDutyConfig `mapstructure:",squash"`
}

// Format is a way to write the body of a request.
type Format struct {
	Name string
	// Group is how many events one request can hold.
	Group int
	// URL is the address of endpoints that have no other; empty where there is no
	// such address.
	URL string
	// Keys are the settings that only this format has.
	Keys []string
	// Example has what the format requires, with made-up values; empty if it
	// requires nothing.
	Example Config
	// new checks the settings. Its errors start with a key of the settings, and
	// never show a secret.
	new func(endpoint string, c Config) (EncodeFunc, error)
}

// EncodeFunc writes the body of a request with these events, at least one and at
// most the format's Group. It fails for values that JSON cannot write.
type EncodeFunc func(events []*event.Event) ([]byte, error)

// Encoder writes bodies with the settings of one endpoint.
type Encoder struct {
	Format
	Encode EncodeFunc
	// Secrets are the keys of the settings that every body carries and that are
	// secrets.
	Secrets []string
}

// always makes the constructor of a format without settings.
func always(encode EncodeFunc) func(string, Config) (EncodeFunc, error) {
	return func(string, Config) (EncodeFunc, error) { return encode, nil }
}

// All returns all formats.
func All() []Format { return slices.Clone(formats) }

// Find returns the format of that name; the default for the empty name.
func Find(name string) (Format, bool) {
	name = cmp.Or(name, formats[0].Name)
	i := slices.IndexFunc(formats, func(f Format) bool { return f.Name == name })
	if i < 0 {
		return Format{}, false
	}
	return formats[i], true
}

// New returns the encoder for the endpoint of that name. Its error starts with
// the key of the setting that is wrong.
func New(endpoint string, c Config) (Encoder, error) {
	f, known := Find(c.Format)
	if !known {
		var names []string
		for _, f := range formats {
			names = append(names, f.Name)
		}
		slices.Sort(names)
		return Encoder{}, fmt.Errorf("format: %q is not supported; use one of %s", c.Format, strings.Join(names, ", "))
	}
	e := Encoder{Format: f}
	for _, s := range settingsOf(reflect.ValueOf(c)) {
		if !slices.Contains(f.Keys, s.key) {
			return Encoder{}, fmt.Errorf("%s: belongs to format %s, and the format is %s; remove it", s.key, ownerOf(s.key), f.Name)
		}
		if s.secret {
			e.Secrets = append(e.Secrets, s.key)
		}
	}
	var err error
	e.Encode, err = f.new(endpoint, c)
	return e, err
}

// ownerOf returns the name of the format that has the setting.
func ownerOf(key string) string {
	i := slices.IndexFunc(formats, func(f Format) bool { return slices.Contains(f.Keys, key) })
	return formats[i].Name // every setting has one
}

// setting is a setting of one format that is configured.
type setting struct {
	key    string
	secret bool
}

// settingsOf returns the settings that are configured. A blank text is not: a
// secret that is read from an empty file often is a line feed.
func settingsOf(config reflect.Value) []setting {
	var all []setting
	for i := range config.NumField() {
		value, field := config.Field(i), config.Type().Field(i)
		switch key := field.Tag.Get("mapstructure"); {
		case field.Anonymous:
			all = append(all, settingsOf(value)...)
		case key == "format", value.IsZero(), value.Kind() == reflect.String && strings.TrimSpace(value.String()) == "":
		default:
			all = append(all, setting{key, value.Type() == reflect.TypeFor[configopaque.String]()})
		}
	}
	return all
}
