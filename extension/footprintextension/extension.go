// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package footprintextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/footprintextension"

import (
	"context"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"
)

// footprint gives memory back, first after a delay and then at intervals.
type footprint struct {
	config  Config
	logger  *zap.Logger
	release func() (int64, error) // of the binary's pages; bytes of them
	stop    chan struct{}
	done    chan struct{}
}

// Start begins to wait for the first time.
func (f *footprint) Start(context.Context, component.Host) error {
	f.stop, f.done = make(chan struct{}), make(chan struct{})
	go f.run()
	return nil
}

// Shutdown ends it.
func (f *footprint) Shutdown(context.Context) error {
	if f.stop == nil {
		return nil // it was never started
	}
	close(f.stop)
	<-f.done
	return nil
}

func (f *footprint) run() {
	defer close(f.done)
	timer := time.NewTimer(f.config.Delay)
	defer timer.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-timer.C:
		}
		debug.FreeOSMemory()
		bytes, err := f.release()
		if err != nil {
			// Not fatal; retrying would fail the same way.
			f.logger.Warn("cannot return pages of the binary; they stay resident", zap.Error(err))
			return
		}
		f.logger.Debug("returned memory", zap.Int64("binary_bytes", bytes))
		timer.Reset(f.config.Interval)
	}
}
