// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"fmt"
	"strconv"
	"time"
)

// xpum1Labels name a device. The UUID is made of PCI ids, so that
// it repeats between hosts.
func xpum1Labels(h *host, s *state) []string {
	labels := []string{"dev_file", "card" + strconv.Itoa(s.card()), "dev_name", h.model.Name, "node", h.Name,
		"pci_bdf", s.pci, "pci_dev", fmt.Sprintf("0x%x", h.model.PCIDevice),
		"uuid", fmt.Sprintf("00000000-0000-0000-%s-%04x00008086", s.pci[5:7]+"00", h.model.PCIDevice), "vendor", "Intel(R) Corporation"}
	if owners := s.parts[0].owners; len(owners) > 0 && !h.NoPods {
		o := owners[len(owners)-1] // of several pods of a card the last one wins
		labels = with(labels, "kube_container", o.Container, "kube_namespace", o.Namespace, "kube_pod", o.Name)
	}
	return labels
}

// resets of a board.
func resets(h *host, s *state, at time.Time) int {
	return s.replays + b2i(h.on(DeviceReset, s.index, at) != nil)
}

// xpum1Text is a page of XPU Manager 1.x: rows of tiles, of devices and of cards, and
// values that the exporter derived from others marked by src.
func xpum1Text(h *host, all []*state, now time.Time) *page {
	p := newPage()
	cards := map[int]float64{}
	for _, s := range all {
		if h.on(DeviceFails, s.index, now) != nil {
			continue
		}
		xpum1Device(h, p, s, now)
		if n := h.model.PerCard; n > 0 {
			cards[s.index/n] += float64(s.milliwatts) / 1000
		}
	}
	for i := range len(cards) {
		if watts, ok := cards[i]; ok {
			p.add("xpum_power_watts", watts, "card", strconv.Itoa(1<<31|i+1), "node", h.Name, "src", "sum")
		}
	}
	return p
}

func xpum1Device(h *host, p *page, s *state, now time.Time) {
	labels := xpum1Labels(h, s)
	twice := h.on(DuplicateSeries, s.index, now) != nil
	write := func(name string, v float64, labels []string) {
		p.add(name, v, labels...)
		if twice {
			p.add(name, v*.9, labels...)
		}
	}
	gauge := func(name string, v float64, more ...string) {
		write(name, v, with(labels, append(more, "src", "direct")...))
	}
	counter := func(name string, v float64, more ...string) {
		write(name+"_total", v, with(labels, append(more, "src", "direct")...))
		p.add(name+"_created", 1.7e9, with(labels, append(more, "src", "direct")...)...)
	}
	watts := float64(s.milliwatts) / 1000
	if h.on(PowerSpike, s.index, now) != nil {
		watts = 3.69e12
	}
	gauge("xpum_power_watts", watts)
	counter("xpum_energy_joules", printedJoules(h, s, now))
	cc, cu, oc, ou := s.intelErrors()
	counter("xpum_cache_errors", float64(cc), "type", "correctable")
	counter("xpum_cache_errors", float64(cu), "type", "uncorrectable")
	counter("xpum_non_compute_errors", float64(oc), "type", "correctable")
	counter("xpum_non_compute_errors", float64(ou), "type", "uncorrectable")
	counter("xpum_programming_errors", float64(s.replays))
	counter("xpum_driver_errors", 0)
	counter("xpum_resets", float64(resets(h, s, now)))
	counter("xpum_pcie_read_bytes", float64(s.received))
	counter("xpum_pcie_write_bytes", float64(s.sent))
	tiles := len(s.parts) > 1
	for i := range s.parts {
		t := &s.parts[i]
		var of []string
		if tiles {
			of = []string{"sub_dev", strconv.Itoa(i)}
		}
		busy := mean(t.busy) / 100
		gauge("xpum_engine_ratio", busy, of...)
		gauge("xpum_engine_group_ratio", busy, append(of[:len(of):len(of)], "type", "compute")...)
		gauge("xpum_engine_group_ratio", float64(s.vcn)/100, append(of[:len(of):len(of)], "type", "media")...)
		gauge("xpum_per_engine_ratio", busy, append(of[:len(of):len(of)], "engine_id", "0", "type", "compute")...)
		gauge("xpum_memory_used_bytes", float64(t.used)*mib, of...)
		gauge("xpum_memory_ratio", float64(t.used)/float64(t.capacity), of...)
		gauge("xpum_memory_bandwidth_ratio", float64(s.umc)/100, of...)
		counter("xpum_memory_read_bytes", float64(s.received), of...)
		counter("xpum_memory_write_bytes", float64(s.sent), of...)
		gauge("xpum_temperature_celsius", float64(s.chip), append(of[:len(of):len(of)], "location", "gpu")...)
		gauge("xpum_max_temperature_celsius", float64(s.chip+4), append(of[:len(of):len(of)], "location", "gpu")...)
		gauge("xpum_temperature_celsius", float64(s.hbm), append(of[:len(of):len(of)], "location", "mem")...)
		gauge("xpum_frequency_mhz", float64(s.clock), append(of[:len(of):len(of)], "location", "gpu", "type", "actual")...)
		gauge("xpum_frequency_mhz", float64(h.model.Clock), append(of[:len(of):len(of)], "location", "gpu", "type", "request")...)
	}
	if tiles { // what the exporter computes of the tiles where the device has nothing of its own
		computed := func(name string, v float64) { write(name, v, with(labels, "src", "avg")) }
		computed("xpum_engine_ratio", busyOf(s.parts)/100)
		computed("xpum_memory_ratio", float64(s.usedMiB())/float64(h.model.MemoryMiB))
		computed("xpum_memory_bandwidth_ratio", float64(s.umc)/100)
	}
	if h.model.Ports > 0 { // the worst of all ports: 1 ok, 2 degraded, 3 failed
		gauge("xpum_xelink_port_status", float64(1+2*b2i(h.on(LinkDown, s.index, now) != nil)), "description", "", "device_id", strconv.Itoa(s.index))
	}
}
