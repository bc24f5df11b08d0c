// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package beside compares what the dcgm and nvml receivers make of one node: the same, one
// after the other, and nothing twice beside each other.
package beside

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	nvmllab "github.com/otelcol-gpu/otelcol-gpu/testbed/nvml"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/nvml/nvmlrun"
)

const patience = 2 * time.Minute

// kept are what a receiver has emitted.
type kept struct {
	mu      sync.Mutex
	scrapes []pmetric.Metrics
}

func (k *kept) all() []pmetric.Metrics {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.scrapes)
}

// exporter is the node's exporter.
func exporter(lab *nvmllab.Lab) func() ([]byte, error) {
	return func() ([]byte, error) { return lab.Fleet.Page(lab.Node, lab.Fleet.Now()) }
}

// startDCGM starts the dcgm receiver on a node's exporter, which answers with text.
func startDCGM(t testing.TB, node string, text func() ([]byte, error)) (*kept, func()) {
	t.Helper()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		page, err := text()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(page)
	}))
	factory := dcgmreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"endpoints": []any{page.URL + "/metrics"}, "collection_interval": "1s", "node_name": node,
	}).Unmarshal(cfg))
	k := &kept{}
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		copied := pmetric.NewMetrics()
		md.CopyTo(copied)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.scrapes = append(k.scrapes, copied)
		return nil
	})
	require.NoError(t, err)
	r, err := factory.CreateMetrics(t.Context(), receivertest.NewNopSettings(component.MustNewType("dcgm")), cfg, next)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	stop := sync.OnceFunc(func() {
		assert.NoError(t, r.Shutdown(context.Background()))
		page.Close()
	})
	t.Cleanup(stop)
	return k, stop
}

// devices are all points of devices by "hw.id metric attributes".
func devices(md pmetric.Metrics) map[string]float64 {
	values := nvmlrun.Values(md)
	maps.DeleteFunc(values, func(key string, _ float64) bool { return strings.HasPrefix(key, "- ") })
	return values
}

func node(t *testing.T) *nvmllab.Lab {
	return nvmllab.Start(t, nvmllab.Options{
		Driver: "575", Models: []string{"H100", "H100", "A100-SXM4-80GB"}, MIG: map[string][]string{"1": {"3g.40gb", "1g.10gb"}},
		Pods: []gpusim.Pod{
			{Namespace: "ml", Name: "train-0", Container: "main", Devices: []string{"0", "2"}, Load: gpusim.Training},
			{Namespace: "ml", Name: "chat-0", Container: "main", Devices: []string{"1:0"}, Load: gpusim.Inference},
		},
	})
}

// has reports whether some points have one of a metric.
func has(values map[string]float64, metric string) bool {
	for key := range values {
		if strings.Fields(key)[1] == metric {
			return true
		}
	}
	return false
}

// coarse is the coarser unit of a metric in either source, where it is not a hundredth of a
// ratio: as much as rounding makes of one value.
var coarse = map[string]float64{
	names.GPUMemoryUsage.Name: 1 << 20, names.GPUMemoryLimit.Name: 1 << 20, names.GPUMemoryReserved.Name: 1 << 20,
	names.GPUPCIeThroughput.Name: 1 << 20, names.GPUNVLinkThroughput.Name: 1 << 20, names.HwPower.Name: 0.01,
}

// Metrics that one source alone has: of any device, or of those whose model has a text in it.
var (
	onlyDCGM = map[string]string{
		// The library has no call, or none that is used.
		names.GPURemapBanks.Name: "", names.GPUPCIeWidth.Name: "", names.GPUPCIeWidthMax.Name: "", names.GPUPCIeGeneration.Name: "",
		names.GPUPCIeGenerationMax.Name: "", names.GPUFabricStatus.Name: "", names.GPUSRAMExceeded.Name: "",
		// Of no vGPU.
		names.GPUVGPULicensed.Name: "",
		// Profiling of what has no GPM.
		names.GPUEngineActive.Name: "A100", names.GPUSMActive.Name: "A100", names.GPUSMOccupancy.Name: "A100", names.GPUPipeActive.Name: "A100", names.GPUDRAMActive.Name: "A100",
	}
	onlyNVML = map[string]string{
		names.GPUTemperatureMargin.Name: "H100", names.HwTemperatureLimit.Name: "A100", names.GPUXIDLast.Name: "",
		// This exporter prints none of these of these boards.
		names.GPURecoveryAction.Name: "", names.GPUIO.Name: "", names.GPUMemoryReserved.Name: "", names.GPUPipeActive.Name: "H100",
	}
	// ofBoard are metrics of a board in MIG mode: the exporter prints its instances, of
	// which dcgm makes sums, and the library has a reading of the board's own.
	ofBoard = []string{
		names.GPUMemoryLimit.Name, names.GPUMemoryUtilization.Name, names.GPUUtilization.Name, names.GPUEngineActive.Name, names.GPUSMActive.Name,
		names.GPUSMOccupancy.Name, names.GPUDRAMActive.Name, names.GPUPCIeThroughput.Name, names.GPUNVLinkThroughput.Name,
	}
)

// expected reports whether a metric may be of one source alone.
func expected(only map[string]string, metric string, attrs map[string]any) bool {
	model, listed := only[metric]
	return strings.HasPrefix(metric, names.DCGMPrefix) || listed && strings.Contains(attrs[names.HwModel].(string), model)
}

// TestSameSecond: both receivers emit the same of a node that stands still.
func TestSameSecond(t *testing.T) {
	lab := node(t)
	lab.Advance(90 * time.Second)
	run := nvmlrun.Start(t, nvmlrun.Keys(lab, map[string]any{"pcie_throughput": true}))
	// Profiling takes two scrapes, and what a dcgm receiver of this process emitted counts
	// for three intervals after its end.
	fromNVML := run.Await("profiling and power", func(v map[string]float64) bool {
		return has(v, names.GPUSMActive.Name) && has(v, names.HwPower.Name)
	})
	maps.DeleteFunc(fromNVML, func(key string, _ float64) bool { return strings.HasPrefix(key, "- ") })
	all := run.Scrapes()
	run.Stop()
	dcgm, stop := startDCGM(t, lab.Node, exporter(lab))
	require.Eventually(t, func() bool { return len(dcgm.all()) > 0 }, patience, 20*time.Millisecond)
	stop()
	fromDCGM := devices(dcgm.all()[0])

	ofDCGM, ofNVML := resources(dcgm.all()[0]), resources(all[len(all)-1])
	require.Equal(t, ofDCGM, ofNVML)

	divided, compared := "", 0
	for id := range ofNVML {
		if board, _, part := strings.Cut(id, "/"); part {
			divided = board
		}
	}
	for _, key := range slices.Sorted(maps.Keys(fromDCGM)) {
		id, metric := strings.Fields(key)[0], strings.Fields(key)[1]
		v, both := fromNVML[key]
		switch {
		case id == divided && slices.Contains(ofBoard, metric):
			continue
		case !both:
			assert.True(t, expected(onlyDCGM, metric, ofDCGM[id]), "%s: only of dcgm", key)
			continue
		case metric == names.GPUNVLinkThroughput.Name && strings.Contains(ofNVML[id][names.HwModel].(string), "A100"):
			continue // is the growth of a count, which stands still
		}
		compared++
		within := coarse[metric]
		if within == 0 {
			within = 0.01
		}
		assert.InDelta(t, fromDCGM[key], v, within, key)
	}
	for _, key := range slices.Sorted(maps.Keys(fromNVML)) {
		id, metric := strings.Fields(key)[0], strings.Fields(key)[1]
		if _, both := fromDCGM[key]; !both && (id != divided || !slices.Contains(ofBoard, metric)) {
			assert.True(t, expected(onlyNVML, metric, ofNVML[id]), "%s: only of nvml", key)
		}
	}
	assert.Greater(t, compared, 100)
	t.Log("points compared:", compared)
}

// resources are the attributes by hw.id, but for those that one source alone has: the
// exporter of these pages prints no serial number and no minor, and it names owners.
func resources(md pmetric.Metrics) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, rm := range md.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes().AsRaw()
		if id, ok := attrs[names.HwID].(string); ok {
			for _, key := range []string{
				names.HwSerialNumber, names.HwFirmware, names.GPUMinor, names.GPUMIGUUID, names.HostName,
				names.ExporterPod, names.ExporterNamespace, names.ExporterContainer, names.ExporterPodUID, names.HwDriverVersion,
			} {
				delete(attrs, key)
			}
			out[id] = attrs
		}
	}
	return out
}

// TestBeside: with both receivers in one process no series of a device is there twice.
func TestBeside(t *testing.T) {
	lab := node(t)
	lab.Advance(90 * time.Second)
	dcgm, _ := startDCGM(t, lab.Node, exporter(lab))
	require.Eventually(t, func() bool { return len(dcgm.all()) > 0 }, patience, 20*time.Millisecond)
	run := nvmlrun.Start(t, nvmlrun.Keys(lab, nil))
	left := run.Await("a scrape beside dcgm", func(v map[string]float64) bool {
		return run.Count("left_to_dcgm", "") > 0 && len(v) > 10
	})
	scrapes := dcgm.all()
	emitted := devices(scrapes[len(scrapes)-1])
	for key := range left {
		assert.NotContains(t, emitted, key)
	}
	assert.True(t, has(left, names.GPUTemperatureMargin.Name), "what dcgm does not have stays")
}
