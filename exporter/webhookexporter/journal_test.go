// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bbolt "go.etcd.io/bbolt/errors"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/journal"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadatatest"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func assertStorageFailures(t *testing.T, h *harness, operation string, want int64) {
	t.Helper()
	metadatatest.AssertEqualExporterWebhookStorageFailures(t, h.telemetry,
		[]metricdata.DataPoint[int64]{{Value: want, Attributes: attribute.NewSet(attribute.String("operation", operation))}},
		metricdatatest.IgnoreTimestamp())
}

// A disk that fills and empties twice silences no webhook: what arrives meanwhile
// is sent at once from memory, marked and counted, and stored when there is room.
// The log reports each failure and each recovery.
func TestAFullDiskSilencesNoWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a := newDisk(), &answers{}
		h := d.bootWith(t, nil, a, hooks, retrying)
		for round := range 2 {
			d.fail(syscall.ENOSPC)
			start := time.Now()
			for i := range 3 {
				a.next = []answer{{status: 200}}
				if i == 2 {
					a.next = []answer{{status: 500}} // waits for its second attempt
				}
				h.send(keyed(fmt.Sprint(round, i)))
				rec := <-h.records
				assert.Equal(t, fmt.Sprint(round, i), rec.Events[0].ID)
				assert.True(t, rec.NotStored, "the record says that the storage had nothing of it")
			}
			assert.Equal(t, start, time.Now(), "at once")
			assert.Equal(t, round+1, h.logs.FilterMessageSnippet("deliveries cannot be stored").Len(), "logged once each time")
			metadatatest.AssertEqualExporterWebhookUnstoredDeliveries(t, h.telemetry, []metricdata.DataPoint[int64]{
				{Value: int64(3 * (round + 1)), Attributes: attribute.NewSet(attribute.String("receiver", "ops"))},
			}, metricdatatest.IgnoreTimestamp())

			d.fail(nil)
			time.Sleep(journal.FirstRest)
			synctest.Wait()
			assert.Equal(t, round+1, h.logs.FilterMessageSnippet("stored again").Len())
			assert.Len(t, d.keys("d/"), 1, "what is not over is stored now")
			rec := <-h.records
			assert.Equal(t, 2, rec.Attempt)
			assert.False(t, rec.NotStored)
			synctest.Wait()
			assert.Empty(t, d.keys("d/"))
			assert.Len(t, d.keys("e/"), 3*(round+1), "kept for replay")
		}
	})
}

// At the end what no start would find gets its last attempt, and if that fails a
// record that it was given up; what is stored stays.
func TestShutdownWithAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a := newDisk(), &answers{next: []answer{{status: 500}, {status: 500}, {status: 500}}}
		h := d.bootWith(t, nil, a, hooks, retrying)
		h.send(keyed("stored"))
		<-h.records
		synctest.Wait()
		d.fail(syscall.ENOSPC)
		h.send(keyed("memory"))
		<-h.records
		shutdown := make(chan error, 1)
		go func() { shutdown <- h.Shutdown(context.Background()) }()
		rec := <-h.records
		assert.Equal(t, "memory", rec.Events[0].ID)
		assert.Equal(t, 2, rec.Attempt)
		assert.True(t, rec.NextAttempt.IsZero(), "given up")
		require.NoError(t, <-shutdown)
		assert.Empty(t, h.records)

		d.fail(nil)
		h = d.bootWith(t, nil, a, hooks, retrying)
		rec = <-h.records
		assert.Equal(t, "stored", rec.Events[0].ID)
		assert.Equal(t, audit.Succeeded, rec.Outcome)
	})
}

// A clearing that no start would find does not wait at the end for the next
// attempt of its raising, which is stored.
func TestShutdownWithAClearingInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a := newDisk(), &answers{next: []answer{{status: 500}}}
		h := d.bootWith(t, nil, a, hooks, retrying)
		h.send(keyed("raised"))
		<-h.records
		synctest.Wait()
		d.fail(syscall.ENOSPC)
		cleared := keyed("cleared")
		cleared.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().PutStr(names.GPUEventKey, "raised")
		h.send(cleared)
		require.NoError(t, h.Shutdown(context.Background()))
		for _, id := range []string{"raised", "cleared"} {
			rec := <-h.records
			assert.Equal(t, id, rec.Events[0].ID)
			assert.Equal(t, audit.Succeeded, rec.Outcome)
		}
	})
}

// What was accepted while the disk was full, and is stored by the end, waits for
// the next start as everything does: it is not tried over and over until it is
// given up.
func TestShutdownAfterAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a := newDisk(), &answers{next: append([]answer{{status: 500}, {status: 500, takes: 5 * time.Second}}, slices.Repeat([]answer{{status: 500}}, 20)...)}
		h := d.bootWith(t, nil, a, hooks, retrying)
		d.fail(syscall.ENOSPC)
		h.send(keyed("memory"))
		first := <-h.records
		d.fail(nil)
		time.Sleep(max(time.Until(first.NextAttempt), journal.FirstRest))
		synctest.Wait()
		require.Len(t, d.keys("d/"), 1)
		shutdown := make(chan error, 1)
		go func() { shutdown <- h.Shutdown(context.Background()) }()
		rec := <-h.records
		assert.Equal(t, 2, rec.Attempt)
		assert.False(t, rec.NextAttempt.IsZero(), "it is kept")
		require.NoError(t, <-shutdown)
		assert.Empty(t, h.records)
		assert.Len(t, d.keys("d/"), 1)
	})
}

// A storage that comes back while nothing happens still gets what it missed.
func TestStorageIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a := newDisk(), &answers{next: []answer{{status: 200, takes: 10 * time.Second}}}
		h := d.bootWith(t, nil, a, hooks)
		h.send(keyed("a"))
		synctest.Wait()
		require.Len(t, d.keys("d/"), 1)
		d.fail(errors.New("gone"))
		assert.Equal(t, audit.Succeeded, (<-h.records).Outcome)
		d.fail(nil)
		synctest.Wait()
		time.Sleep(journal.FirstRest)
		synctest.Wait()
		assert.Empty(t, d.keys("d/"))
	})
}

// A storage that hangs costs its patience once, not once an event.
func TestStorageThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a := newDisk(), &answers{}
		h := d.bootWith(t, nil, a, hooks, retrying)
		hang := make(chan struct{})
		d.mu.Lock()
		d.hang = hang
		d.mu.Unlock()
		start := time.Now()
		for i := range 20 {
			h.send(keyed(fmt.Sprint(i)))
			assert.True(t, (<-h.records).NotStored)
		}
		assert.Equal(t, journal.Patience, time.Since(start))
		assertStorageFailures(t, h, "write", 1)

		d.mu.Lock()
		d.hang = nil
		d.mu.Unlock()
		close(hang)
		synctest.Wait()
		h.send(keyed("after"))
		rec := <-h.records
		assert.Equal(t, "after", rec.Events[0].ID)
		assert.False(t, rec.NotStored)
		synctest.Wait()
		assert.Empty(t, d.keys("d/"), "what was delivered is not delivered by the next start again")
		assert.Equal(t, 1, h.logs.FilterMessageSnippet("stored again").Len())
	})
}

// An attempt does not wait longer for its intent than patience allows.
func TestIntentThatCannotBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a := newDisk(), &answers{next: []answer{{status: 500}}}
		h := d.bootWith(t, nil, a, hooks, retrying)
		first := oneOf(h)
		hang := make(chan struct{})
		d.mu.Lock()
		d.hang = hang
		d.mu.Unlock()
		second := <-h.records
		assert.Equal(t, audit.Succeeded, second.Outcome)
		assert.LessOrEqual(t, second.Time.Sub(first.NextAttempt), 2*journal.Patience)
		start := time.Now()
		require.Error(t, h.Shutdown(context.Background()), "it still writes")
		assert.Equal(t, journal.Patience, time.Since(start))
		close(hang)
	})
}

func TestStorageThatCannotBeRead(t *testing.T) {
	contents := map[string]map[string][]byte{
		"no JSON":    {"meta": []byte("\x00\xff")},
		"impossible": {"meta": []byte(`{"version":1,"rows":-5,"events":1}`)},
		"immense":    {"meta": []byte(`{"version":1,"rows":1,"events":9000000000}`)},
	}
	for name, values := range contents {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, a := &disk{values: values}, &answers{}
				h := d.bootWith(t, nil, a, hooks)
				assertStorageFailures(t, h, "read", 1)
				assert.Equal(t, 1, h.logs.FilterMessageSnippet("cannot be read").Len())
				assert.Equal(t, audit.Succeeded, oneOf(h).Outcome, "started anew")
				require.NoError(t, h.Shutdown(context.Background()))
				h = d.bootWith(t, nil, a, hooks)
				assert.Zero(t, h.logs.FilterMessageSnippet("cannot be read").Len())
			})
		})
	}
}

// What another version stored, which this one would write over, stops the start.
func TestStorageOfAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{values: map[string][]byte{"meta": []byte(`{"version":2,"rows":1,"events":1}`), "d/0": []byte(`{}`)}}
		before := d.snapshot()
		err := newHarness(t, hooks, onDisk).Start(context.Background(), host{diskID: d})
		assert.ErrorContains(t, err, "written by another version of the exporter (schema 2, this one reads 1): start the version that wrote it")
		assert.Equal(t, before, d.snapshot())
	})
}

// A storage that cannot be read now stops the start. To go on without what it
// holds would be to write over it.
func TestStorageThatDoesNotAnswerAtTheStart(t *testing.T) {
	for name, spoil := range map[string]func(*disk){
		"fails": func(d *disk) { d.err = errors.New("bad sector") },
		"hangs": func(d *disk) { d.hang = make(chan struct{}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDisk()
				killed := d.bootWith(t, nil, stuck{}, hooks)
				killed.send(partial("id", names.EventRaised))
				synctest.Wait()
				after := d.copied()
				spoil(after)
				hang := after.hang
				h := newHarness(t, hooks, onDisk)
				require.ErrorContains(t, h.Start(t.Context(), host{diskID: after}), "what it holds is untouched")
				require.NoError(t, h.Shutdown(t.Context()))
				if hang != nil {
					after.locked(func() { after.hang = nil })
					close(hang)
				}
				synctest.Wait()

				after.fail(nil)
				h = after.bootWith(t, nil, &answers{}, hooks)
				assert.Equal(t, audit.ErrorInterrupted, (<-h.records).ErrorType)
				shutdownNow(t, killed)
			})
		})
	}
}

// One damaged value takes no other with it.
func TestDamagedValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		killed := d.bootWith(t, nil, stuck{}, hooks)
		for i := range 4 {
			killed.send(partial(fmt.Sprint(i), names.EventRaised))
		}
		synctest.Wait()
		after := d.copied()
		after.values["d/1"] = []byte("{")
		after.values["e/2"] = []byte(`{"id":7}`)
		after.values["gone"] = []byte("[]")
		a := &answers{}
		h := after.bootWith(t, nil, a, hooks)
		assertStorageFailures(t, h, "read", 1)
		<-h.records // the first, interrupted
		assert.Equal(t, "3", (<-h.records).Events[0].ID)
		synctest.Wait()
		assert.Equal(t, []string{"3"}, a.ids())
		assert.Empty(t, after.keys("d/"))
		shutdownNow(t, killed)
	})
}

func TestStorageThatRefusesToOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.open = []error{fmt.Errorf("open: %w", bbolt.ErrInvalid)}
		h := d.boot(t, hooks)
		assert.Equal(t, []string{"", "second"}, d.names)
		assertStorageFailures(t, h, "open", 1)
	})
}

// Another process has it, perhaps the one that is about to end.
func TestStorageThatIsLocked(t *testing.T) {
	h, d := newHarness(t, hooks, onDisk), newDisk()
	d.open = []error{bbolt.ErrTimeout}
	require.ErrorContains(t, h.Start(t.Context(), host{diskID: d}), "another process has it")
	assert.Equal(t, []string{""}, d.names, "a second one would hide what is in the first")
}
