// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/control"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/dispatch"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadatatest"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/send"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// bootWith starts an exporter on the disk. All of its endpoints use a.
func (d *disk) bootWith(t *testing.T, f *file, a send.RoundTripper, receivers map[string]endpoint.Config, change ...func(*Config, *environment)) *harness {
	t.Helper()
	change = append(change, onDisk, via(a))
	if f != nil {
		change = append(change, f.audits)
	}
	h := newHarness(t, receivers, change...)
	d.start(t, h)
	return h
}

var hooks = only(to("https://hooks.example.com"))

// silent never answers, and signals each request.
type silent struct{ asked chan struct{} }

func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked <- struct{}{}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func (silent) CloseIdleConnections() {}

// What ConsumeLogs acknowledged is on the disk, in one transaction for all
// receivers, and each event once.
func TestDeliveriesAreStoredBeforeTheyAreAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		receivers := map[string]endpoint.Config{}
		for i := range 20 {
			r := to("https://hooks.example.com/SECRETpath?token=SECRETtoken")
			r.Workers = 1
			receivers[fmt.Sprintf("r%02d", i)] = r
		}
		h := d.bootWith(t, nil, stuck{}, receivers)
		d.mu.Lock()
		first := -1
		d.before = func(ops []*storage.Operation) bool {
			if first < 0 {
				first = len(ops)
			}
			return false
		}
		d.mu.Unlock()
		logs := plog.NewLogs()
		for i := range 5 {
			addPartial(logs, fmt.Sprint(i), names.EventRaised, plog.SeverityNumberWarn)
		}
		h.send(logs)
		assert.Equal(t, 20*5+5+1, first, "rows, events and the table of contents")
		assert.Len(t, d.keys("e/"), 5)
		assert.Len(t, d.keys("d/"), 100)
		for key, value := range d.copied().values {
			assert.NotContains(t, string(value), "SECRET", key)
			assert.NotContains(t, string(value), "hooks.example.com", key)
		}
		shutdownNow(t, h)
	})
}

func TestARestartDeliversWhatWasQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		killed := d.bootWith(t, nil, silent{make(chan struct{}, 10)}, hooks, retrying)
		var want []string
		for i := range 10 { // of one key, so one after the other
			id := fmt.Sprintf("id-%d", i)
			want = append(want, id)
			killed.send(partial(id, names.EventRaised))
		}
		synctest.Wait()

		after, a := d.copied(), &answers{}
		h := after.bootWith(t, nil, a, hooks, retrying)
		assert.Equal(t, audit.ErrorInterrupted, (<-h.records).ErrorType)
		for range want {
			assert.Equal(t, audit.Succeeded, (<-h.records).Outcome)
		}
		synctest.Wait()
		assert.Equal(t, want, a.ids())
		assert.Empty(t, after.keys("d/"))
		assert.Len(t, after.keys("e/"), 10, "kept for replay")
		metadatatest.AssertEqualExporterWebhookRestoredDeliveries(t, h.telemetry,
			[]metricdata.DataPoint[int64]{{Value: 10, Attributes: attribute.NewSet(attribute.String("receiver", "ops"))}},
			metricdatatest.IgnoreTimestamp())
		shutdownNow(t, killed)
	})
}

func TestAWaitingRetrySurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		killed := d.bootWith(t, nil, &answers{next: repeat(answer{status: 500}, 3)}, hooks, retrying)
		killed.send(partial("raised", names.EventRaised))
		<-killed.records
		<-killed.records
		third := <-killed.records
		killed.send(partial("cleared", names.EventCleared)) // waits behind it
		synctest.Wait()

		after, a := d.copied(), &answers{}
		h := after.bootWith(t, nil, a, hooks, retrying)
		rec := <-h.records
		assert.Equal(t, 4, rec.Attempt)
		assert.Equal(t, third.NextAttempt, rec.Time, "not before its time")
		assert.Greater(t, rec.Durations.Queued, 10*time.Second, "since the event arrived, not since the restart")
		<-h.records
		assert.Equal(t, []string{"raised", "cleared"}, a.ids())
		shutdownNow(t, killed)
	})
}

// A clock that was set back does not make a pause of days.
func TestAWaitingRetryHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		killed := d.bootWith(t, nil, &answers{next: []answer{{status: 500}}}, hooks, retrying)
		killed.send(keyed("id"))
		first := <-killed.records
		synctest.Wait()
		after := d.copied()
		row := string(after.values["d/0"])
		year := first.NextAttempt.AddDate(1, 0, 0).Format(time.RFC3339Nano)
		changed := strings.Replace(row, first.NextAttempt.Format(time.RFC3339Nano), year, 1)
		require.NotEqual(t, row, changed)
		after.values["d/0"] = []byte(changed)
		h := after.bootWith(t, nil, &answers{}, hooks, retrying)
		start := time.Now()
		assert.Equal(t, audit.Succeeded, (<-h.records).Outcome)
		assert.Equal(t, time.Hour, time.Since(start))
		shutdownNow(t, killed)
	})
}

// The end of the process leaves behind what has to wait, and audits nothing of
// it as lost.
func TestShutdownKeepsWhatItCannotDeliver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		a := &answers{next: []answer{{status: 500}, {takes: time.Hour}, {takes: time.Hour}}}
		cfg := to("https://hooks.example.com")
		cfg.Workers, cfg.Timeout = 2, time.Hour
		h := d.bootWith(t, nil, a, only(cfg), retrying)
		h.send(keyed("retry"))
		assert.NotZero(t, (<-h.records).NextAttempt)
		for _, id := range []string{"flying-1", "flying-2", "queued-1", "queued-2"} {
			h.send(keyed(id))
		}
		synctest.Wait()
		start := time.Now()
		require.NoError(t, h.Shutdown(context.Background()))
		assert.Equal(t, dispatch.DrainTime, time.Since(start))
		for range 2 {
			rec := <-h.records
			assert.Equal(t, audit.Failed, rec.Outcome)
			assert.Equal(t, audit.ErrorShutdown, rec.ErrorType)
			assert.NotZero(t, rec.NextAttempt, "at the next start")
		}
		assert.Empty(t, h.records)
		assert.Len(t, d.keys("d/"), 5)
		assert.Error(t, h.ConsumeLogs(context.Background(), keyed("late")), "nothing can be stored any more")
		assert.Empty(t, h.records)

		next := &answers{}
		h = d.bootWith(t, nil, next, only(cfg), retrying)
		for range 5 {
			assert.Equal(t, audit.Succeeded, (<-h.records).Outcome)
		}
		ids := next.ids()
		slices.Sort(ids)
		assert.Equal(t, []string{"flying-1", "flying-2", "queued-1", "queued-2", "retry"}, ids)
	})
}

// Without retry an attempt that is broken off is the only one.
func TestShutdownWithoutRetryGivesUpWhatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		h := d.bootWith(t, nil, stuck{}, hooks)
		h.send(partial("id", names.EventRaised))
		synctest.Wait()
		shutdownNow(t, h)
		rec := <-h.records
		assert.Equal(t, audit.ErrorShutdown, rec.ErrorType)
		assert.Zero(t, rec.NextAttempt)
		assert.Empty(t, d.keys("d/"))
	})
}

func TestDeliveriesOfAFormerReceiverAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		killed := d.bootWith(t, nil, stuck{}, map[string]endpoint.Config{"old": to("https://old.example.com")})
		killed.send(partial("1", names.EventRaised)) // on its way
		killed.send(partial("2", names.EventRaised)) // queued
		synctest.Wait()
		after := d.copied()
		h := after.bootWith(t, nil, &answers{}, hooks)
		first, second := <-h.records, <-h.records
		assert.Equal(t, "old", first.Receiver)
		assert.Equal(t, audit.ErrorInterrupted, first.ErrorType)
		assert.Equal(t, "1", first.Events[0].ID)
		assert.Equal(t, audit.Dropped, second.Outcome)
		assert.Equal(t, audit.ErrorConfig, second.ErrorType)
		assert.Equal(t, "2", second.Events[0].ID)
		synctest.Wait()
		assert.Empty(t, after.keys("d/"))
		shutdownNow(t, killed)
	})
}

// 410 outlives the process, until the configuration changes.
func TestGoneSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		h := d.bootWith(t, nil, &answers{next: []answer{{status: 410}}}, hooks)
		assert.Equal(t, audit.ErrorGone, oneOf(h).ErrorType)
		require.NoError(t, h.Shutdown(context.Background()))

		a := &answers{}
		h = d.bootWith(t, nil, a, hooks)
		rec := oneOf(h)
		assert.Equal(t, audit.Dropped, rec.Outcome)
		assert.Equal(t, audit.ErrorGone, rec.ErrorType)
		assert.Empty(t, a.received())
		require.NoError(t, h.Shutdown(context.Background()))

		changed := to("https://hooks.example.com")
		changed.Timeout = time.Minute
		h = d.bootWith(t, nil, a, only(changed))
		assert.Equal(t, audit.TriggerEnable, (<-h.records).Trigger)
		assert.Equal(t, audit.Succeeded, oneOf(h).Outcome)
		require.NoError(t, h.Shutdown(context.Background()))
		h = d.bootWith(t, nil, a, hooks)
		assert.Equal(t, audit.Succeeded, oneOf(h).Outcome, "it had its chance, and took it")
	})
}

// A 410 by mistake is not for ever: a request enables the endpoint, across
// restarts, with a record; one that was removed and comes back is enabled too.
func TestGoneIsNotForEver(t *testing.T) {
	for name, again := range map[string]func(*testing.T, *disk, *harness) *harness{
		"enabled": func(t *testing.T, d *disk, h *harness) *harness {
			rec, err := h.Enable("ops")
			require.NoError(t, err)
			assert.Same(t, rec, <-h.records)
			assert.Equal(t, audit.TriggerEnable, rec.Trigger)
			assert.Equal(t, audit.Succeeded, rec.Outcome)
			assert.Equal(t, "hooks.example.com", rec.URLHost)
			assert.Empty(t, rec.Events)
			assert.Equal(t, 1, h.logs.FilterMessageSnippet("audit_type=webhook_receiver_enabled").Len())
			rec, err = h.Enable("ops")
			require.NoError(t, err)
			assert.Nil(t, rec, "it was")
			_, err = h.Enable("other")
			require.ErrorIs(t, err, control.ErrNoReceiver)
			require.NoError(t, h.Shutdown(context.Background()))
			return d.bootWith(t, nil, &answers{}, hooks)
		},
		"removed": func(t *testing.T, d *disk, h *harness) *harness {
			require.NoError(t, h.Shutdown(context.Background()))
			h = d.bootWith(t, nil, &answers{}, map[string]endpoint.Config{"other": to("https://hooks.example.com")})
			require.NoError(t, h.Shutdown(context.Background()))
			return d.bootWith(t, nil, &answers{}, hooks)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDisk()
				h := d.bootWith(t, nil, &answers{next: []answer{{status: 410}}}, hooks)
				assert.Equal(t, audit.ErrorGone, oneOf(h).ErrorType)
				synctest.Wait()
				h = again(t, d, h)
				assert.Equal(t, audit.Succeeded, oneOf(h).Outcome)
			})
		})
	}
}

func TestSlotsAreUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		h := d.bootWith(t, nil, &answers{}, hooks, func(c *Config, _ *environment) { c.ReplayEvents = 3 })
		for i := range 500 {
			h.send(keyed(fmt.Sprint(i)))
			<-h.records
			synctest.Wait()
		}
		meta := string(d.values["meta"])
		assert.Regexp(t, `"rows":[12],"events":[1-5]}`, meta)
		assert.Len(t, d.keys("e/"), 3)
		assert.Empty(t, d.keys("d/"))
	})
}
