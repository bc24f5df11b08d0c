// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"fmt"
	"strconv"
	"time"
)

// xpum2Text is a page of xpumd 2.x, a Collector with the names of the semantic
// conventions.
func xpum2Text(h *host, all []*state, now time.Time) *page {
	p := newPage()
	for _, s := range all {
		if h.on(DeviceFails, s.index, now) == nil {
			xpum2Device(h, p, s, now)
		}
	}
	p.add("otelcol_process_uptime_seconds_total", now.Sub(time.Unix(0, 0)).Seconds())
	return p
}

// healthStates are those of hw_status, the good one first.
var healthStates = []string{"ok", "degraded", "failed", "reset_needed"}

func xpum2Device(h *host, p *page, s *state, now time.Time) {
	id := fmt.Sprintf("00000000-0000-00%s-0000-0000%04x8086", s.pci[5:7], h.model.PCIDevice)
	twice := h.on(DuplicateSeries, s.index, now) != nil
	add := func(name string, v float64, more ...string) {
		labels := with([]string{"hw_id", id, "pci_bdf", s.pci}, more...)
		p.add(name, v, labels...)
		if twice {
			p.add(name, v*.9, labels...)
		}
	}
	add("hw_gpu_info", 1, "hw_model", h.model.Name, "hw_name", "gpu-"+strconv.Itoa(s.index+1), "hw_vendor", "Intel(R) Corporation",
		"pci_device_id", fmt.Sprintf("%04x", h.model.PCIDevice), "pci_vendor_id", "8086")
	watts, joules := float64(s.milliwatts)/1000, printedJoules(h, s, now)
	if h.on(PowerSpike, s.index, now) != nil {
		watts = 3.69e12
	}
	// The card's sensor reads more than the package's, which is a part of it.
	for _, d := range []struct {
		domain string
		share  float64
	}{{"card", 1}, {"package", .8}, {"gpu", .6}, {"memory", .1}} {
		add("hw_power_watts", watts*d.share, "hw_name", "power-1", "hw_sensor_location", d.domain)
		add("hw_energy_joules_total", joules*d.share, "hw_name", "energy-1", "hw_sensor_location", d.domain)
	}
	health := 2 * b2i(h.on(Unhealthy, s.index, now) != nil)
	for i, state := range healthStates {
		add("hw_status", float64(b2i(i == health)), "hw_name", "gpu-1", "hw_state", state, "hw_type", "gpu")
	}
	add("hw_gpu_io_bytes_total", float64(s.received), "hw_name", "gpu-1-pci", "network_io_direction", "receive")
	add("hw_gpu_io_bytes_total", float64(s.sent), "hw_name", "gpu-1-pci", "network_io_direction", "transmit")
	cc, cu, oc, ou := s.intelErrors()
	fault := func(kind, category string, v int) {
		if kind == "uncorrectable" || v > 0 { // corrected ones are printed once there are some
			add("hw_errors_total", float64(v), "error_category", category, "error_type", kind)
		}
	}
	fault("correctable", "cache_errors", cc)
	fault("uncorrectable", "cache_errors", cu)
	fault("correctable", "non_compute_errors", oc)
	fault("uncorrectable", "non_compute_errors", ou)
	fault("uncorrectable", "programming_errors", s.replays)
	fault("uncorrectable", "driver_errors", 0)
	fault("uncorrectable", "reset", resets(h, s, now))
	for i := range s.parts {
		t := &s.parts[i]
		var of []string
		if len(s.parts) > 1 {
			of = []string{"com_intel_subdevice_id", strconv.Itoa(i)}
		}
		xpum2Part(h, s, t, func(name string, v float64, more ...string) { add(name, v, append(of[:len(of):len(of)], more...)...) })
	}
}

func xpum2Part(h *host, s *state, t *part, add func(string, float64, ...string)) {
	busy := mean(t.busy) / 100
	add("hw_gpu_utilization_ratio", busy/2, "hw_gpu_task", "all") // the mean over engines
	add("hw_gpu_utilization_ratio", busy, "hw_gpu_task", "compute-all")
	add("hw_gpu_utilization_ratio", float64(s.vcn)/100, "hw_gpu_task", "media-all")
	add("hw_gpu_utilization_ratio", busy, "hw_gpu_task", "compute-single")
	memory := []string{"hw_memory_location", "device", "hw_memory_type", "gddr6", "hw_name", "mem-1"}
	add("hw_memory_size_bytes", float64(t.capacity)*mib, memory...)
	add("hw_memory_usage_bytes", float64(t.used)*mib, memory...)
	add("hw_memory_usage_bytes", 123*mib, "hw_memory_location", "system", "hw_memory_type", "ddr5", "hw_name", "mem-2")
	add("hw_memory_bandwidth_utilization_ratio", float64(s.umc)/100, memory...)
	add("hw_memory_io_bytes_total", float64(s.received), append(memory, "network_io_direction", "receive")...)
	add("hw_memory_io_bytes_total", float64(s.sent), append(memory, "network_io_direction", "transmit")...)
	for _, statistic := range []string{"max", "mean"} {
		hotter := 4 * float64(b2i(statistic == "max"))
		add("hw_temperature_celsius", float64(s.chip)+hotter, "hw_name", "temp-1", "hw_sensor_location", "gpu", "statistic", statistic)
		add("hw_temperature_celsius", float64(s.hbm)+hotter, "hw_name", "temp-2", "hw_sensor_location", "memory", "statistic", statistic)
	}
	for _, kind := range []string{"avg", "max", "min"} {
		add("hw_frequency_hertz", float64(s.clock)*1e6, "aggregation", kind, "hw_frequency_domain", "gpu", "hw_name", "freq-1")
	}
	add("hw_frequency_limit_hertz", float64(h.model.Clock)*1e6, "hw_frequency_domain", "gpu", "hw_limit_type", "max", "hw_name", "freq-1")
	add("hw_frequency_throttle_status", float64(b2i(s.throttled)), "com_intel_speed_throttle_reason", "thermal_limit", "hw_frequency_domain", "gpu", "hw_name", "freq-1")
}
