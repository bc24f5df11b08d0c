// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// What is not judged yet at the shutdown is judged then, and reported.
func TestShutdownJudgesTheLastScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		b := d.boot(t, deviceSet)
		broken := one(gpu{values: map[*names.Metric]float64{&names.GPURowRemapFailure: 1}})
		require.Empty(t, b.feed(broken(time.Now())))
		b.stop()
		require.Len(t, b.sink.AllLogs(), 1)
		require.Equal(t, []string{"gpu.row_remap.failure raised"}, brief(read(b.sink.AllLogs()[0])))
		b = d.boot(t, deviceSet)
		defer b.stop()
		require.Empty(t, b.feed(broken(time.Now())))
		require.Empty(t, b.wait(interval), "and stored")
	})
}

// A next component that hangs delays no metrics, and the shutdown not for ever, with and
// without a deadline of its own. What it did not take is reported after the next start.
func TestANextComponentThatHangs(t *testing.T) {
	for name, tt := range map[string]struct {
		deadline, took time.Duration
		obeys          bool // it ends when its context does
	}{
		"a deadline":                       {time.Second, 2 * time.Second, false},
		"none":                             {24 * time.Hour, drainTime + time.Second, false},
		"none, and the call is broken off": {24 * time.Hour, drainTime, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDisk()
				b := d.boot(t)
				h := &hanging{release: make(chan struct{}), obeys: tt.obeys}
				b.c.next = h
				for i := range 9 {
					require.NoError(t, b.c.ConsumeMetrics(t.Context(), batch(evaluated{service: chat, at: i, partial: float64((i + 1) % 2)})))
				}
				time.Sleep(time.Minute)
				ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), tt.deadline)
				defer cancel()
				began := time.Now()
				require.ErrorContains(t, b.c.Shutdown(ctx), "did not take 9 events")
				require.Equal(t, tt.took, time.Since(began))
				close(h.release)
				synctest.Wait()
				require.NoError(t, b.tel.Shutdown(context.WithoutCancel(t.Context())))
				b = d.boot(t)
				defer b.stop()
				require.Equal(t, []string{"raised"}, states(b.feed(batch(evaluated{service: chat, at: 20, partial: 1}))))
			})
		})
	}
}

type hanging struct {
	refusing
	release chan struct{}
	obeys   bool
}

// Many exporters at once, as several receivers and OTLP streams send them.
func TestConcurrentScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(cfg *Config) { cfg.Rules = []RuleSet{RuleSetDevice, RuleSetService} })
		for range 5 {
			var wg sync.WaitGroup
			for n := range 8 {
				wg.Go(func() {
					node := fmt.Sprint("n", n)
					md := scrape(page{at: time.Now(), node: node, gpus: []gpu{{id: "GPU-" + node, values: map[*names.Metric]float64{&names.GPURowRemapFailure: 1}}}})
					if b.c.ConsumeMetrics(t.Context(), md) != nil {
						t.Error("a batch was refused")
					}
				})
			}
			wg.Wait()
			time.Sleep(interval)
		}
		require.Equal(t, 8, b.sink.LogRecordCount())
		require.Equal(t, 8, b.c.engine.Raised())
	})
}

// Once events are forwarded and stored, where there is a storage, nothing is left
// to do: else each batch wakes the goroutine that does it.
func TestIdleAfterEvents(t *testing.T) {
	for name, boot := range map[string]func(*testing.T) *bench{
		"nothing is stored": func(t *testing.T) *bench { return startOn(t, componenttest.NewNopHost()) },
		"storage":           func(t *testing.T) *bench { return newDisk().boot(t) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := boot(t)
				defer b.stop()
				require.Equal(t, []string{"raised"}, states(b.feed(batch(evaluated{service: chat, at: 10, partial: 1}))))
				synctest.Wait()
				b.c.mu.Lock()
				defer b.c.mu.Unlock()
				require.False(t, b.c.busy())
			})
		})
	}
}
