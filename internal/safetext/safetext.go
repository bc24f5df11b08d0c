// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package safetext makes texts from outside fit to be shown: in a log line, on
// a terminal, in a browser or in a message to people.
//
// A text from outside can carry characters that are not seen but
// change what is seen: line feeds that forge a log line, escape sequences that
// rewrite a terminal, bidirectional marks that reverse a name, zero-width
// characters that make two names look equal. Strip takes them out and bounds
// the length. It does not escape for any syntax: JSON, HTML and shell quoting
// stay the business of the code that writes that syntax.
package safetext

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ellipsis is the last rune of a text that was cut.
const ellipsis = '…'

// Strip returns s without control, bidirectional and zero-width characters, and
// at most limit runes long; a text that was cut ends in "…", which counts.
//
// Tab, line feed and their kin become one space each, so that the words around
// them stay apart. Bytes that are not UTF-8 become U+FFFD. The result is valid
// UTF-8, and Strip leaves it unchanged. A limit below 1 gives the empty text.
func Strip(s string, limit int) string {
	if limit < 1 {
		return ""
	}
	if len(s) <= limit && isPlain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(min(len(s), limit*utf8.UTFMax))
	runes := 0
	last := 0 // length of b before its last rune, where the ellipsis would go
	for _, r := range s {
		switch {
		case isBreak(r):
			r = ' '
		case IsHidden(r):
			continue
		}
		if runes == limit {
			return b.String()[:last] + string(ellipsis)
		}
		last = b.Len()
		b.WriteRune(r)
		runes++
	}
	return b.String()
}

// Shorten returns s with at most limit bytes. A longer one ends with a hash of the whole
// text, so that different texts stay different; limit is above 33, the length of that.
func Shorten(s string, limit int) string {
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

// IsHidden reports whether Strip takes r out (or, for white space that breaks a
// line, replaces it).
func IsHidden(r rune) bool {
	switch {
	case r < 0x20 || r >= 0x7f && r < 0xa0: // C0, DEL, C1
		return true
	case r < 0xad:
		return false
	}
	return unicode.In(r,
		unicode.Zl, unicode.Zp, // line and paragraph separator
		unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point, // fillers that take no room
	) || unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
	// Cf holds the bidirectional marks, embeddings, overrides and isolates, the
	// zero-width space, joiners and no-break space, the soft hyphen and the tag
	// characters. Its prepended marks (Arabic number sign and the like) are
	// visible and stay.
}

// isBreak reports whether r is a control character that people mean as space.
func isBreak(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

// isPlain reports whether s is printable ASCII, which is nearly every name.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
