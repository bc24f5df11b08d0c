// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"net/http"
	"time"
)

// maxSkew is the difference between two clocks that nothing here minds.
const maxSkew = 5 * time.Second

// clock judges somebody's clock by the Date of an answer. It says nothing where
// there is no such header.
func clock(check, whose string, header http.Header, asked, answered time.Time) []Result {
	theirs, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return nil
	}
	r := Result{check, "clock of " + whose, OK, "as ours", ""}
	skew := skewOf(theirs, asked, answered).Round(time.Second)
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
