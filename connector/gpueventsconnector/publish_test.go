// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// ward takes the health of boards, or refuses it with err, or hangs.
type ward struct {
	consumertest.MetricsSink
	mu    sync.Mutex
	err   error
	calls int
	hang  chan struct{}
}

func (w *ward) refuse(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

func (w *ward) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	if w.hang != nil {
		select {
		case <-w.hang:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	if w.err != nil {
		return w.err
	}
	return w.MetricsSink.ConsumeMetrics(ctx, md)
}

// taken are the series that were taken since the last call.
func (w *ward) taken() []string {
	defer w.Reset()
	return seriesOf(w.AllMetrics())
}

// seriesOf are the series in metrics, as "metric reason state value": a state that is not
// the present one is left out, and of an end the value is "ends".
func seriesOf(metrics []pmetric.Metrics) (all []string) {
	for _, md := range metrics {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				dps, _ := points.Numbers(m)
				for _, dp := range dps.All() {
					value := fmt.Sprint(points.Value(dp))
					if dp.Flags().NoRecordedValue() {
						value = "ends"
					} else if value == "0" {
						continue
					}
					attrs := dp.Attributes().AsRaw()
					all = append(all, strings.TrimSpace(fmt.Sprintln(m.Name(), attrs[names.GPUHealthReason.Name], attrs[names.HwState], value)))
				}
			}
		}
	}
	return all
}

// of are the series of one metric.
func of(metric *names.Metric, all []string) (some []string) {
	for _, s := range all {
		if name, rest, _ := strings.Cut(s, " "); name == metric.Name {
			some = append(some, strings.ReplaceAll(rest, "<nil> ", ""))
		}
	}
	return some
}

// remapFailed is a page with one board, the row remapping of which failed or did not.
func remapFailed(failed float64) pmetric.Metrics {
	return scrape(page{at: time.Now(), node: "n1", gpus: []gpu{{id: gpuA, values: map[*names.Metric]float64{&names.GPURowRemapFailure: failed}}}})
}

// What is refused is published when the pipeline takes it again: of a board the newest
// state alone, and every end of a series.
func TestRefusedHealthIsPublishedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &ward{}
		b := startInto(t, componenttest.NewNopHost(), w, deviceSet, withHealth)
		defer b.stop()
		b.feed(remapFailed(1))
		b.wait(15 * time.Second)
		all := w.taken()
		require.Equal(t, []string{"failed 1"}, of(&names.HwStatus, all))
		require.Equal(t, []string{"remap_failed failed 1"}, of(&names.GPUHealthReason, all))

		w.refuse(errors.New("full"))
		b.feed(remapFailed(0))
		b.wait(15 * time.Second)
		require.Empty(t, w.taken())
		require.Greater(t, w.calls, 2, "it is tried again")
		w.refuse(nil)
		b.wait(15 * time.Second)
		all = w.taken()
		assert.Equal(t, []string{"ok 1"}, of(&names.HwStatus, all))
		assert.Equal(t, []string{"remap_failed failed ends"}, of(&names.GPUHealthReason, all))
		assert.Len(t, b.logs.FilterMessageSnippet("refused the health of GPUs").All(), 1)
		b.wait(5 * time.Second)
		assert.Empty(t, w.taken(), "once")
	})
}

// A refusal for good drops the state, which the next page brings again, and costs an end
// one more attempt.
func TestHealthThatIsRefusedForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &ward{}
		b := startInto(t, componenttest.NewNopHost(), w, deviceSet, withHealth)
		defer b.stop()
		b.feed(remapFailed(1))
		b.wait(15 * time.Second)
		w.refuse(consumererror.NewPermanent(errors.New("no such thing")))
		b.feed(remapFailed(0))
		w.calls = 0
		b.wait(20 * time.Second)
		assert.Equal(t, 2, w.calls, "the second one has the ends alone")
		w.refuse(nil)
		w.taken()
		b.feed(remapFailed(0))
		b.wait(5 * time.Second)
		all := w.taken()
		assert.Equal(t, []string{"ok 1"}, of(&names.HwStatus, all))
		assert.Empty(t, of(&names.GPUHealthReason, all))
	})
}

// A pipeline of metrics that hangs delays neither an event nor, for long, the stop.
func TestEventsDoNotWaitForHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &ward{hang: make(chan struct{})}
		b := startInto(t, componenttest.NewNopHost(), w, deviceSet, withHealth)
		b.feed(remapFailed(0))
		b.wait(15 * time.Second)
		b.feed(remapFailed(1))
		assert.Equal(t, []string{"raised: failed [remap_failed] rma"}, healthEvents(b.wait(2*time.Second)))
		began := time.Now()
		require.NoError(t, b.c.Shutdown(t.Context()))
		assert.LessOrEqual(t, time.Since(began), drainTime+2*time.Second)
		require.NoError(t, b.tel.Shutdown(context.WithoutCancel(t.Context())))
	})
}

// A stop ends no series: a restart is no gap.
func TestAStopEndsNoSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &ward{}
		b := startInto(t, componenttest.NewNopHost(), w, deviceSet, withHealth)
		b.feed(remapFailed(1))
		b.stop()
		all := w.taken()
		assert.Equal(t, []string{"failed 1"}, of(&names.HwStatus, all), "what had not been published is")
		assert.NotContains(t, strings.Join(all, "\n"), "ends")
	})
}

// A reason that is over when a collector is back ends with its first page: nothing else
// knows of the series that were there before it was killed.
func TestAReasonThatEndsWhileNothingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := &ward{}, newDisk()
		run := func() *bench { return startInto(t, host{diskID: d}, w, deviceSet, withHealth, onDisk) }
		b := run()
		b.feed(remapFailed(1))
		b.wait(15 * time.Second)
		t.Cleanup(b.stop)
		killed := maps.Clone(d.values)
		w.taken()

		d = &disk{values: killed}
		b = run()
		defer b.stop()
		b.wait(5 * time.Second)
		assert.Empty(t, w.taken(), "a restart is no gap")
		b.feed(remapFailed(0))
		b.wait(15 * time.Second)
		all := w.taken()
		assert.Equal(t, []string{"ok 1"}, of(&names.HwStatus, all))
		assert.Equal(t, []string{"remap_failed failed ends"}, of(&names.GPUHealthReason, all))
	})
}
