// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An hour of one GPU of two.
func TestAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.boot(priced)
		b.run(time.Hour, chat, free)
		require.NoError(t, b.stop())
		until := (time.Hour - 30*time.Second).Seconds() // nothing is credited ahead: the last snapshot is not complete
		assert.InDelta(t, until, w.sum("gpu.usage.held", "service.name=chat", "gpu.tenant=ml", "hw.model=H100", "k8s.cluster.name=c"), 0)
		assert.InDelta(t, until/2, w.sum("gpu.usage.used"), 0.1)
		assert.InDelta(t, until/3600*2.95, w.sum("gpu.usage.cost", "gpu.cost.currency=USD"), 1e-6)
		assert.InDelta(t, until, w.sum("gpu.capacity.time", "gpu.capacity.state=free"), 0)
		assert.InDelta(t, 2*until, w.sum("gpu.capacity.time"), 0)
		assert.InDelta(t, 300*until, w.sum("gpu.usage.energy", "gpu.energy.basis=board"), 1)
		assert.InDelta(t, 2.95, w.sum("gpu.price", "hw.model=H100"), 0)
		var ms int64
		for _, row := range w.hours {
			assert.True(t, row.Open)
			ms += row.Time
		}
		assert.InDelta(t, 2*until*1000, ms, 0)
	})
}
