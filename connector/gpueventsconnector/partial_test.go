// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/metadatatest"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

var chat = subject.Service{Cluster: "c1", Namespace: "ml", Name: "chat"}

func TestPartialIsRaisedAndCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		require.Empty(t, b.feed(batch(evaluated{service: chat, at: 10, reporting: 4})), "the first 0 raises nothing")

		events := b.feed(batch(evaluated{
			service: chat, at: 25, partial: 1, missing: []string{"chat-2", "chat-0"}, reporting: 1, ratio: 0.5,
		}))
		require.Len(t, events, 1)
		raised := events[0]
		require.Equal(t, map[string]any{
			"k8s.cluster.name": "c1", "k8s.namespace.name": "ml", "service.name": "chat",
		}, raised.resource)
		require.Equal(t, "gpu.service.partial", raised.record.EventName())
		require.Equal(t, plog.SeverityNumberWarn, raised.record.SeverityNumber())
		require.Equal(t, "WARN", raised.record.SeverityText())
		require.Equal(t, pcommon.Timestamp(25e9), raised.record.Timestamp())
		require.Equal(t, pcommon.NewTimestampFromTime(time.Now()), raised.record.ObservedTimestamp())
		require.Equal(t,
			"Service chat in namespace ml of cluster c1 is partial: 2 of 4 settled pods are missing (chat-0, chat-2).",
			raised.body)
		id := raised.attrs[names.GPUEventID].(string)
		delete(raised.attrs, names.GPUEventID)
		require.Equal(t, map[string]any{
			"gpu.event.key":                 "gpu.service.partial/c1/ml/chat",
			"gpu.event.state":               "raised",
			"gpu.service.missing_pods":      []any{"chat-0", "chat-2"},
			"gpu.service.missing_pod_count": int64(2),
			"gpu.service.settled_pod_count": int64(4),
			"gpu.service.missing_ratio":     0.5,
		}, raised.attrs)

		require.Empty(t, b.feed(batch(evaluated{service: chat, at: 40, partial: 1})), "raised once")

		events = b.feed(batch(evaluated{
			service: chat, at: 55, missing: []string{"chat-2"}, reporting: 4, ratio: 1. / 6,
		}))
		require.Len(t, events, 1)
		cleared := events[0]
		require.Equal(t, "cleared", cleared.state)
		require.Equal(t, plog.SeverityNumberInfo, cleared.record.SeverityNumber())
		require.Equal(t, "INFO", cleared.record.SeverityText())
		require.Equal(t,
			"Service chat in namespace ml of cluster c1 is no longer partial: 1 of 6 settled pods is missing (chat-2).",
			cleared.body)
		require.Equal(t, "gpu.service.partial/c1/ml/chat", cleared.attrs[names.GPUEventKey], "raised and cleared share it")
		require.NotEqual(t, id, cleared.attrs[names.GPUEventID], "each event has its own")
		for _, s := range []string{id, cleared.attrs[names.GPUEventID].(string)} {
			parsed, err := uuid.Parse(s)
			require.NoError(t, err)
			require.Equal(t, uuid.Version(7), parsed.Version())
		}
		require.Empty(t, b.feed(batch(evaluated{service: chat, at: 70})), "cleared once")
	})
}

func TestFlappingIsReportedEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		var got []string
		for i, v := range []float64{1, 0, 1, 1, 0, 0, 1} {
			got = append(got, states(b.feed(batch(evaluated{service: chat, at: i, partial: v})))...)
		}
		require.Equal(t, []string{"raised", "cleared", "raised", "cleared", "raised"}, got)
	})
}

// Several evaluations may arrive in one batch. Each event belongs to its own.
func TestEvaluationsInOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := start(t).feed(batch(
			evaluated{service: chat, at: 10, partial: 1, missing: []string{"a", "b"}, ratio: 0.6},
			evaluated{service: chat, at: 25, reporting: 2, ratio: 0},
			evaluated{service: chat, at: 40, partial: 1, missing: []string{"c"}, ratio: 0.5},
		))
		require.Equal(t, []string{"raised", "cleared", "raised"}, states(events))
		require.Equal(t, []any{"a", "b"}, events[0].attrs[names.GPUServiceMissingPods])
		require.Equal(t, "Service chat in namespace ml of cluster c1 is no longer partial: none of 3 settled pods is missing.", events[1].body)
		require.Equal(t, []any{"c"}, events[2].attrs[names.GPUServiceMissingPods])
	})
}

func TestAbsentInputChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		require.Equal(t, []string{"raised"}, states(b.feed(batch(evaluated{service: chat, at: 10, partial: 1}))))
		require.Empty(t, b.feed(pmetric.NewMetrics()))
		require.Empty(t, b.feed(batch(evaluated{service: subject.Service{Name: "other"}, at: 25})))

		// Averages go on while partial is absent, as after a start of the summary.
		md := batch(evaluated{service: chat, at: 40})
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().RemoveIf(func(m pmetric.Metric) bool {
			return m.Name() == names.ServicePartial.Name
		})
		require.Empty(t, b.feed(md))
		require.Equal(t, []string{"cleared"}, states(b.feed(batch(evaluated{service: chat, at: 55}))))
	})
}

func TestServicesAreDistinguished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		services := []subject.Service{
			serviceID("c1", "ml", "chat"), serviceID("c1", "lab", "chat"), serviceID("c2", "ml", "chat"), serviceID("", "ml", "chat"), serviceID("", "", "chat"),
			serviceID("c1", "ml/chat", "x"), serviceID("c1", "ml", "chat/x"),
		}
		var all []evaluated
		for _, s := range services {
			all = append(all, evaluated{service: s, at: 10, partial: 1})
		}
		keys := map[any]bool{}
		for i, e := range b.feed(batch(all...)) {
			want := map[string]any{}
			attrs := pcommon.NewMap()
			services[i].Put(attrs)
			for k, v := range attrs.AsRaw() {
				want[k] = v
			}
			require.Equal(t, want, e.resource)
			keys[e.attrs[names.GPUEventKey]] = true
		}
		require.Len(t, keys, len(services))

		events := b.feed(batch(evaluated{service: services[1], at: 25}))
		require.Len(t, events, 1)
		require.Equal(t, "gpu.service.partial/c1/lab/chat", events[0].attrs[names.GPUEventKey])
		require.Equal(t, "Service chat in namespace lab of cluster c1 is no longer partial: none of 1 settled pods is missing.", events[0].body)
	})
}

func TestAfterARestartTheFirstOneRaises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := start(t)
		first := before.feed(batch(evaluated{service: chat, at: 10, partial: 1}))
		after := start(t)
		again := after.feed(batch(evaluated{service: chat, at: 25, partial: 1}))
		require.Equal(t, []string{"raised"}, states(again))
		require.Equal(t, first[0].attrs[names.GPUEventKey], again[0].attrs[names.GPUEventKey])
	})
}

func TestAServiceThatIsGoneIsCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		require.Empty(t, b.feed(batch(evaluated{service: chat, at: 5, stale: true})), "nothing was raised")
		b.feed(batch(evaluated{service: chat, at: 10, partial: 1}))
		events := b.feed(batch(evaluated{service: chat, at: 25, stale: true}))
		require.Equal(t, []string{"cleared"}, states(events))
		require.Equal(t, "Service chat in namespace ml of cluster c1 is gone, and its partial state with it.", events[0].body)
		require.Equal(t, plog.SeverityNumberInfo, events[0].record.SeverityNumber())
		require.Zero(t, b.c.engine.Raised())
	})
}

func TestNamesAtMostFiftyPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pods []string
		for i := range 60 {
			pods = append(pods, fmt.Sprintf("chat-%02d", i))
		}
		e := start(t).feed(batch(evaluated{service: chat, at: 10, partial: 1, missing: pods, ratio: 0.9}))[0]
		named := e.attrs[names.GPUServiceMissingPods].([]any)
		require.Len(t, named, 50)
		require.Equal(t, "chat-00", named[0])
		require.Equal(t, "chat-49", named[49])
		require.Equal(t, int64(60), e.attrs[names.GPUServiceMissingPodCount])
		require.Equal(t, "Service chat in namespace ml of cluster c1 is partial: 60 of 61 settled pods are missing "+
			"(chat-00, chat-01, chat-02, chat-03, chat-04 and 55 more).", e.body)
	})
}

// Only what the batch contains is reported.
func TestUnknownDetailsAreAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t).feed(batch(evaluated{
			service: subject.Service{Name: "chat"}, at: 10, partial: 1, withoutPods: true, resourceOnly: true, partialIsDouble: true,
		}))[0]
		require.Equal(t, "Service chat is partial.", e.body)
		require.Len(t, e.attrs, 3, "id, key and state: %v", e.attrs)
		require.Equal(t, map[string]any{"service.name": "chat"}, e.resource)
	})
}

func TestTextsFromOutsideAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("größe", 200_000)
		evil := "chat\u202e\u200b\n\x00\xff"
		b := start(t)
		events := b.feed(batch(
			evaluated{service: serviceID("c", "n", long), at: 10, partial: 1, missing: []string{long, "po\u200bd"}, ratio: 1},
			evaluated{service: serviceID("c", "n", long+"x"), at: 10, partial: 1},
			evaluated{service: serviceID("c", "n", evil), at: 10, partial: 1},
		))
		require.Len(t, events, 3)
		require.NotEqual(t, events[0].attrs[names.GPUEventKey], events[1].attrs[names.GPUEventKey])
		for _, e := range events {
			require.LessOrEqual(t, len(e.attrs[names.GPUEventKey].(string)), event.MaxKey)
			require.LessOrEqual(t, len(e.resource["service.name"].(string)), 256)
			require.Less(t, len(e.body), 2000)
		}
		require.Contains(t, events[0].attrs[names.GPUServiceMissingPods], "pod")
		require.True(t, strings.HasPrefix(events[2].body, "Service chat \uFFFD in namespace n"), events[2].body)
	})
}

func TestInvalidInputIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		require.Empty(t, b.feed(batch(
			evaluated{service: serviceID("c", "n", ""), at: 10, partial: 1},
			evaluated{service: chat, at: 10, partial: math.NaN(), partialIsDouble: true},
		)))
		md := batch(evaluated{service: chat, at: 10})
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetEmptySummary().DataPoints().AppendEmpty()
		require.Empty(t, b.feed(md))
		metadatatest.AssertEqualGpuEventsInputInvalid(t, b.tel,
			[]metricdata.DataPoint[int64]{{Value: 8}}, metricdatatest.IgnoreTimestamp())

		b.feed(batch(evaluated{service: serviceID("c", "n", ""), at: 25, partial: 1}))
		require.Equal(t, 1, b.logs.Len(), "counted each time, logged once")
	})
}

func TestSubjectsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(c *Config) { c.MaxSubjects = 1 })
		other := serviceID("c1", "ml", "other")
		require.Len(t, b.feed(batch(evaluated{service: chat, at: 10, partial: 1}, evaluated{service: other, at: 10, partial: 1})), 1)
		event := attribute.NewSet(attribute.String("event", "gpu.service.partial"))
		metadatatest.AssertEqualGpuEventsRefused(t, b.tel,
			[]metricdata.DataPoint[int64]{{Value: 1, Attributes: event}}, metricdatatest.IgnoreTimestamp())
		metadatatest.AssertEqualGpuEventsRaised(t, b.tel,
			[]metricdata.DataPoint[int64]{{Value: 1}}, metricdatatest.IgnoreTimestamp())

		require.Equal(t, 1, b.logs.FilterMessageSnippet("max_subjects").Len())

		// As soon as there is room, the other is reported.
		events := b.feed(batch(evaluated{service: chat, at: 25}, evaluated{service: other, at: 25, partial: 1}))
		require.Equal(t, []string{"cleared", "raised"}, states(events))
		metadatatest.AssertEqualGpuEventsEmitted(t, b.tel, []metricdata.DataPoint[int64]{
			{Value: 2, Attributes: attribute.NewSet(attribute.String("event", "gpu.service.partial"), attribute.String("state", "raised"))},
			{Value: 1, Attributes: attribute.NewSet(attribute.String("event", "gpu.service.partial"), attribute.String("state", "cleared"))},
		}, metricdatatest.IgnoreTimestamp())
	})
}

// An event that was not accepted is forwarded again, unchanged: metrics never fail
// because of it.
func TestRefusedEventsComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		next := &refusing{err: errors.New("queue is full")}
		b.c.next = next
		for i, partial := range []float64{1, 0, 1} {
			require.Empty(t, b.feed(batch(evaluated{service: chat, at: 10 + i, partial: partial})))
		}
		synctest.Wait()
		require.Equal(t, 1, b.logs.FilterMessageSnippet("next component refused events").Len())
		next.refuse(nil)
		time.Sleep(maxBackoff)
		synctest.Wait()
		require.Len(t, next.AllLogs(), 1)
		var got []string
		for _, e := range read(next.AllLogs()[0]) {
			got = append(got, fmt.Sprint(e.state, " at ", uint64(e.record.Timestamp()/1e9)))
		}
		require.Equal(t, []string{"raised at 10", "cleared at 11", "raised at 12"}, got)
	})
}

// What the next component will never take is not tried again.
func TestEventsThatAreRefusedForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		next := &refusing{err: consumererror.NewPermanent(errors.New("no"))}
		b.c.next = next
		b.feed(batch(evaluated{service: chat, at: 10, partial: 1}))
		synctest.Wait()
		next.refuse(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, next.AllLogs())
		require.Equal(t, 1, b.logs.FilterMessageSnippet("refused them permanently").Len())
	})
}

// Of two components behind the connector one will never take an event and the
// other not now: the other gets it later.
func TestOneRefusesForGoodTheOtherForNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		no, full := consumererror.NewPermanent(errors.New("no")), errors.New("queue is full")
		next := &refusing{err: errors.Join(no, full)}
		b.c.next = next
		b.feed(batch(evaluated{service: chat, at: 10, partial: 1}))
		synctest.Wait()
		next.refuse(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, next.AllLogs(), 1)
		// Both for good: it ends.
		next.refuse(errors.Join(no, no))
		b.feed(batch(evaluated{service: chat, at: 11}))
		synctest.Wait()
		require.Equal(t, 1, b.logs.FilterMessageSnippet("refused them permanently").Len())
	})
}

func TestConcurrentBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		var wg sync.WaitGroup
		for worker := range 4 {
			wg.Go(func() {
				s := serviceID("c1", "ml", fmt.Sprint("svc-", worker))
				for i := range 50 {
					if b.c.ConsumeMetrics(t.Context(), batch(evaluated{service: s, at: i, partial: float64(i % 2)})) != nil {
						t.Error("a batch was refused")
					}
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		require.Equal(t, 4*49, b.sink.LogRecordCount())
		require.Equal(t, 4, b.c.engine.Raised())
	})
}

func TestScopeNamesTheConnector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.feed(batch(evaluated{service: chat, at: 10, partial: 1}))
		scope := b.sink.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).Scope()
		require.Equal(t, metadata.ScopeName, scope.Name())
	})
}

func TestPointWithoutTimeCountsAsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := start(t).feed(batch(evaluated{service: chat, partial: 1, withoutPods: true}))
		require.Len(t, events, 1)
		require.NotZero(t, events[0].record.Timestamp())
		require.Equal(t, events[0].record.ObservedTimestamp(), events[0].record.Timestamp())
	})
}
