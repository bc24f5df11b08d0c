// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package reloadonchangeextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/reloadonchangeextension"

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"
)

// watcher compares files with what they were at the start. The reload that it asks
// for ends it; the next one begins with what the files are then.
type watcher struct {
	config Config
	logger *zap.Logger
	reload func() error
	stop   chan struct{}
	done   chan struct{}
}

// Start begins to look at the files.
func (w *watcher) Start(context.Context, component.Host) error {
	first := make([][sha256.Size]byte, len(w.config.Files))
	for i, file := range w.config.Files {
		sum, err := sumOf(file)
		if err != nil {
			return err
		}
		first[i] = sum
	}
	w.stop, w.done = make(chan struct{}), make(chan struct{})
	go w.run(first)
	return nil
}

// Shutdown ends it.
func (w *watcher) Shutdown(context.Context) error {
	if w.stop == nil {
		return nil // it was never started
	}
	close(w.stop)
	<-w.done
	return nil
}

func (w *watcher) run(first [][sha256.Size]byte) {
	defer close(w.done)
	ticker := time.NewTicker(w.config.Interval)
	defer ticker.Stop()
	unreadable := false
	for {
		select {
		case <-w.stop:
			return
		case <-ticker.C:
		}
		changed, err := w.changed(first)
		if err != nil {
			if !unreadable {
				w.logger.Warn("a file cannot be read; changes to it are not noticed until it can be", zap.Error(err))
			}
			unreadable = true
			continue
		}
		unreadable = false
		if changed == "" {
			continue
		}
		w.logger.Info("a file has changed, reloading the configuration", zap.String("file", changed))
		if err := w.reload(); err != nil {
			w.logger.Error("the configuration cannot be reloaded; restart the Collector", zap.String("file", changed), zap.Error(err))
		}
		return // once: what follows is a new life, or nothing helps
	}
}

// changed is the first file that is another one, "" if none is.
func (w *watcher) changed(first [][sha256.Size]byte) (string, error) {
	for i, file := range w.config.Files {
		sum, err := sumOf(file)
		if err != nil {
			return "", err
		}
		if sum != first[i] {
			return file, nil
		}
	}
	return "", nil
}

// maxBytes is what is read of a file: a bundle of authorities has some 200 KB.
const maxBytes = 16 << 20

func sumOf(file string) (sum [sha256.Size]byte, err error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return sum, nil
	}
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxBytes)); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}
