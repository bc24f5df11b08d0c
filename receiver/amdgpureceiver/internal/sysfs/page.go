// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package sysfs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// Deadline is how long one page waits for the boards.
const Deadline = 2 * time.Second

var (
	// ErrNoBoards is a host without a board that amdgpu has driven since the start: one of
	// another driver is for a guest.
	ErrNoBoards = errors.New("amdgpu drives no board of this host")

	errBlocked = fmt.Errorf("the read of the board has not returned for %v", Deadline)
)

// labelsOf are labels of the exporter, for all rows of a board. It has no number of a
// partition: here the board is one device, whatever its mode.
func labelsOf(d *gpusysfs.Device) string {
	var b strings.Builder
	b.WriteString(`pci_bus_id=` + quoted(d.PCI))
	if d.UniqueID != 0 {
		b.WriteString(`,gpu_uuid=` + quoted(uuid(d.UniqueID, d.DeviceID)))
	}
	for _, l := range [...][2]string{{"serial_number", d.Serial}, {"card_series", d.Product}, {"gpu_partition_profile", profile(d)}} {
		if l[1] != "" {
			b.WriteString("," + l[0] + "=" + quoted(l[1]))
		}
	}
	return b.String()
}

// profile is the mode of a board that is divided into partitions, as in cpx_nps4.
func profile(d *gpusysfs.Device) string {
	if !d.Partitioned() || d.MemoryPartition == "" {
		return ""
	}
	return d.ComputePartition + "_" + d.MemoryPartition
}

// uuid is the UUID that AMD's library makes of a unique id.
func uuid(id uint64, device uint16) string {
	return fmt.Sprintf("%02xff%04x-0000-1000-80%02x-%012x", id>>56, device, id>>48&0xff, id&(1<<48-1))
}

// quoted writes a text from a file as the value of a label.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(safetext.Strip(text, 128)) + `"`
}

// Reader reads the boards of a host. It is for one goroutine.
type Reader struct {
	host   func() *gpusysfs.Snapshot
	unread func(Unread)
	files  files

	boards map[string]*reading // by path
	some   bool                // a board had a file of the driver
}

// reading is a board and the read that it is owned by, if any.
type reading struct {
	board
	running chan rows // of one read, which has not been received
}

// New returns a reader of the boards of a host. Page calls unread for each file that gave
// no reading.
func New(host func() *gpusysfs.Snapshot, unread func(Unread)) *Reader {
	return &Reader{host: host, unread: unread, files: kernel{}, boards: map[string]*reading{}}
}

// Page reads all boards and appends their rows to page[:0], in the text format of the
// exporter's pages. A board that does not answer within Deadline is left out, and is not
// read again before that read has returned. The error is ErrNoBoards or of ctx.
func (r *Reader) Page(ctx context.Context, page []byte) ([]byte, error) {
	page = page[:0]
	var devices []*gpusysfs.Device
	for d := range r.host().Devices() {
		if d.Vendor == gpusysfs.VendorAMD {
			devices = append(devices, d)
		}
	}
	wait, cancel := context.WithTimeout(ctx, Deadline)
	defer cancel()
	started := make([]*reading, 0, len(devices))
	for _, d := range devices {
		if b := r.start(d); b != nil {
			started = append(started, b)
		}
	}
	r.forget(devices)
	for _, b := range started {
		got, ok := b.wait(wait)
		if !ok {
			r.lacks(Unread{b.path, gpusysfs.Blocked, errBlocked})
			continue
		}
		page = append(page, got.text...)
		for _, u := range got.unread {
			r.lacks(u)
		}
	}
	if r.some = r.some || len(page) > 0; !r.some && ctx.Err() == nil {
		return page, ErrNoBoards
	}
	return page, ctx.Err()
}

func (r *Reader) lacks(u Unread) {
	r.some = true
	r.unread(u)
}

// wait returns what the read gave; false if it has not returned when ctx ends.
func (b *reading) wait(ctx context.Context) (got rows, ok bool) {
	select {
	case got = <-b.running:
	case <-ctx.Done():
		select {
		case got = <-b.running: // in time, although others were not
		default:
			return got, false
		}
	}
	b.running = nil
	return got, true
}

// start starts a read of a device, in a goroutine of its own: nothing ends a read that
// the kernel blocks. It returns nil where the read before has not returned.
func (r *Reader) start(d *gpusysfs.Device) *reading {
	b := r.boards[d.Path]
	if b == nil {
		b = &reading{}
		b.path, b.files = d.Path, r.files
		r.boards[d.Path] = b
	}
	if b.running != nil {
		select {
		case <-b.running: // too late for its page
		default:
			r.lacks(Unread{b.path, gpusysfs.Blocked, errBlocked})
			return nil
		}
	}
	b.labels = labelsOf(d)
	running := make(chan rows, 1)
	b.running = running
	go func() { running <- b.read() }()
	return b
}

// forget drops the boards that are gone, and whose last read has returned.
func (r *Reader) forget(devices []*gpusysfs.Device) {
	there := make(map[string]bool, len(devices))
	for _, d := range devices {
		there[d.Path] = true
	}
	maps.DeleteFunc(r.boards, func(path string, b *reading) bool {
		return !there[path] && (b.running == nil || len(b.running) > 0)
	})
}
