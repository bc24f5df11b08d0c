// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package reloadonchangeextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/reloadonchangeextension"

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/extension/reloadonchangeextension/internal/metadata"
)

// settled is for how long changed files must stay the same before the configuration is
// reloaded: a program may be writing them.
const settled = 5 * time.Second

// watcher compares files with what they were at the start. The reload that it asks
// for ends it; the next one begins with what the files are then.
type watcher struct {
	config    Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	reload    func() error
	stop      chan struct{}
	done      chan struct{}

	mu    sync.Mutex
	files []tlsFiles // that components read when they start
}

var _ extensioncapabilities.ConfigWatcher = (*watcher)(nil)

// NotifyConfig takes the configuration of the Collector.
func (w *watcher) NotifyConfig(_ context.Context, conf *confmap.Conf) error {
	files := slices.DeleteFunc(tlsOf(conf.ToStringMap()), func(f tlsFiles) bool { return f.check() != nil })
	w.mu.Lock()
	w.files = files
	w.mu.Unlock()
	return nil
}

// Start begins to look at the files.
func (w *watcher) Start(context.Context, component.Host) error {
	first, err := w.contents()
	if err != nil {
		return err
	}
	w.stop, w.done = make(chan struct{}), make(chan struct{})
	go w.run(first)
	return nil
}

// Shutdown ends it.
func (w *watcher) Shutdown(context.Context) error {
	if w.stop != nil { // it was started
		close(w.stop)
		<-w.done
	}
	w.telemetry.Shutdown()
	return nil
}

func (w *watcher) run(first []content) {
	defer close(w.done)
	timer := time.NewTimer(w.config.Interval)
	defer timer.Stop()
	var last []content
	logged := ""
	for {
		select {
		case <-w.stop:
			return
		case <-timer.C:
		}
		timer.Reset(w.config.Interval)
		now, err := w.contents()
		changed := -1
		if err == nil {
			changed = w.changed(first, now)
		}
		switch {
		case err == nil && changed < 0:
			logged = ""
		case err == nil && !slices.Equal(now, last):
			timer.Reset(min(settled, w.config.Interval))
		default:
			if err == nil {
				err = w.usable(first, now)
			}
			if err == nil {
				w.ask(w.config.Files[changed])
				return // once: what follows is a new life, or nothing helps
			}
			w.telemetry.ReloadOnChangeRefusals.Add(context.Background(), 1)
			if err.Error() != logged {
				logged = err.Error()
				w.logger.Warn("the configuration is not reloaded until all files are there and fit together; the Collector goes on with what it has", zap.Error(err))
			}
		}
		last = now
	}
}

// ask asks for a reload because a file has changed.
func (w *watcher) ask(file string) {
	w.logger.Info("a file has changed, reloading the configuration", zap.String("file", file))
	if err := w.reload(); err != nil {
		w.logger.Error("the configuration cannot be reloaded; restart the Collector", zap.String("file", file), zap.Error(err))
	}
}

// changed is the number of the first file that is another one, -1 if none is.
func (w *watcher) changed(first, now []content) int {
	for i := range first {
		if first[i] != now[i] {
			return i
		}
	}
	return -1
}

// usable returns why components could not start with the files as they are now: a Collector
// that reloads its configuration then ends.
func (w *watcher) usable(first, now []content) error {
	var errs []error
	for i, file := range w.config.Files {
		if first[i].size > 0 && now[i].size == 0 {
			errs = append(errs, fmt.Errorf("%s is gone or empty", file))
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.files {
		if err := f.check(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// content identifies what a file contains. That of a file that does not exist is the zero
// value.
type content struct {
	size int64
	sum  [sha256.Size]byte
}

// maxBytes is what is read of a file: a bundle of authorities has some 200 KB.
const maxBytes = 16 << 20

func (w *watcher) contents() ([]content, error) {
	all := make([]content, len(w.config.Files))
	for i, file := range w.config.Files {
		var err error
		if all[i], err = contentOf(file); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func contentOf(file string) (content, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return content{}, nil
	}
	if err != nil {
		return content{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, maxBytes))
	if err != nil {
		return content{}, err
	}
	return content{n, [sha256.Size]byte(h.Sum(nil))}, nil
}
