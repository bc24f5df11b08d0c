// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/format"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/send"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// listing is a format that supports up to five events.
var listing = format.Encoder{Format: format.Format{Name: "listing", Group: 5}, Encode: func(events []*event.Event) ([]byte, error) {
	var ids []string
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	return []byte(strings.Join(ids, " ")), nil
}}

func grouping(cfg *Config, _ *environment) { cfg.GroupWait = 2 * time.Second }

// listed lets the harness's endpoints, which have not started, take lists.
func listed(h *harness) {
	for _, ep := range h.fixed {
		ep.Encoder = listing
	}
}

func startListing(t *testing.T, a send.RoundTripper, change ...func(*Config, *environment)) *harness {
	h := newHarness(t, hooks, append(change, grouping, via(a))...)
	listed(h)
	require.NoError(t, h.Start(context.Background(), componenttest.NewNopHost()))
	return h
}

// of is an event of a node.
func of(node, id, key string) plog.Logs {
	logs := partial(id, names.EventRaised)
	rl := logs.ResourceLogs().At(0)
	rl.Resource().Attributes().Remove(names.ServiceName)
	if node != "" {
		rl.Resource().Attributes().PutStr(names.K8sNodeName, node)
	}
	rl.ScopeLogs().At(0).LogRecords().At(0).Attributes().PutStr(names.GPUEventKey, key)
	return logs
}

func (a *answers) bodies() []string {
	var out []string
	for _, c := range a.received() {
		out = append(out, c.body)
	}
	return out
}

func TestEventsOfOneNodeTravelTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{}
		h := startListing(t, a)
		start := time.Now()
		h.send(of("n1", "a", "ka"))
		time.Sleep(time.Second)
		h.send(of("n1", "b", "kb"))
		h.send(of("n2", "c", "kc"))
		h.send(of("", "d", "kd"))
		rec := <-h.records
		assert.Equal(t, "d", rec.Events[0].ID, "of no place: at once")
		assert.Equal(t, time.Second, time.Since(start))

		rec = <-h.records
		assert.Equal(t, 2*time.Second, time.Since(start), "since the first")
		require.Len(t, rec.Events, 2)
		assert.Equal(t, []string{"a", "b"}, []string{rec.Events[0].ID, rec.Events[1].ID})
		assert.Equal(t, "kb", rec.Events[1].Key)
		assert.Equal(t, 1, rec.Attempt)
		assert.Equal(t, 2*time.Second, rec.Durations.Queued)

		<-h.records
		assert.Equal(t, []string{"d", "a b", "c"}, a.bodies())
		ids := a.ids()
		assert.Regexp(t, "^grp_", ids[1])
		assert.Equal(t, "c", ids[2], "one alone keeps its own")
		assertDeliveries(t, h.telemetry, map[[3]string]int64{{"ops", "succeeded", ""}: 4})
	})
}

// One silent service is partial and without data: one message, not two.
func TestEventsOfOneServiceTravelTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startListing(t, &answers{})
		logs := partial("partial", names.EventRaised)
		second := addPartial(logs, "no_data", names.EventRaised, plog.SeverityNumberError)
		second.SetEventName(names.EventServiceNoData)
		second.Attributes().PutStr(names.GPUEventKey, "prod/vllm/no_data")
		other := addPartial(logs, "other", names.EventRaised, plog.SeverityNumberWarn)
		other.Attributes().PutStr(names.GPUEventKey, "prod/other/partial")
		logs.ResourceLogs().At(2).Resource().Attributes().PutStr(names.ServiceName, "other")
		h.send(logs)
		counts := map[int]int{}
		for range 2 {
			counts[len((<-h.records).Events)]++
		}
		assert.Equal(t, map[int]int{2: 1, 1: 1}, counts)
	})
}

func TestAFullGroupDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{}
		h := startListing(t, a)
		start := time.Now()
		for i := range 6 {
			h.send(of("n1", fmt.Sprint(i), fmt.Sprint("k", i)))
		}
		assert.Len(t, (<-h.records).Events, 5)
		assert.Zero(t, time.Since(start))
		assert.Len(t, (<-h.records).Events, 1)
		assert.Equal(t, 2*time.Second, time.Since(start))
	})
}

// Formats that support one event never wait.
func TestNoGroupsWhereTheFormatHasNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{}
		h := startWith(t, a, grouping)
		start := time.Now()
		h.send(of("n1", "a", "ka"))
		<-h.records
		assert.Zero(t, time.Since(start))
	})
}

// Nodes of two clusters may have one name.
func TestNodesOfTwoClustersAreTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{}
		h := startListing(t, a)
		for _, cluster := range []string{"c1", "c2"} {
			logs := of("gpu-0", cluster, cluster)
			logs.ResourceLogs().At(0).Resource().Attributes().PutStr(names.K8sClusterName, cluster)
			h.send(logs)
		}
		<-h.records
		<-h.records
		assert.ElementsMatch(t, []string{"c1", "c2"}, a.bodies())
	})
}

// The order of a key holds between groups, and between a group and what travels
// alone.
func TestGroupsKeepTheOrderOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{next: []answer{{takes: time.Second}}}
		h := startListing(t, a)
		h.send(of("n1", "1", "k"))
		h.send(of("n1", "x", "kx"))
		h.send(of("", "2", "k"))   // must not overtake 1
		h.send(of("n2", "3", "k")) // waits for its own group
		h.send(of("n1", "4", "k")) // must not overtake 3
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"1 x", "2", "3", "4"}, a.bodies())
	})
}

func TestAGroupIsTriedAgainAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{next: repeat(answer{status: 500}, 2)}
		h := startListing(t, a, retrying)
		h.send(of("n1", "a", "ka"))
		h.send(of("n1", "b", "kb"))
		for range 3 {
			assert.Len(t, (<-h.records).Events, 2)
		}
		assert.Equal(t, []string{"a b", "a b", "a b"}, a.bodies())
		ids := a.ids()
		assert.Equal(t, ids[0], ids[1])
		assert.Equal(t, ids[0], ids[2])
	})
}

// A group that was tried stays that group across restarts, with its webhook-id;
// what was still gathered is gathered again.
func TestGroupsSurvive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boot := func(d *disk, a send.RoundTripper) *harness {
			h := newHarness(t, hooks, grouping, retrying, onDisk, via(a))
			listed(h)
			d.start(t, h)
			return h
		}
		d, a := newDisk(), &answers{next: []answer{{status: 500}}}
		killed := boot(d, a)
		killed.send(of("n1", "a", "ka"))
		killed.send(of("n1", "b", "kb"))
		rec := <-killed.records
		killed.send(of("n1", "c", "kc"))
		killed.send(of("n1", "d", "kd"))
		synctest.Wait()
		after, b := d.copied(), &answers{}
		shutdownNow(t, killed)

		h := boot(after, b)
		second, third := <-h.records, <-h.records
		if second.Attempt == 1 {
			second, third = third, second
		}
		assert.Equal(t, 2, second.Attempt)
		assert.Equal(t, rec.Events, second.Events)
		assert.Len(t, third.Events, 2)
		assert.ElementsMatch(t, []string{"a b", "c d"}, b.bodies())
		assert.Contains(t, b.ids(), a.ids()[0])
		synctest.Wait()
		assert.Empty(t, after.keys("d/"))
	})
}

// A group that waits for its next attempt while the receiver gets another format,
// one that does not support several: every event is sent, in order, and recorded.
func TestAGroupForAnotherFormat(t *testing.T) {
	stored := map[string]func(*Config, *environment){"in memory": func(*Config, *environment) {}, "stored": onDisk}
	for name, storage := range stored {
		t.Run(name, func(t *testing.T) {
			old, fresh := newHook(t, answerWith(500)), newHook(t, nil)
			slack := to(old.URL)
			slack.Format = "slack"
			h := newHarness(t, only(slack), retrying, storage, func(c *Config, _ *environment) { c.GroupWait = time.Minute })
			d := newDisk()
			require.NoError(t, h.Start(t.Context(), host{diskID: d}))
			for i := range 10 { // the last one sends it
				h.send(of("n1", fmt.Sprint(i), fmt.Sprint("k", i%3)))
			}
			first := h.record()
			assert.Len(t, first.Events, 10)
			h.send(of("n1", "behind", "k1"))
			h.applies(only(to(fresh.URL)))
			last := map[string]string{}
			for range 10 + 1 {
				rec := h.record()
				require.Len(t, rec.Events, 1)
				assert.Equal(t, audit.Succeeded, rec.Outcome)
				if rec.Events[0].ID != "behind" {
					assert.Equal(t, 2, rec.Attempt)
				}
				assert.Greater(t, rec.Events[0].ID, last[rec.Events[0].Key])
				last[rec.Events[0].Key] = rec.Events[0].ID
			}
			assert.Len(t, fresh.received(), 10+1)
			require.NoError(t, h.Shutdown(t.Context()))
			assert.Empty(t, d.keys("d/"))
		})
	}
}

// Shutdown does not wait for groups to fill.
func TestShutdownSendsGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{}
		h := startListing(t, a)
		h.send(of("n1", "a", "ka"))
		h.send(of("n1", "b", "kb"))
		require.NoError(t, h.Shutdown(context.Background()))
		assert.Equal(t, []string{"a b"}, a.bodies())
		assert.Equal(t, audit.Succeeded, (<-h.records).Outcome)
	})
}
