// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

const (
	// maxText is the length in bytes of the longest text from outside that is
	// passed on whole. Names in Kubernetes have at most 253.
	maxText = 256

	// maxKey is the length in bytes of an event key that PagerDuty still takes
	// as a dedup_key.
	maxKey = 255
)

// bounded is s, if need be shortened to maxText bytes with a hash of the whole
// at its end: different texts stay different.
func bounded(s string) string {
	return shorten(strings.ToValidUTF8(s, "\uFFFD"), maxText)
}

func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	mark := "#" + hex.EncodeToString(sum[:16])
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

// inWords is a duration as people say it: 2 minutes, and not 2m0s.
func inWords(d time.Duration) string {
	for _, u := range [...]struct {
		unit time.Duration
		name string
	}{{time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if d >= u.unit && d%u.unit == 0 {
			return plural(int(d/u.unit), u.name)
		}
	}
	return d.String()
}

// clean is s as people may read it, without characters that mislead.
func clean(s string) string { return safetext.Strip(s, maxText) }

// eventKey is the same for every event about one condition of one subject, and
// different for all others.
func eventKey(event string, subject ...string) string {
	key := event
	for _, part := range subject {
		key += "/" + url.PathEscape(part)
	}
	return shorten(key, maxKey)
}
