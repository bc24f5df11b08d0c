// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bbolt "go.etcd.io/bbolt/errors"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

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

// What cannot be stored is not accepted, and not audited either: the sender
// still has it. What was accepted goes on.
func TestStorageThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a := newDisk(), &answers{next: []answer{{status: 500}}}
		h := d.bootWith(t, nil, a, hooks, retrying)
		assert.Equal(t, 500, oneOf(h).Status)
		synctest.Wait()

		d.fail(errors.New("disk full"))
		for range 3 {
			err := h.ConsumeLogs(context.Background(), keyed("new"))
			require.ErrorContains(t, err, "none of them was accepted")
			require.ErrorContains(t, err, "disk full")
		}
		synctest.Wait()
		assert.Empty(t, h.records)
		rec := <-h.records
		assert.Equal(t, audit.Succeeded, rec.Outcome, "the retry is made nevertheless")
		assert.Equal(t, 2, rec.Attempt)
		assert.Equal(t, 1, h.logs.FilterMessageSnippet("cannot be stored").Len(), "said once")

		d.fail(nil)
		h.send(keyed("new"))
		assert.Equal(t, "new", (<-h.records).Events[0].ID)
		synctest.Wait()
		assert.Equal(t, 1, h.logs.FilterMessageSnippet("stored again").Len())
		assert.Empty(t, d.keys("d/"), "what could not be removed then is removed now")
		assert.Len(t, d.keys("e/"), 2)
		waiting, _ := h.receivers[0].queue.lengths()
		assert.Zero(t, waiting, "the promised places are given back")
	})
}

// An event that was not accepted comes again, and min_severity then judges it as
// the first time: what was withheld stays so, and is not cleared either.
func TestWhatWasNotAcceptedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a := newDisk(), &answers{}
		cfg := to("https://hooks.example.com")
		cfg.MinSeverity = "error"
		h := d.bootWith(t, nil, a, map[string]ReceiverConfig{"errors": cfg, "all": to("https://hooks.example.com")})
		h.send(partial("raised", names.EventRaised)) // a warning
		assert.Equal(t, "all", (<-h.records).Receiver)
		synctest.Wait()

		d.fail(errors.New("disk full"))
		both := partial("cleared", names.EventCleared)
		addPartial(both, "again", names.EventRaised, plog.SeverityNumberError)
		require.Error(t, h.ConsumeLogs(t.Context(), both))
		d.fail(nil)
		h.send(partial("cleared", names.EventCleared))
		assert.Equal(t, "all", (<-h.records).Receiver)
		synctest.Wait()
		assert.Empty(t, h.records, "who was not told of it is not told that it is over")
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
		time.Sleep(rewriteEvery)
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
			require.ErrorIs(t, h.ConsumeLogs(context.Background(), keyed(fmt.Sprint(i))), errStorageSlow)
		}
		assert.Equal(t, storagePatience, time.Since(start))
		assertStorageFailures(t, h, "write", 1)
		assert.Empty(t, a.received())

		d.mu.Lock()
		d.hang = nil
		d.mu.Unlock()
		close(hang)
		synctest.Wait()
		h.send(keyed("after"))
		assert.Equal(t, "after", (<-h.records).Events[0].ID)
		synctest.Wait()
		assert.Empty(t, d.keys("d/"), "what was refused is not delivered by the next start either")
		assert.Equal(t, 1, h.logs.FilterMessageSnippet("stored again").Len())
	})
}

// What failed to be written does not undo what came after it.
func TestJournalKeepsTheLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		hang := make(chan struct{})
		d.hang = hang
		j := newJournal(d, func(string, error) {}, func() {})
		write := func(key, value string) {
			j.want(func(set func(string, []byte)) { set(key, []byte(value)) })
		}
		write("a", "old")
		write("b", "only")
		synctest.Wait()
		write("a", "new")
		d.mu.Lock()
		d.hang, d.err = nil, errors.New("bad sector")
		d.mu.Unlock()
		close(hang)
		synctest.Wait()
		d.fail(nil)
		require.NoError(t, j.flush())
		assert.Equal(t, map[string][]byte{"a": []byte("new"), "b": []byte("only")}, d.snapshot())
		require.NoError(t, j.close(t.Context()))
		require.ErrorIs(t, j.flush(), errStorageClosed)
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
		assert.LessOrEqual(t, second.Time.Sub(first.NextAttempt), 2*storagePatience)
		start := time.Now()
		require.Error(t, h.Shutdown(context.Background()), "it still writes")
		assert.Equal(t, storagePatience, time.Since(start))
		close(hang)
	})
}

func TestStorageThatCannotBeRead(t *testing.T) {
	contents := map[string]map[string][]byte{
		"no JSON":         {metaKey: []byte("\x00\xff")},
		"another version": {metaKey: []byte(`{"version":99,"rows":1,"events":1}`), "d/0": []byte(`{}`)},
		"impossible":      {metaKey: []byte(`{"version":1,"rows":-5,"events":1}`)},
		"immense":         {metaKey: []byte(`{"version":1,"rows":1,"events":9000000000}`)},
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
		after.values[rowKey(1)] = []byte("{")
		after.values[eventKey(2)] = []byte(`{"id":7}`)
		after.values[goneKey] = []byte("[]")
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
