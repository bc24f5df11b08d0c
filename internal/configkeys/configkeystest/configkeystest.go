// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package configkeystest tests that a component reads its configuration strictly.
package configkeystest // import "github.com/otelcol-gpu/otelcol-gpu/internal/configkeys/configkeystest"

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
)

// Strict tests that a configuration refuses an unknown key, and a number without a
// unit instead of each of its durations.
func Strict(t *testing.T, createDefault func() component.Config) {
	t.Helper()
	refused := func(values map[string]any, want string) {
		t.Helper()
		assert.ErrorContains(t, confmap.NewFromStringMap(values).Unmarshal(createDefault()), want)
	}
	require.NoError(t, confmap.New().Unmarshal(createDefault()))
	refused(map[string]any{"no_such_key": 1}, "no_such_key: there is no such key")
	for _, path := range durations(reflect.TypeOf(createDefault()).Elem()) {
		nested := any(45)
		for i := len(path) - 1; i >= 0; i-- {
			nested = map[string]any{path[i]: nested}
		}
		refused(nested.(map[string]any), strings.Join(path, "::")+": 45 has no unit")
	}
}

// durations are the paths of a struct's durations, those in lists and maps aside.
func durations(t reflect.Type) (paths [][]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("mapstructure"), ",")
		at := f.Type
		if at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
		at = configkeys.StructOf(at)
		switch {
		case !f.IsExported() || name == "-":
		case strings.Contains(options, "squash"):
			paths = append(paths, durations(at)...)
		case at == reflect.TypeFor[time.Duration]():
			paths = append(paths, []string{name})
		case at.Kind() == reflect.Struct && !reflect.PointerTo(at).Implements(reflect.TypeFor[confmap.Unmarshaler]()):
			for _, below := range durations(at) {
				paths = append(paths, append([]string{name}, below...))
			}
		}
	}
	return paths
}
