// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// A kill at every step of an attempt, then a start on what is left: the event is
// delivered or given up, and each attempt has exactly one record.
func TestKilledAtEveryStepOfAnAttempt(t *testing.T) {
	intent := func(ops []*storage.Operation) bool { return has(ops, `"attempting"`) }
	removal := func(ops []*storage.Operation) bool {
		return slices.ContainsFunc(ops, func(op *storage.Operation) bool {
			return op.Type == storage.Delete && strings.HasPrefix(op.Key, "d/")
		})
	}
	next := func(ops []*storage.Operation) bool { return has(ops, `"next"`) }
	// Each step kills the process by calling dead.
	steps := map[string]func(d *disk, f *file, a *answers, dead func()){
		"before the intent is stored": func(d *disk, _ *file, _ *answers, dead func()) {
			d.before = func(ops []*storage.Operation) bool {
				if intent(ops) {
					dead()
					return true
				}
				return false
			}
		},
		"after the intent is stored": func(d *disk, _ *file, _ *answers, dead func()) {
			d.after = func(ops []*storage.Operation) {
				if intent(ops) {
					dead()
				}
			}
		},
		"after the response": func(d *disk, f *file, _ *answers, dead func()) {
			f.before = func(*audit.Record) { d.locked(dead) }
		},
		"after the audit record": func(d *disk, f *file, _ *answers, dead func()) {
			f.after = func(*audit.Record) { d.locked(dead) }
		},
		"after the removal": func(d *disk, _ *file, _ *answers, dead func()) {
			d.after = func(ops []*storage.Operation) {
				if removal(ops) || next(ops) {
					dead()
				}
			}
		},
	}
	for name, kill := range steps {
		for _, first := range []int{200, 500, 404} {
			for _, retry := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %d, retry %t", name, first, retry), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						d, f, a := newDisk(), &file{}, &answers{next: []answer{{status: first}}}
						var killed atomic.Bool
						var left *disk
						dead := func() { // called with the disk's lock
							if killed.Swap(true) {
								return
							}
							left = &disk{values: d.snapshot()}
						}
						enabled := func(c *Config, _ *environment) { c.Retry.Enabled = retry }
						h := d.bootWith(t, f, a, hooks, enabled)
						d.mu.Lock()
						f.mu.Lock()
						f.dead, d.dead, a.dead = &killed, &killed, &killed
						kill(d, f, a, dead)
						f.mu.Unlock()
						d.mu.Unlock()
						h.send(partial("id", names.EventRaised))
						synctest.Wait()
						require.True(t, killed.Load(), "the step was not reached")
						sent := len(a.received())
						records := f.copied()
						shutdownNow(t, h)

						second, again := &file{records: records}, &answers{}
						h = left.bootWith(t, second, again, hooks, enabled)
						time.Sleep(time.Hour)
						synctest.Wait()
						require.NoError(t, h.Shutdown(context.Background()))

						ids, gaveUp, succeeded := map[string]int{}, 0, 0
						attempts := map[int]int{}
						for _, r := range second.copied() {
							ids[r.ID]++
							attempts[r.Attempt]++
							switch {
							case r.Outcome == audit.Succeeded:
								succeeded++
							case r.NextAttempt.IsZero():
								gaveUp++
							}
						}
						for id, n := range ids {
							assert.Equal(t, 1, n, id)
						}
						for n, times := range attempts {
							assert.Equal(t, 1, times, "attempt %d", n)
						}
						assert.Positive(t, succeeded+gaveUp, "delivered, or given up")
						// What the intent describes may or may not have been sent; nothing
						// else is sent without a record.
						assert.GreaterOrEqual(t, len(second.copied()), sent+len(again.received()))
						if retry && first != 404 {
							assert.Positive(t, succeeded)
						}
						if name == "after the audit record" && first != 500 {
							assert.Empty(t, again.received(), "the record says that the delivery came to its end")
						}
						assert.Empty(t, left.keys("d/"))
					})
				})
			}
		}
	}
}

// The last record announced an attempt, and there is no other end of the
// delivery: it is made, however long the process was down and whatever the
// configuration contains by then. Otherwise the event would be lost silently.
func TestWhatTheLastRecordPromisedIsTried(t *testing.T) {
	for name, change := range map[string]func(*Config, *environment){
		"longer than max_elapsed_time": retrying,
		"retry was switched off":       func(*Config, *environment) {},
		"max_attempts was lowered":     func(c *Config, _ *environment) { c.Retry.Enabled, c.Retry.MaxAttempts = true, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, f := newDisk(), &file{}
				var killed atomic.Bool
				var left *disk
				h := d.bootWith(t, f, &answers{next: []answer{{status: 500}}}, hooks, retrying)
				f.mu.Lock()
				f.dead, d.dead = &killed, &killed
				f.after = func(*audit.Record) {
					if !killed.Swap(true) {
						left = d.copied()
					}
				}
				f.mu.Unlock()
				h.send(partial("id", names.EventRaised))
				synctest.Wait()
				require.NotZero(t, f.copied()[0].NextAttempt)
				shutdownNow(t, h)
				time.Sleep(48 * time.Hour)

				again := &answers{}
				h = left.bootWith(t, &file{records: f.copied()}, again, hooks, change)
				synctest.Wait()
				assert.Equal(t, []string{"id"}, again.ids())
				assert.Equal(t, 2, (<-h.records).Attempt)
				assert.Empty(t, left.keys("d/"))
			})
		})
	}
}

func has(ops []*storage.Operation, text string) bool {
	return slices.ContainsFunc(ops, func(op *storage.Operation) bool { return strings.Contains(string(op.Value), text) })
}
