// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/seriesends"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/metadatatest"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

// deviceBatch is one device as the dcgm receiver hands it over.
func deviceBatch(seconds int, labels string) string {
	return fmt.Sprintf(`
		resource hw.id=GPU-a hw.type=gpu %[2]s
		scope dcgm
		metric hw.power gauge W
		300 @%[1]d hw.id=GPU-a
		metric gpu.pipe.active gauge 1
		0.5 @%[1]d hw.id=GPU-a gpu.pipe=tensor
		0.1 @%[1]d hw.id=GPU-a gpu.pipe=fp16
		metric hw.energy counter J
		%[1]d00 @%[1]d hw.id=GPU-a
`, seconds, labels)
}

// ends is the resource that ends the series of deviceBatch.
func ends(seconds int, identity string) string {
	return fmt.Sprintf(`
		resource hw.id=GPU-a hw.type=gpu %[2]s
		scope dcgm
		metric hw.power gauge W
		stale @%[1]d hw.id=GPU-a
		metric gpu.pipe.active gauge 1
		stale @%[1]d hw.id=GPU-a gpu.pipe=tensor
		metric gpu.pipe.active gauge 1
		stale @%[1]d hw.id=GPU-a gpu.pipe=fp16
		metric hw.energy counter J
		stale @%[1]d hw.id=GPU-a
`, seconds, identity)
}

func TestDeviceChangesHands(t *testing.T) {
	const (
		chat, chatID   = "namespace=ml pod=chat-0", "k8s.namespace.name=ml k8s.pod.name=chat-0 service.name=chat-0"
		train, trainID = "namespace=ml pod=train-0", "k8s.namespace.name=ml k8s.pod.name=train-0 service.name=train-0"
	)
	b := start(t)
	b.expect(deviceBatch(10, chat), deviceBatch(10, chatID))
	b.expect(deviceBatch(20, chat), deviceBatch(20, chatID))

	// Another pod takes the device: the old series end, once.
	b.expect(deviceBatch(30, train), deviceBatch(30, trainID)+ends(30, chatID))
	b.expect(deviceBatch(40, train), deviceBatch(40, trainID))

	// The pod goes: the device is free, and later held again.
	b.expect(deviceBatch(50, ""), deviceBatch(50, "")+ends(50, trainID))
	b.expect(deviceBatch(60, chat), deviceBatch(60, chatID)+ends(60, ""))

	// What is late, or as old as the newest, ends nothing.
	b.expect(deviceBatch(55, train), deviceBatch(55, trainID))
	b.expect(deviceBatch(60, train), deviceBatch(60, trainID))
	b.expect(deviceBatch(70, chat), deviceBatch(70, chatID))

	// A uid that becomes known later is another description: see identity.
	b.expect(deviceBatch(80, chat+" pod_uid=u1"), ends(79, chatID)+deviceBatch(80, chatID+" k8s.pod.uid=u1"))

	// A service that becomes known later is a label of every series: the old ones end.
	const known = "k8s.namespace.name=ml k8s.pod.name=chat-0 k8s.pod.uid=u1 service.name=chat"
	b.expect(deviceBatch(90, chat+" pod_uid=u1 pod_label_app=chat"),
		deviceBatch(90, known)+ends(90, chatID+" k8s.pod.uid=u1"))
	b.expect(deviceBatch(100, chat+" pod_uid=u1 pod_label_app=chat"), deviceBatch(100, known))

	metadatatest.AssertEqualGpuPodSeriesEnded(t, b.tel,
		[]metricdata.DataPoint[int64]{{Value: 20}}, metricdatatest.IgnoreTimestamp())
}

func TestScrapedDeviceChangesHands(t *testing.T) {
	page := func(seconds int, labels string) string {
		return fmt.Sprintf(`
		resource service.name=dcgm k8s.node.name=n1
		metric util gauge %%
		1 @%[1]d UUID=GPU-a gpu=0 %[2]s
		2 @%[1]d UUID=GPU-b gpu=1
		metric energy counter mJ
		%[1]d @%[1]d UUID=GPU-a gpu=0 %[2]s`, seconds, labels)
	}
	out := func(seconds int, identity string) string {
		return fmt.Sprintf(`
		resource hw.id=GPU-a hw.type=gpu k8s.node.name=n1 %[2]s
		metric util gauge %%
		1 @%[1]d UUID=GPU-a gpu=0 hw.id=GPU-a
		metric energy counter mJ
		%[1]d @%[1]d UUID=GPU-a gpu=0 hw.id=GPU-a
		resource hw.id=GPU-b hw.type=gpu k8s.node.name=n1
		metric util gauge %%
		2 @%[1]d UUID=GPU-b gpu=1 hw.id=GPU-b`, seconds, identity)
	}
	end := func(seconds int, identity string) string {
		return fmt.Sprintf(`
		resource hw.id=GPU-a hw.type=gpu k8s.node.name=n1 %[2]s
		metric util gauge %%
		stale @%[1]d UUID=GPU-a gpu=0 hw.id=GPU-a
		metric energy counter mJ
		stale @%[1]d UUID=GPU-a gpu=0 hw.id=GPU-a`, seconds, identity)
	}
	const chatID = "k8s.namespace.name=n k8s.pod.name=chat-0 service.name=chat-0"
	const trainID = "k8s.namespace.name=n k8s.pod.name=train-0 service.name=train-0"
	b := start(t)
	b.expect(page(10, "exported_pod=chat-0 exported_namespace=n pod=exp namespace=mon"), out(10, chatID))
	b.expect(page(20, "pod=train-0 namespace=n"), out(20, trainID)+end(20, chatID))
	b.expect(page(30, "pod= namespace="), out(30, "")+end(30, trainID))
	b.expect(page(40, "pod_name=chat-0 pod_namespace=n"), out(40, chatID)+end(40, ""))
}

// The sum over devices is the truth before, during and after a change of hands,
// and there is one series a device at every moment.
func TestSumsStayRight(t *testing.T) {
	shapes := map[string]func(seconds int, power float64, labels string) string{
		"devices": func(seconds int, power float64, labels string) string {
			return fmt.Sprintf(`
				resource hw.id=GPU-a %[3]s
				metric hw.power gauge W
				%[2]g @%[1]d hw.id=GPU-a
				resource hw.id=GPU-b namespace=n pod=other
				metric hw.power gauge W
				1000 @%[1]d hw.id=GPU-b`, seconds, power, labels)
		},
		"scraped": func(seconds int, power float64, labels string) string {
			return fmt.Sprintf(`
				resource service.name=dcgm
				metric hw.power gauge W
				%[2]g @%[1]d UUID=GPU-a %[3]s
				1000 @%[1]d UUID=GPU-b namespace=n pod=other`, seconds, power, labels)
		},
	}
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			b, store := start(t), backend{}
			for i, labels := range []string{
				"", "", "namespace=n pod=a", "namespace=n pod=a", "namespace=n pod=b", "namespace=n pod=b container=c",
				"namespace=n pod=b container=d", "namespace=n pod=b container=d pod_label_app=b1",
				"namespace=n pod=b container=d pod_label_app=b2", "namespace=n pod=b container=d", "", "namespace=m pod=b", "pod=b", "namespace=n pod=a vgpu=1", "namespace=n pod=a",
			} {
				power := float64(i + 1)
				store.write(t, b.feed(parse(shape(10*(i+1), power, labels))))
				require.InDelta(t, 1000+power, store.sum("hw.power"), 0, "step %d: %v", i, store)
				require.Len(t, store, 2)
			}
		})
	}
}

// An owner's time-sliced replicas come and go; the device's series goes on.
func TestSharedDeviceGoesOn(t *testing.T) {
	b, store := start(t), backend{}
	for i, rows := range []string{
		"1 @10 UUID=GPU-a namespace=n pod=a vgpu=0",
		"1 @20 UUID=GPU-a namespace=n pod=a vgpu=0\n1 @20 UUID=GPU-a namespace=n pod=b vgpu=1",
		"1 @30 UUID=GPU-a namespace=n pod=b vgpu=1\nstale @30 UUID=GPU-a namespace=n pod=a vgpu=0",
	} {
		store.write(t, b.feed(parse("resource service.name=x\nmetric m gauge 1\n"+rows)))
		require.Equal(t, backend{"m GPU-a      UUID=GPU-a hw.id=GPU-a": 1}, store, "step %d", i)
	}
}

// What one gpu_pod has done passes through a second one unchanged.
func TestTwiceIsOnce(t *testing.T) {
	agent, gateway := start(t), start(t)
	for i, labels := range []string{"namespace=n pod=a", "namespace=n pod=b", "", "namespace=n pod=a"} {
		out := agent.feed(parse(deviceBatch(10*(i+1), labels)))
		want := format(out)
		require.Equal(t, want, format(gateway.feed(out)), "step %d", i)
	}
}

func TestForgetsSilentDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.feed(parse(deviceBatch(10, "namespace=n pod=a")))
		other := func(seconds int) string {
			return fmt.Sprintf("resource hw.id=GPU-b\nmetric m gauge 1\n1 @%d hw.id=GPU-b", seconds)
		}
		b.feed(parse(other(10)))
		require.Equal(t, 5, b.tracked())

		time.Sleep(ownership.MaxSilence)
		b.feed(parse(other(20)))
		require.Equal(t, 2, b.devices())

		time.Sleep(time.Minute + time.Second)
		b.feed(parse(other(30)))
		require.Equal(t, 1, b.devices())
		require.Equal(t, 1, b.tracked())
		require.Equal(t, [identity.SourceCount]int{identity.SourceNone: 1}, b.p.pipeline.Tracker.Devices())

		// Nothing is ended that aged out long ago.
		out := format(b.feed(parse(deviceBatch(700, "namespace=n pod=b"))))
		require.NotContains(t, out, "stale")
	})
}

// What goes on is not forgotten, however long it has been going on.
func TestRemembersWhatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		for i := range 10 {
			b.feed(parse(deviceBatch(60*(i+1), "namespace=n pod=a")))
			time.Sleep(time.Minute + time.Second)
		}
		require.Equal(t, 4, strings.Count(format(b.feed(parse(deviceBatch(1000, "")))), "stale"))
	})
}

// A clock that jumps: the far future of one device affects no other, and that
// device only until the silence is over.
func TestClockJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.feed(parse(deviceBatch(10, "namespace=n pod=a")))
		b.feed(parse("resource hw.id=GPU-b namespace=n pod=x\nmetric m gauge 1\n1 @4000000000 hw.id=GPU-b"))
		require.Contains(t, format(b.feed(parse(deviceBatch(20, "namespace=n pod=b")))), "stale @20")

		back := "resource hw.id=GPU-b namespace=n pod=y\nmetric m gauge 1\n1 @%d hw.id=GPU-b"
		require.NotContains(t, format(b.feed(parse(fmt.Sprintf(back, 30)))), "stale")
		time.Sleep(ownership.MaxSilence + 2*time.Minute)
		b.feed(parse(fmt.Sprintf(back, 700)))
		require.True(t, b.p.pipeline.Tracker.CopyLast("GPU-b", owner.Owner{Namespace: "n", Pod: "y"}, pcommon.NewMap()))
	})
}

func TestSeriesLimit(t *testing.T) {
	b := start(t, func(c *Config) { c.MaxSeries = 3 })
	const chat = "k8s.namespace.name=n k8s.pod.name=a service.name=a"
	b.expect(deviceBatch(10, "namespace=n pod=a"), deviceBatch(10, chat)) // the fourth is refused
	b.feed(parse("resource hw.id=GPU-b\nmetric m gauge 1\n1 @10 hw.id=GPU-b"))
	require.Equal(t, 1, b.devices(), "no device without a series")
	metadatatest.AssertEqualGpuPodPointsUntracked(t, b.tel,
		[]metricdata.DataPoint[int64]{{Value: 2}}, metricdatatest.IgnoreTimestamp())

	require.Equal(t, 1, b.logs.FilterMessageSnippet("max_series").Len(), "counted each time, logged once")

	out := format(b.feed(parse(deviceBatch(20, ""))))
	require.Equal(t, 3, strings.Count(out, "stale"))
	metadatatest.AssertEqualGpuPodSeries(t, b.tel,
		[]metricdata.DataPoint[int64]{{Value: 3}}, metricdatatest.IgnoreTimestamp())
}

// Whatever order the points of a device come in, with some missing, twice or
// ended, what is remembered is what a store has: a change of hands ends just that.
func TestSeriesInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pods := []string{"a", "b"}
	for range 200 {
		b, store, pod := start(t), backend{}, 0
		for step := 1; step <= 12; step++ {
			if r.IntN(4) == 0 {
				pod = 1 - pod
			}
			var lines strings.Builder
			for range r.IntN(10) + 1 {
				fmt.Fprintf(&lines, "metric m%d gauge 1\n1 @%d hw.id=GPU-a k=%d\n", r.IntN(3), step, r.IntN(3))
			}
			identity := "resource hw.id=GPU-a k8s.namespace.name=n k8s.pod.name=" + pods[pod] + "\n"
			store.write(t, b.feed(parse(identity+lines.String())))

			require.Equal(t, len(store), b.tracked())
			for series := range store {
				require.Contains(t, series, " GPU-a n "+pods[pod]+" ", "the former holder's have ended")
				if r.IntN(8) == 0 {
					f := strings.Fields(series)
					end := fmt.Sprintf("metric %s gauge 1\nstale @%d %s %s", f[0], step+1, f[len(f)-2], f[len(f)-1])
					store.write(t, b.feed(parse(identity+end)))
				}
			}
		}
	}
}

func TestCountsDevicesBySource(t *testing.T) {
	b := start(t)
	b.feed(parse(`
		resource hw.id=GPU-a namespace=n pod=a
		metric m gauge 1
		1 @10 hw.id=GPU-a
		resource hw.id=GPU-b k8s.namespace.name=n k8s.pod.name=a
		metric m gauge 1
		1 @10 hw.id=GPU-b
		resource hw.id=GPU-c dcgm.holders=a
		metric m gauge 1
		1 @10 hw.id=GPU-c
		resource service.name=x
		metric m gauge 1
		1 @10 UUID=GPU-d pod=a
		1 @10 UUID=GPU-e
		1 @10 UUID=GPU-f`))
	var want []metricdata.DataPoint[int64]
	counted := map[string]int64{"exporter_labels": 1, "resource": 1, "shared": 1, "incomplete": 1, "none": 2}
	for of := range identity.SourceCount {
		if of == identity.SourceSlurm {
			continue // absent where no node has Slurm
		}
		source := of.String()
		n := counted[source]
		want = append(want, metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("source", source))})
	}
	metadatatest.AssertEqualGpuPodDevices(t, b.tel, want, metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualGpuPodDevicesUnattributed(t, b.tel,
		[]metricdata.DataPoint[int64]{{Value: 3}}, metricdatatest.IgnoreTimestamp())
}

func TestConcurrentBatches(t *testing.T) {
	b := start(t)
	b.p.next = seriesends.New(consumertest.NewNop(), b.p.cfg.MaxSeries, nil)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 50 {
				md := parse(deviceBatch(i, fmt.Sprintf("namespace=n pod=p%d", (i+worker)%3)))
				if b.p.ConsumeMetrics(t.Context(), md) != nil {
					t.Error("a batch was refused")
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 4, b.tracked())
}
