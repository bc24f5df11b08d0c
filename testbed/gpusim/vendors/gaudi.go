// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"strconv"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/random"
)

// thresholds of a Gaudi's sensors, in °C, by the end of the family's name.
var thresholds = []struct {
	name  string
	limit int
}{{"gpu", 98}, {"memory", 95}, {"slowdown", 100}, {"shutdown", 105}}

// external ports of a Gaudi lead out of the box.
func external(port int) bool { return port%8 == 7 }

// gaudiText is a page of Intel's Gaudi exporter: every family is a gauge without a text.
func gaudiText(h *host, all []*state, now time.Time) *page {
	p := newPage()
	p.gauges, p.noHelp = true, true
	for _, s := range all {
		gaudiBoard(h, p, s, now)
	}
	if !h.NoPods { // of the exporter's own pod, without a device
		p.add("habanalabs_kube_info", 1, "hostname", h.Name, "namespace", "habana-ai", "node", h.Name, "podIP", "10.42.0.7", "podName", "metric-exporter-ds-7xk2p")
	}
	return p
}

func gaudiBoard(h *host, p *page, s *state, now time.Time) {
	index := strconv.Itoa(s.index)
	serial, uuid, works := s.serial, "01P0-HL2080A0-"+random.UUID(s.stream)[:8], 1.
	if h.on(ReadingsFail, s.index, now) != nil {
		works = 0
	}
	if h.on(DeviceFails, s.index, now) != nil {
		serial, uuid, works = "", "na", 0
	}
	labels := []string{"Serial", serial, "UUID", uuid, "device", serial, "driver", "1.24.0-7b5ef4c", "fit", "fw-62.2.0", "id", index, "spi", "preboot-62.2.0"}
	if owners := s.parts[0].owners; !h.NoPods {
		pod, namespace := "", ""
		if len(owners) > 0 {
			pod, namespace = owners[0].Name, owners[0].Namespace
		}
		labels = with(labels, "pod_name", pod, "pod_namespace", namespace)
	}
	add := func(name string, v float64, more ...string) {
		p.add("habanalabs_"+name, v*works, with(labels, more...)...)
		if h.on(DuplicateSeries, s.index, now) != nil {
			p.add("habanalabs_"+name, v*works+1, with(labels, more...)...)
		}
	}
	milliwatts := float64(s.milliwatts)
	if h.on(PowerSpike, s.index, now) != nil {
		milliwatts = 3.69e15
	}
	add("utilization", float64(s.gfx))
	add("memory_used_bytes", float64(s.usedMiB()+restMiB)*mib)
	add("memory_total_bytes", float64(h.model.MemoryMiB)*mib)
	add("memory_free_bytes", float64(h.model.MemoryMiB-s.usedMiB()-restMiB)*mib)
	add("power_mW", milliwatts)
	add("power_default_limit_mW", h.model.TDP*1000)
	add("energy", float64(int64(printedJoules(h, s, now)*1000)))
	add("temperature_onchip", float64(s.chip))
	add("temperature_onboard", float64(s.hbm))
	for _, t := range thresholds {
		add("temperature_threshold_"+t.name, float64(t.limit))
	}
	add("clock_soc_mhz", float64(s.clock))
	add("clock_soc_max_mhz", float64(h.model.Clock))
	add("pcie_replay_count", float64(s.replays))
	corrected, uncorrected := s.replaced()
	add("pending_rows_with_single_bit_ecc_errors", float64(corrected))
	add("pending_rows_with_double_bit_ecc_errors", float64(uncorrected))
	add("pending_rows_state", float64(b2i(h.on(RowsPending, s.index, now) != nil)))
	for port := range h.model.Ports {
		kind := "internal"
		if external(port) {
			kind = "external"
		}
		add("nic_port_status", float64(b2i(!portDown(h, s, port, now))), "port", strconv.Itoa(port), "port_type", kind)
	}
	add("pcie_rx", float64(s.received%1e6))
	add("pcie_tx", float64(s.sent%1e6))
	add("pcie_receive_throughput", float64(s.received%1e6))
	add("pcie_transmit_throughput", float64(s.sent%1e6))
	add("pci_link_width", 16)
	add("ecc_feature_mode", 1)
	add("device_config", 1)
	// Copies under other names, in other units than they have in them.
	p.add("accelerator_power_usage_watts", milliwatts*works, labels...)
	p.add("accelerator_sm_clock_hertz", float64(s.clock)*works, labels...)
	p.add("accelerator_memory_clock_hertz", 1600*works, labels...)
	p.add("accelerator_temperature_celcius", float64(s.chip)*works, labels...)
	p.add("accelerator_gpu_utilization", float64(s.gfx)*works, labels...)
}

// restMiB is what a Gaudi uses at rest.
const restMiB = 672

const mib = 1 << 20

// printedJoules is the energy after faults.
func printedJoules(h *host, s *state, at time.Time) float64 {
	switch {
	case h.on(StuckEnergy, s.index, at) != nil:
		return 1234.5
	case h.on(EnergyGlitch, s.index, at) != nil:
		return 200
	}
	return s.joules
}

func portDown(h *host, s *state, port int, at time.Time) bool {
	x := h.on(LinkDown, s.index, at)
	return x != nil && x.Code == port
}
