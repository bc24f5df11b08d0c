// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"
)

// fail notes that records cannot be written now.
func (l *Log) fail(err error) {
	l.mu.Lock()
	l.fails(err)
	l.mu.Unlock()
	l.warn("cannot write audit records; they are kept in memory, up to a bound, and written once that is possible", err)
	l.status()
}

// fails sends those away who wait for the writer. The caller holds l.mu.
func (l *Log) fails(err error) {
	l.stats.Failures++
	if l.failing == nil {
		close(l.broken)
	}
	l.failing = err
}

// recovers ends what fails began, and reports whether there was anything to end.
// The caller holds l.mu.
func (l *Log) recovers() bool {
	if l.failing == nil {
		return false
	}
	l.failing, l.broken = nil, make(chan struct{})
	return true
}

// well notes that everything is written.
func (l *Log) well() {
	l.mu.Lock()
	recovered := l.recovers()
	l.mu.Unlock()
	if recovered {
		l.status()
	}
}

// stalled notes that the file did not take an entry in time.
func (l *Log) stalled(e *entry) {
	err := fmt.Errorf("the audit file did not answer for %v", l.o.writeWait)
	l.mu.Lock()
	select {
	case <-e.done: // it did, at the last moment
		l.mu.Unlock()
		return
	default:
	}
	first := l.failing == nil
	if first {
		l.fails(err)
	}
	l.mu.Unlock()
	if first {
		l.warn("cannot write audit records; they are kept in memory, up to a bound, and written once that is possible", err)
		l.status()
	}
}

// neglect notes that records are written, but that something else with the file
// failed; nil ends that.
func (l *Log) neglect(what string, err error) {
	l.mu.Lock()
	_, was := l.upkeep[what]
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
		l.stats.Failures++
		l.upkeep[what] = err
	} else {
		delete(l.upkeep, what)
	}
	l.mu.Unlock()
	if err != nil {
		l.warn("cannot keep the audit file as configured; records are written all the same", err)
	}
	if was != (err != nil) {
		l.status()
	}
}

// warn logs a failure, each cause that lasts once in logonce.Every.
func (l *Log) warn(message string, err error) {
	if l.logged.Due(message+err.Error(), l.o.Now()) {
		stats := l.Stats()
		l.o.Logger.Error(message, zap.Error(err), zap.String("path", l.o.Path),
			zap.Int64("buffered", stats.Buffered), zap.Int64("lost", stats.Lost))
	}
}

// status reports a change to OnStatus. The last call reports the state as it is then,
// so that calls which overlap cannot leave a wrong one.
func (l *Log) status() {
	l.statusMu.Lock()
	defer l.statusMu.Unlock()
	l.mu.Lock()
	err := l.failing
	for _, what := range slices.Sorted(maps.Keys(l.upkeep)) {
		err = errors.Join(err, l.upkeep[what])
	}
	l.mu.Unlock()
	if (err == nil) == (l.reported == nil) {
		return
	}
	l.reported = err
	l.o.OnStatus(err)
	if err == nil {
		l.logged.Forget()
		l.o.Logger.Info("the audit file is written again as configured", zap.String("path", l.o.Path))
	}
}
