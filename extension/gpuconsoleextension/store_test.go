// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// tsdbStore is Prometheus' own storage and PromQL, as the gpu_store extension has
// them. With that extension itself the console is tested in testbed/console: no
// component imports another.
type tsdbStore struct {
	fakeStore
	db     *tsdb.DB
	engine *promql.Engine

	mu         sync.Mutex
	events     []*store.Event
	deliveries []*store.Delivery
	problems   []store.Problem
}

func newStore(t testing.TB) store.Store {
	t.Helper()
	options := tsdb.DefaultOptions()
	options.OutOfOrderTimeWindow = (24 * time.Hour).Milliseconds()
	db, err := tsdb.Open(t.TempDir(), nil, nil, options, nil)
	require.NoError(t, err)
	engine := promql.NewEngine(promql.EngineOpts{
		Parser: parser.NewParser(parser.Options{}), MaxSamples: 20_000_000, Timeout: 30 * time.Second, LookbackDelta: 5 * time.Minute,
		EnableAtModifier: true, EnableNegativeOffset: true,
	})
	t.Cleanup(func() {
		require.NoError(t, engine.Close())
		require.NoError(t, db.Close())
	})
	return &tsdbStore{db: db, engine: engine}
}

func (s *tsdbStore) Info() store.Info {
	return store.Info{Engine: "embedded", Retention: 24 * time.Hour}
}

func (s *tsdbStore) Instant(ctx context.Context, query string, at time.Time) (*store.Result, error) {
	q, err := s.engine.NewInstantQuery(ctx, s.db, nil, query, at)
	if err != nil {
		return nil, &store.Error{Kind: store.BadQuery, Err: err}
	}
	defer q.Close()
	v, err := q.Exec(ctx).Vector()
	if err != nil {
		return nil, &store.Error{Kind: store.TooMuch, Err: err}
	}
	out := model.Vector{}
	for _, sample := range v {
		out = append(out, &model.Sample{Metric: copied(sample.Metric), Timestamp: model.Time(sample.T), Value: model.SampleValue(sample.F)})
	}
	return &store.Result{Value: out}, nil
}

func (s *tsdbStore) Range(ctx context.Context, query string, r store.Range) (*store.Result, error) {
	q, err := s.engine.NewRangeQuery(ctx, s.db, nil, query, r.Start, r.End, r.Step)
	if err != nil {
		return nil, &store.Error{Kind: store.BadQuery, Err: err}
	}
	defer q.Close()
	m, err := q.Exec(ctx).Matrix()
	if err != nil {
		return nil, &store.Error{Kind: store.TooMuch, Err: err}
	}
	out := model.Matrix{}
	for _, series := range m {
		stream := &model.SampleStream{Metric: copied(series.Metric)}
		for _, p := range series.Floats {
			stream.Values = append(stream.Values, model.SamplePair{Timestamp: model.Time(p.T), Value: model.SampleValue(p.F)})
		}
		out = append(out, stream)
	}
	return &store.Result{Value: out}, nil
}

// copied copies labels: they are not ours when the query is closed.
func copied(l labels.Labels) model.Metric {
	m := model.Metric{}
	l.Range(func(one labels.Label) {
		m[model.LabelName([]byte(one.Name))] = model.LabelValue([]byte(one.Value))
	})
	return m
}

func (s *tsdbStore) Series(ctx context.Context, q store.Selection) ([]model.LabelSet, store.Warnings, error) {
	selectors, err := parser.NewParser(parser.Options{}).ParseMetricSelectors(q.Matchers)
	if err != nil {
		return nil, nil, &store.Error{Kind: store.BadQuery, Err: err}
	}
	querier, err := s.db.Querier(0, 1<<62)
	if err != nil {
		return nil, nil, err
	}
	defer querier.Close()
	var found []model.LabelSet
	for _, matchers := range selectors {
		set := querier.Select(ctx, false, nil, matchers...)
		for set.Next() && len(found) < q.Limit {
			found = append(found, model.LabelSet(copied(set.At().Labels())))
		}
	}
	return found, nil, nil
}

func (s *tsdbStore) Append(ctx context.Context, series []store.Series) (store.Appended, error) {
	appender := s.db.Appender(ctx)
	for _, one := range series {
		for _, sample := range one.Samples {
			if _, err := appender.Append(0, one.Labels, sample.Time, sample.Value); err != nil {
				return store.Appended{}, err
			}
		}
	}
	return store.Appended{}, appender.Commit()
}

func (s *tsdbStore) AppendEvents(_ context.Context, events []*store.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		s.events = append([]*store.Event{e}, s.events...)
	}
	return nil
}

func (s *tsdbStore) KeepAudit(sequence uint64, r *audit.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deliveries = append([]*store.Delivery{store.NewDelivery(sequence, r)}, s.deliveries...)
}

func (s *tsdbStore) Events(store.EventQuery) []*store.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events
}

func (s *tsdbStore) Deliveries(store.DeliveryQuery) []*store.Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deliveries
}

func (s *tsdbStore) Problems() []store.Problem { return s.problems }
