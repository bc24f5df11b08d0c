// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

const (
	// settleTime is how long the folder has to be quiet before it is read, so
	// that a file is not read while somebody writes it.
	settleTime = 500 * time.Millisecond
	// pollTime is how often the folder is read without notice of a change:
	// some file systems give none.
	pollTime = 30 * time.Second
)

// receiversWatch keeps an exporter's receivers equal to those in its
// configuration and its folder. A nil one has no folder and does nothing.
type receiversWatch struct {
	dir       *receiversDir
	fixed     []*target // those of the configuration
	apply     func(context.Context, []*target)
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger
	settle    time.Duration
	poll      time.Duration

	talk    *rate.Limiter     // of log lines: whoever writes the folder must not fill the log
	applied []string          // fingerprints of the receivers in force
	missing bool              // the folder could not be read
	again   bool              // the first look found a file changing
	notify  *fsnotify.Watcher // nil where the system gives none
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// newReceiversWatch watches nothing before its start.
func newReceiversWatch(path string, fixed []*target, g *guard, telemetry *metadata.TelemetryBuilder, logger *zap.Logger) *receiversWatch {
	taken := make(map[string]bool, len(fixed))
	for _, t := range fixed {
		taken[t.name] = true
	}
	return &receiversWatch{
		dir:       newReceiversDir(path, taken, g),
		fixed:     fixed,
		telemetry: telemetry,
		logger:    logger,
		settle:    settleTime,
		poll:      pollTime,
		talk:      rate.NewLimiter(rate.Every(time.Second), 100),
	}
}

// load applies what the folder holds, and begins to notice changes. It is an
// error if the folder cannot be read now.
func (w *receiversWatch) load(ctx context.Context, apply func(context.Context, []*target)) error {
	if w == nil {
		return nil
	}
	w.apply = apply
	// Before the folder is read: nothing that changes in between is missed.
	var err error
	if w.notify, err = fsnotify.NewWatcher(); err != nil {
		w.logger.Warn("The folder of receivers cannot be watched; it is read from time to time.", zap.Duration("interval", w.poll), zap.Error(err))
	}
	w.attach()
	s, err := w.dir.scan()
	if err != nil {
		return fmt.Errorf("receivers_dir: the folder cannot be read: %w; mount it, correct the path, or remove the key", err)
	}
	w.take(ctx, s)
	if len(w.applied) == 0 {
		w.logger.Warn("There is no receiver yet: none is configured, and the folder of receivers gives none.")
	}
	w.again = s.again
	w.dir.settle = w.settle
	return nil
}

// follow goes on applying what changes until shutdown.
func (w *receiversWatch) follow() {
	if w == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.done.Go(func() { w.run(ctx) })
}

// shutdown ends the watching. After it, apply is not called any more.
func (w *receiversWatch) shutdown() {
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
func (w *receiversWatch) attach() {
	if w.notify != nil {
		_ = w.notify.Add(w.dir.path) // what it misses, the poll finds
	}
}

func (w *receiversWatch) run(ctx context.Context) {
	var changes <-chan fsnotify.Event
	var faults <-chan error
	if w.notify != nil {
		changes, faults = w.notify.Events, w.notify.Errors
	}
	poll := time.NewTicker(w.poll)
	defer poll.Stop()
	quiet := time.NewTimer(w.settle)
	defer quiet.Stop()
	if !w.again {
		quiet.Stop()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
			quiet.Reset(w.settle)
			continue
		case <-faults: // more changes than it could tell
			quiet.Reset(w.settle)
			continue
		case <-quiet.C:
		case <-poll.C:
		}
		w.attach()
		if w.refresh(ctx) {
			quiet.Reset(w.settle)
		}
	}
}

// refresh reads the folder and reports whether to do so again soon.
func (w *receiversWatch) refresh(ctx context.Context) (again bool) {
	s, err := w.dir.scan()
	if err != nil {
		if !w.missing {
			w.missing = true
			w.skipped(ctx, skipMissingFolder)
			w.logger.Error("The folder of receivers cannot be read; the last known receivers stay in force.", zap.String("key", "receivers_dir"), zap.Error(cause(err)))
		}
		return false
	}
	if w.missing {
		w.missing = false
		w.logger.Info("The folder of receivers can be read again.", zap.String("key", "receivers_dir"))
	}
	w.take(ctx, s)
	return s.again
}

// cause is the error without the path, which the key tells.
func cause(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// take tells what is new about the folder and applies its receivers, if they
// are others than before.
func (w *receiversWatch) take(ctx context.Context, s scan) {
	for _, f := range s.findings {
		w.tell(ctx, f)
	}
	targets := slices.Concat(w.fixed, s.targets)
	prints := make([]string, len(targets))
	for i, t := range targets {
		prints[i] = t.name + "\x00" + t.fingerprint
	}
	if w.applied != nil && slices.Equal(prints, w.applied) {
		return
	}
	w.applied = prints
	w.apply(ctx, targets)
	w.logger.Info("The receivers in force are those of the configuration and of the folder.", zap.Int("configured", len(w.fixed)), zap.Int("in_folder", len(s.targets)))
}

func (w *receiversWatch) tell(ctx context.Context, f finding) {
	if f.reason != skipNone {
		w.skipped(ctx, f.reason)
	}
	if !w.talk.Allow() {
		return
	}
	fields := []zap.Field{zap.String("file", safetext.Strip(f.name, eventrecord.MaxName)), zap.String("cause", f.text)}
	switch {
	case f.reason == skipNone:
		w.logger.Warn("A file in the folder of receivers is used in part.", fields...)
	case f.kept:
		w.logger.Warn("A file in the folder of receivers cannot be used; its receiver stays as it was until the file can be used or is removed.", append(fields, zap.String("reason", string(f.reason)))...)
	default:
		w.logger.Warn("A file in the folder of receivers is skipped.", append(fields, zap.String("reason", string(f.reason)))...)
	}
}

func (w *receiversWatch) skipped(ctx context.Context, reason skipReason) {
	w.telemetry.ExporterWebhookReceiverFilesSkipped.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", string(reason))))
}
