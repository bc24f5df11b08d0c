// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"reflect"
	"slices"
	"strings"
)

// fingerprintOf is a digest of a receiver's whole configuration, secrets
// included: equal means that nothing changed. It leaves the process only into the
// storage, for a receiver that is gone.
func fingerprintOf(cfg Config) string {
	h := sha256.New()
	digestValue(h, reflect.ValueOf(cfg))
	return hex.EncodeToString(h.Sum(nil))
}

// digestValue walks the value itself. Every encoder would write [REDACTED]
// instead of a secret, and two secrets would look equal.
func digestValue(h hash.Hash, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			digestValue(h, v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		fmt.Fprintf(h, "[%d]", v.Len())
		for i := range v.Len() {
			digestValue(h, v.Index(i))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		fmt.Fprintf(h, "{%d}", len(keys))
		for _, key := range keys {
			digestValue(h, key)
			digestValue(h, v.MapIndex(key))
		}
	case reflect.Pointer, reflect.Interface:
		fmt.Fprintf(h, "%t;", v.IsNil())
		if !v.IsNil() {
			digestValue(h, v.Elem())
		}
	case reflect.String:
		fmt.Fprintf(h, "%d:%s", v.Len(), v.String())
	default: // numbers and booleans
		fmt.Fprintf(h, "%v;", v)
	}
}
