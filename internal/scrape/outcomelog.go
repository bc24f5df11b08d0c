// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

// outcomeLog is what was logged of one target.
type outcomeLog struct{ logonce.Outcomes }

func (s outcomeLog) clone() outcomeLog { return outcomeLog{s.Clone()} }

// shouldLog reports whether an outcome is to be logged now, and notes that it was.
func (s *outcomeLog) shouldLog(o fetch.Outcome, now time.Time) bool {
	if o == fetch.OK {
		o = ""
	}
	return s.Begins(string(o), now)
}

// logScrape logs how a scrape ended; why is what a page lacks that was read.
func (t *target) logScrape(e *Exporter, logger *zap.Logger, o fetch.Outcome, err error, why string) {
	switch {
	case !t.scrapes.shouldLog(o, time.Now()):
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

// logLines logs what is wrong with some lines of a page. They cost nothing but
// themselves.
func (t *target) logLines(e *Exporter, logger *zap.Logger, read pagetext.Result) {
	o := fetch.OK
	if read.Bad != nil {
		o = fetch.Outcome(e.LineRemedy(read.Bad))
	}
	switch {
	case !t.lines.shouldLog(o, time.Now()):
	case o == fetch.OK:
		logger.Info("all lines of the exporter's page are valid samples again")
	default:
		logger.Warn("exporter prints lines that are not valid samples, they are left out",
			zap.Int("lines", read.Refused[devicemap.Unparsable]), zap.String("remedy", string(o)), zap.String("cause", cause(read.Bad)))
	}
	if n := read.Refused[devicemap.Repeated]; n > 0 && !t.repeats {
		t.repeats = true
		logger.Warn("the page repeats series, the first sample of each is used", zap.Int("repeated", n), zap.String("remedy", e.Repeated))
	}
	if read.Long != nil && !t.long {
		t.long = true
		logger.Warn("exporter prints samples over a limit, they are left out",
			zap.Int("samples", read.TooLong), zap.String("remedy", e.Long), zap.String("cause", cause(read.Long)))
	}
}

// logDevices logs what a page lacks that has devices.
func (t *target) logDevices(e *Exporter, logger *zap.Logger, result *devicemap.Result) {
	if n := result.Refused[devicemap.NoDevice]; n > 0 && result.Devices > 0 && e.NoIdentity != "" && !t.unnamed {
		t.unnamed = true
		logger.Warn("rows of the page do not identify their device, they are left out",
			zap.Int("rows", n), zap.String("remedy", e.NoIdentity))
	}
	if result.Implausible != "" && !t.implausible {
		t.implausible = true
		logger.Warn("the page has values that no device can have, they are left out",
			zap.Int("rows", result.Refused[devicemap.Implausible]), zap.String("cause", cause(errors.New(result.Implausible))))
	}
	if e.Missing == "" {
		return
	}
	o := fetch.OK
	if result.Missing > 0 && result.Devices > 0 { // without any, the outcome has been logged
		o = "missing"
	}
	switch {
	case !t.missing.shouldLog(o, time.Now()):
	case o == fetch.OK:
		logger.Info("the page has rows of all devices that the exporter counts again")
	default:
		logger.Warn("the page has no rows of some devices that the exporter counts",
			zap.Int("missing", result.Missing), zap.String("remedy", e.Missing))
	}
}

// logDoubt logs that a page contradicts itself about the unit of a family.
func (t *target) logDoubt(e *Exporter, logger *zap.Logger, doubt string) {
	switch {
	case !t.doubts.shouldLog(fetch.Outcome(doubt), time.Now()):
	case doubt == "":
		logger.Info("the page contradicts itself about no unit any more")
	default:
		logger.Warn("the page contradicts itself about the unit of a field, which is left out",
			zap.String("remedy", e.Doubt), zap.String("cause", doubt))
	}
}

// maxNamed is how many unknown fields are named in the log.
const maxNamed = 16

// logUnknown logs that the exporter has other names for its fields than the receiver knows.
func (t *target) logUnknown(e *Exporter, logger *zap.Logger, result *devicemap.Result) {
	o := fetch.OK
	switch {
	case result.Unrecognized:
		o = "unrecognized"
	case len(result.Unknown) > 0:
		o = "unknown"
	}
	if result.Devices == 0 || !t.renamed.shouldLog(o, time.Now()) {
		return
	}
	named := result.Unknown[:min(maxNamed, len(result.Unknown))]
	fields := []zap.Field{zap.Int("unknown", len(result.Unknown)), zap.Stringers("first", named), zap.String("remedy", e.UnknownRemedy())}
	switch {
	case o == fetch.OK:
		logger.Info("the exporter's fields are known again")
	case result.Unrecognized:
		logger.Warn("the exporter's fields are not known: none of its page has the utilization, memory or power of a device", fields...)
	default:
		logger.Warn("the exporter's page has fields that are not known, and lacks quantities that they may have", fields...)
	}
}

// logLimits logs that a page is over a limit of the receiver: what goes beyond is
// missing although the exporter is up.
func (t *target) logLimits(e *Exporter, logger *zap.Logger, over devicemap.Over, samples int) {
	o := fetch.OK
	if over != "" {
		o = fetch.Outcome(over)
	}
	switch {
	case !t.limits.shouldLog(o, time.Now()):
	case over == "":
		logger.Info("the exporter's page is within the limits of the receiver again")
	default:
		logger.Warn("the exporter's page is over a limit of the receiver, the excess is left out",
			zap.Int("samples", samples), zap.String("remedy", e.OverRemedy(over)), zap.String("cause", string(over)))
	}
}

// logPipeline logs that the next component refuses metrics: an outcome of its own, which
// is not counted as one of a scrape.
func (t *target) logPipeline(logger *zap.Logger, err error) {
	o := fetch.OK
	if err != nil {
		o = "refused"
	}
	t.mu.Lock()
	log := t.pipeline.shouldLog(o, time.Now())
	t.mu.Unlock()
	switch {
	case !log:
	case err == nil:
		logger.Info("pipeline accepts metrics again")
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
