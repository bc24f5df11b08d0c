// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvidia"
)

// derivation is what is kept of a device, and what is written beside the table.
type derivation struct {
	mapping  *Mapping
	throttle nvidia.Throttle
	driver   uint64 // number of the driver that links is of
	links    links
	before   [2]count // bytes by direction
}

// links is which reading counts the bytes of the links: the first that answered.
type links uint8

const (
	linksUnknown links = iota
	linksTogether
	linksOneByOne
)

type count struct {
	v  float64
	at time.Time
}

// directions are the quantities of each direction.
var directions = [2]struct{ rate, total, byLink, pcie, pcieSampled devicetable.ID }{
	{nvidia.NVLinkTX, nvidia.NVLinkTXTotal, NVLinkTXByLink, nvidia.PCIeTX, PCIeTXSampled},
	{nvidia.NVLinkRX, nvidia.NVLinkRXTotal, NVLinkRXByLink, nvidia.PCIeRX, PCIeRXSampled},
}

// settle decides what takes several readings of a board.
func settle(d *devicemap.Device) {
	kept, _ := d.Derivation().(*derivation)
	if kept == nil {
		return
	}
	if !kept.mapping.partial[d.ID()] {
		d.SumParts()
	}
	kept.chooseLinks(d)
	for i, q := range directions {
		if x := d.Reading(q.pcieSampled); x.Known() && !d.Reading(q.pcie).Known() {
			d.Set(q.pcie, x.V)
		}
		switch x := d.Reading(q.byLink); {
		case kept.links != linksOneByOne:
		case x.Known():
			d.Set(q.total, x.V)
		default:
			d.Clear(q.total)
		}
		total := d.Reading(q.total)
		if !total.Known() {
			kept.before[i] = count{}
			continue
		}
		now := count{total.V, kept.mapping.now}
		if rate, ok := now.since(kept.before[i]); ok && !d.Reading(q.rate).Known() {
			d.Set(q.rate, rate)
		}
		kept.before[i] = now
	}
}

// chooseLinks chooses the reading that counts the bytes of the links until the driver
// changes: one that counts otherwise would look like a reset.
func (k *derivation) chooseLinks(d *devicemap.Device) {
	if k.driver != k.mapping.drivers {
		k.driver, k.links = k.mapping.drivers, linksUnknown
	}
	if k.links != linksUnknown {
		return
	}
	for _, q := range directions {
		switch {
		case d.Reading(q.total).Known():
			k.links = linksTogether
			return
		case d.Reading(q.byLink).Known():
			k.links = linksOneByOne
		}
	}
}

// since is the growth in a second since an earlier count. A count that fell was reset.
func (c count) since(before count) (rate float64, ok bool) {
	passed := c.at.Sub(before.at)
	if before.at.IsZero() || passed <= 0 || c.v < before.v {
		return 0, false
	}
	return (c.v - before.v) / passed.Seconds(), true
}

// Write implements devicemap.Derivation.
func (k *derivation) Write(d *devicemap.Device, w *devicemap.Writer) {
	k.throttle.Write(d, w)
	s := k.mapping.scrape
	for _, x := range s.XIDs[d.ID()].Counts {
		p := w.Point(&names.GPUXIDErrors)
		p.SetIntValue(x.N)
		p.SetStartTimestamp(min(pcommon.NewTimestampFromTime(x.Start), w.Time())) // the clock may be set back
		p.Attributes().PutInt(names.GPUXIDCode, x.Code)
	}
	if s.Processes != nil {
		s.Processes(d.ID(), s.Time, w.Metrics())
	}
}
