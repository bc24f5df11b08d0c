// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor"
)

// TestSharesReachTheirPods: the page of a shared GPU over HTTP, through the
// receiver and gpu_pod, gives each pod what its own processes use if the exporter
// tells that, and otherwise what the whole device does, marked as such.
func TestSharesReachTheirPods(t *testing.T) {
	const (
		first  = "GPU-e09456f7-a673-e61c-b391-58586b5ad69f"
		second = "GPU-30a52028-532e-cf6a-cc5e-3f7bae81fc2a"
	)
	devices := []string{
		first + " - memory 37373345792", first + " - utilization 1",
		second + " - memory 18685624320", second + " - utilization 0.51",
	}
	// Of two replicas in one pod nobody knows which uses what.
	twice := []string{
		second + "::0 twice-0 utilization 0.51 of the device", second + "::1 twice-0 utilization 0.51 of the device",
	}
	for version, parts := range map[string][]string{
		"4.5": {
			first + "::0 chat-0 utilization 1 of the device",
			first + "::1 train-0 utilization 1 of the device",
			first + "::3 note-0 utilization 1 of the device",
		},
		"4.6": {
			first + "::0 chat-0 memory 18686672896", first + "::0 chat-0 utilization 0.34",
			first + "::1 train-0 memory 16138633216", first + "::1 train-0 utilization 0.66",
			first + "::3 note-0 memory 2548039680", first + "::3 note-0 utilization 0",
		},
	} {
		t.Run(version, func(t *testing.T) {
			page, err := os.ReadFile("internal/mapping/testdata/shared-" + version + ".prom")
			require.NoError(t, err)
			server := serve(t, string(page))
			r := start(t, []string{server.URL})
			r.awaitTarget(server, 1, "the exporter")
			r.mu.Lock()
			scraped := pmetric.NewMetrics()
			r.scrapes[0].CopyTo(scraped)
			r.mu.Unlock()

			got := throughGPUPod(t, held(map[string]string{
				first + "::0": "chat-0/vllm", first + "::1": "train-0/torch", first + "::3": "note-0/jupyter",
				second + "::0": "twice-0/vllm", second + "::1": "twice-0/vllm",
			}), scraped)
			require.Equal(t, slices.Sorted(slices.Values(slices.Concat(devices, parts, twice))), got)
		})
	}
}

// held is a snapshot of gpu.allocation: pod/container by replica.
func held(by map[string]string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	now := pcommon.NewTimestampFromTime(time.Now())
	for id, who := range by {
		pod, container, _ := strings.Cut(who, "/")
		rm := md.ResourceMetrics().AppendEmpty()
		for key, v := range map[string]string{
			names.K8sNodeName: "gpu-node-s", names.K8sNamespaceName: "ml", names.K8sPodName: pod, names.K8sContainerName: container,
		} {
			rm.Resource().Attributes().PutStr(key, v)
		}
		p := names.GPUAllocation.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
		p.SetTimestamp(now)
		p.SetDoubleValue(.25)
		p.Attributes().PutStr(names.HwID, id)
		p.Attributes().PutStr(names.GPUSharing, names.SharingTimeSlicing)
		p.Attributes().PutBool(names.GPUAllocationResolved, true)
	}
	return md
}

// throughGPUPod passes batches through a gpu_pod, and returns memory usage and
// general utilization of the devices in the last one, sorted: "hw.id pod what
// value [of the device]".
func throughGPUPod(t *testing.T, batches ...pmetric.Metrics) (lines []string) {
	t.Helper()
	f := gpupodprocessor.NewFactory()
	sink := new(consumertest.MetricsSink)
	p, err := f.CreateMetrics(t.Context(), processortest.NewNopSettings(component.MustNewType("gpu_pod")), f.CreateDefaultConfig(), sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, p.Shutdown(context.WithoutCancel(t.Context()))) }()
	for _, md := range batches {
		sink.Reset()
		require.NoError(t, p.ConsumeMetrics(t.Context(), md))
	}
	for _, rm := range sink.AllMetrics()[0].ResourceMetrics().All() {
		attrs := rm.Resource().Attributes().AsRaw()
		require.NotContains(t, attrs, names.ExporterHolders)
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			what := map[string]string{names.GPUMemoryUsage.Name: "memory", names.GPUUtilization.Name: "utilization"}[m.Name()]
			if what == "" {
				continue
			}
			eachPoint(m, func(p pmetric.NumberDataPoint) {
				point := p.Attributes().AsRaw()
				require.Equal(t, attrs[names.HwID], point[names.HwID])
				pod, is := attrs[names.K8sPodName]
				if !is {
					pod = "-"
				}
				line := fmt.Sprintf("%v %v %s %.12g", attrs[names.HwID], pod, what, pointValue(p))
				if point[names.GPUValueScope] == names.ValueScopeDevice {
					line += " of the device"
				}
				lines = append(lines, line)
			})
		}
	}
	slices.Sort(lines)
	return lines
}
