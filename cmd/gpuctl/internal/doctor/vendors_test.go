// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// amdPage has an MI250 without the labels that identify it and its driver.
const amdPage = `gpu_gfx_activity{gpu_id="0",serial_number="S1",card_model="102-D65201-00",pod="llm-0",namespace="ai"} 40
gpu_used_vram{gpu_id="0",serial_number="S1",card_series="AMD INSTINCT MI250"} 100
gpu_total_vram{gpu_id="0",serial_number="S1"} 65520
gpu_package_power{gpu_id="0",serial_number="S1"} 120
gpu_min_clock{gpu_id="0",serial_number="S1",clock_type="system"} 500
pcie_bandwidth{gpu_id="0",serial_number="S1"} 3
gpu_energy_consumed{gpu_id="0",serial_number="S1"} 15300000
`

const gaudiPage = `habanalabs_utilization{Serial="AM1",UUID="01P0-HL2080A0-15-TNBS71-03-05-00",id="0"} 12
habanalabs_memory_used_bytes{Serial="AM1",id="0"} 805306368
habanalabs_memory_total_bytes{Serial="AM1",id="0"} 103079215104
habanalabs_power_mW{Serial="AM1",id="0"} 95000
habanalabs_energy{Serial="AM1",id="0"} 5000
habanalabs_utilization{UUID="na",id="1"} 0
`

const intelPage = `xpum_memory_used_bytes{pci_bdf="0000:4d:00.0",dev_name="Intel(R) Data Center GPU Flex 140",kube_pod="a"} 27262976
xpum_memory_ratio{pci_bdf="0000:4d:00.0"} 0.0044
xpum_power_watts{pci_bdf="0000:4d:00.0"} 44
xpum_power_watts{card="2147483649"} 88
`

// TestVendors: whose exporter a page is, and what of its settings is wrong.
func TestVendors(t *testing.T) {
	page := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	amd := func(labels, more string) string {
		return fmt.Sprintf("gpu_gfx_activity{%s} 40\n%s", labels, more)
	}
	const uuid = `gpu_uuid="c3ff74a1-0000-1000-80ff-88426fc31c9e",card_series="x",driver_version="6"`
	for name, tt := range map[string]struct {
		receiver string // empty: --exporter
		handler  http.HandlerFunc
		want     []string // in what is seen or in a remedy
		not      string
	}{
		"AMD without a receiver":      {"", page(amdPage), []string{"AMD devices: 1 (AMD INSTINCT MI250), by its families of Device Metrics Exporter 1.4.2 or newer"}, "dcgm"},
		"AMD without uuid":            {"amd_gpu", page(amdPage), []string{"no label gpu_uuid", "add GPU_UUID to GPUConfig.Labels"}, ""},
		"AMD with uuid":               {"amd_gpu", page(amd(uuid, "")), []string{"the profiler is off"}, "no label"},
		"AMD with the profiler":       {"amd_gpu", page(amd(uuid, "gpu_prof_sm_active{"+uuid+"} 1\n")), []string{"AMD devices: 1"}, "profiler"},
		"AMD, pcie_bandwidth":         {"amd_gpu", page(amdPage), []string{"pcie_bandwidth on an MI250 or MI250X", "leave PCIE_BANDWIDTH out"}, ""},
		"AMD, pcie_bandwidth, MI300X": {"amd_gpu", page(strings.ReplaceAll(amdPage, "MI250", "MI300X")), []string{"AMD INSTINCT MI300X"}, "PCIE_BANDWIDTH"},
		"AMD, prefix, 1.5":            {"", page("amd_gpu_ecc_deferred_total{" + uuid + "} 0\n"), []string{"Device Metrics Exporter 1.5.0 or newer"}, ""},
		"AMD before 1.4":              {"", page(amd(uuid, "pcie_nac_sent_count{"+uuid+"} 0\n")), []string{"before 1.4.0"}, ""},
		"AMD, no identity":            {"amd_gpu", page(amd(`gpu_id="0"`, "")), []string{"no_device", "add GPU_UUID"}, ""},
		"AMD, empty":                  {"amd_gpu", page("promhttp_metric_handler_requests_total 1\n"), []string{"empty", "needs more than 15 s"}, ""},
		"Gaudi":                       {"", page(gaudiPage), []string{"Intel devices: 1, by its families of the Gaudi metric exporter", "left out: 1", "without serial number"}, ""},
		"Gaudi, failed readings":      {"gaudi", page(strings.Replace(gaudiPage, "103079215104", "0", 1) + "habanalabs_clock_soc_mhz{Serial=\"AM1\"} 0\n"), []string{"readings of a device failed"}, ""},
		"Gaudi, a second scraper":     {"gaudi", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, []string{"it answers 429", "rate_limited: another scraper uses up the exporter's limit"}, ""},
		"XPU Manager 1.x":             {"", page(intelPage), []string{"by its families of XPU Manager 1.x", "card utilization", "card memory total", "EU metrics are off"}, ""},
		"XPU Manager 2.x":             {"", page(`hw_power_watts{pci_bdf="0000:03:00.0",hw_sensor_location="card"} 5` + "\n"), []string{"by its families of XPU Manager 2.x", "2.x names no owners"}, ""},
		"XPU Manager, both":           {"intel_gpu", page(intelPage + `hw_power_watts{pci_bdf="0000:03:00.0"} 5` + "\n"), []string{"two exporters are behind one address"}, ""},
		"XPU Manager 1.x starts":      {"intel_gpu", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, []string{"http_status: XPU Manager 1.x answers 500 with #nodata while it starts"}, ""},
		"AMD's page, dcgm receiver":   {"dcgm", page(amdPage), []string{"not_dcgm: this is the page of Device Metrics Exporter: scrape it with the receiver amd_gpu"}, ""},
		"AMD, one field renamed": {"amd_gpu", page(strings.ReplaceAll(amdPage, "gpu_package_power{", "gpu_package_power_watts{")), []string{
			"warn fields of the page that are not known and may have quantities that it lacks: gpu_package_power_watts (hw.power? It is like gpu_package_power)",
		}, "fields are not known"},
		"AMD, renamed":                {"", page(strings.ReplaceAll(amdPage, "{gpu_id", "_v2{gpu_id")), []string{"fail the exporter's fields are not known", "gpu_gfx_activity_v2 (hw.gpu.utilization (general)? It is like gpu_gfx_activity)"}, ""},
		"Gaudi, renamed":              {"", page(strings.ReplaceAll(gaudiPage, "{", "_v2{")), []string{"fail the exporter's fields are not known", "habanalabs_power_mW_v2 (hw.power? It is like habanalabs_power_mW)"}, ""},
		"XPU 1.x, renamed":            {"", page(strings.ReplaceAll(intelPage, "{", "_v2{")), []string{"fail the exporter's fields are not known", "xpum_power_watts_v2 (hw.power? It is like xpum_power_watts)"}, ""},
		"XPU 2.x, renamed":            {"", page(`hw_power_watts_v2{pci_bdf="0000:03:00.0",hw_sensor_location="card"} 5` + "\n"), []string{"fail the exporter's fields are not known", "hw_power_watts_v2 (hw.power? It is like hw_power_watts)"}, ""},
		"DCGM's page, gaudi receiver": {"gaudi", page("DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-1\"} 1\n"), []string{"this is the page of dcgm-exporter: scrape it with the receiver dcgm"}, ""},
		"Intel's page, amd receiver":  {"amd_gpu", page(intelPage), []string{"this is the page of XPU Manager: scrape it with the receiver intel_gpu"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(tt.handler)
			t.Cleanup(s.Close)
			o := Options{Only: []string{"exporter"}, Timeout: 5 * time.Second, folder: t.TempDir()}
			if tt.receiver == "" {
				o.Exporters = []string{s.URL}
			} else {
				o.Configs = []string{fmt.Sprintf(`yaml:{receivers: {%s: {endpoints: ["%s"]}}, service: {pipelines: {metrics: {receivers: [%[1]s]}}}}`, tt.receiver, s.URL)}
			}
			results, err := Run(t.Context(), o)
			require.NoError(t, err)
			var all strings.Builder
			for _, r := range results {
				if r.Check == "exporter" {
					fmt.Fprintf(&all, "%s %s | %s\n", r.Status, r.Seen, r.Remedy)
				}
			}
			for _, want := range tt.want {
				assert.Contains(t, all.String(), want)
			}
			if tt.not != "" {
				assert.NotContains(t, all.String(), tt.not)
			}
		})
	}
}
