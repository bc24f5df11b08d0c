// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package embedded is the store's engine in the process: Prometheus' TSDB and
// PromQL.
package embedded // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/embedded"

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/compression"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/diskfault"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

const (
	// maxPoints is how many steps a range may have, as in Prometheus.
	maxPoints = 11_000
	// maxQueryBytes bounds the text of a query or selector: parsing is not
	// bounded by the query's timeout.
	maxQueryBytes = 32 << 10
	// maxSeriesReturned bounds what Series, LabelNames and LabelValues return.
	maxSeriesReturned = 100_000
	// sizeInterval is how often the files are measured.
	sizeInterval = 10 * time.Second
	// stripes of the series' hash map. Prometheus' 16384 take 4 MB more, and
	// are for millions of series.
	stripes = 2048
)

// Options of the engine; all are needed.
type Options struct {
	Directory       string
	Retention       time.Duration
	MaxBytes        int64
	OutOfOrder      time.Duration // 0 takes nothing out of order
	Lookback        time.Duration
	MaxSeries       int
	MaxSamples      int
	QueryTimeout    time.Duration
	ConcurrentQuery int
	// Reserve is what stays free on the disk: less, and nothing more is stored.
	Reserve int64
	// Free is how much may still be written into a directory: FreeBytes.
	Free   func(directory string) (bytes int64, known bool)
	Logger *zap.Logger
	Now    func() time.Time
}

// Engine is an open TSDB. Its methods return an error of kind Unavailable after
// Close.
type Engine struct {
	evaluator
	metadata
	registry *prometheus.Registry
	series   *seriesLimit

	bytes       atomic.Int64
	full        atomic.Bool
	short       atomic.Bool // too little was free when it was last looked at
	writeFailed atomic.Pointer[error]
}

// Open opens the directory, which no other process may have open, and replays
// what was not yet compacted. It repairs a write-ahead log with a broken tail,
// and reports it in the log.
func Open(o Options) (*Engine, error) {
	if err := prepare(o.Directory); err != nil {
		return nil, err
	}
	e := &Engine{
		evaluator: evaluator{life: newLife(), options: o, parser: parser.NewParser(parser.Options{})},
		metadata:  metadata{families: map[string]store.Metadata{}},
		registry:  prometheus.NewRegistry(),
		series:    &seriesLimit{max: int64(o.MaxSeries)},
	}
	logger := slog.New(zapslog.NewHandler(o.Logger.WithOptions(zap.IncreaseLevel(zap.WarnLevel)).Core()))

	options := tsdb.DefaultOptions()
	options.RetentionDuration = o.Retention.Milliseconds()
	options.MaxBytes = o.MaxBytes
	options.MinBlockDuration = blockDuration(o.Retention).Milliseconds()
	options.MaxBlockDuration = max(options.MinBlockDuration, min(options.RetentionDuration/10, (31*24*time.Hour).Milliseconds()))
	options.OutOfOrderTimeWindow = o.OutOfOrder.Milliseconds()
	options.WALCompression = compression.Snappy
	options.WALSegmentSize = walSegment(o.MaxBytes)
	options.StripeSize = stripes
	options.SeriesLifecycleCallback = e.series
	var err error
	if e.db, err = tsdb.Open(o.Directory, logger, e.registry, options, nil); err != nil {
		e.end()
		return nil, explain(o.Directory, err)
	}
	e.series.enforce()
	if n := e.repaired(); n > 0 {
		o.Logger.Warn("the store's write-ahead log was damaged, as after a power failure; it was repaired, and the samples behind the damage are lost",
			zap.String("directory", o.Directory), zap.Int("damages", n))
	}
	e.shared = turns{make(chan struct{}, o.ConcurrentQuery), e.newPromQL(logger, e.registry, o.MaxSamples/o.ConcurrentQuery), o.MaxSamples / o.ConcurrentQuery}
	e.alone = turns{make(chan struct{}, 1), e.newPromQL(logger, nil, o.MaxSamples), o.MaxSamples}
	e.measure()
	e.inUse.Go(e.watchSize)
	return e, nil
}

func (e *Engine) newPromQL(logger *slog.Logger, registry prometheus.Registerer, samples int) *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		Logger: logger, Reg: registry, Parser: e.parser,
		MaxSamples: samples, Timeout: e.options.QueryTimeout, LookbackDelta: e.options.Lookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
		EnableAtModifier:         true, EnableNegativeOffset: true,
	})
}

// prepare makes the directory and finds out whether it can be written, which
// the TSDB would report with errors of its own.
func prepare(directory string) error {
	if err := os.MkdirAll(directory, 0o750); err != nil {
		return explain(directory, err)
	}
	probe, err := os.CreateTemp(directory, "probe-*.tmp-for-creation")
	if err != nil {
		return explain(directory, err)
	}
	name := probe.Name()
	_, err = probe.WriteString("probe\n")
	return errors.Join(explain(directory, errors.Join(err, probe.Close())), os.Remove(name))
}

// explain returns what to do about an error of the directory.
func explain(directory string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EAGAIN):
		return fmt.Errorf("directory %s is in use by another process; every process needs a directory of its own, and the old one must have ended: %w", directory, err)
	case diskfault.Cause(err) != store.WriteFailed:
		return diskfault.Explain(directory, err)
	default:
		return fmt.Errorf("directory %s cannot be opened as a metric store; if its files are damaged, move it away and a new one is made: %w", directory, err)
	}
}

// blockDuration is how much time a block holds: Prometheus' two hours, or less
// for a short retention, which is kept in whole blocks.
func blockDuration(retention time.Duration) time.Duration {
	for _, d := range []time.Duration{15 * time.Minute, 30 * time.Minute, time.Hour} {
		if retention < 12*d {
			return d
		}
	}
	return 2 * time.Hour
}

// walSegment is the size of the files of the write-ahead log: small enough that
// max_bytes means something.
func walSegment(maxBytes int64) int {
	const page = 32 << 10
	size := min(maxBytes/16, 128<<20)
	return int(max(size/page*page, 32*page))
}

// Close waits until queries have ended, which it cancels, and closes the TSDB.
// The directory is free when it returns.
func (e *Engine) Close() error {
	if !e.close() {
		return nil
	}
	return errors.Join(e.db.Close(), e.shared.engine.Close(), e.alone.engine.Close())
}

// Health returns the last failed write.
func (e *Engine) Health(context.Context) error {
	done, err := e.use()
	if err != nil {
		return err
	}
	defer done()
	if err := e.writeFailed.Load(); err != nil {
		return &store.Error{Kind: store.Internal, Err: *err}
	}
	if !e.hasRoom() {
		return store.Errorf(store.Internal, "the disk of directory %s has less than %d bytes free, so the store takes nothing; make room, or set max_bytes to less", e.options.Directory, e.reserve())
	}
	if e.full.Load() {
		return store.Errorf(store.Internal, "the store has reached max_bytes (%d) and takes nothing until it can delete a block; raise max_bytes or send less", e.options.MaxBytes)
	}
	return nil
}

// Info returns what the engine refuses.
func (e *Engine) Info() store.Info {
	o := e.options
	info := store.Info{
		Engine: "embedded", Retention: o.Retention, Lookback: o.Lookback, QueryTimeout: o.QueryTimeout,
		MaxSamples: o.MaxSamples, MaxPoints: maxPoints, MaxConcurrentQueries: o.ConcurrentQuery,
		MaxSeries: o.MaxSeries,
	}
	if done, err := e.use(); err == nil {
		newest := e.db.Head().MaxTime()
		for _, b := range e.db.Blocks() {
			newest = max(newest, b.MaxTime()-1)
		}
		if newest != math.MinInt64 {
			info.NewestSample = model.Time(newest).Time().UTC()
		}
		done()
	}
	return info
}

// Stats are the engine's sizes.
type Stats struct {
	Series int64 // series in memory
	Bytes  int64 // of all files, up to ten seconds ago
}

// Stats returns the engine's sizes.
func (e *Engine) Stats() Stats {
	return Stats{Series: e.series.now.Load(), Bytes: e.bytes.Load()}
}

// repaired returns how many damages Open found in the write-ahead log.
func (e *Engine) repaired() int {
	families, err := e.registry.Gather()
	if err != nil {
		return 0
	}
	n := 0.0
	for _, f := range families {
		if name := f.GetName(); name == "prometheus_tsdb_wal_corruptions_total" || name == "prometheus_tsdb_mmap_chunk_corruptions_total" {
			for _, m := range f.GetMetric() {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return int(n)
}

// seriesReserve is what a series in memory may still write without being asked:
// the chunk that is being filled.
const seriesReserve = 256

// reserve is what has to be free on the disk. The TSDB writes chunks from memory
// when it wants to, and ends the process if it cannot: so nothing is taken long
// before the disk is full.
func (e *Engine) reserve() int64 {
	return e.options.Reserve + seriesReserve*e.series.now.Load()
}

// hasRoom looks at the disk. Once it was short, an eighth more has to be free
// until the store goes on, so that one fault is not many.
func (e *Engine) hasRoom() bool {
	free, known := e.options.Free(e.options.Directory)
	short := known && free < e.Needed()
	e.short.Store(short)
	return !short
}

// Needed is how many bytes have to be free on the disk.
func (e *Engine) Needed() int64 {
	needed := e.reserve()
	if e.short.Load() {
		needed += needed / 8
	}
	return needed
}

// watchSize measures the files until Close.
func (e *Engine) watchSize() {
	ticker := time.NewTicker(sizeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-e.ended.Done():
			return
		case <-ticker.C:
			e.measure()
		}
	}
}

// measure adds up the files. The TSDB deletes the oldest blocks at max_bytes,
// but never what is not in a block yet; if that alone is as much, nothing more
// is taken.
func (e *Engine) measure() {
	head := e.db.Head().Size()
	total := head
	for _, b := range e.db.Blocks() {
		total += b.Size()
	}
	e.bytes.Store(total)
	e.full.Store(head >= e.options.MaxBytes)
}
