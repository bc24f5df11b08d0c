// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pagetext

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
)

// line is what is remembered of a line: all of it but the value.
type line struct {
	text
	series *series // nil if relabelling drops it, and for a TYPE or HELP line
	place  int32   // in the layout of the last page that had it
	page   uint32  // the number of that page
}

// value is a sample's, and whether it is written with a decimal point.
type value struct {
	v       float64
	decimal bool
}

// read reports whether b is the line again, and with which value.
func (l *line) read(b []byte) (v value, ok bool) {
	if l.isMeta() {
		return value{}, string(b) == *l.name
	}
	n, end := len(*l.name), len(*l.name)+len(*l.labels)
	if len(b) < end || string(b[:n]) != *l.name || string(b[n:end]) != *l.labels {
		return value{}, false
	}
	return number(b[end:])
}

// split finds the ends of the name and of the labels of a regular line: one that
// begins with a name and has no blanks between the two. Only the parser knows
// whether it is right.
func split(b []byte) (name, end int, regular bool) {
	name = bytes.IndexAny(b, "{ \t")
	if name <= 0 {
		return 0, 0, false
	}
	if b[name] != '{' {
		return name, name, true
	}
	quoted := false
	for i := name + 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			quoted = !quoted
		case '}':
			if !quoted {
				return name, i + 1, true
			}
		}
	}
	return 0, 0, false
}

// withoutExemplar is the line without the exemplar that OpenMetrics allows behind
// a sample: name and labels end at end.
func withoutExemplar(b []byte, end int) []byte {
	if i := bytes.Index(b[end:], []byte(" # {")); i > 0 {
		return b[:end+i]
	}
	return b
}

// number reads the rest of a line as nearly all exporters print it: one blank,
// the value and, rarely, one more blank and a timestamp, which is not used. What
// looks different is left to the parser.
func number(rest []byte) (n value, ok bool) {
	if len(rest) < 2 || rest[0] != ' ' {
		return n, false
	}
	rest = rest[1:]
	if i := bytes.IndexByte(rest, ' '); i >= 0 {
		stamp := rest[i+1:]
		if len(stamp) == 0 || len(stamp) > 18 {
			return n, false
		}
		for _, c := range stamp {
			if c < '0' || c > '9' {
				return n, false
			}
		}
		rest = rest[:i]
	}
	for _, c := range rest {
		switch c {
		case '_', 'p', 'P': // hexadecimal, which the format has not
			return n, false
		case '.':
			n.decimal = true
		}
	}
	var err error
	n.v, err = strconv.ParseFloat(string(rest), 64)
	return n, err == nil
}

// decimal reports whether the value in the rest of a line has a decimal point.
func decimal(rest []byte) bool {
	fields := bytes.Fields(rest)
	return len(fields) > 0 && bytes.IndexByte(fields[0], '.') >= 0
}

// isMeta distinguishes TYPE and HELP lines from other comments.
func isMeta(b []byte) bool {
	text := bytes.TrimLeft(b[1:], " \t")
	return len(text) < len(b)-1 && (bytes.HasPrefix(text, []byte("TYPE")) || bytes.HasPrefix(text, []byte("HELP")))
}

// meta is what a TYPE or a HELP line adds to its family.
type meta struct {
	family *devicemap.Family
	help   string
	typ    devicemap.Type
	isType bool
}

func (m *meta) apply() {
	if m.isType {
		m.family.Type = m.typ
	} else {
		m.family.Help = m.help
	}
}

func (r *Reader) parseMeta(b []byte) (*meta, error) {
	parser, entry, err := parse(b)
	if err != nil {
		return nil, err
	}
	switch entry {
	case textparse.EntryHelp:
		name, help := parser.Help()
		return &meta{family: r.family(string(name)), help: r.cut(help)}, nil
	case textparse.EntryType:
		name, typ := parser.Type()
		m := &meta{family: r.family(string(name)), isType: true}
		switch typ {
		case model.MetricTypeCounter:
			m.typ = devicemap.Counter
		case model.MetricTypeHistogram:
			m.typ = devicemap.Histogram
		case model.MetricTypeSummary:
			m.typ = devicemap.Summary
		}
		return m, nil
	default: // a comment after all
		return &meta{family: &devicemap.Family{}}, nil
	}
}

// cut is a help text, of which a limit of a line leaves the beginning.
func (r *Reader) cut(help []byte) string {
	if n := r.opts.MaxLabelBytes; n > 0 && len(help) > n {
		return strings.ToValidUTF8(string(help[:n]), "")
	}
	return string(help)
}

// parse has Prometheus' parser read one line.
func parse(b []byte) (textparse.Parser, textparse.Entry, error) {
	// The parser writes a line break behind what it is given: a copy is cheap here.
	parser := textparse.NewPromParser(b[:len(b):len(b)], labels.NewSymbolTable(), false)
	entry, err := parser.Next()
	if errors.Is(err, io.EOF) { // what a byte 0 is to the parser
		err = fmt.Errorf("unexpected byte 0 while parsing: %q", b)
	}
	return parser, entry, err
}

// sample is a line as Prometheus' parser reads it.
type sample struct {
	series *series // nil if relabelling drops it
	end    int     // of name and labels in the line
	value  value
}

// errLong is a sample over a limit of a line.
var errLong = errors.New("over the limit of a line")

// parse reads a sample by Prometheus' parser. Its error is ErrLimit for a series
// over a label limit, and errLong for one over a limit of a line.
func (r *Reader) parse(b []byte) (s sample, err error) {
	parser, entry, err := parse(b)
	if err != nil {
		return s, err
	}
	if entry != textparse.EntrySeries {
		return s, fmt.Errorf("the line is no sample: %q", b)
	}
	met, _, v := parser.Series()
	s.end, s.value = len(met), value{v, decimal(b[len(met):])}
	var set labels.Labels
	parser.Labels(&set)
	if twice, has := set.HasDuplicateLabelNames(); has {
		return s, fmt.Errorf("label %q is a duplicate: %q", twice, b)
	}
	set, keep := r.relabel(set)
	if !keep {
		return s, nil
	}
	if err := r.checkLabels(set); err != nil {
		return s, err
	}
	name, pairs := own(set)
	if name == "" {
		return s, fmt.Errorf("metric_relabel_configs leave no name: %q", b)
	}
	if err := r.checkLine(name, pairs); err != nil {
		return s, err
	}
	s.series = r.canonical(name, pairs)
	return s, nil
}

// checkLine holds a sample, as relabelling leaves it, against the limits of a line.
func (r *Reader) checkLine(name string, pairs [][2]string) error {
	if n := r.opts.MaxLabels; n > 0 && len(pairs) > n {
		return fmt.Errorf("%.100s has %d labels: %w, max_labels is %d", name, len(pairs), errLong, n)
	}
	n := r.opts.MaxLabelBytes
	if n <= 0 {
		return nil
	}
	if len(name) > n {
		return fmt.Errorf("the name %.100s has %d bytes: %w, max_label_bytes is %d", name, len(name), errLong, n)
	}
	for _, p := range pairs {
		if size := max(len(p[0]), len(p[1])); size > n {
			return fmt.Errorf("label %.100s of %.100s has %d bytes: %w, max_label_bytes is %d", p[0], name, size, errLong, n)
		}
	}
	return nil
}

// relabel applies metric_relabel_configs as Prometheus does: with the target's
// labels on the sample.
func (r *Reader) relabel(set labels.Labels) (labels.Labels, bool) {
	b := labels.NewBuilder(set)
	for _, target := range [...]labels.Label{
		{Name: model.JobLabel, Value: r.opts.Job}, {Name: model.InstanceLabel, Value: r.opts.Instance},
	} {
		if theirs := b.Get(target.Name); theirs != "" {
			renamed := model.ExportedLabelPrefix + target.Name
			for b.Get(renamed) != "" {
				renamed = model.ExportedLabelPrefix + renamed
			}
			b.Set(renamed, theirs)
		}
		b.Set(target.Name, target.Value)
	}
	keep := relabel.ProcessBuilder(b, r.opts.Relabel...)
	return b.Labels(), keep
}

// own are the name and the labels that the exporter itself put on a sample.
func own(set labels.Labels) (name string, pairs [][2]string) {
	set.Range(func(l labels.Label) {
		switch {
		case l.Name == model.MetricNameLabel:
			name = l.Value
		case l.Value == "", l.Name == model.JobLabel, l.Name == model.InstanceLabel,
			strings.HasPrefix(l.Name, model.ReservedLabelPrefix):
		default:
			pairs = append(pairs, [2]string{l.Name, l.Value})
		}
	})
	return name, pairs
}

// checkLabels holds a sample against the limits of labels.
func (r *Reader) checkLabels(set labels.Labels) error {
	o, name := &r.opts, set.Get(model.MetricNameLabel)
	if o.Labels > 0 && set.Len() > o.Labels {
		return fmt.Errorf("label_%w: %.50s has %d labels, job and instance included", ErrLimit, name, set.Len())
	}
	return set.Validate(func(l labels.Label) error {
		switch {
		case o.LabelNameBytes > 0 && len(l.Name) > o.LabelNameBytes:
			return fmt.Errorf("label_name_length_%w: label %.50s of %.50s", ErrLimit, l.Name, name)
		case o.LabelValueBytes > 0 && len(l.Value) > o.LabelValueBytes:
			return fmt.Errorf("label_value_length_%w: label %.50s of %.50s has %d bytes", ErrLimit, l.Name, name, len(l.Value))
		}
		return nil
	})
}
