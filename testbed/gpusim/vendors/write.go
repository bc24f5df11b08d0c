// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"slices"
	"strconv"
	"strings"
)

// page is a text page under construction: families in the order of their names, as
// the client libraries write them.
type page struct {
	families map[string]*family
	gauges   bool // every TYPE line is gauge
	noHelp   bool // HELP lines without text
}

type family struct {
	kind string
	rows []row
}

type row struct {
	labels []string // names and values in turn
	value  float64
}

func newPage() *page { return &page{families: map[string]*family{}} }

// add writes a row of a gauge, or of a counter if the name ends so.
func (p *page) add(name string, value float64, labels ...string) {
	f := p.families[name]
	if f == nil {
		f = &family{kind: "gauge"}
		if strings.HasSuffix(name, "_total") && !p.gauges {
			f.kind = "counter"
		}
		p.families[name] = f
	}
	f.rows = append(f.rows, row{labels, value})
}

// with adds labels to others, in the order of their names.
func with(labels []string, more ...string) []string {
	out := make([]string, 0, len(labels)+len(more))
	out = append(out, labels...)
	for i := 0; i < len(more); i += 2 {
		at := len(out)
		for at > 0 && out[at-2] > more[i] {
			at -= 2
		}
		out = slices.Insert(out, at, more[i], more[i+1])
	}
	return out
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func (p *page) bytes() []byte {
	names := make([]string, 0, len(p.families))
	for name := range p.families {
		names = append(names, name)
	}
	slices.Sort(names)
	var out []byte
	for _, name := range names {
		f := p.families[name]
		out = append(out, "# HELP "+name+" "...)
		if !p.noHelp {
			out = append(out, strings.ReplaceAll(name, "_", " ")...)
		}
		out = append(out, "\n# TYPE "+name+" "+f.kind+"\n"...)
		for _, r := range f.rows {
			out = append(out, name...)
			for i := 0; i < len(r.labels); i += 2 {
				out = append(out, ",{"[b2i(i == 0)])
				out = append(append(out, r.labels[i]...), `="`...)
				out = append(append(out, escape.Replace(r.labels[i+1])...), '"')
			}
			if len(r.labels) > 0 {
				out = append(out, '}')
			}
			out = strconv.AppendFloat(append(out, ' '), r.value, 'g', -1, 64)
			out = append(out, '\n')
		}
	}
	return out
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
