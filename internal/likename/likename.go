// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package likename compares names of metrics by their words, to find the quantity that a
// name means which no table has: exporters rename their fields.
package likename // import "github.com/otelcol-gpu/otelcol-gpu/internal/likename"

import (
	"strings"
	"unicode"
)

// Likely is the likeness from which two names probably mean one quantity.
const Likely = 0.6

// Likeness is how alike two names are: the weight of the words that they share, divided by
// that of all their words. It is 1 where they differ in units and spelling alone, and 0
// where they share nothing. Words that make another quantity of the same thing, as in
// MAX_SM_CLOCK, weigh more than others; what the names of a table have in common weighs
// little, and units nothing.
func Likeness(a, b string) float64 {
	left, right := words(a), words(b)
	shared, all := 0, 0
	for word := range left {
		w := weightOf(word)
		all += w
		if right[word] {
			shared += w
		}
	}
	for word := range right {
		if !left[word] {
			all += weightOf(word)
		}
	}
	if all == 0 {
		return 0
	}
	return float64(shared) / float64(all)
}

// words are those of a name, each in one spelling.
func words(name string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsFuncSeq(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(word) > 3 && !strings.HasSuffix(word, "ss") {
			word = strings.TrimSuffix(word, "s")
		}
		if same, known := spellings[word]; known {
			word = same
		}
		all[word] = true
	}
	return all
}

// spellings are words, without the s of the plural, that mean the same as others.
var spellings = map[string]string{
	"utilization": "util", "utilisation": "util", "activity": "util", "active": "util", "busy": "util",
	"memory": "mem", "framebuffer": "fb", "temperature": "temp", "frequency": "clock", "freq": "clock",
	"usage": "used", "consumption": "used", "consumed": "used", "capacity": "total", "size": "total",
	"violation": "throttle", "throttling": "throttle", "throughput": "bandwidth", "remapped": "remap",
	"uncorrect": "uncorrected", "uncorrectable": "uncorrected", "correct": "corrected", "correctable": "corrected",
	"latency": "duration", "time": "duration", "req": "request",
}

// weightOf is the weight of a word, by what it contributes to the meaning of a name.
func weightOf(word string) int {
	if w, known := weights[word]; known {
		return w
	}
	digits := strings.TrimLeft(word, "vl")
	switch {
	case strings.Trim(digits, "0123456789") != "":
		return ordinary
	case strings.HasPrefix(word, "l"): // one lane of a link
		return lane
	default: // a number, or a version
		return unit
	}
}

const (
	unit     = 0
	common   = 2  // what most names of a table are about
	total    = 5  // of a counter, or of a memory
	used     = 10 // POWER_USAGE is the power
	ordinary = 20
	lane     = 40
	bound    = 40 // POWER_MGMT_LIMIT is no power
	extreme  = 60 // nor is POWER_MGMT_LIMIT_MAX the limit
)

// weights are those of words that do not weigh as others do.
var weights = func() map[string]int {
	all := map[string]int{"total": total, "used": used}
	for weight, words := range map[int]string{
		unit: "dcgm fi dev prof exp habanalab xpum hw amd sysf inference " +
			"hertz hz mhz khz ghz ratio percent percentage perc byte kib mib gib mb gb watt mw w joule mj j " +
			"celsiu c second milli millisecond ns u ms per count counter value current instant",
		common:  "gpu board device accelerator",
		bound:   "limit target threshold app application",
		extreme: "max min default def peak maximum minimum",
	} {
		for word := range strings.FieldsSeq(words) {
			all[word] = weight
		}
	}
	return all
}()
