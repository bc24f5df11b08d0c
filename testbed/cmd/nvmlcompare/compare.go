// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// result is what a comparison found.
type result struct {
	compared, differ        int
	absentHere, absentThere int
	lines                   []string
}

// compare judges ours by what nvidia-smi printed before and after. has is what ours can
// have: a page has fewer quantities than the helper.
func compare(before, ours, after side, has func(quantity) bool) (r result) {
	devices := map[string]bool{}
	for _, s := range []side{before, ours, after} {
		for device := range s {
			devices[device] = true
		}
	}
	for _, device := range slices.Sorted(maps.Keys(devices)) {
		for _, q := range quantities {
			if !has(q) {
				continue
			}
			b, inBefore := before[device][q.name]
			a, inAfter := after[device][q.name]
			v, here := ours[device][q.name]
			what := strings.TrimSpace(device + " " + q.name)
			switch {
			case inBefore != inAfter: // it came or went meanwhile
			case here && !inBefore:
				r.absentThere++
				r.lines = append(r.lines, "absent there: "+what+" = "+v.String())
			case !here && inBefore:
				r.absentHere++
				r.lines = append(r.lines, "absent here: "+what+" = "+b.String())
			case here:
				r.compared++
				if !agree(q, b, v, a) {
					r.differ++
					r.lines = append(r.lines, fmt.Sprintf("differs: %s = %s, nvidia-smi %s, then %s", what, v, b, a))
				}
			}
		}
	}
	return r
}

// agree is whether a value is what nvidia-smi prints, before and after.
func agree(q quantity, before, v, after value) bool {
	if v.text != "" || before.text != "" {
		return same(q.name, v.text, before.text) || same(q.name, v.text, after.text)
	}
	low, high := min(before.number, after.number), max(before.number, after.number)
	switch q.kind {
	case there:
		return true
	case gauge:
		if before.unit == 0 { // a flag
			return low <= v.number && v.number <= high
		}
		margin := max(before.unit, 0.05*max(math.Abs(low), math.Abs(high)))
		return low-margin <= v.number && v.number <= high+margin
	case counter:
		return low <= v.number && v.number <= high
	default:
		return math.Abs(v.number-before.number) <= before.step || math.Abs(v.number-after.number) <= before.step
	}
}

// same compares texts. An address is the same with a domain of four digits and of eight.
func same(name, a, b string) bool {
	if name == "pci" {
		short := func(s string) string {
			if domain, rest, ok := strings.Cut(strings.ToLower(s), ":"); ok && len(domain) == 8 {
				return strings.TrimPrefix(domain, "0000") + ":" + rest
			}
			return strings.ToLower(s)
		}
		return short(a) == short(b)
	}
	return a == b
}

// print writes what was found, and the line of figures last.
func (r result) print(w io.Writer) {
	for _, line := range r.lines {
		_, _ = fmt.Fprintln(w, line)
	}
	_, _ = fmt.Fprintf(w, "%d compared, %d differ, %d absent here, %d absent there\n", r.compared, r.differ, r.absentHere, r.absentThere)
}
