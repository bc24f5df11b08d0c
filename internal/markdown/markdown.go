// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package markdown writes the pages of docs/ that are generated.
package markdown

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// columns is the width at which text is wrapped.
const columns = 100

// word is a word, or a code span, which is not broken, with what adjoins it.
var word = regexp.MustCompile("(?:[^\\s`]*`[^`]*`)+[^\\s`]*|\\S+")

// Wrap writes text after a mark, its further lines indented as far.
func Wrap(b *strings.Builder, mark, text string) {
	line := mark
	for i, w := range word.FindAllString(text, -1) {
		switch {
		case i == 0:
			line += w
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(w) > columns:
			b.WriteString(line + "\n")
			line = strings.Repeat(" ", len(mark)) + w
		default:
			line += " " + w
		}
	}
	b.WriteString(line + "\n")
}
