// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/internal/seendevices"
)

// Address is server.address of what is known about the source. There is no port.
const Address = "nvml"

// Readings that the mapping knows by name. The last three are its own.
const (
	memoryTotal    = "memory.total"
	memoryUsed     = "memory.used"
	recoveryAction = "recovery.action"
	answered       = "answered"
	suspended      = "suspended"
	xidLast        = "xid.last"
)

// Mapping turns scrapes into metrics. It keeps what is known from scrape to scrape, and is
// not safe for concurrent use.
type Mapping struct {
	opts      Options
	inventory bool
	vendor    *devicemap.Vendor
	target    *devicemap.Target
	families  map[string]*devicemap.Family
	boards    map[string]*device // by Thread
	driver    string
	drivers   uint64 // how many versions of the driver there were
	released  bool   // in the scrape before

	// Of the current scrape:
	scrape  *Scrape
	now     time.Time
	page    devicemap.Page
	result  Result
	seen    map[rowKey]bool // of one device
	partial map[string]bool // boards of which not all instances are known, by UUID
}

// New returns the state of a host that was never scraped.
func New(opts Options) *Mapping {
	m := &Mapping{
		opts: opts, inventory: slices.Contains(opts.Groups, nvmlproto.GroupInventory),
		families: map[string]*devicemap.Family{}, boards: map[string]*device{}, seen: map[rowKey]bool{}, partial: map[string]bool{},
	}
	if m.opts.Registry == nil {
		m.opts.Registry = seendevices.Process
	}
	m.opts.Registry.Join()
	m.vendor = newVendor(opts.Groups, func() devicemap.Derivation { return &derivation{mapping: m} })
	m.target = devicemap.NewTarget(m.vendor, devicemap.Options{
		OTel: true, NodeName: opts.NodeName, ClusterName: opts.ClusterName, ScopeName: opts.ScopeName, ScopeVersion: opts.ScopeVersion,
		FrozenAfter: opts.FrozenAfter, FrozenFor: opts.FrozenFor,
		OwnPage: true,
	})
	return m
}

// ID is the hw.id of a board that was read once, by its Thread; empty for another.
func (m *Mapping) ID(thread string) string {
	if d := m.boards[thread]; d != nil {
		return d.uuid
	}
	return ""
}

// Map turns one scrape into metrics.
func (m *Mapping) Map(s *Scrape) Result {
	m.scrape, m.now = s, s.Time
	clear(m.partial)
	m.result = Result{Refusals: map[Refusal]int{}, Denied: map[string]int{}, IDs: map[string]string{}}
	now := pcommon.NewTimestampFromTime(s.Time)
	if s.Released {
		m.released = true
		m.result.Metrics = pmetric.NewMetrics()
		m.writeReleased(m.result.Metrics, now, 1)
		return m.result
	}
	if s.Driver != "" && s.Driver != m.driver {
		m.driver = s.Driver
		m.drivers++
		for _, d := range m.boards {
			clear(d.hourly)
		}
	}
	m.page = devicemap.Page{Time: now, Up: s.Up, Duration: s.Duration.Seconds(), Rows: m.page.Rows[:0]}
	if s.Up {
		m.readBoards()
	}
	m.readResting()
	m.readRisen()
	result := m.target.Map(&m.page, devicemap.Exporter{Address: Address, Node: m.opts.NodeName})
	result.Lack, result.Why = devicemap.LacksNothing, "" // words about pages
	m.result.Result = result
	if m.released {
		m.released = false
		m.writeReleased(result.Metrics, now, 0)
	}
	putHolders(result.Metrics, s.Holders)
	m.shareWithDCGM()
	m.scrape = nil
	return m.result
}

// readResting makes the rows of boards that are left alone: what does not change while
// they sleep.
func (m *Mapping) readResting() {
	for _, r := range m.scrape.Resting {
		d := m.boards[r.Thread]
		if d == nil || m.result.IDs[r.Thread] != "" {
			continue
		}
		m.row(d, suspended, "", number(r.Suspended))
		if d.total > 0 {
			m.row(d, memoryTotal, "", d.total)
		}
		if !m.scrape.XIDs[d.uuid].Rose { // or readRisen makes it
			m.lastXID(d, d.uuid)
		}
	}
}

// readRisen makes the rows of devices of which no more than an XID is known in this scrape,
// such as a board that fell off its bus.
func (m *Mapping) readRisen() {
	byID, read := map[string]*device{}, map[string]bool{}
	for thread, d := range m.boards {
		switch known := m.result.IDs[thread] == d.uuid; {
		case known:
			byID[d.uuid], read[d.uuid] = d, true
		case !read[d.uuid]: // or it was at this address before
			byID[d.uuid] = d
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.scrape.XIDs)) {
		uuid, gi, _ := strings.Cut(id, "/")
		d := byID[uuid]
		if d == nil || !m.scrape.XIDs[id].Rose {
			continue
		}
		if gi != "" {
			d = d.part(gi, read[uuid])
		} else if read[uuid] {
			d = nil
		}
		if d != nil {
			m.lastXID(d, id)
		}
	}
}

// part is the instance of a board by its number, nil if it was read with the board.
func (d *device) part(gi string, boardRead bool) *device {
	n, err := strconv.Atoi(gi)
	if err != nil {
		return nil
	}
	part := d.instances[n]
	switch {
	case part == nil:
		part = newDevice(d.texts.with([2]string{labelInstance, gi}))
		d.instances[n] = part
	case boardRead:
		return nil
	}
	return part
}

func number(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

// writeReleased writes whether the driver is left alone, about the node.
func (m *Mapping) writeReleased(md pmetric.Metrics, now pcommon.Timestamp, v int64) {
	rm := md.ResourceMetrics().AppendEmpty()
	put := func(attrs pcommon.Map) {
		attrs.PutStr(names.ServerAddress, Address)
		if m.opts.NodeName != "" {
			attrs.PutStr(names.K8sNodeName, m.opts.NodeName)
		}
	}
	put(rm.Resource().Attributes())
	if m.opts.ClusterName != "" {
		rm.Resource().Attributes().PutStr(names.K8sClusterName, m.opts.ClusterName)
	}
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(m.opts.ScopeName)
	sm.Scope().SetVersion(m.opts.ScopeVersion)
	p := names.GPUDriverReleased.Init(sm.Metrics().AppendEmpty()).AppendEmpty()
	p.SetTimestamp(now)
	p.SetIntValue(v)
	put(p.Attributes())
}

// putHolders writes who shares a device, as the dcgm receiver does.
func putHolders(md pmetric.Metrics, holders map[string][]Holder) {
	if len(holders) == 0 {
		return
	}
	for _, rm := range md.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		id, _ := attrs.Get(names.HwID)
		if len(holders[id.Str()]) == 0 {
			continue
		}
		list := attrs.PutEmptySlice(names.ExporterHolders)
		for _, h := range holders[id.Str()] {
			entry := list.AppendEmpty().SetEmptyMap()
			for _, text := range [...][2]string{
				{names.ExporterNamespace, h.Namespace}, {names.ExporterPod, h.Pod}, {names.ExporterContainer, h.Container}, {names.ExporterPodUID, h.PodUID},
			} {
				if text[1] != "" {
					entry.PutStr(text[0], text[1])
				}
			}
			if h.Memory >= 0 {
				entry.PutInt(names.GPUMemoryUsage.Name, int64(h.Memory))
			}
			if h.Utilization >= 0 {
				entry.PutDouble(names.GPUUtilization.Name, h.Utilization)
			}
		}
	}
}

// shareWithDCGM lets the dcgm receiver of this process know which XIDs are counted here,
// and leaves out what it emits.
func (m *Mapping) shareWithDCGM() {
	lasts := 3 * m.opts.Interval
	for id := range m.scrape.XIDs {
		m.opts.Registry.CountsXIDs(id, m.scrape.Time, lasts)
	}
	for thread, id := range m.result.IDs {
		if _, watched := m.scrape.XIDs[id]; !watched {
			continue
		}
		for gi := range m.boards[thread].instances {
			m.opts.Registry.CountsXIDs(deviceid.MIG(id, strconv.Itoa(gi)), m.scrape.Time, lasts)
		}
	}
	m.result.LeftToDCGM = m.opts.Registry.Cut(m.result.Metrics, m.scrape.Time)
}
