// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package unsampled writes lines to the Collector's log that its sampling must
// not drop.
package unsampled // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/unsampled"

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Logger is the logger without sampling. A sampler decides when it is asked
// whether to write; what is handed to it to be written it passes on.
func Logger(l *zap.Logger) *zap.Logger {
	return l.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return core{c} }))
}

type core struct{ zapcore.Core }

func (c core) With(fields []zapcore.Field) zapcore.Core { return core{c.Core.With(fields)} }

func (c core) Check(entry zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return ce.AddCore(entry, c.Core)
	}
	return ce
}
