// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

// scraper fetches pages, maps them and forwards the metrics. It is safe for
// several targets at once.
type scraper struct {
	exporter  *Exporter
	next      consumer.Metrics
	obs       *receiverhelper.ObsReport
	telemetry Telemetry
	logger    *zap.Logger
	options   devicemap.Options
	pages     pagetext.Options
	fetcher   *fetcher
	refuse    atomic.Pointer[error] // what every scrape fails with, see targets
	buffers   sync.Pool             // *buffer
	id        string                // of the receiver
	labels    exporterLabels
}

// maxExporterLabels is how many exporters the receiver's own metrics name: pods of
// exporters come and go, and a counter stays.
const maxExporterLabels = 256

// exporterLabels are the exporters that own metrics name.
type exporterLabels struct {
	mu    sync.Mutex
	known map[string]bool
}

func (l *exporterLabels) of(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known[name] && len(l.known) >= maxExporterLabels {
		return "other"
	}
	if l.known == nil {
		l.known = map[string]bool{}
	}
	l.known[name] = true
	return name
}

// buffer is the memory of one scrape. Targets take turns: few scrapes run at the
// same time, however many targets there are.
type buffer struct {
	body []byte
	rows []devicemap.Row
}

func (s *scraper) newTarget(at location) *target {
	pages := s.pages
	pages.Job, pages.Instance = at.job, at.instance
	return &target{location: at, reader: pagetext.NewReader(s.exporter.Vendor, pages), mapping: devicemap.NewTarget(s.exporter.Vendor, s.options)}
}

// scrape makes one scrape of a target. Once ctx has ended it emits nothing. Where retry
// is set and the exporter refuses the scrape because of others, it emits nothing either,
// and reports that.
func (s *scraper) scrape(ctx context.Context, t *target, retry bool) (limited bool) {
	start := time.Now()
	buf, err := s.fetch(ctx, t)
	if ctx.Err() != nil || errors.Is(err, ErrAbsent) {
		return false
	}
	if retry && err != nil && s.exporter.Failed(err) == fetch.RateLimited {
		s.count(fetch.RateLimited)
		return true
	}
	result, ok := s.read(t, start, buf, err)
	if cap(buf.body) > 0 {
		s.buffers.Put(buf)
	}
	if ok {
		s.deliver(t, result)
	}
	return false
}

func (s *scraper) count(o fetch.Outcome) {
	s.telemetry.Scrapes.Add(context.Background(), 1, metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", string(o)))))
}

func (s *scraper) fetch(ctx context.Context, t *target) (*buffer, error) {
	buf := &buffer{}
	if refuse := s.refuse.Load(); refuse != nil {
		return buf, *refuse
	}
	memory := func() []byte {
		if used, ok := s.buffers.Get().(*buffer); ok {
			buf = used
		}
		return buf.body
	}
	var body []byte
	var err error
	if local := s.exporter.Local; local != nil {
		body, err = local.Page(ctx, memory())
	} else {
		body, err = s.fetcher.fetch(ctx, t.url, memory)
	}
	buf.body = body
	return buf, err
}

// read reads and maps a page, and counts and logs the outcome.
func (s *scraper) read(t *target, start time.Time, buf *buffer, err error) (result devicemap.Result, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left {
		return result, false
	}
	scraped := devicemap.Page{Time: pcommon.NewTimestampFromTime(start)}
	var read pagetext.Result
	if err == nil {
		buf.rows, read, err = t.reader.Read(buf.body, buf.rows[:0])
	}
	outcome := fetch.OK
	if err != nil {
		outcome = s.exporter.Failed(err)
	}
	scraped.Limited = outcome == fetch.RateLimited
	scraped.Duration = time.Since(start).Seconds()
	if err == nil {
		scraped.Up, scraped.Rows, scraped.Samples, scraped.Refused, scraped.Over = true, buf.rows, read.Samples, read.Refused, read.Over
	}
	result = t.mapping.Map(&scraped, t.exporter)
	clear(buf.rows) // of what belongs to the target
	devices, unknown := result.Devices-t.devices, len(result.Unknown)-t.unknown
	t.devices, t.unknown = result.Devices, len(result.Unknown)

	ctx, logger := context.Background(), s.logger.With(zap.String("exporter", t.name))
	if err == nil {
		outcome = s.exporter.Lacking(result.Lack)
	}
	s.count(outcome)
	for reason, n := range result.Refused {
		if n > 0 {
			s.telemetry.RowsRefused.Add(ctx, int64(n), metric.WithAttributeSet(attribute.NewSet(
				attribute.String("exporter", s.labels.of(t.name)), attribute.String("reason", s.exporter.Vendor.Reason(devicemap.Reason(reason))), attribute.String("receiver", s.id))))
		}
	}
	s.telemetry.Devices.Add(ctx, int64(devices))
	s.telemetry.Unknown.Add(ctx, int64(unknown))
	t.logScrape(s.exporter, logger, outcome, err, result.Why)
	if err == nil {
		t.logLines(s.exporter, logger, read)
		t.logDevices(s.exporter, logger, &result)
		t.logDoubt(s.exporter, logger, result.Doubt)
		t.logUnknown(s.exporter, logger, &result)
		t.logLimits(s.exporter, logger, result.Over, result.Refused[devicemap.Limit]-read.TooLong)
	}
	return result, true
}

// deliver hands metrics to the next component. They are lost if it refuses them:
// the next scrape is newer.
func (s *scraper) deliver(t *target, result devicemap.Result) {
	points := result.Metrics.DataPointCount()
	ctx := s.obs.StartMetricsOp(context.Background()) // a shutdown waits for it
	err := s.next.ConsumeMetrics(ctx, result.Metrics)
	s.obs.EndMetricsOp(ctx, "prometheus", points, err)
	t.logPipeline(s.logger.With(zap.String("exporter", t.name)), err)
}
