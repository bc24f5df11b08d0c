// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/mapping"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/page"
)

// outcome is how a scrape ended: the values of the attribute outcome.
type outcome string

const (
	outcomeOK       outcome = "ok"
	outcomeEmpty    outcome = "empty"
	outcomeConnect  outcome = "connect"
	outcomeTimeout  outcome = "timeout"
	outcomeStatus   outcome = "http_status"
	outcomeCutOff   outcome = "cut_off"
	outcomeTooLarge outcome = "too_large"
	outcomeParse    outcome = "parse"
)

// classify names the cause of a failed scrape.
func classify(devices int, err error) outcome {
	var (
		netErr net.Error
		status statusError
	)
	switch {
	case err == nil && devices == 0:
		return outcomeEmpty
	case err == nil:
		return outcomeOK
	case errors.Is(err, errTooLarge), errors.Is(err, page.ErrLimit):
		return outcomeTooLarge
	case errors.Is(err, page.ErrNoPage):
		return outcomeParse
	case errors.As(err, &status):
		return outcomeStatus
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return outcomeTimeout
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return outcomeCutOff
	case errors.As(err, &netErr): // url.Error, which all errors of a connection are in, is one
		return outcomeConnect
	}
	return outcomeParse // gzip that is none
}

// remedies say what to do.
var remedies = map[outcome]string{
	outcomeEmpty:    "the page names no GPU: check the exporter's log and its counters file",
	outcomeConnect:  "check that the exporter runs and that the address is right",
	outcomeTimeout:  "raise collection_interval or scrape::scrape_timeout, or look at why the exporter is slow",
	outcomeStatus:   "check path and authentication (scrape::basic_auth, scrape::authorization); dcgm-exporter answers 500 when one entity fails",
	outcomeCutOff:   "the exporter closed the connection within the page: look at its log and memory limit",
	outcomeTooLarge: "raise the limit that the cause names (scrape::body_size_limit, sample_limit, label_limit) if the page is really that large",
	outcomeParse:    "the answer is no page in the Prometheus text format: use the exporter's /metrics",
}

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
	if o == s.last || o == outcomeOK && s.last == "" {
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

func (t *target) tellScrape(logger *zap.Logger, o outcome, err error) {
	switch {
	case !t.scrapes.news(o, time.Now()):
	case o == outcomeOK:
		logger.Info("exporter is back", zap.Int("devices", t.devices))
	default:
		logger.Warn("exporter gives no GPU metrics",
			zap.String("outcome", string(o)), zap.String("remedy", remedies[o]), zap.String("cause", cause(err)))
	}
}

// tellLines tells what is wrong with some lines of a page. They cost nothing but
// themselves.
func (t *target) tellLines(logger *zap.Logger, read page.Result) {
	o := outcomeOK
	if read.Bad != nil {
		o = outcome(lineRemedy(read.Bad))
	}
	switch {
	case !t.lines.news(o, time.Now()):
	case o == outcomeOK:
		logger.Info("all lines of the exporter's page are samples again")
	default:
		logger.Warn("exporter prints lines that are no samples, they are left out",
			zap.Int("lines", read.Refused[mapping.Unparsable]), zap.String("remedy", string(o)), zap.String("cause", cause(read.Bad)))
	}
	if n := read.Refused[mapping.Repeated]; n > 0 && !t.repeats {
		t.repeats = true
		logger.Warn("the page repeats series, the first of each counts: look at the exporter's counters file", zap.Int("repeated", n))
	}
}

// lineRemedy says what to do about a line, from what Prometheus' parser says of it.
func lineRemedy(err error) string {
	if errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange) {
		return "a field prints a text as its value: in the exporter's counters file take the field in the line below out (BINARY) or type it label (STRING)"
	}
	return "look at the line below, and at the exporter's counters file and its pods' labels"
}

// tellPipeline tells that the next component refuses metrics, which has an
// outcome of its own in the story and none in scrapes.
func (t *target) tellPipeline(logger *zap.Logger, err error) {
	o := outcomeOK
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
