// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package logonce

import (
	"maps"
	"time"
)

// Outcomes are what was logged of something that is tried again and again: each outcome
// when it begins. One that is back within Every is logged again only if it is still there
// after that time. Empty is the outcome that all is well; that it is at first is not logged.
// The zero value is ready. It is not safe for concurrent use.
type Outcomes struct {
	last   string // that was logged
	logged map[string]time.Time
}

// Clone returns a copy that is independent.
func (s Outcomes) Clone() Outcomes { return Outcomes{s.last, maps.Clone(s.logged)} }

// Begins reports whether an outcome is to be logged now, and notes that it was.
func (s *Outcomes) Begins(o string, now time.Time) bool {
	if o == s.last {
		return false
	}
	if t, ok := s.logged[o]; ok && now.Sub(t) < Every {
		return false
	}
	if s.logged == nil {
		s.logged = map[string]time.Time{}
	}
	s.last, s.logged[o] = o, now
	return true
}
