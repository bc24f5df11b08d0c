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
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// When another exporter refused a batch, its sender repeats it: at once, after
// many others, and after a restart. Each event is posted once.
func TestAnEventThatIsSentAgainIsPostedOnce(t *testing.T) {
	for _, replay := range []int{0, defaultReplayEvents} {
		t.Run(fmt.Sprintf("replay_events %d", replay), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, a := newDisk(), &answers{}
				keeping := func(c *Config, _ *environment) { c.ReplayEvents = replay }
				h := d.bootWith(t, nil, a, hooks, keeping)
				for range 5 {
					h.send(partial("same", names.EventRaised))
				}
				for i := range 20 {
					h.send(partial(fmt.Sprint(i), names.EventRaised))
				}
				h.send(partial("same", names.EventRaised))
				synctest.Wait()
				assert.Len(t, a.received(), 21)
				assertSkipped(t, h.telemetry, map[string]int64{"duplicate": 5})

				again := d.copied().bootWith(t, nil, a, hooks, keeping)
				again.send(partial("same", names.EventRaised))
				again.send(partial("new", names.EventRaised))
				synctest.Wait()
				assert.Len(t, a.received(), 22)
				assertSkipped(t, again.telemetry, map[string]int64{"duplicate": 1})
				if replay > 0 {
					records, err := again.Replay(context.Background(), "same", "")
					assert.NoError(t, err)
					assert.Len(t, records, 1, "by hand it is sent")
				}
			})
		})
	}
}

// The clearing of a withheld raising is withheld each time that it arrives.
func TestAClearingThatIsSentAgainStaysWithheld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		severe := to("https://hooks.example.com")
		severe.MinSeverity = "error"
		d, a := newDisk(), &answers{}
		h := d.bootWith(t, nil, a, only(severe))
		event := func(id, state string, severity plog.SeverityNumber) plog.Logs {
			logs := plog.NewLogs()
			addPartial(logs, id, state, severity)
			return logs
		}
		h.send(event("raising", names.EventRaised, plog.SeverityNumberWarn))
		for range 2 {
			h.send(event("clearing", names.EventCleared, plog.SeverityNumberInfo))
		}
		synctest.Wait()
		again := d.copied().bootWith(t, nil, a, only(severe))
		again.send(event("clearing", names.EventCleared, plog.SeverityNumberInfo))
		synctest.Wait()
		assert.Empty(t, a.received())
	})
}

// What is sent again while the first is being stored is acknowledged when that
// is done.
func TestADuplicateIsAcknowledgedWhenTheFirstIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		h := d.bootWith(t, nil, &answers{}, hooks)
		hang := make(chan struct{})
		d.locked(func() { d.hang = hang })
		done := make(chan error, 2)
		for range 2 {
			go func() { done <- h.ConsumeLogs(context.Background(), partial("same", names.EventRaised)) }()
			synctest.Wait()
		}
		time.Sleep(time.Second)
		assert.Empty(t, done)
		d.locked(func() { d.hang = nil })
		close(hang)
		synctest.Wait()
		assert.Len(t, done, 2)
	})
}
