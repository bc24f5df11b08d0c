// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/metadatatest"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

// A device that is described otherwise goes on as other series, and the former
// ones end before those begin, regardless of its owner.
func TestDeviceIsDescribedOtherwise(t *testing.T) {
	const pod = " k8s.namespace.name=n k8s.pod.name=a k8s.node.name=n1 service.name=a"
	for name, change := range map[string][2]string{
		"host":    {"host.name=exporter-x2x9k", "host.name=exporter-b7c4d"},
		"index":   {"gpu.index=0", "gpu.index=1"},
		"profile": {"gpu.mig.profile=1g.5gb gpu.mig.instance_id=9", "gpu.mig.profile=1g.10gb gpu.mig.instance_id=9"},
		"driver":  {"hw.driver_version=570", "hw.driver_version=580"},
		"more":    {"", "hw.serial_number=7"},
		"less":    {"hpc_job=1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			b.expect(deviceBatch(10, change[0]+pod), deviceBatch(10, change[0]+pod))
			b.expect(deviceBatch(20, change[1]+pod), ends(19, change[0]+pod)+deviceBatch(20, change[1]+pod))
			b.expect(deviceBatch(30, change[1]+pod), deviceBatch(30, change[1]+pod))
			b.expect(deviceBatch(15, change[0]+pod), deviceBatch(15, change[0]+pod)) // late
			b.expect(deviceBatch(40, change[0]), deviceBatch(40, change[0])+ends(40, change[1]+pod))
			metadatatest.AssertEqualGpuPodSeriesEnded(t, b.tel,
				[]metricdata.DataPoint[int64]{{Value: 8}}, metricdatatest.IgnoreTimestamp())
		})
	}
}

// The end of a series is older than the point with which it goes on, and newer
// than its own last one: an output may leave out what changed.
func TestEndStandsBetween(t *testing.T) {
	b := start(t)
	b.feed(parse(deviceBatch(10, "gpu.index=0")))
	out := b.feed(parse(deviceBatch(20, "gpu.index=1"))).ResourceMetrics()
	require.Equal(t, 2, out.Len())
	marker := out.At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0)
	require.True(t, marker.Flags().NoRecordedValue())
	require.EqualValues(t, 20e9-1e6, marker.Timestamp())
}

// What has labels on its points, as families with their DCGM names and scraped
// pages do, ends by those.
func TestLabelsDescribeOtherwise(t *testing.T) {
	for name, resource := range map[string]string{"devices": "hw.id=GPU-a", "scraped": "service.name=dcgm"} {
		t.Run(name, func(t *testing.T) {
			b, store := start(t), backend{}
			for i, labels := range []string{
				"gpu=0 Hostname=e1", "gpu=0 Hostname=e1", "gpu=0 Hostname=e2", "gpu=1 device=nvidia1 Hostname=e2",
				"gpu=1 device=nvidia1 Hostname=e2 DCGM_FI_DRIVER_VERSION=580", "gpu=1 Hostname=e2 GPU_I_PROFILE=1g.5gb",
			} {
				store.write(t, b.feed(parse(fmt.Sprintf(`
					resource %[3]s
					metric DCGM_FI_DEV_POWER_USAGE gauge W
					%[1]d @%[1]d hw.id=GPU-a %[2]s
					metric DCGM_FI_DEV_NVLINK gauge W
					1 @%[1]d hw.id=GPU-a link=0 %[2]s
					1 @%[1]d hw.id=GPU-a link=1 %[2]s`, i+1, labels, resource))))
				require.InDelta(t, i+1, store.sum("DCGM_FI_DEV_POWER_USAGE"), 0, "%v", store)
				require.Len(t, store, 3)
				time.Sleep(time.Microsecond) // the batches arrive at different times
			}
		})
	}
}

// A device may arrive by two paths, under other names and described otherwise.
func TestTwoWaysEndNothing(t *testing.T) {
	b := start(t)
	for i := range 4 {
		for _, way := range []string{
			"resource hw.id=GPU-a host.name=h\nmetric hw.power gauge W\n1 @%d hw.id=GPU-a",
			"resource hw.id=GPU-a\nmetric DCGM_FI_DEV_POWER_USAGE gauge W\n1 @%d hw.id=GPU-a gpu=0",
		} {
			in := fmt.Sprintf(way, 10*i+10)
			b.expect(in, in)
		}
	}
	// Nor do two resources in one scrape, of which only the second one changes.
	two := "resource hw.id=GPU-b host.name=h\nmetric a gauge W\n1 @%[1]d hw.id=GPU-b\nresource hw.id=GPU-b host.name=%[2]s\nmetric b gauge W\n1 @%[1]d hw.id=GPU-b"
	for i, host := range []string{"g", "g", "f"} {
		require.Equal(t, i/2, strings.Count(format(b.feed(parse(fmt.Sprintf(two, 10*i+10, host)))), "stale"), "step %d", i)
	}
}

// exporterPage is a page of one exporter as the dcgm receiver hands it over.
func exporterPage(port, up, seconds, energy int, more string) string {
	page := fmt.Sprintf(`
		resource server.address=n1 server.port=%d
		metric gpu.exporter.up sum 1
		%d @%d`, port, up, seconds)
	if up == 0 {
		return page
	}
	return page + fmt.Sprintf(`
		resource hw.id=GPU-a host.name=h%[1]d
		metric hw.energy counter J
		%[3]d @%[2]d hw.id=GPU-a
		metric DCGM_FI_DEV_X gauge 1
		%[3]d @%[2]d hw.id=GPU-a Hostname=h%[1]d
		%[4]s`, port, seconds, energy, strings.ReplaceAll(more, "@", fmt.Sprintf("@%d", seconds)))
}

// Of two exporters that print one device, the one that had it decides until it
// answers no more, reports that it is down, or is no target any more.
func TestTwoExporters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := start(t), backend{}
		clock := 0
		page := func(after, port, up, energy int, more string) {
			time.Sleep(time.Duration(after) * time.Second)
			clock += after
			store.write(t, b.feed(parse(exporterPage(port, up, clock, energy, more))))
		}
		decides := func(energy, left int) {
			t.Helper()
			require.InDelta(t, energy, store.sum("hw.energy"), 0)
			require.InDelta(t, energy, store.sum("DCGM_FI_DEV_X"), 0)
			if left > 0 {
				metadatatest.AssertEqualGpuPodPointsDuplicate(t, b.tel,
					[]metricdata.DataPoint[int64]{{Value: int64(left)}}, metricdatatest.IgnoreTimestamp())
			}
		}
		page(1, 1, 1, 1000, "")
		for i := range 3 {
			page(5, 2, 1, 10+i, "metric only.here gauge 1\n7 @ hw.id=GPU-a")
			decides(1000+i, 2*i+2)
			require.InDelta(t, 7, store.sum("only.here"), 0, "what one alone prints is no duplicate")
			page(5, 1, 1, 1001+i, "")
			decides(1001+i, 2*i+2)
		}
		lines := b.logs.FilterMessageSnippet("two exporters").All()
		require.Len(t, lines, 1, "once a cause")
		require.Equal(t, "n1:1", lines[0].ContextMap()["owner"])
		require.Equal(t, "n1:2", lines[0].ContextMap()["exporter"])
		require.Equal(t, "GPU-a", lines[0].ContextMap()["hw.id"])

		page(5, 2, 1, 13, "") // 1 printed 5 s ago
		decides(1003, 8)
		page(11, 2, 1, 14, "") // 1 has missed its turn
		decides(14, 8)
		page(1, 1, 1, 1004, "")
		decides(14, 10)
		page(1, 2, 0, 0, "")
		page(1, 1, 1, 1005, "") // 2 is down
		decides(1005, 10)
		page(1, 2, 1, 15, "")
		decides(1005, 12)
		b.feed(parse(fmt.Sprintf("resource server.address=n1 server.port=1\nmetric gpu.exporter.up sum 1\nstale @%d", clock)))
		page(1, 2, 1, 16, "") // 1 is no target any more
		decides(16, 12)

		time.Sleep(ownership.MaxSilence)
		b.feed(parse(deviceBatch(2000, "")))
		time.Sleep(time.Minute + time.Second)
		b.feed(parse(deviceBatch(3000, "")))
		require.Zero(t, b.p.pipeline.Exporters.Len())
	})
}

// An exporter with frozen values is used only while those of the other are frozen too.
func TestFrozenExporterDoesNotDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := start(t), backend{}
		for i, step := range []struct {
			port, frozen, energy int
			want                 float64
		}{
			{1, 0, 100, 100}, {2, 0, 200, 100}, {1, 1, 100, 100}, {2, 1, 200, 100}, {1, 1, 100, 100},
			{2, 0, 201, 201}, {1, 1, 100, 201}, {2, 0, 202, 202}, {1, 0, 103, 202}, {2, 0, 203, 203},
		} {
			time.Sleep(5 * time.Second)
			frozen := fmt.Sprintf("metric gpu.exporter.frozen sum 1\n%d @%d\nresource hw.id", step.frozen, 5*i+5)
			page := exporterPage(step.port, 1, 5*i+5, step.energy, "")
			store.write(t, b.feed(parse(strings.Replace(page, "resource hw.id", frozen, 1))))
			require.InDelta(t, step.want, store.sum("hw.energy"), 0, "step %d", i)
		}
	})
}

// Series of only one exporter, without pods in its labels, belong to the pod that another
// exporter names, and the series of the two do not end each other.
func TestOneOfTwoExportersNamesPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		at := 0
		page := func(port int, labels, metric string) string {
			time.Sleep(5 * time.Second)
			at += 5
			return format(b.feed(parse(fmt.Sprintf(`
				resource server.address=n1 server.port=%[1]d
				metric gpu.exporter.up sum 1
				1 @%[2]d
				resource hw.id=GPU-a %[3]s
				metric hw.energy counter J
				%[2]d @%[2]d hw.id=GPU-a
				metric %[4]s gauge 1
				%[2]d @%[2]d hw.id=GPU-a`, port, at, labels, metric))))
		}
		page(2, "", "b")
		for i, pod := range []string{"p", "p", "p", "q", "q"} {
			const labels = "pod=%[1]s namespace=n container=c pod_uid=u pod_label_app=chat"
			page(1, fmt.Sprintf(labels, pod), "a")
			out := page(2, "", "b")
			require.Contains(t, out, "k8s.pod.name="+pod, "step %d", i)
			require.Contains(t, out, "service.name=chat", "step %d", i)
			require.NotContains(t, out, "stale", "step %d", i)
		}
		require.Contains(t, page(1, "", "a"), "stale", "the pod has gone")
		out := page(2, "", "b")
		require.NotContains(t, out, "k8s.pod.name")
		require.NotContains(t, out, "stale")
		page(1, "pod=r namespace=n container=c", "a")
		time.Sleep(time.Minute) // it is gone
		require.Contains(t, page(2, "", "b"), "resource hw.id=GPU-a\nmetric hw.energy")
	})
}

// Where a batch has several scrapes, the end stands before the one that goes on.
func TestEndStandsBehindEarlierScrapeOfItsBatch(t *testing.T) {
	b, store := start(t), backend{}
	store.write(t, b.feed(parse(deviceBatch(10, "gpu.index=0"))))
	out := b.feed(parse(deviceBatch(20, "gpu.index=0") + deviceBatch(30, "gpu.index=1")))
	require.Equal(t, format(parse(deviceBatch(20, "gpu.index=0")+ends(29, "gpu.index=0")+deviceBatch(30, "gpu.index=1"))), format(out))
	store.write(t, out)
	require.Len(t, store, 4)
}

// Nor does it matter to labels on points that both scrapes arrive at once; and of two
// batches of one time it is unknown which is newer.
func TestDescriptionsOfOneBatchAndOfOneTime(t *testing.T) {
	b, store := start(t), backend{}
	const point = "resource hw.id=GPU-a\nmetric DCGM_X gauge 1\n%[1]d @%[1]d hw.id=GPU-a Hostname=%[2]s\n"
	store.write(t, b.feed(parse(fmt.Sprintf(point, 10, "e1")+fmt.Sprintf(point, 20, "e2"))))
	require.Len(t, store, 1)
	b.feed(parse(deviceBatch(30, "host.name=a")))
	b.expect(deviceBatch(30, "host.name=b"), deviceBatch(30, "host.name=b"))
}

// Two pages of one exporter in a batch are of one exporter.
func TestTwoPagesOfOneExporter(t *testing.T) {
	b := start(t)
	b.feed(parse(exporterPage(1, 1, 10, 1, "")))
	out := format(b.feed(parse(exporterPage(2, 1, 11, 2, "") + exporterPage(2, 1, 16, 3, ""))))
	require.NotContains(t, out, "hw.energy")
}

// A batch of several pages does not show which exporter a device belongs to.
func TestMergedPagesAreNotJudged(t *testing.T) {
	b := start(t)
	b.feed(parse(exporterPage(1, 1, 10, 1, "")))
	out := format(b.feed(parse(exporterPage(1, 1, 20, 2, "") + exporterPage(2, 1, 21, 3, ""))))
	require.Contains(t, out, "3 @21")
}
