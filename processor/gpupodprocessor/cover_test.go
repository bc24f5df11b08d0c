// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/seriesends"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/metadatatest"
)

// A record gets the owner of its own time, or none.
func TestARecordOfAnotherTimeGetsNoOwner(t *testing.T) {
	b := start(t)
	logs, err := NewFactory().CreateLogs(t.Context(), metadatatest.NewSettings(b.tel), b.p.cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, logs.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, logs.Shutdown(t.Context())) }()
	b.feed(parse(snapshot(10, "ml/a/main 1 hw.id=GPU-a")))
	b.feed(parse(snapshot(20, "ml/b/main 1 hw.id=GPU-a")))
	b.feed(parse(snapshot(30, "ml/b/main 1 hw.id=GPU-a")))

	write := func(resource string, seconds ...int) (rl plog.ResourceLogs, pods []string) {
		ld := plog.NewLogs()
		rl = ld.ResourceLogs().AppendEmpty()
		putAll(rl.Resource().Attributes(), fields(resource))
		all := rl.ScopeLogs().AppendEmpty().LogRecords()
		for _, at := range seconds {
			record := all.AppendEmpty()
			record.SetTimestamp(pcommon.Timestamp(at) * 1e9)
			if resource == "" {
				putAll(record.Attributes(), fields("hw.id=GPU-a"))
			}
		}
		require.NoError(t, logs.ConsumeLogs(t.Context(), ld))
		for _, record := range all.All() {
			pods = append(pods, str(record.Attributes(), names.K8sPodName))
		}
		return rl, pods
	}
	future := int(time.Now().Add(time.Hour).Unix())
	_, pods := write("", 0, 5, 15, 19, 20, 25, 3000, future)
	assert.Equal(t, []string{"", "", "", "", "b", "b", "b", ""}, pods)

	rl, pods := write("hw.id=GPU-a", 20, 30)
	assert.Equal(t, "b", str(rl.Resource().Attributes(), names.K8sPodName))
	assert.Equal(t, []string{"", ""}, pods)
	rl, pods = write("hw.id=GPU-a", 15, 30)
	assert.Empty(t, str(rl.Resource().Attributes(), names.K8sPodName))
	assert.Equal(t, []string{"", "b"}, pods, "not the resource, of which another record is older")

	metadatatest.AssertEqualGpuPodRecordsUnattributed(t, b.tel, []metricdata.DataPoint[int64]{{Value: 6}}, metricdatatest.IgnoreTimestamp())
}

// slow is a snapshot in which the pod owns GPU-a, with an interval of a minute.
func slow(at int, pod string) pmetric.Metrics {
	md := parse(snapshot(at, "ml/"+pod+"/main 1 hw.id=GPU-a"))
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Metadata().PutDouble(names.GPUAllocationInterval, 60)
	return md
}

// A scrape interval of a minute needs no change of max_age.
func TestASlowIntervalEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		at := func() int { return int(time.Now().Unix()) }
		for range 10 {
			b.feed(slow(at(), "a"))
			for range 4 {
				time.Sleep(14 * time.Second)
				require.Equal(t, map[string]string{"GPU-a": "ml/a/main"}, ownersIn(b, telemetry(at(), "GPU-a", "k8s.node.name=n1")))
			}
			time.Sleep(4 * time.Second)
		}
		_, err := b.tel.GetMetric("otelcol_gpu_pod_series_ended")
		require.Error(t, err, "none")
		require.Equal(t, 1, b.logs.FilterMessageSnippet("less often than max_age").Len())

		time.Sleep(3 * time.Minute)
		require.Equal(t, map[string]string{"GPU-a": ""}, ownersIn(b, telemetry(at(), "GPU-a", "k8s.node.name=n1")), "silent for three intervals")
	})
}

// A snapshot that arrives late, as after a retry, is not the newest while three of the
// intervals have not passed: it gives no device another owner, and ends no series.
func TestALateSnapshotOfASlowIntervalEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, noService)
		b.feed(slow(100, "b"))
		time.Sleep(50 * time.Second)
		require.NotContains(t, format(b.feed(slow(40, "a"))), "stale")
		require.Equal(t, map[string]string{"GPU-a": "ml/b/main"}, ownersIn(b, telemetry(150, "GPU-a", "k8s.node.name=n1")))
	})
}

// The ends of series in a batch that is refused are in front of the next one.
func TestARefusedBatchLosesNoEnds(t *testing.T) {
	b, store, full := start(t), backend{}, false
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		if full {
			return errors.New("the queue is full")
		}
		store.write(t, md)
		return nil
	})
	require.NoError(t, err)
	b.p.next = seriesends.New(next, b.p.cfg.MaxSeries, nil)
	require.NoError(t, b.p.ConsumeMetrics(t.Context(), parse(telemetry(10, "GPU-a", "namespace=ml pod=a"))))
	full = true
	require.Error(t, b.p.ConsumeMetrics(t.Context(), parse(telemetry(20, "GPU-a", "namespace=ml pod=b"))))
	full = false
	require.NoError(t, b.p.ConsumeMetrics(t.Context(), parse(telemetry(20, "GPU-a", "namespace=ml pod=b"))))
	require.InDelta(t, 300, store.sum("hw.power"), 0, "one device is one live series")
}

// One claim of a pod with two containers is the pod's device: one, with all that is
// measured of it.
func TestAClaimOfOnePodIsThePods(t *testing.T) {
	b := start(t, noService)
	b.feed(parse(snapshot(10,
		"ml/a/main 0.5 hw.id=GPU-a::0 gpu.sharing=time_slicing gpu.attribution.source=dra",
		"ml/a/sidecar 0.5 hw.id=GPU-a::1 gpu.sharing=time_slicing gpu.attribution.source=dra")))
	b.expect(inputs(12, "GPU-a", ""), inputs(12, "GPU-a", "k8s.namespace.name=ml k8s.pod.name=a"))

	b.feed(parse(snapshot(20,
		"ml/a/main 0.5 hw.id=GPU-a::0 gpu.sharing=time_slicing gpu.attribution.source=dra",
		"ml/b/main 0.5 hw.id=GPU-a::1 gpu.sharing=time_slicing gpu.attribution.source=dra")))
	require.Equal(t, map[string]string{"GPU-a": "", "GPU-a::0": "ml/a/main", "GPU-a::1": "ml/b/main"},
		ownersIn(b, inputs(22, "GPU-a", "")), "another pod's too: parts")
}
