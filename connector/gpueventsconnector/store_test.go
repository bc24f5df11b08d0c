// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	bbolt "go.etcd.io/bbolt/errors"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/metadatatest"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/state"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
)

var lab = subject.Service{Cluster: "c1", Namespace: "lab", Name: "chat"}

// disk is a storage extension that outlives a restart, and its client.
type disk struct {
	component.StartFunc
	component.ShutdownFunc
	mu     sync.Mutex
	values map[string][]byte
	err    error         // of every operation
	open   []error       // of opening, one after the other
	block  chan struct{} // Set waits for it
	sets   int
}

var _ storage.Extension = (*disk)(nil)

func newDisk() *disk { return &disk{values: map[string][]byte{}} }

func (d *disk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	if len(d.open) == 0 {
		return d, nil
	}
	err := d.open[0]
	d.open = d.open[1:]
	return d, err
}

func (d *disk) Get(_ context.Context, key string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.values[key], d.err
}

func (d *disk) Set(ctx context.Context, key string, value []byte) error {
	if d.block != nil {
		select {
		case <-d.block:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sets++
	if d.err == nil {
		d.values[key] = value
	}
	return d.err
}

func (d *disk) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (*disk) Delete(context.Context, string) error               { return errors.New("not used") }
func (*disk) Batch(context.Context, ...*storage.Operation) error { return errors.New("not used") }
func (*disk) Close(context.Context) error                        { return nil }

var diskID = component.MustNewIDWithName("file_storage", "state")

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

func onDisk(cfg *Config) { cfg.Storage = &diskID }

// boot starts a connector on d. Without stop it is as if it were killed, once
// synctest.Wait has let it write.
func (d *disk) boot(t *testing.T, change ...func(*Config)) *bench {
	t.Helper()
	return startOn(t, host{diskID: d}, append(change, onDisk)...)
}

// state are the services that are stored as partial.
func (d *disk) state(t *testing.T) map[subject.Service]struct{} {
	t.Helper()
	s, _, err := state.Decode(d.values[stateKey], 100)
	require.NoError(t, err)
	raised := map[subject.Service]struct{}{}
	for _, r := range s.Raised {
		require.Equal(t, "gpu.service.partial", r.Event)
		raised[serviceID(r.Cluster, r.Namespace, r.Service)] = struct{}{}
	}
	return raised
}

func TestARestartKeepsWhatIsRaised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		killed := d.boot(t)
		defer killed.stop()
		first := killed.feed(batch(evaluated{service: chat, at: 10, partial: 1}, evaluated{service: lab, at: 10, partial: 1}))
		require.Equal(t, []string{"raised", "raised"}, states(first))
		synctest.Wait()
		killed.feed(batch(evaluated{service: chat, at: 25, partial: 1}))
		synctest.Wait()
		require.Equal(t, 1, d.sets, "what has not changed is not written again")

		after := &disk{values: maps.Clone(d.values)}
		b := after.boot(t)
		require.Empty(t, b.feed(pmetric.NewMetrics()), "absent input changes nothing")
		require.Empty(t, b.feed(batch(evaluated{service: chat, at: 90, partial: 1})), "it is not raised a second time")
		events := b.feed(batch(evaluated{service: lab, at: 90}))
		require.Equal(t, []string{"cleared"}, states(events))
		require.Equal(t, "gpu.service.partial/c1/lab/chat", events[0].attrs["gpu.event.key"])
		b.stop()

		again := after.boot(t)
		defer again.stop()
		require.Empty(t, again.feed(batch(evaluated{service: lab, at: 120})), "it is not cleared a second time")
		require.Equal(t, []string{"cleared"}, states(again.feed(batch(evaluated{service: chat, at: 120}))))
		synctest.Wait()
		require.Empty(t, after.state(t))
	})
}

// A service that ended while nothing watched is named by no evaluation any more.
func TestWhatWentDuringARestartIsCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		b := d.boot(t)
		b.feed(batch(evaluated{service: chat, at: 10, partial: 1}, evaluated{service: lab, at: 10, partial: 1}))
		b.stop()

		b = d.boot(t)
		defer b.stop()
		time.Sleep(time.Hour)
		require.Empty(t, b.feed(pmetric.NewMetrics()), "without evaluations nothing is known")
		require.Empty(t, b.feed(batch(evaluated{service: lab, at: 10, partial: 1})))
		time.Sleep(15*time.Minute - time.Second)
		require.Empty(t, b.feed(batch(evaluated{service: lab, at: 10, partial: 1})))
		time.Sleep(time.Second)
		events := b.feed(batch(evaluated{service: lab, at: 10, partial: 1}))
		require.Equal(t, []string{"cleared"}, states(events))
		require.Equal(t, "Service chat in namespace ml of cluster c1 was not seen since the restart, and is no longer partial.", events[0].body)
		synctest.Wait()
		require.Equal(t, map[subject.Service]struct{}{lab: {}}, d.state(t))
		time.Sleep(time.Hour)
		require.Empty(t, b.feed(batch(evaluated{service: lab, at: 10, partial: 1})), "what was heard of stays")
	})
}

// The state holds what was reported, and what was refused was not.
func TestRefusedEventsAreNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		b := d.boot(t)
		b.c.next = &refusing{err: errors.New("full")}
		b.feed(batch(evaluated{service: chat, at: 10, partial: 1}))
		ctx := context.WithoutCancel(t.Context())
		require.ErrorContains(t, b.c.Shutdown(ctx), "full")
		require.NoError(t, b.tel.Shutdown(ctx))
		require.Empty(t, d.state(t))

		b = d.boot(t)
		defer b.stop()
		require.Equal(t, []string{"raised"}, states(b.feed(batch(evaluated{service: chat, at: 25, partial: 1}))))
	})
}

func TestADamagedStateIsReportedAndReplaced(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":         "\x00\x01",
		"cut off":         `{"version":1,"raised":[{"event":"gpu.ser`,
		"another version": `{"version":3,"raised":[]}`,
		"no name":         `{"version":1,"raised":[{"event":"gpu.service.partial"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDisk()
				d.values[stateKey] = []byte(text)
				b := d.boot(t)
				defer b.stop()
				require.Equal(t, 1, b.logs.FilterMessageSnippet("stored state is invalid").Len())
				require.Equal(t, int64(1), failures(t, b))
				require.Equal(t, []string{"raised"}, states(b.feed(batch(evaluated{service: chat, at: 10, partial: 1}))))
				synctest.Wait()
				require.Equal(t, map[subject.Service]struct{}{chat: {}}, d.state(t))
			})
		})
	}
}

func TestADamagedStorageIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.open = []error{fmt.Errorf("open: %w", bbolt.ErrInvalid)}
		b := d.boot(t)
		defer b.stop()
		require.Equal(t, 1, b.logs.FilterMessageSnippet("using a second one").Len())
		require.Equal(t, int64(1), failures(t, b))
		b.feed(batch(evaluated{service: chat, at: 10, partial: 1}))
		synctest.Wait()
		require.Equal(t, map[subject.Service]struct{}{chat: {}}, d.state(t))
	})
}

// A storage that hangs or fails delays no event; what could not be written is
// written later.
func TestStorageIsOffTheDataPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.block = make(chan struct{})
		b := d.boot(t)
		require.Equal(t, []string{"raised"}, states(b.feed(batch(evaluated{service: chat, at: 10, partial: 1}))))
		require.Equal(t, []string{"raised"}, states(b.feed(batch(evaluated{service: lab, at: 10, partial: 1}))))
		synctest.Wait()
		require.Empty(t, d.values)
		d.fail(syscall.ENOSPC)
		close(d.block)
		synctest.Wait()
		require.Equal(t, int64(1), failures(t, b))
		d.fail(nil)
		time.Sleep(retryEvery)
		synctest.Wait()
		require.Equal(t, map[subject.Service]struct{}{chat: {}, lab: {}}, d.state(t))
		b.stop()
	})
}

// A disk that fills and empties twice is reported twice, and each time once.
func TestAFullDiskIsReportedEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		b := d.boot(t)
		defer b.stop()
		partial := 0.0
		for round := range 2 {
			d.fail(syscall.ENOSPC)
			partial = 1 - partial
			require.Len(t, b.feed(batch(evaluated{service: chat, at: 10 + 60*round, partial: partial})), 1, "the event goes on at once")
			time.Sleep(3 * retryEvery)
			synctest.Wait()
			require.Equal(t, round+1, b.logs.FilterMessageSnippet("state cannot be written").Len())
			require.Equal(t, round, b.logs.FilterMessageSnippet("state is written again").Len())
			d.fail(nil)
			time.Sleep(retryEvery)
			synctest.Wait()
			require.Equal(t, round+1, b.logs.FilterMessageSnippet("state is written again").Len())
			require.Len(t, d.state(t), int(partial))
		}
	})
}

// What cannot be read now is not written over, and not left behind a second
// file: another start may read it.
func TestAStorageThatFailsStopsTheStart(t *testing.T) {
	for name, spoil := range map[string]func(*disk){
		"full":     func(d *disk) { d.open = []error{syscall.ENOSPC} },
		"locked":   func(d *disk) { d.open = []error{bbolt.ErrTimeout} },
		"no right": func(d *disk) { d.open = []error{syscall.EACCES} },
		"no read":  func(d *disk) { d.fail(syscall.EIO) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDisk()
				b := d.boot(t)
				b.feed(batch(evaluated{service: chat, at: 10, partial: 1}))
				b.stop()
				spoil(d)
				cfg := createDefaultConfig().(*Config)
				onDisk(cfg)
				tel := componenttest.NewTelemetry()
				c, err := newToLogs(cfg, metadatatest.NewSettings(tel), new(consumertest.LogsSink), fromMetrics)
				require.NoError(t, err)
				require.ErrorContains(t, c.Start(t.Context(), host{diskID: d}), "storage: ")
				require.NoError(t, c.Shutdown(t.Context()))
				require.NoError(t, tel.Shutdown(t.Context()))
				d.fail(nil)
				require.Equal(t, map[subject.Service]struct{}{chat: {}}, d.state(t), "untouched")
			})
		})
	}
}

func TestShutdownWritesWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		b := d.boot(t)
		d.fail(errors.New("not now"))
		b.feed(batch(evaluated{service: chat, at: 10, partial: 1}))
		synctest.Wait()
		d.fail(nil)
		b.stop()
		require.Equal(t, map[subject.Service]struct{}{chat: {}}, d.state(t))
	})
}

func TestMoreIsStoredThanMayBeRaised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		b := d.boot(t)
		b.feed(batch(evaluated{service: chat, at: 10, partial: 1}, evaluated{service: lab, at: 10, partial: 1}))
		b.stop()
		b = d.boot(t, func(cfg *Config) { cfg.MaxSubjects = 1 })
		defer b.stop()
		require.Equal(t, 1, b.logs.FilterMessageSnippet("larger than max_subjects").Len())
		require.Equal(t, 1, b.c.engine.Raised())
	})
}

func failures(t *testing.T, b *bench) int64 {
	t.Helper()
	m, err := b.tel.GetMetric("otelcol_gpu_events_state_failures")
	require.NoError(t, err)
	return m.Data.(metricdata.Sum[int64]).DataPoints[0].Value
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"version":1,"raised":[{"event":"gpu.service.partial","cluster":"c","namespace":"n","service":"s"}]}`))
	f.Add([]byte(`{"version":1,"raised":[{"event":"gpu.other","service":"s"},{"event":"gpu.service.partial","service":"\ud800"}]}`))
	f.Add([]byte(`{"version":2,"raised":[{"event":"gpu.temperature","device":"d","part":"gpu","level":2},{"event":"gpu.device.lost","device":"d"},` +
		`{"event":"gpu.exporter.down","node":"n","exporter":"9400"},{"event":"gpu.node.lost","node":"n"}],` +
		`"devices":[{"id":"d","node":"n","exporter":"9400","last_xid":79,"xids":[{"code":79,"count":2}],"ecc":3}],` +
		`"nodes":[{"node":"n","cordoned":true,"devices":["d"],"services":[{"namespace":"x","service":"s"}]}]}`))
	cfg := createDefaultConfig().(*Config)
	cfg.Rules, cfg.MaxSubjects = []RuleSet{RuleSetDevice, RuleSetService}, 3
	f.Fuzz(func(t *testing.T, text []byte) {
		saved, _, err := state.Decode(text, 3)
		if err != nil {
			return
		}
		now := time.Now()
		e := newEngine(cfg)
		e.Restore(saved, now)
		require.LessOrEqual(t, e.Subjects()["device"], 3)
		written, _, err := state.Encode(e.Save())
		require.NoError(t, err)
		saved, refused, err := state.Decode(written, 100)
		require.NoError(t, err)
		require.Zero(t, refused)
		again := newEngine(cfg)
		again.Restore(saved, now)
		require.Equal(t, e.Save(), again.Save())
	})
}
