// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package logonce

import "time"

// Periodic are causes that are logged again while they last: each at most once in
// QuietFor. It is for a fixed set of causes, and not safe for concurrent use. The
// zero value is ready.
type Periodic struct{ logged map[string]time.Time }

// Due reports whether the cause is to be logged at the time now, and notes that it was.
// A clock that is set back silences no cause.
func (p *Periodic) Due(cause string, now time.Time) bool {
	if last, ok := p.logged[cause]; ok && !now.Before(last) && now.Sub(last) < QuietFor {
		return false
	}
	if p.logged == nil {
		p.logged = map[string]time.Time{}
	}
	p.logged[cause] = now
	return true
}
