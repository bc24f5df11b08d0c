// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package sysfs

import (
	"strconv"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpumetrics"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
)

// Unread is a file that gave no reading.
type Unread struct {
	Path  string
	Cause gpusysfs.Cause
	Err   error
}

// board is what is kept of a board. While a read of it runs, the read owns it.
type board struct {
	path   string // of the PCI device
	labels string // of all its rows, without braces
	files  files
	layout *layout // nil: to be found
	buf    []byte
	text   []byte // of its rows
}

// files reads files; tests have their own.
type files interface {
	Read(path string, buf []byte, limit int) ([]byte, error)
}

// rows are what one read of a board gave.
type rows struct {
	text   []byte
	unread []Unread
	labels string
}

// read reads all files of the board. It may block for as long as the driver does.
func (b *board) read() rows {
	r := rows{labels: b.labels, text: b.text[:0]}
	if b.layout == nil {
		b.layout = findLayout(b.path, b.readShort)
	}
	l := b.layout
	for _, n := range l.numbers {
		text, err := b.readShort(n.path)
		v := 0.0
		if err == nil {
			v, err = parseNumber(text)
		}
		if b.ok(&r, n.path, err) {
			r.row(n.family, n.labels, v/n.div)
		}
	}
	b.readMetrics(l, &r)
	b.readErrors(l, &r)
	if l.badPages != "" {
		b.readBadPages(l.badPages, &r)
	}
	b.text = r.text
	return r
}

func (b *board) readShort(path string) (text []byte, err error) {
	b.buf, err = b.files.Read(path, b.buf, mostOfFile)
	return b.buf, err
}

// ok reports whether a file was read, and notes why not. A file that is gone was of
// another layout.
func (b *board) ok(r *rows, path string, err error) bool {
	if err == nil {
		return true
	}
	if cause := causeOf(err); cause != "" {
		r.unread = append(r.unread, Unread{path, cause, err})
	} else {
		b.layout = nil
	}
	return false
}

func (b *board) readMetrics(l *layout, r *rows) {
	if len(l.fills) == 0 {
		return
	}
	text, err := b.readShort(l.metrics)
	var m gpumetrics.Metrics
	if err == nil {
		m, err = gpumetrics.Decode(text)
	}
	if !b.ok(r, l.metrics, err) {
		return
	}
	for _, f := range l.fills {
		if v, known := m.Get(f.quantity); known {
			r.row(f.family, "", v*f.mul)
		}
	}
}

// readErrors writes the errors of each block, and their sum where every block could be
// read: a sum without one of them would fall, which is what a reset looks like.
func (b *board) readErrors(l *layout, r *rows) {
	var sum counts
	all := len(l.blocks) > 0
	for _, block := range l.blocks {
		text, err := b.readShort(block.path)
		var c counts
		if err == nil {
			c, err = parseCounts(text)
		}
		if !b.ok(r, block.path, err) {
			all = false
			continue
		}
		for i, of := range c {
			if !of.known {
				continue
			}
			sum[i].n, sum[i].known = sum[i].n+of.n, true
			if blocksOfExporter[block.name] {
				r.row("gpu_ecc_"+kindFamilies[i]+"_"+block.name, "", float64(of.n))
			}
		}
	}
	for i, of := range sum {
		if all && of.known {
			r.row("gpu_ecc_"+kindFamilies[i]+"_total", "", float64(of.n))
		}
	}
}

// kindFamilies are the kinds in the names of the exporter's families.
var kindFamilies = [len(kinds)]string{"uncorrect", "correct", "deferred"}

// blocksOfExporter are those that the exporter has families for.
var blocksOfExporter = func() map[string]bool {
	known := map[string]bool{}
	for _, name := range []string{
		"umc", "sdma", "gfx", "mmhub", "athub", "bif", "hdp", "xgmi_wafl", "df", "smn", "sem", "mp0", "mp1", "fuse", "mca", "vcn", "jpeg", "ih", "mpio",
	} {
		known[name] = true
	}
	return known
}()

func (b *board) readBadPages(path string, r *rows) {
	text, err := b.files.Read(path, b.buf, mostOfBadPages)
	b.buf = text
	var n [len(pageFlags)]uint64
	if err == nil {
		n, err = parseBadPages(text)
	}
	if !b.ok(r, path, err) {
		return
	}
	r.row("sysfs_vram_bad_pages_retired", "", float64(n[0]))
	r.row("sysfs_vram_bad_pages_pending", "", float64(min(n[1], 1))) // whether there are any
	r.row("sysfs_vram_bad_pages_failed", "", float64(min(n[2], 1)))
}

// row appends a line of the page.
func (r *rows) row(family, labels string, v float64) {
	for _, s := range [...]string{family, "{", r.labels, labels, "} "} {
		r.text = append(r.text, s...)
	}
	r.text = append(strconv.AppendFloat(r.text, v, 'g', -1, 64), '\n')
}
