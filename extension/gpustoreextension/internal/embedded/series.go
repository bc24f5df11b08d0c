// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package embedded // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/embedded"

import (
	"context"
	"math"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// truncated is Prometheus' own warning.
const truncated = "results truncated due to limit"

// Series returns the labels of series.
func (e *evaluator) Series(ctx context.Context, s store.Selection) ([]model.LabelSet, store.Warnings, error) {
	if len(s.Matchers) == 0 {
		return nil, nil, store.Errorf(store.BadQuery, "no match[] parameter provided: name at least one series selector")
	}
	var (
		found    []model.LabelSet
		warnings store.Warnings
	)
	limit := min(limited(s.Limit), e.alone.samples/seriesWeight)
	turns := &e.shared
	if limit*seriesWeight > turns.samples {
		turns = &e.alone
	}
	err := e.look(ctx, turns, s, func(ctx context.Context, q storage.Querier, selectors [][]*labels.Matcher) error {
		hints := &storage.SelectHints{
			Start: milliseconds(s.Start, math.MinInt64), End: milliseconds(s.End, math.MaxInt64),
			Func: "series", Limit: limit + 1,
		}
		var sets []storage.SeriesSet
		for _, matchers := range selectors {
			sets = append(sets, q.Select(ctx, true, hints, matchers...))
		}
		merged := storage.NewMergeSeriesSet(sets, 0, storage.ChainedSeriesMerge)
		for merged.Next() {
			if len(found) == limit {
				warnings = append(warnings, truncated)
				return nil
			}
			set := model.LabelSet{}
			merged.At().Labels().Range(func(l labels.Label) {
				set[model.LabelName(l.Name)] = model.LabelValue(l.Value)
			})
			found = append(found, set)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return merged.Err()
	})
	return found, warnings, err
}

// LabelNames returns the names of labels.
func (e *evaluator) LabelNames(ctx context.Context, s store.Selection) ([]string, store.Warnings, error) {
	return e.labels(ctx, s, func(ctx context.Context, q storage.Querier, hints *storage.LabelHints, matchers []*labels.Matcher) ([]string, error) {
		names, _, err := q.LabelNames(ctx, hints, matchers...)
		return names, err
	})
}

// LabelValues returns the values of a label.
func (e *evaluator) LabelValues(ctx context.Context, label string, s store.Selection) ([]string, store.Warnings, error) {
	if !model.UTF8Validation.IsValidLabelName(label) {
		return nil, nil, store.Errorf(store.BadQuery, "invalid label name: %q", label)
	}
	return e.labels(ctx, s, func(ctx context.Context, q storage.Querier, hints *storage.LabelHints, matchers []*labels.Matcher) ([]string, error) {
		values, _, err := q.LabelValues(ctx, label, hints, matchers...)
		return values, err
	})
}

func (e *evaluator) labels(ctx context.Context, s store.Selection,
	ask func(context.Context, storage.Querier, *storage.LabelHints, []*labels.Matcher) ([]string, error),
) ([]string, store.Warnings, error) {
	var (
		found    []string
		warnings store.Warnings
	)
	err := e.look(ctx, &e.shared, s, func(ctx context.Context, q storage.Querier, selectors [][]*labels.Matcher) error {
		limit := limited(s.Limit)
		if len(selectors) == 0 {
			selectors = [][]*labels.Matcher{nil} // of all series
		}
		for _, matchers := range selectors {
			some, err := ask(ctx, q, &storage.LabelHints{Limit: limit + 1}, matchers)
			if err != nil {
				return err
			}
			// The querier's texts are not ours after it is closed.
			for _, text := range some {
				found = append(found, string([]byte(text)))
			}
		}
		slices.Sort(found)
		found = slices.Compact(found)
		if len(found) > limit {
			found = found[:limit]
			warnings = append(warnings, truncated)
		}
		return nil
	})
	return found, warnings, err
}

func limited(limit int) int {
	if limit <= 0 || limit > maxSeriesReturned {
		return maxSeriesReturned
	}
	return limit
}

// look opens a querier for a selection. It is a query like any other: it waits
// for a turn, and has the same timeout.
func (e *evaluator) look(ctx context.Context, turns *turns, s store.Selection, do func(context.Context, storage.Querier, [][]*labels.Matcher) error) error {
	if !s.Start.IsZero() && !s.End.IsZero() && s.End.Before(s.Start) {
		return store.Errorf(store.BadQuery, "end must not be before start")
	}
	size := 0
	for _, m := range s.Matchers {
		size += len(m)
	}
	if size > maxQueryBytes {
		return store.Errorf(store.BadQuery, "the selectors are longer than %d bytes", maxQueryBytes)
	}
	selectors, err := e.parser.ParseMetricSelectors(s.Matchers)
	if err != nil {
		return &store.Error{Kind: store.BadQuery, Err: err}
	}
	for i, matchers := range selectors {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches("") }) {
			return store.Errorf(store.BadQuery, "%s selects everything: match[] must contain at least one non-empty matcher", s.Matchers[i])
		}
	}
	ctx, leave, err := e.enter(ctx, e.options.QueryTimeout)
	if err != nil {
		return err
	}
	defer leave()
	done, err := e.wait(ctx, turns)
	if err != nil {
		return err
	}
	defer func() { store.KeepOrRelease(ctx, done) }()
	q, err := e.db.Querier(milliseconds(s.Start, math.MinInt64), milliseconds(s.End, math.MaxInt64))
	if err != nil {
		return &store.Error{Kind: store.Internal, Err: err}
	}
	defer func() { _ = q.Close() }()
	if err := do(ctx, q, selectors); err != nil {
		return e.queryError(err, turns)
	}
	return nil
}
