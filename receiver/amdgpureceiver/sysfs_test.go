// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amdgpureceiver

import (
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs/sysfstest"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/amdgpureceiver/internal/metadata"
)

func TestSource(t *testing.T) {
	for name, tt := range map[string]struct {
		keys map[string]any
		want []string // parts of the error
	}{
		"sysfs":                    {keys: map[string]any{"source": "sysfs", "node_name": "a"}},
		"sysfs of a container":     {keys: map[string]any{"source": "sysfs", "sysfs_root": "/host/sys", "collection_interval": "5s"}},
		"exporter":                 {keys: map[string]any{"source": "exporter", "endpoints": []any{"http://localhost:5000/metrics"}}},
		"exporter without address": {keys: map[string]any{"source": "exporter"}, want: []string{"endpoints: is empty"}},
		"none":                     {keys: map[string]any{"source": "kernel"}, want: []string{`source: is "kernel": use exporter or sysfs`}},
		"two sources": {
			keys: map[string]any{"source": "sysfs", "endpoints": []any{"http://localhost:5000/metrics"}},
			want: []string{"endpoints: is set with source: sysfs", "remove it"},
		},
		"sysfs and discovery": {
			keys: map[string]any{"source": "sysfs", "kubernetes": map[string]any{"node_name": "a"}},
			want: []string{"kubernetes: is set with source: sysfs", "set node_name"},
		},
		"relative root": {keys: map[string]any{"source": "sysfs", "sysfs_root": "sys"}, want: []string{`sysfs_root: is "sys"`}},
		"no root":       {keys: map[string]any{"source": "sysfs", "sysfs_root": ""}, want: []string{`sysfs_root: is ""`}},
		"interval":      {keys: map[string]any{"source": "sysfs", "collection_interval": "1ms"}, want: []string{"collection_interval"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			require.NoError(t, confmap.NewFromStringMap(tt.keys).Unmarshal(cfg))
			err := cfg.Validate()
			if tt.want == nil {
				require.NoError(t, err)
				return
			}
			for _, part := range tt.want {
				assert.ErrorContains(t, err, part)
			}
		})
	}
}

// gpuMetrics is the file with the energy of a board.
func gpuMetrics(joules uint64) []byte {
	file := make([]byte, 288)
	binary.LittleEndian.PutUint16(file, 288)
	file[2], file[3] = 1, 4
	binary.LittleEndian.PutUint64(file[24:], joules<<16) // in steps of 2^-16 J
	return file
}

// board is a board with a file of each kind.
func board() sysfstest.Board {
	return sysfstest.Board{
		PCI: "0000:19:00.0", UniqueID: 0xc3ff88426fc31c9e, Serial: "692251000", Product: "AMD Instinct MI300X", Compute: "CPX", Memory: "NPS4", Parts: 8,
		Files: map[string]string{
			"gpu_busy_percent": "93\n", "mem_busy_percent": "41\n", "pcie_replay_count": "7\n",
			"mem_info_vram_used": "1048576000\n", "mem_info_vram_total": "206141652992\n",
			"hwmon/hwmon9/name": "amdgpu\n", "hwmon/hwmon9/power1_input": "742000000\n", "hwmon/hwmon9/power1_cap": "750000000\n",
			"hwmon/hwmon9/temp2_input": "71000\n", "hwmon/hwmon9/temp2_label": "junction\n",
			"hwmon/hwmon9/temp3_input": "63000\n", "hwmon/hwmon9/temp3_label": "mem\n",
			"hwmon/hwmon9/freq1_input": "2100000000\n", "hwmon/hwmon9/freq1_label": "sclk\n",
			"hwmon/hwmon9/freq2_input": "1300000000\n", "hwmon/hwmon9/freq2_label": "mclk\n",
			"gpu_metrics":            string(gpuMetrics(999_000)),
			"ras/umc_err_count":      "ue: 1\nce: 12\nde: 3\n",
			"ras/pcie_bif_err_count": "ue: 2\nce: 0\n",
			"ras/gpu_vram_bad_pages": "0x1 : 0x1000 : R\n0x2 : 0x1000 : R\n0x3 : 0x1000 : P\n",
		},
	}
}

// start runs a receiver of a host for a time, and returns what it sent last.
func start(t *testing.T, root string, set receiver.Settings, then func(sink *consumertest.MetricsSink)) {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.Source, cfg.SysfsRoot, cfg.NodeName = SourceSysfs, root, "node-a"
	var sink consumertest.MetricsSink
	r, err := NewFactory().CreateMetrics(t.Context(), set, cfg, &sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	then(&sink)
	require.NoError(t, r.Shutdown(t.Context()))
}

// points are the values of a resource by metric and attributes other than the device's.
func points(rm pmetric.ResourceMetrics) map[string]float64 {
	all := map[string]float64{}
	add := func(name string, points pmetric.NumberDataPointSlice) {
		for _, p := range points.All() {
			key := name
			for _, k := range slices.Sorted(maps.Keys(p.Attributes().AsRaw())) {
				if v, _ := p.Attributes().Get(k); k != names.HwID && k != names.HwType && k != names.ServerAddress && k != names.ServerPort && k != names.K8sNodeName {
					key += " " + v.AsString()
				}
			}
			all[key] = p.DoubleValue()
			if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
				all[key] = float64(p.IntValue())
			}
		}
	}
	for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
		if m.Type() == pmetric.MetricTypeGauge {
			add(m.Name(), m.Gauge().DataPoints())
		} else {
			add(m.Name(), m.Sum().DataPoints())
		}
	}
	return all
}

func TestSysfs(t *testing.T) {
	root := sysfstest.Write(t, board())
	synctest.Test(t, func(t *testing.T) {
		telemetry := componenttest.NewTelemetry()
		set := receivertest.NewNopSettings(metadata.Type)
		set.TelemetrySettings = telemetry.NewTelemetrySettings()
		start(t, root, set, func(sink *consumertest.MetricsSink) {
			below := func(file string, text []byte) {
				require.NoError(t, os.WriteFile(filepath.Join(root, "bus/pci/devices/0000:19:00.0", file), text, 0o600))
			}
			time.Sleep(30 * time.Second)
			below("gpu_metrics", gpuMetrics(1_000_000)) // energy that never moved is absent
			time.Sleep(15 * time.Second)
			require.NotEmpty(t, sink.AllMetrics())
			md := sink.AllMetrics()[len(sink.AllMetrics())-1]
			require.Equal(t, 2, md.ResourceMetrics().Len(), "one exporter, and one board: partitions have nothing of their own here")
			up := points(md.ResourceMetrics().At(0))
			assert.InDelta(t, 1, up[names.ExporterUp.Name], 0)

			attrs := md.ResourceMetrics().At(1).Resource().Attributes().AsRaw()
			assert.Equal(t, map[string]any{
				"hw.id": "GPU-c3ff88426fc31c9e", "hw.type": "gpu", "hw.vendor": "AMD", "hw.model": "AMD Instinct MI300X", "hw.serial_number": "692251000",
				"gpu.pci.address": "0000:19:00.0", "gpu.partition.profile": "cpx_nps4", "k8s.node.name": "node-a",
			}, attrs)
			assert.Equal(t, map[string]float64{ // each worked out from the files above
				"hw.gpu.utilization general": 0.93, "gpu.memory_controller.utilization": 0.41,
				"hw.gpu.memory.usage": 1_048_576_000, "hw.gpu.memory.limit": 206_141_652_992, "hw.gpu.memory.utilization": 1_048_576_000. / 206_141_652_992,
				"hw.power": 742, "gpu.power.limit enforced": 750, "hw.energy": 1_000_000,
				"hw.temperature gpu": 71, "hw.temperature memory": 63,
				"gpu.clock.frequency sm": 2.1e9, "gpu.clock.frequency memory": 1.3e9, "gpu.pcie.replays": 7,
				"hw.errors corrected": 12, "hw.errors uncorrected": 3, "hw.errors deferred": 3,
				"gpu.ecc.errors corrected umc": 12, "gpu.ecc.errors uncorrected umc": 1, "gpu.ecc.errors deferred umc": 3, "gpu.ecc.errors uncorrected bif": 2,
				"gpu.memory.retired_pages": 2, "gpu.memory.retired_pages.pending": 1, "gpu.memory.retired_pages.failure": 0,
			}, points(md.ResourceMetrics().At(1)))

			sink.Reset()
			below("gpu_busy_percent", []byte("none\n"))
			time.Sleep(15 * time.Second)
			md = sink.AllMetrics()[0]
			assert.NotContains(t, points(md.ResourceMetrics().At(1)), "hw.gpu.utilization general")
			metric, err := telemetry.GetMetric("otelcol_amd_gpu_receiver_files_unread")
			require.NoError(t, err)
			unread := metric.Data.(metricdata.Sum[int64]).DataPoints
			require.Len(t, unread, 1)
			assert.EqualValues(t, 1, unread[0].Value)
			assert.Equal(t, attribute.NewSet(attribute.String("cause", "malformed")), unread[0].Attributes)
		})
	})
}

// The receiver of a host without a board of AMD, or whose boards are for guests, is silent.
func TestSysfsWithoutBoards(t *testing.T) {
	guest := board()
	guest.Files = nil
	for name, root := range map[string]string{
		"no board":      sysfstest.Write(t),
		"no sysfs":      filepath.Join(t.TempDir(), "none"),
		"another make":  sysfstest.Write(t, sysfstest.Board{PCI: "0000:03:00.0", Vendor: gpusysfs.VendorIntel, Device: 0xe20b}),
		"of the guests": sysfstest.Write(t, guest),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				telemetry := componenttest.NewTelemetry()
				core, logs := observer.New(zap.DebugLevel)
				set := receivertest.NewNopSettings(metadata.Type)
				set.TelemetrySettings = telemetry.NewTelemetrySettings()
				set.Logger = zap.New(core)
				start(t, root, set, func(sink *consumertest.MetricsSink) {
					time.Sleep(time.Hour)
					assert.Empty(t, sink.AllMetrics())
					assert.Empty(t, logs.All())
					_, err := telemetry.GetMetric("otelcol_amd_gpu_receiver_scrapes")
					require.Error(t, err)
				})
			})
		})
	}
}
