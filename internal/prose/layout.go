// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// columns is the width at which the prose of Markdown files wraps.
const columns = 100

var (
	linkTarget    = regexp.MustCompile(`\]\([^)\s]*\)`)
	htmlComment   = regexp.MustCompile(`(?s)<!--.*?-->`)
	emptyHeader   = regexp.MustCompile(`^[|\s]*$`)
	tableRule     = regexp.MustCompile(`^\|?[\s:|-]*--[\s:|-]*$`)
	decisionTitle = regexp.MustCompile(`^# (\d{4}): \S`)
)

// layout returns the lines of a Markdown file that are too long, tables without a header
// row, and the title of a decision that has another form than the others'.
func layout(name, source string) []finding {
	var found []finding
	add := func(line int, format string, args ...any) {
		found = append(found, finding{file: name, line: line, text: fmt.Sprintf(format, args...)})
	}
	lines := strings.Split(strings.ReplaceAll(mask(source, htmlComment), "\x00", ""), "\n")
	code := false
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~"):
			code = !code
		case code || strings.HasPrefix(trimmed, "<") || strings.HasPrefix(trimmed, "#") || strings.HasPrefix(line, "    ") && i > 0 && indented(lines[:i]):
		case strings.HasPrefix(trimmed, "|"):
			if i+1 < len(lines) && tableRule.MatchString(strings.TrimSpace(lines[i+1])) && emptyHeader.MatchString(trimmed) {
				add(i+1, "table without a header row")
			}
		default:
			if n := utf8.RuneCountInString(linkTarget.ReplaceAllString(line, "]")); n > columns {
				add(i+1, "line of %d columns: wrap prose at %d", n, columns)
			}
		}
	}
	if folder, file := path.Split(name); strings.HasSuffix(folder, "docs/decisions/") {
		title := decisionTitle.FindStringSubmatch(lines[0])
		if title == nil || !strings.HasPrefix(file, title[1]+"-") {
			add(1, "title of a decision: want \"# %.4s: …\"", file)
		}
	}
	return found
}

// indented reports whether a line after these that begins with four spaces is code: an indented
// block begins after an empty line.
func indented(before []string) bool {
	for i := len(before) - 1; i >= 0; i-- {
		if !strings.HasPrefix(before[i], "    ") {
			return strings.TrimSpace(before[i]) == ""
		}
	}
	return true
}
