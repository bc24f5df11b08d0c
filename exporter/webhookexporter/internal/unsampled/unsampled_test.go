// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package unsampled

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// A thousand equal lines are a thousand lines; the level still counts.
func TestNothingIsSampled(t *testing.T) {
	inner, logs := observer.New(zap.InfoLevel)
	sampled := zap.New(zapcore.NewSamplerWithOptions(inner, time.Hour, 1, 0))
	l := Logger(sampled).With(zap.String("receiver", "ops"))
	for range 1000 {
		l.Info("audit_type=webhook_dispatch_succeeded")
		l.Debug("not at this level")
		sampled.Info("something else")
	}
	assert.Equal(t, 1000, logs.FilterField(zap.String("receiver", "ops")).Len())
	assert.Equal(t, 1001, logs.Len())
}
