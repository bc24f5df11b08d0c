// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.uber.org/zap"
	zapobserver "go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/metadata"
)

var diskID = component.MustNewID("file_storage")

// disk is a storage extension with one value, which outlives a restart, and its client.
type disk struct {
	component.StartFunc
	component.ShutdownFunc
	mu    sync.Mutex
	value []byte
	err   error
	sets  int
}

// change is what happens to the disk while the processor uses it.
func (d *disk) change(what func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	what()
}

func (d *disk) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{diskID: d}
}

func (d *disk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}
func (d *disk) Get(context.Context, string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.value, d.err
}

func (d *disk) Set(_ context.Context, _ string, value []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sets++
	if d.err == nil {
		d.value = value
	}
	return d.err
}
func (*disk) Delete(context.Context, string) error               { return nil }
func (*disk) Batch(context.Context, ...*storage.Operation) error { return nil }
func (*disk) Close(context.Context) error                        { return nil }

func startWith(t *testing.T, d *disk, next *recorder, set processor.Settings) processor.Metrics {
	cfg := createDefaultConfig().(*Config)
	cfg.Storage = &diskID
	p, err := NewFactory().CreateMetrics(t.Context(), set, cfg, next)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), d))
	return p
}

// Half of a service is silent when the Collector is restarted: the partial state is
// neither taken back nor forgotten.
func TestSilentPodsAreKnownAfterARestart(t *testing.T) {
	for name, value := range map[string]string{"": "", "damaged": "{", "of another version": `{"version": 9}`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, next := &disk{}, &recorder{}
				set := processortest.NewNopSettings(metadata.Type)
				core, logs := zapobserver.New(zap.WarnLevel)
				set.Logger = zap.New(core)
				p := startWith(t, d, next, set)
				for i := range 24 { // six minutes
					pods := []string{"a", "b"}
					if i > 12 {
						pods = pods[:1]
					}
					require.NoError(t, p.ConsumeMetrics(t.Context(), utilBatch(pods...)))
					time.Sleep(15 * time.Second)
				}
				synctest.Wait()
				summaries := next.all()
				last := summaries[len(summaries)-1]
				flatten(t, last.md, last.at).has(t, map[string]float64{"partial": 1, "pods missing": 1})
				d.change(func() { require.Equal(t, 6, d.sets, "each minute") })
				require.NoError(t, p.Shutdown(t.Context()))

				if value != "" {
					d.change(func() { d.value = []byte(value) })
				}
				next = &recorder{}
				p = startWith(t, d, next, set)
				for range 20 {
					require.NoError(t, p.ConsumeMetrics(t.Context(), utilBatch("a")))
					time.Sleep(15 * time.Second)
				}
				synctest.Wait()
				summaries = next.all()
				for _, c := range summaries {
					if v, reported := flatten(t, c.md, c.at).values["shop/api gpu.service.partial"]; reported {
						require.Equal(t, 1., v)
					}
				}
				last = summaries[len(summaries)-1]
				if got := flatten(t, last.md, last.at); value == "" {
					got.has(t, map[string]float64{"partial": 1, "pods missing": 1})
				} else {
					got.lacks(t, "partial")
					require.Equal(t, 1, logs.FilterMessageSnippet("cannot be read").Len())
				}

				d.change(func() { d.err = errors.New("disk is full") })
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, 1, logs.FilterMessageSnippet("cannot be written").Len())
				require.ErrorContains(t, p.Shutdown(t.Context()), "disk is full")
			})
		})
	}
}

func TestStorageThatCannotBeReadStopsTheStart(t *testing.T) {
	for _, tt := range []struct {
		id   component.ID
		want string
	}{{diskID, "its disk answers"}, {component.MustNewID("other"), "there is no extension other"}} {
		cfg := createDefaultConfig().(*Config)
		cfg.Storage = &tt.id
		p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, &recorder{})
		require.NoError(t, err)
		require.ErrorContains(t, p.Start(t.Context(), &disk{err: errors.New("no answer")}), tt.want)
		require.NoError(t, p.Shutdown(t.Context()))
	}
}

// What an evaluation reports once is reported again when the next component refused it.
func TestEndsOfARefusedEvaluationAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &recorder{}
		p := start(t, processortest.NewNopSettings(metadata.Type), createDefaultConfig().(*Config), next)
		for range 8 { // two minutes: the pod is settled
			require.NoError(t, p.ConsumeMetrics(t.Context(), utilBatch("a")))
			time.Sleep(15 * time.Second)
		}
		synctest.Wait()
		refuse := func(err error) {
			next.mu.Lock()
			defer next.mu.Unlock()
			next.summaries, next.err = nil, err
		}
		refuse(errors.New("queue is full"))
		time.Sleep(time.Minute) // it is missing now
		synctest.Wait()
		refuse(nil)
		time.Sleep(15 * time.Second)
		synctest.Wait()

		require.Len(t, next.summaries, 1)
		left, ended := 0, 0
		for _, rm := range next.summaries[0].md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for _, dp := range numbers(m).All() {
					switch state, _ := dp.Attributes().Get("gpu.pod.state"); {
					case dp.Flags().NoRecordedValue():
						ended++
					case m.Name() == "gpu.pod.state" && dp.IntValue() == 0:
						require.Equal(t, "reporting", state.Str())
						left++
					}
				}
			}
		}
		require.Equal(t, 1, left, "the state that it left while nothing was taken")
		require.Positive(t, ended, "the averages")
	})
}
