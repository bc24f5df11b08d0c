// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package footprintextension

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// After the delay, then at each interval, and not after the end.
func TestGivesBackAtTheseTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var times []time.Duration
		f := &footprint{config: *createDefaultConfig().(*Config), logger: zap.NewNop(), release: func() (int64, error) {
			times = append(times, time.Since(begin))
			return 1, nil
		}}
		require.NoError(t, f.Start(t.Context(), nil))
		time.Sleep(11 * time.Minute)
		require.NoError(t, f.Shutdown(t.Context()))
		time.Sleep(time.Hour)
		assert.Equal(t, []time.Duration{30 * time.Second, 5*time.Minute + 30*time.Second, 10*time.Minute + 30*time.Second}, times)
	})
}

// What the system refuses is reported once and not tried again.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		tried := 0
		f := &footprint{config: *createDefaultConfig().(*Config), logger: zap.New(core), release: func() (int64, error) {
			tried++
			return 0, errors.New("no /proc")
		}}
		require.NoError(t, f.Start(t.Context(), nil))
		time.Sleep(time.Hour)
		require.NoError(t, f.Shutdown(t.Context()))
		assert.Equal(t, 1, tried)
		require.Equal(t, 1, logs.Len())
		assert.Equal(t, "no /proc", logs.All()[0].ContextMap()["error"])
	})
}
