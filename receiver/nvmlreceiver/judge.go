// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlreceiver

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/helper"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/lifecycle"
)

// outcomeReleased is that of a scrape while the driver is left alone.
const outcomeReleased nvmlproto.Cause = "released"

// maxUnknown is how many scrapes in a row all boards may return 999 to a helper.
const maxUnknown = 3

// verdict is what an answer amounts to: a cause where no board gave anything.
type verdict struct {
	cause   nvmlproto.Cause
	err     error
	unknown bool // all boards returned 999
}

// judge decides whether boards answered, or what stands in their way.
func judge(plan *lifecycle.Plan, a *helper.Answer) verdict {
	read, lost, missing, unknown := 0, 0, 0, 0
	fatal := nvmlproto.Success
	for i := range a.Boards {
		b := &a.Boards[i]
		switch {
		case b.Lost, nvmlproto.Lost(b.Return):
			lost++
		case b.Return == nvmlproto.Success && !allUnknown(b):
			read++
			if r := endsHelper(b); r != nvmlproto.Success {
				fatal = r
			}
		case b.Return == nvmlproto.NotFound, b.Return == nvmlproto.InvalidArgument:
			missing++
		case b.Return == nvmlproto.Unknown, b.Return == nvmlproto.Success:
			unknown++
		default:
			fatal = b.Return
		}
	}
	if fatal != nvmlproto.Success && (read == 0 || nvmlproto.NeedsNewHelper(fatal)) {
		s := nvmlproto.System{Library: a.System.Library, Return: fatal}
		return verdict{cause: s.Cause(), err: fmt.Errorf("calls of boards return %d", fatal)}
	}
	switch {
	case read > 0:
	case len(a.Late) > 0:
		cause := nvmlproto.CauseStuck
		for _, l := range a.Late {
			if !l.Stuck {
				cause = nvmlproto.CauseTimeout
			}
		}
		return verdict{cause: cause, err: errors.New(describe(a.Late))}
	case len(a.Boards) == 0 && (len(plan.Read) > 0 || plan.ByIndex && a.System.Boards > 0):
		return verdict{cause: nvmlproto.CauseTimeout, err: errors.New("all boards are still in the calls of an earlier scrape")}
	case unknown > 0:
		return verdict{nvmlproto.CauseUnknownError, errors.New("all boards return 999"), true}
	case missing > 0, plan.ByIndex && lost == 0:
		return verdict{cause: nvmlproto.CauseNoBoards, err: fmt.Errorf("the library has %d boards, the host has %d", a.System.Boards, len(plan.Read))}
	}
	return verdict{cause: nvmlproto.CauseNone}
}

// allUnknown reports whether all calls for a board returned errors, one of them 999.
func allUnknown(b *nvmlproto.Board) bool {
	unknown := false
	for _, v := range b.Values {
		switch {
		case v.Return == nvmlproto.Success:
			return false
		case v.Return == nvmlproto.Unknown:
			unknown = true
		}
	}
	return unknown
}

// endsHelper is a return of a board's values after which no call of this process succeeds.
func endsHelper(b *nvmlproto.Board) int {
	for _, v := range b.Values {
		if nvmlproto.NeedsNewHelper(v.Return) {
			return v.Return
		}
	}
	return nvmlproto.Success
}

// systemError is why the library gives nothing, nil if it does.
func systemError(s *nvmlproto.System) (nvmlproto.Cause, error) {
	cause := s.Cause()
	switch cause {
	case nvmlproto.CauseNone:
		return cause, nil
	case nvmlproto.CauseNoLibrary:
		return cause, fmt.Errorf("tried %s", strings.Join(s.Missing, "; "))
	}
	return cause, fmt.Errorf("nvmlInit returns %d: %s", s.Return, s.Error)
}

// causeOf is the cause of an error of the helper.
func causeOf(err error) nvmlproto.Cause {
	var known *helper.Error
	if errors.As(err, &known) {
		return known.Cause
	}
	return nvmlproto.CauseHelperStart
}

func threads(late []helper.Late) []string {
	out := make([]string, 0, len(late))
	for _, l := range late {
		out = append(out, l.Thread)
	}
	return out
}

// describe has the first of some calls that do not return.
func describe(late []helper.Late) string {
	l := &late[0]
	if l.Call == "" {
		return fmt.Sprintf("%d boards have not answered, the first is %s", len(late), l.Thread)
	}
	return fmt.Sprintf("%d boards have not answered, the first is %s: %s has not returned for %v", len(late), l.Thread, l.Call, time.Since(l.Since).Round(time.Second))
}
