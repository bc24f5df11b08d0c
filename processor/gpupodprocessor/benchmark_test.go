// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

const (
	benchDevices = 8
	benchFields  = 60
)

// BenchmarkDevices is a node as the dcgm receiver hands it over, and
// BenchmarkScraped the same node as the prometheus receiver does: 8 devices of
// 60 fields, all held, with pod labels. Building the batch is not timed.
func BenchmarkDevices(b *testing.B) { benchmark(b, deviceResources()) }

func BenchmarkScraped(b *testing.B) { benchmark(b, scrapedPage()) }

func benchmark(b *testing.B, batch pmetric.Metrics) {
	p, err := newProcessor(createDefaultConfig().(*Config),
		processortest.NewNopSettings(metadata.Type), consumertest.NewNop())
	require.NoError(b, err)
	p.pipeline = newPipeline(p.cfg, newMemory(p.cfg))
	now := time.Unix(10, 0)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		md := pmetric.NewMetrics()
		batch.CopyTo(md)
		b.StartTimer()
		p.process(md, now)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(benchDevices*benchFields), "ns/point")
}

func deviceResources() pmetric.Metrics {
	md := pmetric.NewMetrics()
	for d := range benchDevices {
		rm := md.ResourceMetrics().AppendEmpty()
		putAll(rm.Resource().Attributes(), append(ownerLabels(d),
			"hw.id="+uuid(d), "hw.type=gpu", "hw.vendor=NVIDIA", "hw.model=H100", "hw.driver_version=580.105.08",
			"gpu.index=0", "gpu.pci.address=0000:03:00.0", "host.name=node-1", "k8s.node.name=node-1"))
		sm := rm.ScopeMetrics().AppendEmpty()
		for i := range benchFields {
			m := sm.Metrics().AppendEmpty()
			m.SetName(fmt.Sprintf("gpu.field.%d", i))
			p := m.SetEmptyGauge().DataPoints().AppendEmpty()
			p.SetTimestamp(pcommon.Timestamp(10e9))
			p.Attributes().PutStr(names.HwID, uuid(d))
			if i%2 == 0 {
				p.Attributes().PutStr(names.GPUPipe, "tensor")
			}
		}
	}
	return md
}

func scrapedPage() pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	putAll(rm.Resource().Attributes(), []string{
		"service.name=dcgm", "service.instance.id=10.0.0.1:9400", "server.address=10.0.0.1", "k8s.node.name=node-1",
	})
	sm := rm.ScopeMetrics().AppendEmpty()
	for i := range benchFields {
		m := sm.Metrics().AppendEmpty()
		m.SetName(fmt.Sprintf("DCGM_FI_DEV_FIELD_%d", i))
		points := m.SetEmptyGauge().DataPoints()
		for d := range benchDevices {
			p := points.AppendEmpty()
			p.SetTimestamp(pcommon.Timestamp(10e9))
			putAll(p.Attributes(), append([]string{
				"gpu=0", "UUID=" + uuid(d), "pci_bus_id=00000000:03:00.0", "device=nvidia0",
				"modelName=NVIDIA H100 80GB HBM3", "Hostname=node-1", "DCGM_FI_DRIVER_VERSION=580.105.08",
			}, ownerLabels(d)...))
		}
	}
	return md
}

func uuid(device int) string { return fmt.Sprintf("GPU-c4529c8d-69c4-b61d-e0bc-7b246009600%d", device) }

func ownerLabels(device int) []string {
	return []string{
		"container=main", "namespace=ml", fmt.Sprintf("pod=chat-7d9c6b5f4-x2x9%d", device), "pod_label_app=chat",
	}
}

// BenchmarkAttribution is the decision on who holds a device, from the attributes
// of its resource to the owner: nothing is written and no series is tracked.
func BenchmarkAttribution(b *testing.B) {
	p, err := newProcessor(createDefaultConfig().(*Config),
		processortest.NewNopSettings(metadata.Type), consumertest.NewNop())
	require.NoError(b, err)
	p.pipeline = newPipeline(p.cfg, newMemory(p.cfg))
	now := time.Unix(10, 0)
	var lines []string
	for d := range benchDevices {
		lines = append(lines, fmt.Sprintf("ml/chat-%d/main 1 hw.id=%s", d, uuid(d)))
	}
	p.pipeline.Join.Memory.Learn(ownership.Allocations(nil, parse(snapshot(10, lines...)).ResourceMetrics()), now)
	all := deviceResources().ResourceMetrics()
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		var r identity.Reading
		r.Read(all.At(i % benchDevices).Resource().Attributes())
		p.pipeline.Join.See(&r, now)
		if _, from, _ := p.pipeline.Join.Identify(&r, now); from != identity.SourcePodResources {
			b.Fatal("not attributed")
		}
		i++
	}
}

// TestAttributionAllocatesNothing holds what the benchmark shows.
func TestAttributionAllocatesNothing(t *testing.T) {
	b := start(t)
	b.feed(parse(snapshot(10, "ml/a-0/main 1 hw.id="+uuid(0))))
	attrs := deviceResources().ResourceMetrics().At(0).Resource().Attributes()
	now := time.Now()
	var r identity.Reading
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r.Read(attrs)
		b.p.pipeline.Join.See(&r, now)
		b.p.pipeline.Join.Identify(&r, now)
	}))
}
