// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package embedded // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/embedded"

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/diskfault"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

const (
	// maxAhead is how far a sample may be ahead of the clock, as in Prometheus'
	// remote write receiver: one from next year would make everything else too
	// old.
	maxAhead = 10 * time.Minute
	// maxLabelBytes bounds the labels of a series. A Kubernetes name has at most
	// 253 characters.
	maxLabelBytes = 32 << 10
)

// Append stores samples.
func (e *Engine) Append(ctx context.Context, series []store.Series) (store.Appended, error) {
	return e.append(ctx, series, 0)
}

// AppendWithin stores samples of what shares the store with others.
func (e *Engine) AppendWithin(ctx context.Context, series []store.Series, maxSeries int) (store.Appended, error) {
	return e.append(ctx, series, max(maxSeries, 1))
}

// append stores samples; share is how many series they may have, 0 without a share.
func (e *Engine) append(ctx context.Context, series []store.Series, share int) (store.Appended, error) {
	done, err := e.use()
	if err != nil {
		return store.Appended{}, err
	}
	defer done()
	var a store.Appended
	if why := e.Refusal(); why != "" {
		for _, s := range series {
			a.Refuse(why, len(s.Samples)+len(s.Histograms))
		}
		return a, nil
	}
	now := e.options.Now()
	b := batch{
		appender: e.db.Appender(ctx), Appended: &a,
		oldest: now.Add(-e.options.Retention).UnixMilli(),
		newest: now.Add(maxAhead).UnixMilli(),
		shared: &e.series.shared, share: share,
	}
	for i := range series {
		if err := b.add(&series[i]); err != nil {
			return store.Appended{}, e.failed(errors.Join(err, b.appender.Rollback()))
		}
	}
	if err := b.appender.Commit(); err != nil {
		return store.Appended{}, e.failed(err)
	}
	e.writeFailed.Store(nil)
	return a, nil
}

// Refusal is why nothing is taken at all, empty if something is.
func (e *Engine) Refusal() store.Refusal {
	switch {
	case !e.hasRoom():
		return store.DiskFull
	case e.full.Load():
		return store.StorageLimit
	default:
		return ""
	}
}

func (e *Engine) failed(err error) error {
	err = fmt.Errorf("samples cannot be stored: %w", diskfault.Explain(e.options.Directory, err))
	e.writeFailed.Store(&err)
	return &store.Error{Kind: store.Internal, Err: err}
}

// batch is what is stored together.
type batch struct {
	*store.Appended
	appender       storage.Appender
	oldest, newest int64
	shared         *shared
	share          int
}

// add returns an error only if the storage itself fails.
func (b *batch) add(s *store.Series) error {
	n := len(s.Samples) + len(s.Histograms)
	if why := check(s.Labels); why != "" {
		b.Refuse(why, n)
		return nil
	}
	switch {
	case b.share == 0:
		b.shared.own(s.Labels)
	case !b.shared.begin(s.Labels, b.share):
		b.Refuse(store.ShareLimit, n)
		return nil
	default:
		defer b.shared.end(s.Labels)
	}
	var ref storage.SeriesRef
	for _, sample := range s.Samples {
		err := b.inTime(sample.Time)
		if err == nil {
			ref, err = b.appender.Append(ref, s.Labels, sample.Time, sample.Value)
		}
		if err := b.count(err); err != nil {
			return err
		}
	}
	for _, h := range s.Histograms {
		err := b.inTime(h.Time)
		if !valid(h) {
			err = errInvalid
		}
		if err == nil {
			ref, err = b.appender.AppendHistogram(ref, s.Labels, h.Time, h.Integer, h.Float)
		}
		if err := b.count(err); err != nil {
			return err
		}
	}
	return nil
}

// check returns why labels cannot be a series, empty if they can. It refuses what
// Prometheus' remote write receiver refuses.
func check(l labels.Labels) store.Refusal {
	size, text := 0, true
	l.Range(func(label labels.Label) {
		size += len(label.Name) + len(label.Value)
		text = text && model.LabelValue(label.Value).IsValid()
	})
	if size > maxLabelBytes {
		return store.TooLarge
	}
	if _, twice := l.HasDuplicateLabelNames(); twice || !text || !l.Has(model.MetricNameLabel) || !l.IsValid(model.UTF8Validation) {
		return store.Invalid
	}
	return ""
}

// valid reports whether a histogram does not contradict itself.
func valid(h store.Histogram) bool {
	if h.Integer != nil {
		return h.Float == nil && h.Integer.Validate() == nil
	}
	return h.Float != nil && h.Float.Validate() == nil
}

var (
	errTooNew      = errors.New("ahead of the clock")
	errInvalid     = errors.New("contradicts itself")
	errSeriesLimit = errors.New("max_series is reached")
)

func (b *batch) inTime(t int64) error {
	switch {
	case t < b.oldest:
		return storage.ErrTooOldSample
	case t > b.newest:
		return errTooNew
	default:
		return nil
	}
}

// count turns the error of a sample into a refusal; what it returns is the
// storage's.
func (b *batch) count(err error) error {
	why := store.Refusal("")
	switch {
	case err == nil:
		b.Stored++
		return nil
	case errors.Is(err, storage.ErrDuplicateSampleForTimestamp):
		why = store.Duplicate
	case errors.Is(err, storage.ErrOutOfOrderSample):
		why = store.OutOfOrder
	case errors.Is(err, storage.ErrTooOldSample), errors.Is(err, storage.ErrOutOfBounds):
		why = store.TooOld
	case errors.Is(err, errTooNew):
		why = store.TooNew
	case errors.Is(err, errSeriesLimit):
		why = store.SeriesLimit
	case errors.Is(err, errInvalid):
		why = store.Invalid
	default:
		return err
	}
	b.Refuse(why, 1)
	return nil
}
