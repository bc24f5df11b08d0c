// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

const (
	// maxText is the longest text from telemetry, in bytes, that is kept as it is.
	// Names in Kubernetes have at most 253.
	maxText = 256

	// MaxKey is the longest event key in bytes: PagerDuty's limit for a dedup_key.
	MaxKey = 255

	// MaxNames is how many names an event lists.
	MaxNames = 50
	// maxNamesInBody is how many of them its sentence names.
	maxNamesInBody = 5
)

// Bounded shortens s to 256 bytes where it is longer, with a hash of the whole text at
// its end: different texts stay different.
func Bounded(s string) string {
	return safetext.Shorten(strings.ToValidUTF8(s, "\uFFFD"), maxText)
}

// Clean returns s without characters that mislead a reader.
func Clean(s string) string { return safetext.Strip(s, maxText) }

// Key returns the event key: the same for every event about one condition of one
// subject, and different for all others. It has at most MaxKey bytes.
func Key(event string, subject ...string) string {
	key := event
	for _, part := range subject {
		key += "/" + url.PathEscape(part)
	}
	return safetext.Shorten(key, MaxKey)
}

// InWords spells a duration for a sentence: 2 minutes, and not 2m0s.
func InWords(d time.Duration) string {
	for _, u := range [...]struct {
		unit time.Duration
		name string
	}{{time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if d >= u.unit && d%u.unit == 0 {
			return Plural(int(d/u.unit), u.name)
		}
	}
	return d.String()
}

// Plural returns the number with its noun: 1 GPU, 2 GPUs.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Names sorts names in place and returns the first MaxNames of them, cleaned.
func Names(all []string) []string {
	slices.Sort(all)
	all = all[:min(len(all), MaxNames)]
	for i := range all {
		all[i] = Clean(all[i])
	}
	return all
}

// InBrackets lists the first five names in brackets, and how many of count are not
// named; it is empty without names.
func InBrackets(all []string, count int) string {
	if len(all) == 0 {
		return ""
	}
	named := all[:min(len(all), maxNamesInBody)]
	out := " (" + strings.Join(named, ", ")
	if more := count - len(named); more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out + ")"
}

// TextOf is a text attribute of the point, or else of the resource.
func TextOf(key string, resource, point pcommon.Map) string {
	for _, attrs := range [...]pcommon.Map{point, resource} {
		if v := points.Str(attrs, key); v != "" {
			return Bounded(v)
		}
	}
	return ""
}
