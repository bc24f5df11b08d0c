// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// Reasons for which values are refused, beside those of devicemap and nvmlproto.
const (
	reasonUUID    = "uuid"    // no UUID, or none in the known form
	reasonUnknown = "unknown" // a reading that is not asked for
	reasonReturn  = "return_other"
)

const callInstances = "nvmlDeviceGetMigDeviceHandleByIndex"

// device is what is kept of a board or an instance for its rows.
type device struct {
	texts  texts
	labels *devicemap.Labels // nil until they are needed
	series map[rowKey]*devicemap.Series
	// Of a board:
	uuid      string
	total     float64            // memory in bytes, 0: not known
	hourly    map[string]float64 // readings that are read once an hour
	instances map[int]*device    // by GI
}

func newDevice(t texts) *device {
	return &device{texts: t, series: map[rowKey]*devicemap.Series{}}
}

// rowKey is a reading and the row of it.
type rowKey struct{ name, row string }

// readBoards makes the rows of what was read of all boards.
func (m *Mapping) readBoards() {
	uuids, places := map[string]bool{}, map[string]bool{}
	for i := range m.scrape.Boards {
		b := &m.scrape.Boards[i]
		switch place := deviceid.PCIAddress(b.PCI); {
		case i >= maxBoards:
			m.refuse("nvmlDeviceGetCount", nvmlproto.ReasonLimit)
		case b.Return != nvmlproto.Success:
			m.returned("nvmlDeviceGetHandle", b.Return)
		case b.Lost:
		case !validUUID("GPU", b.UUID):
			m.refuse("nvmlDeviceGetUUID", reasonUUID)
		case uuids[b.UUID]:
			m.refuse("nvmlDeviceGetUUID", nvmlproto.ReasonRepeated)
		case places[place] && place != "":
			m.refuse("nvmlDeviceGetPciInfo", nvmlproto.ReasonRepeated)
		default:
			uuids[b.UUID], places[place] = true, true
			m.readBoard(b)
		}
		m.refusedByHelper(b)
	}
}

// refusedByHelper counts what the helper refused. A list of instances that is not whole has no
// sum.
func (m *Mapping) refusedByHelper(b *nvmlproto.Board) {
	for _, r := range b.Refused {
		if r.Call == callInstances {
			m.partial[b.UUID] = true
		}
		if returned, is := strings.CutPrefix(r.Reason, "return_"); is {
			if code, err := strconv.Atoi(returned); err == nil {
				m.returned(r.Call, code)
				continue
			}
		}
		m.result.Refusals[Refusal{r.Call, r.Reason}] += r.N
	}
}

// readBoard makes the rows of a board and its instances.
func (m *Mapping) readBoard(b *nvmlproto.Board) {
	d := m.board(b)
	m.result.IDs[b.Thread] = b.UUID
	m.row(d, answered, "", 1)
	if m.scrape.Managed[b.Thread] {
		m.row(d, suspended, "", 0)
	}
	m.lastXID(d, b.UUID)
	m.readValues(d, b.Values, b)
	seen := map[int]bool{}
	for i := range b.Instances {
		instance := &b.Instances[i]
		switch {
		case i >= maxInstances:
			m.refuse(callInstances, nvmlproto.ReasonLimit)
			m.partial[b.UUID] = true
		case instance.GI < 0 || seen[instance.GI]:
			m.refuse("nvmlDeviceGetGpuInstanceId", nvmlproto.ReasonRepeated)
		default:
			seen[instance.GI] = true
			part := m.instance(d, instance)
			m.row(part, answered, "", 1)
			m.lastXID(part, deviceid.MIG(b.UUID, strconv.Itoa(instance.GI)))
			m.readValues(part, instance.Values, nil)
		}
	}
	for gi := range d.instances {
		if !seen[gi] {
			delete(d.instances, gi)
		}
	}
}

// board finds the board by what it is now: the rows have other labels once a text has
// changed.
func (m *Mapping) board(b *nvmlproto.Board) *device {
	texts := boardTexts(b, m.scrape.Driver, m.opts.HostName, func(call string) { m.refuse(call, nvmlproto.ReasonText) })
	d := m.boards[b.Thread]
	if d == nil || !slices.Equal(d.texts, texts) {
		before := d
		d = newDevice(texts)
		d.uuid, d.hourly, d.instances = b.UUID, map[string]float64{}, map[int]*device{}
		if before != nil && before.uuid == d.uuid {
			d.hourly, d.total = before.hourly, before.total
		}
		m.boards[b.Thread] = d
	}
	return d
}

func (m *Mapping) instance(board *device, i *nvmlproto.Instance) *device {
	texts := instanceTexts(board.texts, i, func(call string) { m.refuse(call, nvmlproto.ReasonText) })
	d := board.instances[i.GI]
	if d == nil || !slices.Equal(d.texts, texts) {
		d = newDevice(texts)
		board.instances[i.GI] = d
	}
	return d
}

// readValues makes the rows of the readings of a device. board is nil for an instance.
func (m *Mapping) readValues(d *device, values []nvmlproto.Value, board *nvmlproto.Board) {
	clear(m.seen)
	reset := false
	for i := range values {
		v := &values[i]
		key, r := rowKey{v.Name, v.Row}, readings[v.Name]
		switch {
		case r == nil || board == nil && !r.Instances || v.Return == nvmlproto.Success && !validRow(r, v.Row):
			m.refuse("unknown", reasonUnknown)
			continue
		case m.seen[key]:
			m.refuse(r.Symbol(), nvmlproto.ReasonRepeated)
			continue
		}
		m.seen[key] = true
		if v.Return != nvmlproto.Success {
			m.returned(r.Symbol(), v.Return)
			reset = reset || v.Return == nvmlproto.ResetRequired
			if r.Hourly {
				delete(d.hourly, v.Name)
			}
			continue
		}
		m.page.Samples++
		switch {
		case r.Hourly:
			d.hourly[v.Name] = float64(v.V)
		case v.Name == memoryUsed && over(float64(v.V), values):
			m.refuse(r.Symbol(), m.vendor.Reason(devicemap.Implausible))
			m.page.Refused[devicemap.Implausible]++
		case m.row(d, v.Name, v.Row, float64(v.V)) && v.Name == memoryTotal:
			d.total = float64(v.V)
		}
	}
	if board == nil {
		return
	}
	for name, v := range d.hourly {
		if readings[name].Method == nvmlproto.MethodThreshold && !absoluteLimits(board.Arch) {
			continue
		}
		m.row(d, name, "", v)
	}
	if reset && m.inventory {
		m.row(d, recoveryAction, "", max(1, valueOf(values, recoveryAction)))
	}
}

// absoluteLimits reports whether the thresholds of boards of an architecture are
// temperatures. From Ada on they are margins below one, which the board has as well.
func absoluteLimits(arch int) bool {
	const kepler, ada = 2, 8
	return arch >= kepler && arch < ada
}

// validRow reports whether a reading can have a row: the number of a fan, or none.
func validRow(r *nvmlproto.Reading, row string) bool {
	if r.Method != nvmlproto.MethodFans {
		return row == ""
	}
	_, err := strconv.ParseUint(row, 10, 8)
	return err == nil
}

// over reports whether more memory is used than there is.
func over(used float64, values []nvmlproto.Value) bool {
	total := valueOf(values, memoryTotal)
	return total > 0 && used > total
}

// valueOf is the value of a reading, or 0.
func valueOf(values []nvmlproto.Value, name string) float64 {
	for i := range values {
		if v := float64(values[i].V); values[i].Name == name && values[i].Return == nvmlproto.Success && !math.IsNaN(v) {
			return v
		}
	}
	return 0
}

// row appends a row to the page, and reports whether it is a value.
func (m *Mapping) row(d *device, name, row string, v float64) bool {
	s := d.series[rowKey{name, row}]
	if s == nil {
		s = m.newSeries(d, name, row)
		d.series[rowKey{name, row}] = s
	}
	if reason, ok := m.vendor.Check(s, v); !ok {
		m.page.Refused[reason]++
		if r := readings[name]; r != nil && reason != devicemap.NoSensor {
			m.refuse(r.Symbol(), m.vendor.Reason(reason))
		}
		return false
	}
	m.page.Rows = append(m.page.Rows, devicemap.Row{Series: s, Value: v})
	return true
}

func (m *Mapping) newSeries(d *device, name, row string) *devicemap.Series {
	family := m.families[name]
	if family == nil {
		family = m.vendor.NewFamily(name)
		m.families[name] = family
	}
	labels := d.labels
	if row != "" {
		labels = m.vendor.NewLabels(d.texts.with([2]string{labelFan, row}))
	} else if labels == nil {
		labels = m.vendor.NewLabels(d.texts)
		d.labels = labels
	}
	return devicemap.NewSeries(family, labels, nil)
}

// lastXID makes the row of the newest XID of a device that is watched.
func (m *Mapping) lastXID(d *device, id string) {
	if x, watched := m.scrape.XIDs[id]; watched {
		m.row(d, xidLast, "", float64(x.Last))
	}
}

// refuse counts what became no data.
func (m *Mapping) refuse(call, reason string) { m.result.Refusals[Refusal{call, reason}]++ }

// returned notes what a call returned instead of a value.
func (m *Mapping) returned(call string, r int) {
	switch {
	case nvmlproto.Unavailable(r):
	case nvmlproto.Denied(r):
		m.result.Denied[call]++
	case r < 0 || r > nvmlproto.Unknown: // no header has it: as many series as it likes
		m.refuse(call, reasonReturn)
	default:
		m.refuse(call, nvmlproto.ReturnText(r))
	}
}
