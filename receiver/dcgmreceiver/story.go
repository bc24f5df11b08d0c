// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/prometheus/scrape"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/mapping"
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

// classify names the cause of a failed scrape. Prometheus exports no error
// values for most of them, so their texts are all there is (scrape/scrape.go).
func classify(r mapping.Result, err error) (outcome, error) {
	if r.Up {
		if r.Devices == 0 {
			return outcomeEmpty, nil
		}
		return outcomeOK, nil
	}
	if err == nil {
		err = errors.New("the scrape failed without a reason")
	}
	var netErr net.Error
	text := err.Error()
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return outcomeTimeout, err
	case strings.Contains(text, "limit exceeded"):
		return outcomeTooLarge, err
	case strings.Contains(text, "server returned HTTP status"):
		return outcomeStatus, err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return outcomeCutOff, err
	case errors.As(err, &netErr), strings.Contains(text, "tls:"), strings.Contains(text, "x509:"):
		return outcomeConnect, err
	}
	return outcomeParse, err
}

// remedies say what to do.
var remedies = map[outcome]string{
	outcomeEmpty:    "the page names no GPU: check the exporter's log and its counters file",
	outcomeConnect:  "check that the exporter runs and that the address is right",
	outcomeTimeout:  "raise collection_interval or scrape::scrape_timeout, or look at why the exporter is slow",
	outcomeStatus:   "check path and authentication (scrape::basic_auth, scrape::authorization); dcgm-exporter answers 500 when one entity fails",
	outcomeCutOff:   "the exporter closed the connection within the page: look at its log and memory limit",
	outcomeTooLarge: "raise the limit that the cause names (scrape::body_size_limit, sample_limit, label_limit) if the page is really that large",
	outcomeParse:    "the Prometheus parser refuses the whole page for one line: look at the line in the error",
}

// retell is how long a cause stays told for a target that flaps.
const retell = 10 * time.Minute

// story is what the log knows: each outcome is told when it begins, and a second
// time within retell only if it is still there then.
type story struct {
	last outcome // that was told
	told map[outcome]time.Time
}

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

func (t *target) tellScrape(logger *zap.Logger, o outcome, err error, devices int) {
	switch {
	case !t.scrapes.news(o, time.Now()):
	case o == outcomeOK:
		logger.Info("exporter is back", zap.Int("devices", devices))
	default:
		logger.Warn("exporter gives no GPU metrics",
			zap.String("outcome", string(o)), zap.String("remedy", remedy(o, err)), zap.String("cause", cause(err)))
	}
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

func remedy(o outcome, err error) string {
	if o == outcomeParse {
		switch text := err.Error(); {
		case strings.Contains(text, "strconv.ParseFloat"):
			return "a field prints a text as its value: in the exporter's counters file take the field in the line below out (BINARY) or type it label (STRING)"
		case strings.Contains(text, `"<`):
			return "the address answers HTML: use the exporter's /metrics"
		}
	}
	return remedies[o]
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

// quietCore keeps the messages away that prometheusreceiver would repeat at
// every scrape. The receiver tells what they say once, and counts the samples
// that prometheusreceiver leaves out: those of families typed histogram or
// summary, and those of a series that the page has twice.
type quietCore struct {
	zapcore.Core
	leftOut func(why mapping.Reason, samples int64)
	repeats *sync.Once // of one target, which has a logger of its own
}

const repeatedSeries = "Error on ingesting samples with different value but same timestamp"

func (c quietCore) With(f []zapcore.Field) zapcore.Core {
	return quietCore{c.Core.With(withoutQuery(f)), c.leftOut, new(sync.Once)}
}

// withoutQuery takes the query, which may hold a token, out of the target's URL
// that Prometheus puts into the messages about it.
func withoutQuery(f []zapcore.Field) []zapcore.Field {
	f = slices.Clone(f)
	for i := range f {
		if target, ok := f[i].Interface.(*scrape.Target); ok {
			u := target.URL()
			u.RawQuery = ""
			f[i] = zap.String(f[i].Key, u.String())
		}
	}
	return f
}

func (c quietCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	switch e.Message {
	case "Failed to scrape Prometheus endpoint", "Append failed", "Scrape failed", "Scrape commit failed":
		return ce
	case "failed to add datapoint":
		c.leftOut(mapping.WrongType, 1)
		return ce
	case repeatedSeries:
		return ce.AddCore(e, c) // for the number of them, which is in its fields
	}
	return c.Core.Check(e, ce)
}

// Write gets repeatedSeries alone: Check gives everything else to the core within.
func (c quietCore) Write(e zapcore.Entry, f []zapcore.Field) error {
	for i := range f {
		if f[i].Key == "num_dropped" {
			c.leftOut(mapping.Repeated, f[i].Integer)
		}
	}
	var err error
	if c.Enabled(e.Level) {
		c.repeats.Do(func() {
			e.Message = "the page repeats series with other values, the first of each counts: look at the exporter's counters file"
			err = c.Core.Write(e, f)
		})
	}
	return err
}
