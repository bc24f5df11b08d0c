// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/egress"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadatatest"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/signing"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func TestWhatIsTriedAgain(t *testing.T) {
	tests := map[string]struct {
		answer answer
		again  bool
	}{
		"408":     {answer{status: 408}, true},
		"425":     {answer{status: 425}, true},
		"429":     {answer{status: 429}, true},
		"500":     {answer{status: 500}, true},
		"503":     {answer{status: 503}, true},
		"599":     {answer{status: 599}, true},
		"connect": {answer{err: io.ErrUnexpectedEOF}, true},
		"dns":     {answer{err: &net.DNSError{Err: "no such host", IsNotFound: true}}, true},
		"timeout": {answer{takes: time.Hour}, true},
		"200":     {answer{status: 200}, false},
		"301":     {answer{status: 301}, false},
		"400":     {answer{status: 400}, false},
		"401":     {answer{status: 401}, false},
		"404":     {answer{status: 404}, false},
		"410":     {answer{status: 410}, false},
		"422":     {answer{status: 422}, false},
		"blocked": {answer{err: fmt.Errorf("dial: %w", egress.ErrBlocked)}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answers{next: []answer{tt.answer}}
				h := startWith(t, a, retrying)
				rec := oneOf(h)
				assert.Equal(t, 1, rec.Attempt)
				assert.Equal(t, 10, rec.MaxAttempts)
				assert.Equal(t, tt.again, !rec.NextAttempt.IsZero())
				if !tt.again {
					time.Sleep(24 * time.Hour)
					assert.Len(t, a.received(), 1)
					return
				}
				second := <-h.records
				assert.Equal(t, audit.Succeeded, second.Outcome)
				assert.Equal(t, 2, second.Attempt)
				assert.NotEqual(t, rec.ID, second.ID)
				assert.Equal(t, rec.NextAttempt, second.Time)
			})
		})
	}
}

// The pauses grow from 5 s threefold to the greatest one, less up to half of each by chance.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{next: repeat(answer{status: 500}, 100)}
		h := startWith(t, a, retrying, func(c *Config, _ *environment) { c.Retry.MaxInterval = time.Minute })
		h.send(partial("id", names.EventRaised))
		pauses := []time.Duration{5, 15, 45, 60, 60, 60, 60, 60, 60}
		for n := 1; n <= 10; n++ {
			rec := <-h.records
			assert.Equal(t, n, rec.Attempt)
			assert.Equal(t, audit.Failed, rec.Outcome)
			if n == 10 {
				assert.Zero(t, rec.NextAttempt, "given up")
				break
			}
			pause := rec.NextAttempt.Sub(rec.Time)
			assert.GreaterOrEqual(t, pause, pauses[n-1]*time.Second/2)
			assert.LessOrEqual(t, pause, pauses[n-1]*time.Second)
		}
		time.Sleep(24 * time.Hour)
		assert.Len(t, a.received(), 10)
		assertDeliveries(t, h.telemetry, map[[3]string]int64{{"ops", "failed", "http_5xx"}: 1})
		metadatatest.AssertEqualExporterWebhookAttempts(t, h.telemetry, []metricdata.DataPoint[int64]{{
			Value: 10,
			Attributes: attribute.NewSet(attribute.String("receiver", "ops"), attribute.String("outcome", "failed"),
				attribute.String("error.type", "http_5xx")),
		}}, metricdatatest.IgnoreTimestamp())
	})
}

func TestMaxElapsedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{next: repeat(answer{status: 500}, 100)}
		h := startWith(t, a, retrying, func(c *Config, _ *environment) {
			c.Retry.MaxInterval, c.Retry.MaxElapsedTime, c.Retry.MaxAttempts = time.Minute, 10*time.Minute, 100
		})
		h.send(partial("id", names.EventRaised))
		first := <-h.records
		last := first
		for !last.NextAttempt.IsZero() {
			last = <-h.records
		}
		assert.Less(t, last.Time.Sub(first.Time), 10*time.Minute)
		assert.Greater(t, last.Time.Sub(first.Time), 8*time.Minute)
	})
}

// An attempt that is tried again is the same message with a new time.
func TestRetriesAreOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{next: repeat(answer{status: 502}, 2)}
		cfg := to("https://hooks.example.com")
		cfg.Signing.Standard = []configopaque.String{whsec(1)}
		h := newHarness(t, only(cfg), retrying, via(a))
		require.NoError(t, h.Start(context.Background(), componenttest.NewNopHost()))
		h.send(partial("0195-one", names.EventRaised))
		for range 3 {
			<-h.records
		}
		calls := a.received()
		stamps, signatures := map[string]bool{}, map[string]bool{}
		for _, c := range calls {
			assert.Equal(t, "0195-one", c.header.Get(signing.HeaderID))
			assert.Equal(t, calls[0].body, c.body)
			stamps[c.header.Get(signing.HeaderTimestamp)] = true
			signatures[c.header.Get(signing.HeaderSignature)] = true
		}
		assert.Len(t, stamps, 3)
		assert.Len(t, signatures, 3)
	})
}

// A clearing must not arrive before its raising, however long that takes; other
// conditions are not held up, not even with one worker.
func TestRetryKeepsTheOrderOfItsKeyAndNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{next: repeat(answer{status: 500}, 3)}
		cfg := to("https://hooks.example.com")
		cfg.Workers = 1
		h := newHarness(t, only(cfg), retrying, via(a))
		require.NoError(t, h.Start(context.Background(), componenttest.NewNopHost()))
		h.send(partial("raised", names.EventRaised))
		assert.Equal(t, 500, (<-h.records).Status)
		a.mu.Lock()
		a.next = append([]answer{{status: 200}}, a.next...) // for the other one
		a.mu.Unlock()
		h.send(partial("cleared", names.EventCleared))
		logs := partial("other", names.EventRaised)
		logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().PutStr(names.GPUEventKey, "another")
		h.send(logs)
		synctest.Wait()
		metadatatest.AssertEqualExporterWebhookRetriesWaiting(t, h.telemetry,
			[]metricdata.DataPoint[int64]{{Value: 1, Attributes: attribute.NewSet(attribute.String("receiver", "ops"))}},
			metricdatatest.IgnoreTimestamp())
		metadatatest.AssertEqualExporterWebhookQueueLength(t, h.telemetry,
			[]metricdata.DataPoint[int64]{{Value: 2, Attributes: attribute.NewSet(attribute.String("receiver", "ops"))}},
			metricdatatest.IgnoreTimestamp())
		time.Sleep(time.Hour)
		assert.Equal(t, []string{"raised", "other", "raised", "raised", "raised", "cleared"}, a.ids())
		assert.Less(t, a.received()[1].at, time.Second)
	})
}

// What waits for its next attempt occupies room in the queue.
func TestWaitingRetriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{next: repeat(answer{status: 500}, 3)}
		cfg := to("https://hooks.example.com")
		cfg.QueueSize = 3
		h := newHarness(t, only(cfg), retrying, via(a))
		require.NoError(t, h.Start(context.Background(), componenttest.NewNopHost()))
		for i := range 3 {
			h.send(keyed(fmt.Sprint(i)))
			assert.Equal(t, 500, (<-h.records).Status)
		}
		synctest.Wait() // until what has its record waits
		h.send(keyed("late"))
		assert.Equal(t, audit.ErrorQueueFull, (<-h.records).ErrorType)
	})
}

// keyed is an event of its own key.
func keyed(id string) plog.Logs {
	logs := partial(id, names.EventRaised)
	logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().PutStr(names.GPUEventKey, id)
	return logs
}

// Without storage, what waits for its next attempt at the end gets it at once.
func TestShutdownMakesTheLastAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{next: repeat(answer{status: 500}, 2)}
		h := startWith(t, a, retrying)
		h.send(keyed("a"))
		h.send(keyed("b"))
		require.NotZero(t, (<-h.records).NextAttempt)
		require.NotZero(t, (<-h.records).NextAttempt)
		a.mu.Lock()
		a.next = []answer{{status: 200}, {status: 500}}
		a.mu.Unlock()
		start := time.Now()
		require.NoError(t, h.Shutdown(context.Background()))
		assert.Zero(t, time.Since(start))
		one, two := <-h.records, <-h.records
		assert.ElementsMatch(t, []audit.Outcome{audit.Succeeded, audit.Failed}, []audit.Outcome{one.Outcome, two.Outcome})
		assert.Zero(t, one.NextAttempt)
		assert.Zero(t, two.NextAttempt)
		assert.Empty(t, h.records)
	})
}

// A receiver that limits the rate is not waited for, and gets nothing early.
func TestShutdownWhileRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{next: []answer{{status: 429, retryAfter: "3600"}}}
		h := startWith(t, a, retrying)
		h.send(keyed("a"))
		<-h.records
		h.send(keyed("b"))
		start := time.Now()
		require.NoError(t, h.Shutdown(context.Background()))
		assert.Zero(t, time.Since(start))
		for _, id := range []string{"a", "b"} {
			rec := <-h.records
			assert.Equal(t, id, rec.Events[0].ID)
			assert.Equal(t, audit.Dropped, rec.Outcome)
			assert.Equal(t, audit.ErrorShutdown, rec.ErrorType)
		}
		assert.Len(t, a.received(), 1)
	})
}

// 410 ends also what waits for its next attempt.
func TestGoneEndsRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{next: []answer{{status: 500}, {status: 410}}}
		h := startWith(t, a, retrying)
		h.send(keyed("a"))
		<-h.records
		h.send(keyed("b"))
		assert.Equal(t, audit.ErrorGone, (<-h.records).ErrorType)
		rec := <-h.records
		assert.Equal(t, "a", rec.Events[0].ID)
		assert.Equal(t, audit.Dropped, rec.Outcome)
		assert.Equal(t, audit.ErrorGone, rec.ErrorType)
		assert.Less(t, time.Since(a.started), time.Second)
	})
}

func TestDeliveryConfigIsChecked(t *testing.T) {
	tests := map[string]func(*Config){
		"retry::initial_interval":      func(c *Config) { c.Retry.InitialInterval = 0 },
		"retry::max_interval":          func(c *Config) { c.Retry.MaxInterval = time.Second },
		"retry::max_elapsed_time":      func(c *Config) { c.Retry.MaxElapsedTime = -1 },
		"retry::max_elapsed_time:":     func(c *Config) { c.Retry.MaxElapsedTime = time.Second },
		"retry::max_attempts":          func(c *Config) { c.Retry.MaxAttempts = 0 },
		"retry::max_attempts: 101":     func(c *Config) { c.Retry.MaxAttempts = 101 },
		"group_wait: -1s":              func(c *Config) { c.GroupWait = -time.Second },
		"retry::initial_interval: 5ns": func(c *Config) { c.Retry.InitialInterval = 5 },
		"group_wait: 5ns":              func(c *Config) { c.GroupWait = 5 },
		"group_wait: 1h":               func(c *Config) { c.GroupWait = time.Hour },
		"replay_events: -1":            func(c *Config) { c.ReplayEvents = -1 },
		"replay_events: 1000000":       func(c *Config) { c.ReplayEvents = 1_000_000 },
	}
	for want, change := range tests {
		cfg := createDefaultConfig().(*Config)
		cfg.Receivers = only(to("https://hooks.example.com"))
		require.NoError(t, cfg.Validate())
		change(cfg)
		err := cfg.Validate()
		require.ErrorContains(t, err, want)
		assert.False(t, strings.Contains(err.Error(), "\n"))
	}
}
