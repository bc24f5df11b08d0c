// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package devicemap turns pages of a vendor's exporter into OpenTelemetry metrics: one
// resource a device. What it must know of the vendor is in a Vendor.
//
// A page is read in two steps. Reading sorts every row to its device and keeps one
// value a field (read.go, labels.go, device.go). Writing then makes the device's series
// from those values (writer.go), which is where values of several fields meet; what a
// vendor derives beyond its table is in its Derivation. The owners' shares of a device
// are in shares.go, and which of its fields have new names in raw.go. What a device needs from one page to the next (start times of
// counters, its derivation) stays in its Device.
//
// A Target is not safe for concurrent use; an exporter is scraped by one
// goroutine at a time.
package devicemap

import (
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Options are the receiver's settings that change what is emitted.
type Options struct {
	OTel         bool   // OpenTelemetry names
	AsIs         bool   // families under the exporter's names
	DropUnmapped bool   // leave out families that the table does not know
	NodeName     string // k8s.node.name, where known
	ClusterName  string // k8s.cluster.name, where configured
	ScopeName    string // instrumentation scope of everything emitted
	ScopeVersion string
	// FrozenAfter is the number of pages, and FrozenFor the time, for which an
	// exporter's values must stand still to be called frozen.
	FrozenAfter int
	FrozenFor   time.Duration
	// OwnPage: no exporter prints the page, and so all of its fields are known.
	OwnPage bool
}

// Target keeps what is known about one exporter from page to page.
type Target struct {
	vendor   *Vendor
	opts     Options
	devices  devices
	page     pageState
	unmapped unmapped
	tooMany  Over // devices
	still    still
	judged   bool // gpu.exporter.frozen was written
	surveyed surveyed
	meanings meanings
	wasUp    bool // what gpu.exporter.up was before
	limited  bool // the scrape before was refused by a limit of the exporter
	fields   fieldNames
}

// pageState is what was read of one page so far; its memory serves the next page.
type pageState struct {
	number      uint64
	time        pcommon.Timestamp // 0 where no row has a value
	order       []*Device         // devices on this page, in order of appearance
	named       []*Device         // known ones of which a row has no value
	loose       []rawPoint        // rows without a device, of unknown families
	shares      []share           // rows that may be shares, see shares.go
	unclear     []Row             // rows of ambiguous families
	doubt       string            // the first of them that the page contradicts itself about
	refused     Refused
	over        Over   // the first limit of a target that it is over
	implausible string // the first row of a value that no device can have
	counted     int    // devices that the exporter counts, 0 where it does not
}

// NewTarget returns the state of an exporter that was never scraped.
func NewTarget(v *Vendor, opts Options) *Target {
	t := &Target{
		vendor: v, opts: opts, tooMany: v.OverDevices(),
		devices:  devices{vendor: v, boards: map[string]*Device{}},
		unmapped: unmapped{series: map[string]*unmappedSeries{}},
	}
	t.devices.page, t.devices.survey = &t.page, &t.surveyed
	return t
}

// Result is what one scrape gave.
type Result struct {
	Metrics     pmetric.Metrics
	Devices     int
	Refused     Refused
	Over        Over   // the limit of the target that the page is over
	Lack        Lack   // where there is no device
	Why         string // the evidence of Lack
	Missing     int    // devices that the exporter counts and has no row of
	Doubt       string // the family with a unit about which the page contradicts itself, and how
	Implausible string // the first row with a value that no device can have, and the value
	// Unknown are the fields of the page that are not in the table and may have a quantity
	// that the page lacks; all of them on an Unrecognized page, as far as they are kept.
	Unknown []Unknown
	// Unrecognized is a page with devices on which no field is known to be the utilization,
	// memory or power of one.
	Unrecognized bool
}

// Map turns one scrape into metrics.
func (t *Target) Map(p *Page, e Exporter) Result {
	t.read(p)
	out := pmetric.NewMetrics()
	node := t.node(e)
	// Exporters print devices and families in any order.
	slices.SortFunc(t.page.order, func(a, b *Device) int { return strings.Compare(a.id, b.id) })
	t.settle()
	if p.Up && !t.opts.OwnPage {
		t.fields.judge(t.vendor.Table, len(t.page.order) > 0)
	}
	t.writeExporter(out, p, e, node)
	t.writeDevices(out, node, e.Pod)
	t.forget()
	result := Result{Metrics: out, Devices: len(t.page.order), Refused: t.page.refused, Over: t.page.over, Doubt: t.page.doubt, Implausible: t.page.implausible}
	if p.Up && result.Devices > 0 {
		result.Unknown, result.Unrecognized = t.fields.found, t.fields.unrecognized
	}
	if p.Up && result.Devices == 0 {
		result.Lack, result.Why = p.lack(t.vendor)
	}
	if t.page.counted > 0 {
		result.Missing = max(0, t.page.counted-t.page.undivided())
	}
	return result
}

// undivided is the number of devices of the page without parts.
func (p *pageState) undivided() int {
	n := len(p.order)
	for _, d := range p.order {
		if d.parent == nil && len(d.Parts()) > 0 {
			n--
		}
	}
	return n
}

// writeDevices appends one resource a device.
func (t *Target) writeDevices(md pmetric.Metrics, node, exporterPod string) {
	order := t.page.order
	if t.opts.OTel && t.vendor.Settle == nil {
		for _, d := range order {
			d.sumParts(&t.vendor.Memory, t.page.number)
		}
	}
	md.ResourceMetrics().EnsureCapacity(len(order) + 1)
	var w Writer // one for all: a vendor's derivation takes it to the heap
	for _, d := range order {
		rm := md.ResourceMetrics().AppendEmpty()
		d.putResource(rm.Resource().Attributes(), t.vendor, &t.opts, node, exporterPod)
		w = Writer{target: t, device: d, time: d.lastSeen, metrics: t.scope(rm).Metrics()}
		w.writeDevice()
		if d.blank && t.opts.OTel {
			w.Value(&names.GPUDeviceBlank, 0)
		}
		d.blank = false
	}
	t.writeBlank(md, node, exporterPod)
	md.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
		return rm.ScopeMetrics().At(0).Metrics().Len() == 0
	})
}

// writeBlank appends a resource for each known device that is on the page without any value. Where
// that is all of them the exporter has none.
func (t *Target) writeBlank(md pmetric.Metrics, node, exporterPod string) {
	if len(t.page.order) == 0 || !t.opts.OTel {
		return
	}
	slices.SortFunc(t.page.named, func(a, b *Device) int { return strings.Compare(a.id, b.id) })
	for _, d := range t.page.named {
		if d.seen == t.page.number {
			continue
		}
		rm := md.ResourceMetrics().AppendEmpty()
		d.putResource(rm.Resource().Attributes(), t.vendor, &t.opts, node, exporterPod)
		w := Writer{target: t, device: d, time: t.page.time, metrics: t.scope(rm).Metrics()}
		w.Value(&names.GPUDeviceBlank, 1)
		d.blank = true
	}
}

// forget drops what has not been on a page for long. Now and then is enough, and
// never while there are no pages: what a silent exporter has comes back with it.
func (t *Target) forget() {
	if t.page.number%64 != 0 || t.page.time == 0 {
		return
	}
	t.devices.forget(t.page.time)
	t.unmapped.forget(t.page.number)
}

// settle has the vendor decide what takes several readings, or several devices.
func (t *Target) settle() {
	for _, d := range t.page.order {
		for _, id := range t.vendor.Table.Means() {
			d.values[id].divide()
			for text, x := range d.labelled[id] {
				x.divide()
				d.labelled[id][text] = x
			}
		}
		for _, id := range t.vendor.Table.MeansOfRows() {
			d.meanOfRows(id)
		}
	}
	if t.vendor.Settle == nil {
		return
	}
	for _, d := range t.page.order {
		if d.parent == nil {
			t.vendor.Settle(d)
		}
	}
}
