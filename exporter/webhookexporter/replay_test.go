// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/control"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func TestTestEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{next: []answer{{status: 204}, {status: 500}}}
		h := startWith(t, a, retrying, func(c *Config, _ *environment) {
			r := c.Receivers["ops"]
			r.Events, r.MinSeverity = []string{"gpu.xid"}, "fatal"
			c.Receivers = only(r)
		})
		rec, err := h.Test(t.Context(), "ops")
		require.NoError(t, err, "filters do not apply")
		assert.Equal(t, audit.Succeeded, rec.Outcome)
		assert.Equal(t, audit.TriggerTest, rec.Trigger)
		assert.Equal(t, testEventName, rec.Events[0].Name)
		assert.Equal(t, rec, <-h.records, "audited like any other")

		rec, err = h.Test(t.Context(), "ops")
		require.NoError(t, err)
		assert.Equal(t, audit.Failed, rec.Outcome, "the first attempt's, also if there will be others")
		assert.NotZero(t, rec.NextAttempt)

		_, err = h.Test(t.Context(), "nobody")
		require.ErrorIs(t, err, control.ErrNoReceiver)
		_, err = h.Replay(t.Context(), rec.Events[0].ID, "")
		require.ErrorIs(t, err, control.ErrNoEvent, "a test is no event")
	})
}

func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		severe := to("https://severe.example.com")
		severe.MinSeverity = "error"
		other := to("https://other.example.com")
		other.Events = []string{"gpu.xid"}
		receivers := map[string]endpoint.Config{"all": to("https://all.example.com"), "other": other, "severe": severe}
		a := &answers{}
		h := newHarness(t, receivers, via(a), func(c *Config, _ *environment) { c.ReplayEvents = 2 })
		require.NoError(t, h.Start(context.Background(), componenttest.NewNopHost()))
		for _, id := range []string{"a", "b", "c"} {
			h.send(partial(id, names.EventRaised))
			<-h.records
		}
		records, err := h.Replay(t.Context(), "b", "")
		require.NoError(t, err)
		require.Len(t, records, 1, "all that want it")
		assert.Equal(t, "all", records[0].Receiver)
		assert.Equal(t, audit.TriggerReplay, records[0].Trigger)
		assert.Equal(t, "b", records[0].Events[0].ID)
		assert.Equal(t, audit.Succeeded, records[0].Outcome)
		assert.Equal(t, "b", a.ids()[3], "the same message")

		records, err = h.Replay(t.Context(), "c", "severe")
		require.NoError(t, err, "it is named: whether it wants it or not")
		assert.Equal(t, "severe", records[0].Receiver)

		for id, want := range map[string]error{"a": control.ErrNoEvent, "z": control.ErrNoEvent} {
			_, err = h.Replay(t.Context(), id, "")
			require.ErrorIs(t, err, want, "%s: only the last two are kept", id)
		}
		_, err = h.Replay(t.Context(), "c", "nobody")
		require.ErrorIs(t, err, control.ErrNoReceiver)
		h.apply(t.Context(), []*endpoint.Endpoint{mustTarget(t, "other", other)})
		_, err = h.Replay(t.Context(), "c", "")
		require.ErrorIs(t, err, control.ErrNotWanted)
	})
}

func mustTarget(t *testing.T, name string, cfg endpoint.Config, defaults ...endpoint.Defaults) *endpoint.Endpoint {
	t.Helper()
	target, err := endpoint.New(name, cfg, append(defaults, endpoint.Defaults{})[0])
	require.NoError(t, err)
	return target
}

// A replay does not wait behind a retry of the same condition, and does not hold
// up what comes after it.
func TestReplayWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{next: []answer{{status: 500}}}
		h := startWith(t, a, retrying)
		h.send(partial("a", names.EventRaised))
		<-h.records
		start := time.Now()
		records, err := h.Replay(t.Context(), "a", "")
		require.NoError(t, err)
		assert.Equal(t, audit.Succeeded, records[0].Outcome)
		assert.Zero(t, time.Since(start))
	})
}

func TestReplayGivesUpWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{next: []answer{{status: 429, retryAfter: "600"}}}
		h := startWith(t, a, retrying)
		h.send(partial("a", names.EventRaised))
		<-h.records
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := h.Replay(ctx, "a", "ops")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "still queued")
		shutdown := make(chan error)
		go func() {
			_, err := h.Test(context.Background(), "ops")
			shutdown <- err
		}()
		synctest.Wait()
		require.NoError(t, h.Shutdown(context.Background()))
		<-shutdown // it does not hang
	})
}

func TestTestOfAReceiverThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startWith(t, &answers{next: []answer{{status: 410}}})
		oneOf(h)
		rec, err := h.Test(t.Context(), "ops")
		require.NoError(t, err)
		assert.Equal(t, audit.Dropped, rec.Outcome)
		assert.Equal(t, audit.ErrorGone, rec.ErrorType)
	})
}

// The last events are there after a restart, the older ones leave no trace, and
// neither does what was sent by hand.
func TestReplayMemorySurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, a := newDisk(), &answers{}
		few := func(c *Config, _ *environment) { c.ReplayEvents = 3 }
		h := d.bootWith(t, nil, a, hooks, few)
		for i := range 10 {
			h.send(keyed(fmt.Sprint(i)))
			<-h.records
		}
		_, err := h.Test(t.Context(), "ops")
		require.NoError(t, err)
		<-h.records
		synctest.Wait()
		after := d.copied()
		h = after.bootWith(t, nil, a, hooks, few)
		_, err = h.Replay(t.Context(), "6", "")
		require.ErrorIs(t, err, control.ErrNoEvent)
		records, err := h.Replay(t.Context(), "7", "")
		require.NoError(t, err)
		assert.Equal(t, "gpu.service.partial", records[0].Events[0].Name)
		require.NoError(t, h.Shutdown(context.Background()))
		assert.Len(t, after.keys("e/"), 3)
		calls := a.received()
		assert.Contains(t, calls[len(calls)-1].body, `"ratio":0.5`)

		h = after.bootWith(t, nil, a, hooks, func(c *Config, _ *environment) { c.ReplayEvents = 1 })
		synctest.Wait()
		assert.Len(t, after.keys("e/"), 1)
		require.NoError(t, h.Shutdown(context.Background()))
	})
}

func TestEventsThatNoEndpointWantsAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		cfg := to("https://hooks.example.com")
		cfg.Events = []string{"gpu.xid"}
		h := d.bootWith(t, nil, &answers{}, only(cfg))
		logs := plog.NewLogs()
		addPartial(logs, "id", names.EventRaised, plog.SeverityNumberWarn)
		h.send(logs)
		synctest.Wait()
		assert.Empty(t, d.keys(""))
	})
}
