// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package reserved // import "github.com/otelcol-gpu/otelcol-gpu/internal/reserved"

import (
	"strings"
	"unicode"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// eventNamespaces are what the attributes of this distribution's events begin with.
const eventNamespace = "gpu.event."

// Event reports whether a log record would pass for an event of GPUs: by its event
// name, by the attribute that was the event name before, in whatever case and with
// whatever is not seen in it, or by an attribute that only those events have.
func Event(record plog.LogRecord) bool {
	if eventName(record.EventName()) {
		return true
	}
	for key, v := range record.Attributes().All() {
		key = fold(key)
		if strings.HasPrefix(key, eventNamespace) || key == "event.name" && eventName(v.AsString()) {
			return true
		}
	}
	return false
}

func eventName(name string) bool {
	rest, found := strings.CutPrefix(fold(name), "gpu")
	return found && (rest == "" || rest[0] < 'a' || rest[0] > 'z')
}

// fold returns a text in lower case, without what is not seen and without what is no
// letter or digit in front of it. Full-width letters become those that they look like.
func fold(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 0xff01 && r <= 0xff5e: // full width of ! to ~
			r -= 0xff01 - '!'
		case safetext.IsHidden(r):
			return -1
		}
		return unicode.ToLower(r)
	}, s)
	return strings.TrimLeftFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
