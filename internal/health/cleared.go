// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"time"
)

const (
	// ClearedAnnotation is the annotation of a Node by which a person acknowledges what
	// was wrong with its boards.
	ClearedAnnotation = "gpu.otelcol-gpu/cleared"
	// MaxCleared is the longest value of it, in bytes.
	MaxCleared = 256
)

// Cleared is what a person has acknowledged: what was wrong before a time.
type Cleared struct {
	ID     string // hw.id; empty: of every board of the node
	Before time.Time
}

// String returns an entry of ClearedAnnotation.
func (c Cleared) String() string {
	at := c.Before.UTC().Format(time.RFC3339)
	if c.ID == "" {
		return at
	}
	return c.ID + "=" + at
}

// ParseCleared reads the value of ClearedAnnotation: times in RFC 3339, with "<hw.id>=" in
// front where they are about one board, separated by commas. What cannot be read, or is
// later than now, is left out, and err names the first of it.
func ParseCleared(value string, now time.Time) (all []Cleared, err error) {
	if len(value) > MaxCleared {
		return nil, fmt.Errorf("%d bytes, at most %d", len(value), MaxCleared)
	}
	for entry := range strings.SplitSeq(value, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		id, text, found := strings.Cut(entry, "=")
		if !found {
			id, text = "", entry
		}
		id = strings.TrimSpace(id)
		before, problem := time.Parse(time.RFC3339, strings.TrimSpace(text))
		switch {
		case problem != nil, found && id == "":
			problem = fmt.Errorf("%q is no time, and no device with one: write it as 2026-01-31T15:04:05Z or GPU-…=2026-01-31T15:04:05Z", entry)
		case before.After(now):
			problem = fmt.Errorf("%q is in the future", entry)
		default:
			all = append(all, Cleared{id, before})
		}
		if err == nil {
			err = problem
		}
	}
	return all, err
}
