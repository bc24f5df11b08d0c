// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"errors"
	"maps"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

// outcome is how a scrape ended, or what else the log is told of once.
type outcome = fetch.Outcome

// retell is how long a cause stays told for a target that flaps.
const retell = 10 * time.Minute

// story is what the log knows: each outcome is told when it begins, and a second
// time within retell only if it is still there then.
type story struct {
	last outcome // that was told
	told map[outcome]time.Time
}

func (s story) clone() story { return story{s.last, maps.Clone(s.told)} }

// news reports whether the log should be told, and notes that it was.
func (s *story) news(o outcome, now time.Time) bool {
	if o == s.last || o == fetch.OK && s.last == "" {
		return false
	}
	if t, ok := s.told[o]; ok && now.Sub(t) < retell {
		return false
	}
	if s.told == nil {
		s.told = map[outcome]time.Time{}
	}
	s.last, s.told[o] = o, now
	return true
}

// tellScrape tells how a scrape ended; why is what a page lacks that was read.
func (t *target) tellScrape(e *Exporter, logger *zap.Logger, o outcome, err error, why string) {
	switch {
	case !t.scrapes.news(o, time.Now()):
	case o == fetch.OK:
		logger.Info("exporter is back", zap.Int("devices", t.devices))
	default:
		if err != nil {
			why = cause(err)
		}
		logger.Warn("exporter gives no GPU metrics",
			zap.String("outcome", string(o)), zap.String("remedy", e.Remedy(o, err)), zap.String("cause", why))
	}
}

// tellLines tells what is wrong with some lines of a page. They cost nothing but
// themselves.
func (t *target) tellLines(e *Exporter, logger *zap.Logger, read pagetext.Result) {
	o := fetch.OK
	if read.Bad != nil {
		o = outcome(e.LineRemedy(read.Bad))
	}
	switch {
	case !t.lines.news(o, time.Now()):
	case o == fetch.OK:
		logger.Info("all lines of the exporter's page are samples again")
	default:
		logger.Warn("exporter prints lines that are no samples, they are left out",
			zap.Int("lines", read.Refused[devicemap.Unparsable]), zap.String("remedy", string(o)), zap.String("cause", cause(read.Bad)))
	}
	if n := read.Refused[devicemap.Repeated]; n > 0 && !t.repeats {
		t.repeats = true
		logger.Warn("the page repeats series, the first of each counts", zap.Int("repeated", n), zap.String("remedy", e.Repeated))
	}
	if read.Long != nil && !t.long {
		t.long = true
		logger.Warn("exporter prints samples over a limit, they are left out",
			zap.Int("samples", read.TooLong), zap.String("remedy", e.Long), zap.String("cause", cause(read.Long)))
	}
}

// logOver logs that a page is over a limit of the receiver: what goes beyond is
// missing although the exporter is up.
func (t *target) logOver(e *Exporter, logger *zap.Logger, over devicemap.Over, samples int) {
	o := fetch.OK
	if over != "" {
		o = outcome(over)
	}
	switch {
	case !t.limits.news(o, time.Now()):
	case over == "":
		logger.Info("the exporter's page is within the limits of the receiver again")
	default:
		logger.Warn("the exporter's page is over a limit of the receiver, what goes beyond is left out",
			zap.Int("samples", samples), zap.String("remedy", e.OverRemedy(over)), zap.String("cause", string(over)))
	}
}

// tellPipeline tells that the next component refuses metrics, which has an
// outcome of its own in the story and none in scrapes.
func (t *target) tellPipeline(logger *zap.Logger, err error) {
	o := fetch.OK
	if err != nil {
		o = "refused"
	}
	t.mu.Lock()
	news := t.pipeline.news(o, time.Now())
	t.mu.Unlock()
	switch {
	case !news:
	case err == nil:
		logger.Info("pipeline takes metrics again")
	default:
		logger.Warn("pipeline refuses metrics, they are lost", zap.Error(err))
	}
}

// cause is the error's text, at most 500 bytes of it, since it quotes from the
// page, and without the URL that Go's HTTP client puts before it: a query may
// hold a token.
func cause(err error) string {
	if err == nil {
		return ""
	}
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		err = urlErr.Err
	}
	text := strings.ToValidUTF8(err.Error(), "?")
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "") + " …"
	}
	return text
}
