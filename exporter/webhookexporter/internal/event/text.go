// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package event // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// TypeName writes the event's name as the type of a Standard Webhook.
func TypeName(name string) string { return strings.Map(typeRune, name) }

// typeRune keeps what the type of a Standard Webhook may hold: lower-case
// letters, digits, underscores, and dots between them.
func typeRune(r rune) rune {
	switch {
	case r >= 'A' && r <= 'Z':
		return r + 'a' - 'A'
	case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.':
		return r
	default:
		return '_'
	}
}

// PlainText writes a copied attribute value as text: texts as they are, lists
// and maps as JSON.
func PlainText(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	default:
		b, err := JSON(v)
		return string(b), err
	}
}

// JSON does not escape <, > and &: the body is read as JSON, never as
// HTML, and a receiver that shows texts has to escape them itself in any case.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode payload: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
