// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package embedded // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/embedded"

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunks"

	"github.com/otelcol-gpu/otelcol-gpu/internal/reserved"
)

// seriesLimit refuses new series when there are enough in memory. The TSDB reports
// it of every series.
type seriesLimit struct {
	max      int64
	now      atomic.Int64
	enforced atomic.Bool
	shared   shared
}

// enforce begins to refuse: what the TSDB reads back when it is opened is not
// to be refused.
func (l *seriesLimit) enforce() { l.enforced.Store(true) }

// PreCreation refuses a series above the limit.
func (l *seriesLimit) PreCreation(labels.Labels) error {
	if l.enforced.Load() && l.now.Load() >= l.max {
		return errSeriesLimit
	}
	return nil
}

// PostCreation counts a series.
func (l *seriesLimit) PostCreation(series labels.Labels) {
	l.now.Add(1)
	l.shared.created(series, !l.enforced.Load())
}

// PostDeletion counts series that went out of memory.
func (l *seriesLimit) PostDeletion(gone map[chunks.HeadSeriesRef]labels.Labels) {
	l.now.Add(-int64(len(gone)))
	l.shared.deleted(gone)
}

// shared are the series in memory that have a share of the limit, those of
// applications, so that there is always room for the others. Which series those are
// is not on the disk: what was read back when the TSDB was opened counts as theirs
// until a writer without a share continues it, where its name lets it be one.
type shared struct {
	mu     sync.Mutex
	series map[uint64]bool // by the hash of their labels; true: was read back, and no one continued it
	begun  map[uint64]int  // those that are being written, and may be created by that
	// readBack is how many of series are true: where there is none, a writer without
	// a share has nothing to look up.
	readBack atomic.Int64
}

// begin reports whether a writer with a share may write a series.
func (s *shared) begin(series labels.Labels, share int) bool {
	hash := series.Hash()
	s.mu.Lock()
	defer s.mu.Unlock()
	if readBack, known := s.series[hash]; known {
		if readBack {
			s.series[hash] = false
			s.readBack.Add(-1)
		}
	} else if s.begun[hash] == 0 && len(s.series)+len(s.begun) >= share {
		return false
	}
	if s.begun == nil {
		s.begun = map[uint64]int{}
	}
	s.begun[hash]++
	return true
}

// end notes that a series was written, or was refused for another reason.
func (s *shared) end(series labels.Labels) {
	hash := series.Hash()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun[hash]--; s.begun[hash] == 0 {
		delete(s.begun, hash)
	}
}

// own notes that a writer without a share writes a series.
func (s *shared) own(series labels.Labels) {
	if s.readBack.Load() == 0 || !shareable(series) {
		return
	}
	hash := series.Hash()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.series[hash] {
		delete(s.series, hash)
		s.readBack.Add(-1)
	}
}

// created notes a new series in memory.
func (s *shared) created(series labels.Labels, readBack bool) {
	if readBack && !shareable(series) {
		return
	}
	hash := series.Hash()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !readBack && s.begun[hash] == 0 {
		return
	}
	if s.series == nil {
		s.series = map[uint64]bool{}
	}
	if _, known := s.series[hash]; !known && readBack {
		s.readBack.Add(1)
	}
	s.series[hash] = readBack
}

func (s *shared) deleted(gone map[chunks.HeadSeriesRef]labels.Labels) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, series := range gone {
		hash := series.Hash()
		if s.series[hash] {
			s.readBack.Add(-1)
		}
		delete(s.series, hash)
	}
}

// shareable reports whether a writer with a share may have written a series.
func shareable(series labels.Labels) bool {
	return reserved.ForApplications(series.Get(model.MetricNameLabel))
}
