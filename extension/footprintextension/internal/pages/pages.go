// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package pages gives the pages of the process' own binary back to the system.
package pages // import "github.com/otelcol-gpu/otelcol-gpu/extension/footprintextension/internal/pages"

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// mapping is a part of the address space that shows a file.
type mapping struct {
	start, end uint64
	resident   int64 // bytes
}

// clean lists the mappings of a file in smaps that may be dropped: they are not writable
// and never were. A page that was written to is the process' own and
// not the file's, even where the mapping was made read-only since, as the loader
// does with addresses that it put in: dropping that one would lose it.
func clean(smaps io.Reader, file string) ([]mapping, error) {
	var all []mapping
	var current mapping
	candidate := false
	keep := func() {
		if candidate && current.resident > 0 {
			all = append(all, current)
		}
	}
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		key, isValue := strings.CutSuffix(fields[0], ":")
		if !isValue {
			keep()
			var err error
			if current, candidate, err = header(fields, lines.Text(), file); err != nil {
				return nil, err
			}
			continue
		}
		switch key {
		case "Rss", "Anonymous", "Swap", "Locked":
		default:
			continue
		}
		if len(fields) < 2 {
			return nil, fmt.Errorf("line %q has no value", lines.Text())
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		if key == "Rss" {
			current.resident = kib << 10
		} else if kib != 0 {
			candidate = false
		}
	}
	keep()
	return all, lines.Err()
}

// header reads "start-end perms offset device inode path", the first line of a
// mapping, and reports whether it is one of the file that is not writable.
func header(fields []string, line, file string) (mapping, bool, error) {
	from, to, ok := strings.Cut(fields[0], "-")
	if !ok || len(fields) < 5 {
		return mapping{}, false, fmt.Errorf("line %q is not a mapping", line)
	}
	start, err := strconv.ParseUint(from, 16, 64)
	if err != nil {
		return mapping{}, false, fmt.Errorf("line %q: %w", line, err)
	}
	end, err := strconv.ParseUint(to, 16, 64)
	if err != nil {
		return mapping{}, false, fmt.Errorf("line %q: %w", line, err)
	}
	perms := fields[1]
	named := len(fields) > 5 && strings.HasSuffix(line, " "+file)
	return mapping{start: start, end: end}, named && !strings.Contains(perms, "w") && strings.HasSuffix(perms, "p"), nil
}
