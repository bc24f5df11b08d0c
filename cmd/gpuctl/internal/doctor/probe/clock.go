// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"net/http"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/web"
)

// maxSkew is the difference between two clocks that harms nothing.
const maxSkew = 5 * time.Second

// Clock compares the clock of the owner of an answer with ours, by the Date of the
// answer. It returns nothing where there is no answer, or no such header.
func Clock(owner string, a *web.Answer) []Result {
	if a == nil {
		return nil
	}
	theirs, err := http.ParseTime(a.Header.Get("Date"))
	if err != nil {
		return nil
	}
	r := New("clock of "+owner, OK, "as ours", "")
	skew := skewOf(theirs, a.Asked, a.Answered).Round(time.Second)
	size, side := skew, "ahead of"
	if skew < 0 {
		size, side = -skew, "behind"
	}
	if size > 0 {
		r.Seen = fmt.Sprintf("%v %s ours", size, side)
	}
	if size > maxSkew {
		r.Status = Warn
		r.Remedy = "synchronise both machines (chrony, ntpd): what is called stale, missing or partial, and durations of events, depend on their clocks"
	}
	return []Result{r}
}

// skewOf is by how much their clock is ahead of ours at least, negative where it
// is behind. Their time is of a moment between asking and the answer, and the
// header has whole seconds.
func skewOf(theirs, asked, answered time.Time) time.Duration {
	least, most := theirs.Sub(answered), theirs.Add(time.Second).Sub(asked)
	switch {
	case least > 0:
		return least
	case most < 0:
		return most
	default:
		return 0
	}
}
