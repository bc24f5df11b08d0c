// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package exporterpage reads one page of a dcgm-exporter as the dcgm receiver does, to
// find the cause of a gap: what is on the page, and what it lacks for what otelcol-gpu
// shows and watches.
package exporterpage

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
	"github.com/otelcol-gpu/otelcol-gpu/internal/vendorpage"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/dcgm"
)

const maxNames = 16 // drivers and models that are reported

// DefaultSettings are those of a receiver without keys about the page.
func DefaultSettings() fetch.Settings { return fetch.DefaultSettings(dcgm.Exporter.Type) }

// Exporter has the names of dcgm-exporter, and what to do where it fails.
var Exporter = &dcgm.Exporter

// Remedy is what to do about an outcome, given the error behind it, if any.
func Remedy(o fetch.Outcome, err error) string { return dcgm.Exporter.Remedy(o, err) }

// Page is what was read from a page.
type Page struct {
	vendorpage.Lines
	// Known are rows of DCGM fields that are in the field table.
	Known int
	// Devices are GPUs; MIG instances count with their GPU. Silent are those of
	// them without any value.
	Devices, Silent int
	// Drivers and Models are what the rows name, sorted.
	Drivers, Models []string
	// WithOwner are rows that name a pod or a batch job as the device's owner.
	WithOwner int
	// AsksKubelet is whether the rows have a label for the pod at all, be it
	// empty: then the exporter asks the kubelet who owns a device.
	AsksKubelet bool

	seen    map[devicetable.ID]bool // true: with a value on some row
	newName bool                    // the names of DCGM 4.6
	newest  bool                    // fields that only DCGM 4.7 has, and dcgm-exporter since 4.9
	oldName bool                    // the names of DCGM 1.x
	newHost bool                    // the label hostname in lower case, since 4.6
	pci     bool                    // PCI addresses, which exporters since 3.3 print
	clocks  bool                    // the name CLOCKS_EVENT_REASONS, which DCGM has since 4.0
	still   uint64
	energy  bool
}

// Read reads a page as the receiver does. An error is a page that the receiver
// refuses, see fetch.Failed.
func Read(text []byte, o pagetext.Options) (*Page, error) {
	lines, rows, _, err := vendorpage.ReadLines(&dcgm.Exporter, &dcgm.Vendor, text, o)
	if err != nil {
		return nil, err
	}
	p := &Page{Lines: lines, seen: map[devicetable.ID]bool{}}
	devices, drivers, models := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var standing []string
	for _, row := range rows {
		device := p.readLabels(row.Series, drivers, models)
		if device != "" && (devices[device] || len(devices) < devicemap.MaxDevices) {
			devices[device] = devices[device] || dcgm.Vendor.HasValue(row.Series, row.Value)
		}
		if text := p.readValue(row.Series, row.Value); text != "" {
			standing = append(standing, text)
		}
	}
	// The reader drops labels without a value, as Prometheus does.
	p.AsksKubelet = p.AsksKubelet || bytes.Contains(text, []byte(`pod=""`)) || bytes.Contains(text, []byte(`pod_name=""`))
	p.Devices = len(devices)
	for _, alive := range devices {
		if !alive {
			p.Silent++
		}
	}
	p.Drivers, p.Models = sorted(drivers), sorted(models)
	slices.Sort(standing)
	h := fnv.New64a()
	for _, row := range standing {
		h.Write([]byte(row))
	}
	p.still = h.Sum64()
	return p, nil
}

// readLabels notes what the labels of a row are about, and returns its GPU.
func (p *Page) readLabels(s *devicemap.Series, drivers, models map[string]bool) (device string) {
	held := false
	for name, value := range s.Labels() {
		switch kind := exporterlabels.Classify(name); {
		case kind == exporterlabels.UUID && s.Ours():
			device = value
		case name == "hostname":
			p.newHost = true
		case kind == exporterlabels.PCIAddress:
			p.pci = true
		case kind == exporterlabels.Model:
			note(models, value, maxNames)
		case dcgm.Vendor.Facts[name] == devicemap.Driver && kind == exporterlabels.Field:
			note(drivers, value, maxNames)
		case kind == exporterlabels.Pod, kind == exporterlabels.HPCJob:
			p.AsksKubelet = p.AsksKubelet || kind == exporterlabels.Pod
			held = true
		}
	}
	if held {
		p.WithOwner++
	}
	return device
}

// readValue notes the field, and returns the row if it is one that moves on
// every healthy board: energy, and clocks beside it.
func (p *Page) readValue(s *devicemap.Series, v float64) string {
	id, known := s.Field()
	if !known {
		return ""
	}
	p.Known++
	family, f := s.Name(), s.Printed()
	p.newest = p.newest || f.Number > dcgm.Last46
	p.oldName = p.oldName || strings.HasPrefix(family, "dcgm_")
	switch {
	case family == clocksEventReasons:
		p.clocks = true
	case family != dcgm.Table.Fields[id].Name && strings.HasPrefix(family, "DCGM_"):
		p.newName = true
	}
	value := !math.IsNaN(v) && !math.IsInf(v, 0) && !dcgm.Vendor.Absent(f, v)
	p.seen[id] = p.seen[id] || value
	energy := slices.Contains(dcgm.Vendor.Moving.Energy, id)
	if !value || !energy && !slices.Contains(dcgm.Vendor.Moving.Clocks, id) {
		return ""
	}
	p.energy = p.energy || energy
	return s.String() + string(binary.BigEndian.AppendUint64(nil, math.Float64bits(v)))
}

// Version is the exporter's, as far as known from names and labels of the page.
func (p *Page) Version() string {
	switch {
	case p.oldName:
		return "1.x"
	case p.newest:
		return "4.9 or newer, with DCGM 4.7"
	case p.newHost || p.newName:
		return "4.6 or newer"
	case p.clocks:
		return "4.0 to 4.5"
	case p.pci:
		return "3.3 to 4.5"
	default:
		return "2.x or 3.0"
	}
}

// StoodStill is whether nothing moved between an earlier page and this one,
// although energy always does. Without energy on both pages it is not known.
func (p *Page) StoodStill(earlier *Page) (still, known bool) {
	known = p.energy && earlier.energy
	return known && p.still == earlier.still, known
}

// note keeps names that are not empty, up to a limit.
func note(names map[string]bool, name string, limit int) {
	if name != "" && len(names) < limit {
		names[safetext.Strip(name, 100)] = true
	}
}

func sorted(set map[string]bool) []string {
	all := make([]string, 0, len(set))
	for name := range set {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
