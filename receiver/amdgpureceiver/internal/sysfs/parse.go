// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package sysfs

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Errors of a file's text. errInaccessible is what the driver writes while a board is
// reset; the file is valid.
var (
	errMalformed    = errors.New("the text is not what the driver writes")
	errInaccessible = errors.New("the driver cannot read the board now")
)

// parseNumber reads a file that is one integer.
func parseNumber(text []byte) (float64, error) {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %.40q", errMalformed, text)
	}
	return float64(n), nil
}

// counts are errors by kind, as ras/*_err_count has them, in the order of kinds.
type counts [len(kinds)]struct {
	n     uint64
	known bool
}

// kinds of errors: uncorrected, corrected and deferred. Older drivers have no deferred
// ones.
var kinds = [...]string{"ue", "ce", "de"}

// parseCounts reads lines "ue: 0", "ce: 12", "de: 0".
func parseCounts(text []byte) (c counts, err error) {
	if bytes.HasPrefix(text, []byte("Query currently inaccessible")) {
		return c, errInaccessible
	}
	for line := range bytes.Lines(text) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		for i, kind := range kinds {
			if string(bytes.TrimSpace(key)) != kind {
				continue
			}
			n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 64)
			if err != nil || c[i].known {
				return counts{}, fmt.Errorf("%w: %.40q", errMalformed, line)
			}
			c[i].n, c[i].known = n, true
		}
	}
	if !c[0].known || !c[1].known {
		return counts{}, fmt.Errorf("%w: %.40q", errMalformed, text)
	}
	return c, nil
}

// pageFlags of ras/gpu_vram_bad_pages: reserved, so out of use; pending, until the memory
// is free; and failed to be reserved.
const pageFlags = "RPF"

// parseBadPages counts lines "0x00000123 : 0x00001000 : R" by their flag, in the order of
// pageFlags. A file without lines has no bad page.
func parseBadPages(text []byte) (n [len(pageFlags)]uint64, err error) {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		parts := bytes.Split(line, []byte(":"))
		flag := -1
		if len(parts) == 3 {
			if last := bytes.TrimSpace(parts[2]); len(last) == 1 {
				flag = bytes.IndexByte([]byte(pageFlags), last[0])
			}
		}
		if flag < 0 {
			return [len(pageFlags)]uint64{}, fmt.Errorf("%w: %.40q", errMalformed, line)
		}
		n[flag]++
	}
	return n, nil
}
