// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package folder // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/folder"

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/egress"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/pathless"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

const (
	// settleTime is how long the folder has to be quiet before it is read, so
	// that a file is not read while it is being written.
	settleTime = 500 * time.Millisecond
	// pollTime is how often the folder is read without notice of a change:
	// some file systems give none.
	pollTime = 30 * time.Second
)

// Watch keeps an exporter's receivers equal to those in its
// configuration and its folder. A nil one has no folder and does nothing.
type Watch struct {
	dir       *Dir
	fixed     []*endpoint.Endpoint // those of the configuration
	apply     func(context.Context, []*endpoint.Endpoint)
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger
	Settle    time.Duration
	Poll      time.Duration

	talk    *rate.Limiter     // of log lines: a writer of the folder must not fill the log
	applied []string          // fingerprints of the receivers in force
	missing bool              // the folder could not be read
	again   bool              // the first look found a file changing
	notify  *fsnotify.Watcher // nil where the system gives none
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// NewWatch watches nothing before its start.
func NewWatch(path string, fixed []*endpoint.Endpoint, g *egress.Guard, defaults endpoint.Defaults, telemetry *metadata.TelemetryBuilder, logger *zap.Logger) *Watch {
	taken := make(map[string]bool, len(fixed))
	for _, t := range fixed {
		taken[t.Name] = true
	}
	return &Watch{
		dir:       NewDir(path, taken, g, defaults),
		fixed:     fixed,
		telemetry: telemetry,
		logger:    logger,
		Settle:    settleTime,
		Poll:      pollTime,
		talk:      rate.NewLimiter(rate.Every(time.Second), 100),
	}
}

// Load applies what the folder holds, and begins to notice changes. It is an
// error if the folder cannot be read now.
func (w *Watch) Load(ctx context.Context, apply func(context.Context, []*endpoint.Endpoint)) error {
	if w == nil {
		return nil
	}
	w.apply = apply
	// Before the folder is read: nothing that changes in between is missed.
	var err error
	if w.notify, err = fsnotify.NewWatcher(); err != nil {
		w.logger.Warn("the folder of receivers cannot be watched; it is polled instead", zap.Duration("interval", w.Poll), zap.Error(err))
	}
	w.attach()
	s, err := w.dir.Scan()
	if err != nil {
		return fmt.Errorf("receivers_dir: the folder cannot be read: %w; mount it, correct the path, or remove the key", err)
	}
	w.take(ctx, s)
	if len(w.applied) == 0 {
		w.logger.Warn("there is no receiver yet: none is configured, and the folder of receivers has none")
	}
	w.again = s.again
	w.dir.settle = w.Settle
	return nil
}

// Follow goes on applying what changes until shutdown.
func (w *Watch) Follow() {
	if w == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.done.Go(func() { w.run(ctx) })
}

// Shutdown ends the watching. After it, apply is not called any more.
func (w *Watch) Shutdown() {
	if w == nil {
		return
	}
	if w.stop != nil {
		w.stop()
		w.done.Wait()
	}
	if w.notify != nil {
		_ = w.notify.Close()
	}
}

// attach asks for notice of changes. A folder that went and came back is
// another one, so this is done again and again; it costs nothing where it is
// watched already.
func (w *Watch) attach() {
	if w.notify != nil {
		_ = w.notify.Add(w.dir.path) // what it misses, the poll finds
	}
}

func (w *Watch) run(ctx context.Context) {
	var changes <-chan fsnotify.Event
	var faults <-chan error
	if w.notify != nil {
		changes, faults = w.notify.Events, w.notify.Errors
	}
	poll := time.NewTicker(w.Poll)
	defer poll.Stop()
	quiet := time.NewTimer(w.Settle)
	defer quiet.Stop()
	if !w.again {
		quiet.Stop()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
			quiet.Reset(w.Settle)
			continue
		case <-faults: // more changes than it could report
			quiet.Reset(w.Settle)
			continue
		case <-quiet.C:
		case <-poll.C:
		}
		w.attach()
		if w.refresh(ctx) {
			quiet.Reset(w.Settle)
		}
	}
}

// refresh reads the folder and reports whether to do so again soon.
func (w *Watch) refresh(ctx context.Context) (again bool) {
	s, err := w.dir.Scan()
	if err != nil {
		if !w.missing {
			w.missing = true
			w.skipped(ctx, skipMissingFolder)
			w.logger.Error("the folder of receivers cannot be read; the last known receivers are kept", zap.String("key", "receivers_dir"), zap.Error(pathless.Cause(err)))
		}
		return false
	}
	if w.missing {
		w.missing = false
		w.logger.Info("the folder of receivers can be read again", zap.String("key", "receivers_dir"))
	}
	w.take(ctx, s)
	return s.again
}

// take reports what is new about the folder and applies its receivers, if they
// are others than before.
func (w *Watch) take(ctx context.Context, s scan) {
	for _, f := range s.Findings {
		w.log(ctx, f)
	}
	targets := slices.Concat(w.fixed, s.Targets)
	prints := make([]string, len(targets))
	for i, t := range targets {
		prints[i] = t.Name + "\x00" + t.Fingerprint
	}
	if w.applied != nil && slices.Equal(prints, w.applied) {
		return
	}
	w.applied = prints
	w.apply(ctx, targets)
	w.logger.Info("receivers read from the configuration and the folder", zap.Int("configured", len(w.fixed)), zap.Int("in_folder", len(s.Targets)))
}

func (w *Watch) log(ctx context.Context, f finding) {
	if f.Reason != SkipNone {
		w.skipped(ctx, f.Reason)
	}
	if !w.talk.Allow() {
		return
	}
	fields := []zap.Field{zap.String("file", safetext.Strip(f.Name, eventrecord.MaxName)), zap.String("cause", f.Text)}
	switch {
	case f.Reason == SkipNone:
		w.logger.Warn("a file in the folder of receivers is used in part", fields...)
	case f.kept:
		w.logger.Warn("a file in the folder of receivers cannot be used; its receiver stays as it was until the file can be used or is removed", append(fields, zap.String("reason", string(f.Reason)))...)
	default:
		w.logger.Warn("a file in the folder of receivers is skipped", append(fields, zap.String("reason", string(f.Reason)))...)
	}
}

func (w *Watch) skipped(ctx context.Context, reason skipReason) {
	w.telemetry.ExporterWebhookReceiverFilesSkipped.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", string(reason))))
}
