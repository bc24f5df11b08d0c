// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/devicerules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/straggler"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// device is a device that is watched.
type device struct {
	subject.Device
	first    time.Duration     // when the first point of all arrived; 0: before a restart
	seen     time.Duration     // when the first point of the newest time arrived
	opened   bool              // it is in devices.open
	snapshot pcommon.Timestamp // the time of the points that are read; 0: all were judged
	at       pcommon.Timestamp // the newest time that was judged
	returned pcommon.Timestamp // the time of the first point after the newest gap
	known    bool              // there was a time before, or a stored state
	// The readings of snapshot, or else of at.
	values   []float64
	counts   []devicerules.XIDCount
	measured bool // there is a value of the device itself

	conditions []condition.Condition
	xids       devicerules.XIDs
	counted    []devicerules.Counts // of each rule of devices.counted
	series     *series
	health     healthOf
	log        logged
	absence
}

// logged is what lines of the kernel log need of a device.
type logged struct {
	since pcommon.Timestamp // from when on they are read
	at    pcommon.Timestamp // of the newest line since the last page; 0: there was none
	seen  time.Duration     // when it arrived
}

// noticed is the time of what is known last of what happened to the device, and when that
// arrived. A device without pages may still have lines.
func (d *device) noticed() (at pcommon.Timestamp, seen time.Duration) {
	if d.log.at > d.at {
		return d.log.at, d.log.seen
	}
	return d.at, d.seen
}

// absence is what decides whether a device is lost.
type absence struct {
	exporter   subject.ExporterID // that has it on its pages; zero: not known yet
	missed     int                // scrapes of exporter without it since its last point
	missedAt   pcommon.Timestamp  // the time of the first of them
	valued     bool               // its exporter did read it
	measuredAt pcommon.Timestamp  // when it last did, after a restart at the latest; 0: before it
	blank      int                // times since then with a point of the device, and no value of it
	gaps       [2]time.Duration   // between its last points; 0: not known
	lost       condition.Condition

	owned    pcommon.Timestamp // of the newest page on which it, a part or a replica had an owner
	listed   time.Duration     // when the kubelet listed it last; 0: never
	free     bool              // without an owner
	withheld bool              // its exporter prints devices with an owner alone
}

// latest is the newest time of a point of the device.
func (d *device) latest() pcommon.Timestamp {
	if d.snapshot != 0 {
		return d.snapshot
	}
	return d.at
}

// node is where the device is.
func (d *device) node() subject.Node { return subject.Node{Cluster: d.ID.Cluster, Name: d.Facts.Node} }

// clear drops the readings.
func (d *device) clear() {
	nan := math.NaN()
	for i := range d.values {
		d.values[i] = nan
	}
	d.counts, d.measured = d.counts[:0], false
	if s := d.series; s != nil {
		s.codes, s.links = s.codes[:0], s.links[:0]
	}
}

// interval is the time between the last points; 0: unknown. An outage is no interval, so
// of two the shorter one counts.
func (a *absence) interval() time.Duration {
	if a.gaps[1] != 0 {
		return min(a.gaps[0], a.gaps[1])
	}
	return a.gaps[0]
}

// read takes a point of a metric that a rule reads. It reports whether the point is
// valid, and of what there was no room for it; empty: there was.
func (d *device) read(in *input, p pmetric.NumberDataPoint, v float64, delta bool) (valid bool, full string) {
	valid = true
	take := func(of string, ok, room bool) {
		valid = valid && ok
		if !room {
			full = of
		}
	}
	var by, where text // most inputs that are read several times have the same
	for i := range in.reads {
		s := &in.reads[i]
		if (s.Cumulative || s.Rise) && delta {
			continue
		}
		value := 0
		if s.Attribute != "" {
			if value = slices.Index(s.Values, by.of(p, s.Attribute)); value < 0 {
				continue
			}
		}
		if s.Where != nil && !s.Where.Has(where.of(p, s.Where.Attribute)) {
			continue
		}
		code, coded := int64(0), true
		if s.ByCode {
			code, coded = xidCode(p)
		}
		if !coded || !s.Valid(v) {
			valid = false
			continue
		}
		switch {
		case s.ByCode:
			n := devicerules.XIDCount{Code: code, Delta: delta, Start: p.StartTimestamp(), Count: v}
			if derived, ok := p.Attributes().Get(names.GPUXIDDerived); ok {
				n.Derived = derived.AsString() == "true"
			}
			counts, room := devicerules.AddXIDCount(d.counts, n)
			d.counts = counts
			take("xid", true, room)
		case s.Codes:
			codes, ok, room := devicerules.AddRASCode(d.more().codes, v, points.Str(p.Attributes(), names.GPURASSeverity))
			d.series.codes = codes
			take("ras", ok, room)
		case s.Links:
			links, ok, room := devicerules.AddLink(d.more().links, v, port(p))
			d.series.links = links
			take("port", ok, room)
		case s.Rise:
			greater(&d.values[s.first+2*value], v)
		case s.Count && delta:
			greater(&d.values[s.first+2*value+1], v)
		case s.Count:
			greater(&d.values[s.first+2*value], v)
		case s.Where != nil && len(s.Where.Apart) > 0:
			of := &d.values[s.first+value]
			*of = s.Where.Add(*of, where.text, v)
		default:
			greater(&d.values[s.first+value], v)
		}
	}
	return valid, full
}

// text is the text of the attribute of a point that was looked up last.
type text struct{ attribute, text string }

func (t *text) of(p pmetric.NumberDataPoint, attribute string) string {
	if t.attribute != attribute {
		t.attribute, t.text = attribute, points.Str(p.Attributes(), attribute)
	}
	return t.text
}

// greater keeps the greater of two readings, so that their order does not matter.
func greater(dst *float64, v float64) {
	if math.IsNaN(*dst) || v > *dst {
		*dst = v
	}
}

// port is the name of the port of a point, which is a number or a text.
func port(p pmetric.NumberDataPoint) string {
	if v, ok := p.Attributes().Get(names.GPULinkIndex); ok {
		return v.AsString()
	}
	return ""
}

// xidCode reads the code of a point, which is a text where a pipeline made it one.
func xidCode(p pmetric.NumberDataPoint) (int64, bool) {
	v, ok := p.Attributes().Get(names.GPUXIDCode)
	if !ok {
		return 0, false
	}
	code, err := v.Int(), error(nil)
	if v.Type() == pcommon.ValueTypeStr {
		code, err = strconv.ParseInt(v.Str(), 10, 64)
	}
	return code, err == nil && code > 0 && code <= math.MaxInt32
}

// isMeasured distinguishes what is read from a device from what an exporter prints of it
// whether or not it can be read: a count of its own that is 0, a health status.
func isMeasured(metric string) bool {
	if strings.HasPrefix(metric, "hw.") {
		return true
	}
	switch metric {
	case names.GPUSMActive.Name, names.GPUSMOccupancy.Name, names.GPUPipeActive.Name, names.GPUDRAMActive.Name, names.GPUEngineActive.Name,
		names.GPUClockFrequency.Name:
		return true
	}
	return false
}

// hadOwner reports whether the device had an owner on its newest page.
func (d *device) hadOwner() bool { return d.owned != 0 && d.owned == d.latest() }

// kind is what the points of a metric are about.
type kind uint8

const (
	ofDevice kind = iota
	ofExporterUp
	ofExporterFrozen
	ofExporterUnrecognized
	ofReconfiguring
	ofAllocation
	ofSchedulable
	ofNodeInfo
	ofService
	ofPeers // read by the comparison of boards alone
)

// kinds are the metrics that are not about a device or a service.
var kinds = map[string]kind{
	names.ExporterUp.Name: ofExporterUp, names.ExporterFrozen.Name: ofExporterFrozen,
	names.ExporterUnrecognized.Name:    ofExporterUnrecognized,
	names.GPUNodeMIGReconfiguring.Name: ofReconfiguring, names.GPUAllocation.Name: ofAllocation, names.GPUNodeSchedulable.Name: ofSchedulable,
	names.GPUNodeInfo.Name: ofNodeInfo,
}

// input is a metric that a rule reads.
type input struct {
	kind     kind
	measured bool // it is a value of the device itself
	reads    []slots
	peers    straggler.Input // of the comparison of boards; nil: it does not read the metric
}

// slots are the places of an input's readings among those of a device.
type slots struct {
	rule.Input
	first int // of the first value; two for each value of a count, or of a rise
}

// inputs are the metrics that the rules read.
type inputs struct {
	table names.Table[*input]
	size  int // the number of readings of a device
	// rising are the counts of which the next reading is by how much they rose.
	rising []rising
}

// rising is a count in the readings of a device.
type rising struct {
	name  string // of the metric, and the value of the attribute; it is stored
	place int
}

// add adds the inputs of a rule, and returns the places of its readings. Rules that read
// the same share them.
func (in *inputs) add(r *rule.Rule) (places []int) {
	for _, read := range r.Reads {
		metric := read.Metric.Name
		k, special := kinds[metric]
		switch {
		case special:
		case r.Set == rule.Service:
			k = ofService
		default:
			k = ofDevice
		}
		i := in.table.Get(metric)
		if i == nil {
			i = &input{kind: k, measured: isMeasured(metric)}
			in.table.Put(metric, i)
		}
		if k == ofDevice {
			places = append(places, in.place(i, read)...)
		}
	}
	return places
}

// compare adds a metric that the comparison of boards reads.
func (in *inputs) compare(metric string, read straggler.Input) {
	i := in.table.Get(metric)
	if i == nil {
		i = &input{kind: ofPeers, measured: isMeasured(metric)}
		in.table.Put(metric, i)
	}
	i.peers = read
}

func (in *inputs) place(i *input, read rule.Input) (places []int) {
	size := max(1, len(read.Values))
	if read.Count || read.Rise {
		size *= 2
	}
	if read.ByCode || read.Codes || read.Links {
		size = 0
	}
	at := slices.IndexFunc(i.reads, func(s slots) bool {
		return s.Same(&read)
	})
	if at < 0 {
		at = len(i.reads)
		i.reads = append(i.reads, slots{read, in.size})
		for n := 0; read.Rise && n < size; n += 2 {
			name := read.Metric.Name
			if read.Attribute != "" {
				name += "/" + read.Values[n/2]
			}
			in.rising = append(in.rising, rising{name, in.size + n})
		}
		in.size += size
	}
	for n := range size {
		places = append(places, i.reads[at].first+n)
	}
	return places
}
