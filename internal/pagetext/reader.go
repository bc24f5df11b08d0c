// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package pagetext reads pages of the Prometheus text format into the rows that
// package devicemap takes.
//
// What a line means is decided by Prometheus' parser (line.go), once for each
// series. A Reader remembers the text of the series (cache.go) and where on the
// page it was: an exporter prints the same lines at every scrape, so that nearly
// all of a page is read by comparing texts and parsing numbers. A line that the
// parser refuses costs that line alone.
package pagetext

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/prometheus/prometheus/model/relabel"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
)

const (
	// maxLines bounds what a Reader remembers: lines of one page, TYPE and HELP
	// lines included. The rest of the page is refused. An exporter's 16 MB are about
	// as many; an exporter that names other series on each page makes the Reader
	// remember up to three of them.
	maxLines = devicemap.MaxLines
	// maxBad is how many lines of a page can be refused before it is no page: each
	// of them costs a turn of Prometheus' parser at every scrape.
	maxBad = 10_000
)

// Options are the settings of a scrape_config that concern the page.
type Options struct {
	// Job and Instance are Prometheus' labels of the target. Relabelling sees them,
	// and an exporter's labels of these names are renamed to exported_*.
	Job, Instance string
	Relabel       []*relabel.Config // metric_relabel_configs

	// Limits, 0 for none. A page that is over one of them is refused.
	Samples                                 int // sample_limit
	Labels, LabelNameBytes, LabelValueBytes int // label_limit and the like

	// Limits of a line, 0 for none. A line that is over one of them is refused.
	MaxLabels     int // labels of a sample
	MaxLabelBytes int // of each name and value, and of a help text, which is cut
}

// ErrLimit is a page over one of the limits in Options.
var ErrLimit = errors.New("limit exceeded")

// ErrNoPage is text of which no line is a sample, or too many are none.
var ErrNoPage = errors.New("no page of the text format")

// ErrEmpty is a page without any sample: empty, or with comments alone.
var ErrEmpty = errors.New("the page has no samples")

// Result is what was found beside the rows.
type Result struct {
	Samples int               // lines that are samples
	Refused devicemap.Refused // of them and of other lines
	Bad     error             // the first line that was refused as Unparsable
	Long    error             // the first one that was over a limit of a line
	TooLong int               // how many were
	Over    devicemap.Over    // OverLines where the page has more lines than are read
}

// Reader reads the pages of one target. It is not safe for concurrent use.
type Reader struct {
	opts   Options
	number uint32  // of the page
	layout []*line // of the last page, in its order
	next   []*line // that of the page that is being read
	cache
}

// NewReader returns the reader of a target that was never read.
func NewReader(v *devicemap.Vendor, opts Options) *Reader {
	return &Reader{opts: opts, cache: newCache(v)}
}

// Read appends the rows of a page. It keeps nothing of the page's memory. Its
// errors are ErrLimit, ErrNoPage and ErrEmpty, wrapped: then there are no rows.
func (r *Reader) Read(body []byte, rows []devicemap.Row) ([]devicemap.Row, Result, error) {
	r.number++
	r.next = r.next[:0]
	p := pass{Reader: r, rows: rows, room: maxLines}
	if err := p.read(body); err != nil {
		// What was read of it is not worth remembering.
		r.cache, r.layout, r.next = newCache(r.vendor), nil, nil
		return rows, p.result, err
	}
	r.layout, r.next = r.next, r.layout
	for i, l := range r.layout {
		l.place = int32(i)
	}
	r.forget(r.number, len(r.layout)+p.added)
	return p.rows, p.result, nil
}

// pass is one reading of a page.
type pass struct {
	*Reader
	rows     []devicemap.Row
	result   Result
	expected int // place in the last layout of the line that should come now
	room     int // for lines in this layout
	added    int // rows
}

// read reads all lines.
func (p *pass) read(body []byte) error {
	if text := bytes.TrimLeft(body, " \t\r\n"); len(text) > 0 && text[0] == '<' {
		return fmt.Errorf("%w: it begins with %q", ErrNoPage, text[:min(len(text), 40)])
	}
	for len(body) > 0 {
		end := bytes.IndexByte(body, '\n')
		if end < 0 {
			end = len(body)
		}
		if err := p.line(body[:end]); err != nil {
			return err
		}
		body = body[min(end+1, len(body)):]
	}
	switch {
	case p.result.Samples > 0:
		return nil
	case p.result.Bad != nil:
		return fmt.Errorf("%w: %w", ErrNoPage, p.result.Bad)
	default:
		return ErrEmpty
	}
}

// line reads one line. Its error refuses the page.
func (p *pass) line(b []byte) error {
	if n := len(b); n > 0 && b[n-1] == '\r' {
		b = b[:n-1]
	}
	if p.room > 0 && p.expected < len(p.layout) {
		l := p.layout[p.expected]
		if v, ok := l.read(b); ok {
			return p.use(l, v)
		}
	}
	// The parser would take leading blanks for a part of the name.
	b = bytes.TrimLeft(b, " \t")
	switch {
	case len(b) == 0:
		return nil
	case b[0] == '#':
		return p.comment(b)
	case p.room <= 0:
		p.result.Samples++
		p.result.Refused[devicemap.Limit]++
		p.result.Over = devicemap.OverLines
		return nil
	default:
		return p.unexpected(b)
	}
}

// use reads a known line, and puts it into the layout.
func (p *pass) use(l *line, v value) error {
	if place := int(l.place); place < len(p.layout) && p.layout[place] == l {
		p.expected = place + 1
	}
	if l.page != p.number { // else it is a duplicate
		l.page = p.number
		p.next = append(p.next, l)
		p.room--
	}
	if l.isMeta() {
		p.metas[l].apply()
		return nil
	}
	return p.sample(l.series, v)
}

// unexpected reads a sample that is at another place than on the page before, or
// was not there.
func (p *pass) unexpected(b []byte) error {
	name, end, regular := split(b)
	if regular {
		b = withoutExemplar(b, end)
		if l := p.find(b[:name], b[name:end]); l != nil {
			if v, ok := number(b[end:]); ok {
				return p.use(l, v)
			}
		}
	}
	s, err := p.parse(b)
	switch {
	case errors.Is(err, ErrLimit):
		return err
	case errors.Is(err, errLong):
		return p.long(err)
	case err != nil:
		return p.bad(err)
	case !regular || s.end != end: // DCGM_X-1 5 is the sample -1 of DCGM_X
		p.room-- // its series is remembered
		return p.sample(s.series, s.value)
	}
	return p.use(p.remember(b[:name], b[name:end], s.series), s.value)
}

// sample takes a series with its value; it is nil if relabelling drops it.
func (p *pass) sample(s *series, v value) error {
	p.result.Samples++
	switch {
	case s == nil:
		return nil
	case s.page == p.number:
		p.result.Refused[devicemap.Repeated]++
		return nil
	}
	s.page = p.number
	if p.added++; p.opts.Samples > 0 && p.added > p.opts.Samples {
		return fmt.Errorf("sample_%w: more than %d samples", ErrLimit, p.opts.Samples)
	}
	p.rows = append(p.rows, devicemap.Row{Series: &s.Series, Value: v.v, Decimal: v.decimal})
	return nil
}

// comment reads a line that begins with #. Only TYPE and HELP have a meaning.
func (p *pass) comment(b []byte) error {
	if p.room <= 0 || !isMeta(b) {
		return nil
	}
	l := p.findMeta(b)
	if l == nil {
		m, err := p.parseMeta(b)
		if err != nil {
			return p.bad(err)
		}
		l = p.rememberMeta(b, m)
	}
	return p.use(l, value{})
}

// bad counts a line that the parser refuses.
func (p *pass) bad(err error) error {
	if p.result.Bad == nil {
		p.result.Bad = err
	}
	p.result.Refused[devicemap.Unparsable]++
	return p.checkBad(err)
}

// long counts a sample that is over a limit of a line. It is not remembered.
func (p *pass) long(err error) error {
	if p.result.Long == nil {
		p.result.Long = err
	}
	p.result.Samples++
	p.result.TooLong++
	p.result.Refused[devicemap.Limit]++
	return p.checkBad(err)
}

func (p *pass) checkBad(err error) error {
	if p.result.Refused[devicemap.Unparsable]+p.result.TooLong > maxBad {
		is := ErrNoPage
		if p.result.TooLong > p.result.Refused[devicemap.Unparsable] {
			is = ErrLimit // it is a page, and its samples are
		}
		return fmt.Errorf("%w: more than %d lines of it are refused, the last: %w", is, maxBad, err)
	}
	return nil
}
