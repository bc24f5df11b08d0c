// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// A service that is gone for longer than a day has no series any more, and one that is back
// begins with 0 and a new start, which metricsSink checks; the capacity and the rows of hours
// keep what it had, over restarts.
func TestServicesThatComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.boot(priced)
		nightly, other := device{chat.id, "nightly"}, device{chat.id, "other"}
		began := time.Now()
		b.run(30*time.Minute, nightly, idle)
		for range 4 {
			b.run(7*time.Hour, other, idle)
			require.NoError(t, b.stop())
			b = w.boot(priced)
		}
		assert.Zero(t, w.sum(names.UsageHeld.Name, "service.name=nightly"))
		assert.InDelta(t, time.Since(began).Seconds(), w.sum(names.CapacityTime.Name, "gpu.capacity.state=held"), 60)
		b.run(30*time.Minute, nightly, idle)
		require.NoError(t, b.stop())
		assert.InDelta(t, 30*60, w.sum(names.UsageHeld.Name, "service.name=nightly"), 60)
		all := time.Since(began)
		assert.InDelta(t, all.Seconds(), w.sum(names.CapacityTime.Name, "gpu.capacity.state=held"), 60)
		assert.InDelta(t, w.sum(names.CapacityTime.Name), w.rows().Seconds(), 0)
		assert.InDelta(t, w.sum(names.CapacityTime.Name)/3600*2.95, w.sum(names.CapacityCost.Name), 1e-4)
		assert.InDelta(t, 30, w.sum(names.CapacityTime.Name, "gpu.capacity.state=unknown"), 0, "another owner after a restart")
	})
}
