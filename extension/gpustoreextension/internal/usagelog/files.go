// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package usagelog

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/durable/lines"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

const permissions = 0o640

// Open reads what is there. A last line that was not finished is left out, and lines that
// are damaged too, which are counted.
func Open(o Options) (*Log, error) {
	l := &Log{options: o, pages: map[period]*page{}, running: map[runningKey]usage.Row{}}
	if err := os.MkdirAll(o.Directory, 0o750); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(o.Directory)
	if err != nil {
		return nil, err
	}
	damaged := 0
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), lines.Temporary) {
			if err := os.Remove(filepath.Join(o.Directory, entry.Name())); err != nil {
				return nil, err
			}
		}
		q, is := periodOf(entry.Name())
		if !is {
			continue
		}
		p, n, err := l.read(q)
		if err != nil {
			return nil, err
		}
		damaged += n
		l.pages[q] = p
		if p.count > 0 {
			l.seen(p.at(p.newest))
		}
		if end := p.at(p.newest).Add(24 * time.Hour); p.days && p.count > 0 && end.After(l.folded) {
			l.folded = end
		}
		p.pack()
	}
	for q := range l.pages { // the process may have ended before hours that were added up were deleted
		if month := l.pages[monthOf(q.start)]; !q.days && month != nil && month.hasSlot(month.slot(q.start)) {
			if err := l.remove(q); err != nil {
				return nil, err
			}
		}
	}
	if damaged > 0 {
		o.Damaged(damaged)
	}
	return l, nil
}

// read reads the page of a period.
func (l *Log) read(q period) (p *page, damaged int, err error) {
	file, err := os.Open(l.path(q))
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	p = newPage(q)
	ids := map[uint32]key{}
	in := bufio.NewReaderSize(file, maxLine)
	for {
		line, n, err := lines.Read(in, maxLine)
		if errors.Is(err, io.EOF) {
			p.keyLines = len(p.keys)
			p.damaged = p.damaged || damaged > 0
			return p, damaged, nil
		}
		if err != nil {
			return nil, 0, err
		}
		p.bytes += n
		if p.read(line, ids) != nil {
			damaged++
		}
	}
}

func (l *Log) path(q period) string { return filepath.Join(l.options.Directory, q.name()) }

// write writes all that is not on disk; fresh rows of it are new. The caller holds disk.
func (l *Log) write(fresh int) error {
	var errs []error
	wrote := false
	for _, p := range l.sorted() {
		if len(p.dirty) == 0 {
			continue
		}
		if err := l.save(p); err != nil {
			errs = append(errs, err)
			continue
		}
		wrote = true
	}
	if err := errors.Join(errs...); err != nil {
		l.options.Failed(fresh, err)
		return err
	}
	if wrote {
		l.options.Written()
	}
	return nil
}

// sorted are the pages by time, days before hours.
func (l *Log) sorted() []*page {
	all := make([]*page, 0, len(l.pages))
	for _, p := range l.pages {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *page) int {
		if a.days != b.days {
			if a.days {
				return -1
			}
			return 1
		}
		return a.start.Compare(b.start)
	})
	return all
}

// save writes what has changed of an open page behind what the file has, or the whole page
// where half of the file would be of no use.
func (l *Log) save(p *page) error {
	whole := p.damaged || p.lines+len(p.dirty) > 2*p.count+1000
	cells, keysFrom := inOrder(p.dirty), p.keyLines
	if whole {
		cells, keysFrom = inOrder(p.cells), 0
	}
	text, err := p.text(cells, keysFrom)
	if err != nil {
		return err
	}
	if whole {
		err = lines.Replace(l.path(p.period), text, permissions)
	} else {
		err = l.appendTo(p, text)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if whole {
		p.bytes, p.lines, p.damaged = 0, 0, false
	}
	p.bytes += int64(len(text))
	p.lines += len(cells)
	p.keyLines = len(p.keys)
	clear(p.dirty)
	return nil
}

// appendTo appends to the file of a page, behind its whole lines.
func (l *Log) appendTo(p *page, text []byte) (err error) {
	file, err := os.OpenFile(l.path(p.period), os.O_RDWR|os.O_CREATE|os.O_APPEND, permissions)
	if err != nil {
		return err
	}
	f := lines.File{File: file, Size: p.bytes}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := file.Stat(); err != nil {
		return err
	} else if info.Size() > p.bytes { // a line that was not finished
		if err := file.Truncate(p.bytes); err != nil {
			return err
		}
	}
	if err := f.Append(text, true); err != nil || p.bytes > 0 {
		return err
	}
	return lines.SyncFolder(l.options.Directory) // the file is new
}

// tidy adds up and deletes what is old, or what there is no room for, and packs what does
// not change any more. The caller holds disk.
func (l *Log) tidy(now time.Time) {
	now = l.reference(now)
	var failed error
	for _, p := range l.sorted() {
		switch {
		case p.days && !p.end().After(now.Add(-l.options.Days)):
			failed = errors.Join(failed, l.remove(p.period))
		case failed == nil && !p.days && !p.end().After(now.Add(-l.options.Hours)):
			failed = l.fold(p) // in order: the next day waits for one that fails
		}
	}
	for failed == nil && l.Bytes() > l.options.MaxBytes {
		p := l.dispensable(now)
		if p == nil {
			break
		}
		if p.days {
			failed = l.remove(p.period)
		} else {
			failed = l.fold(p)
		}
	}
	l.full = l.Bytes() > l.options.MaxBytes
	if failed != nil {
		l.options.Failed(0, failed)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.pages {
		if !p.end().After(now.Add(-changing)) {
			p.pack()
		}
	}
	for at, u := range l.running {
		if u.Hour.Before(now.Add(-openFor)) {
			delete(l.running, at)
		}
	}
}

// dispensable is what goes first where there is no room: the oldest hours become a day,
// and where all have that may, the oldest month goes.
func (l *Log) dispensable(now time.Time) *page {
	var month *page
	for _, p := range l.sorted() {
		if p.days && month == nil {
			month = p
		}
		if !p.days && !p.end().After(now.Add(-changing)) {
			return p
		}
	}
	return month
}

// fold adds up the hours of a day, and replaces them: first the file of the month has the
// day, then the file with the hours goes.
func (l *Log) fold(p *page) error {
	month := monthOf(p.start)
	sum := newPage(month)
	if known := l.pages[month]; known != nil {
		sum = known.copy()
	}
	slot := month.slot(p.start)
	for at, r := range cellsOf(p.packedCells()) {
		day := cell{slot: slot, key: sum.number(p.keys[at.key]), unknown: r.Carbon < 0}
		if before, is := sum.cells[day]; is {
			before.add(r)
			r = before
		}
		r.revision = 1
		sum.put(day, r)
	}
	sum.damaged = true // it is written whole
	if err := l.save(sum); err != nil {
		return err
	}
	l.mu.Lock()
	sum.pack()
	l.pages[month] = sum
	if p.end().After(l.folded) {
		l.folded = p.end()
	}
	l.mu.Unlock()
	return l.remove(p.period)
}

// remove forgets a page and deletes its file.
func (l *Log) remove(q period) error {
	l.mu.Lock()
	delete(l.pages, q)
	l.mu.Unlock()
	if err := os.Remove(l.path(q)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return lines.SyncFolder(l.options.Directory)
}

// Bytes is the size of the files.
func (l *Log) Bytes() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	total := int64(0)
	for _, p := range l.pages {
		total += p.bytes + int64(len(p.dirty))*rowBytes
	}
	return total
}
