// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package exporterpage judges one page of a dcgm-exporter: whether it can be
// read, and what it lacks for what otelcol-gpu shows and watches. It is for
// those who look for the cause of a gap; the receiver itself does not use it.
package exporterpage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/fields"
)

const (
	maxDevices = 1024 // as the receiver has it
	maxNames   = 16   // drivers and models that are told
	maxCause   = 300  // bytes of an error that are told
)

// Page is what was read from a page.
type Page struct {
	// Rows are all samples, and Known those of DCGM fields that are in the field
	// table.
	Rows, Known int
	// Refused are lines that are no samples, and Cause says why the first is none.
	Refused int
	Cause   string
	// Devices are GPUs; MIG instances count with their GPU.
	Devices int
	// Drivers and Models are what the rows say, sorted.
	Drivers, Models []string
	// Holders are rows that name a pod or a batch job as the device's holder.
	Holders int
	// AsksKubelet is whether the rows have a label for the pod at all, be it
	// empty: then the exporter asks the kubelet who holds a device.
	AsksKubelet bool

	seen    map[fields.ID]bool // true: with a value on some row
	newName bool               // the names of DCGM 4.6
	oldName bool               // the names of DCGM 1.x
	newHost bool               // the label hostname in lower case, since 4.6
	pci     bool               // PCI addresses, which exporters since 3.3 print
	still   uint64
	energy  bool
}

// Read parses the page line by line with the parser of Prometheus, as the
// receiver does: a line that it refuses costs that line. An error is a page
// without any row, and says why.
func Read(text []byte) (*Page, error) {
	p := &Page{seen: map[fields.ID]bool{}}
	devices, drivers, models := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var standing []string
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		ls, v, err := sample(append(slices.Clip(line), '\n'))
		if err != nil {
			p.Refused++
			if p.Cause == "" {
				p.Cause = safetext.Strip(err.Error(), maxCause)
			}
			continue
		}
		p.Rows++
		p.readLabels(ls, devices, drivers, models)
		if row := p.readValue(ls, v); row != "" {
			standing = append(standing, row)
		}
	}
	if p.Rows == 0 && p.Refused > 0 {
		return nil, fmt.Errorf("no line of the page is one of Prometheus' text format; of the first its parser says: %s", p.Cause)
	}
	p.Devices = len(devices)
	p.Drivers, p.Models = sorted(drivers), sorted(models)
	slices.Sort(standing)
	h := fnv.New64a()
	for _, row := range standing {
		h.Write([]byte(row))
	}
	p.still = h.Sum64()
	return p, nil
}

// sample is what a line says.
func sample(line []byte) (ls labels.Labels, v float64, err error) {
	parser, err := textparse.New(line, "text/plain", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return ls, 0, err
	}
	entry, err := parser.Next()
	if err != nil {
		return ls, 0, err
	}
	if entry != textparse.EntrySeries {
		return ls, 0, errors.New("it is no sample")
	}
	_, _, v = parser.Series()
	parser.Labels(&ls)
	if _, err := parser.Next(); !errors.Is(err, io.EOF) {
		return ls, 0, errors.Join(errors.New("something follows the value"), err)
	}
	return ls, v, nil
}

func (p *Page) readLabels(ls labels.Labels, devices, drivers, models map[string]bool) {
	held := false
	ls.Range(func(l labels.Label) {
		switch kind := exporterlabels.Classify(l.Name); {
		case kind == exporterlabels.UUID:
			note(devices, l.Value, maxDevices)
		case l.Name == "hostname":
			p.newHost = true
		case kind == exporterlabels.PCIAddress:
			p.pci = true
		case kind == exporterlabels.Model:
			note(models, l.Value, maxNames)
		case l.Name == "DCGM_FI_DRIVER_VERSION":
			note(drivers, l.Value, maxNames)
		case kind == exporterlabels.Pod, kind == exporterlabels.HPCJob:
			p.AsksKubelet = p.AsksKubelet || kind == exporterlabels.Pod
			held = held || l.Value != ""
		}
	})
	if held {
		p.Holders++
	}
}

// readValue notes the field, and returns the row if it is one that moves on
// every healthy board: energy, and clocks beside it.
func (p *Page) readValue(ls labels.Labels, v float64) string {
	family := ls.Get(model.MetricNameLabel)
	id, known := fields.ByName(family)
	if !known {
		return ""
	}
	p.Known++
	f := &fields.All[id]
	p.oldName = p.oldName || strings.HasPrefix(family, "dcgm_")
	p.newName = p.newName || family != f.Name && strings.HasPrefix(family, "DCGM_")
	value := !math.IsNaN(v) && !math.IsInf(v, 0) && !f.Sentinel(v)
	p.seen[id] = p.seen[id] || value
	if !value || !slices.Contains(moving, id) {
		return ""
	}
	p.energy = p.energy || id == fields.Energy || id == fields.EnergyJoules
	return ls.String() + string(binary.BigEndian.AppendUint64(nil, math.Float64bits(v)))
}

var moving = []fields.ID{
	fields.EnergyJoules, fields.Energy, fields.SMClock, fields.MemClock, fields.VideoClock,
	fields.SMClockHertz, fields.MemClockHertz, fields.VideoClockHertz,
}

// Version is the exporter's, as far as names and labels of the page tell.
func (p *Page) Version() string {
	switch {
	case p.oldName:
		return "1.x"
	case p.newHost || p.newName:
		return "4.6 or newer"
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
