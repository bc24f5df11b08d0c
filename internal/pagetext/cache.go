// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pagetext

import (
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
)

// cache is what a Reader remembers from page to page. A text that many lines
// have in common is kept once: the families' names, and the labels, which all
// families of a device share.
type cache struct {
	vendor   *devicemap.Vendor
	texts    map[string]*string
	lines    map[text]*line
	metas    map[*line]*meta // of TYPE and HELP lines
	families map[string]*devicemap.Family
	labels   map[string]*devicemap.Labels // by their texts, see canonical
	series   map[identity]*series
	key      []byte // buffer for keys of labels
}

// text is a line's text but for the value: DCGM_X and {gpu="0"}. A TYPE or HELP
// line is all name, without labels; where other lines have none they are "".
type text struct{ name, labels *string }

func (t text) isMeta() bool { return t.labels == nil }

// series is a series with the number of the last page that had it. Lines that
// differ in the order of their labels alone have one series.
type series struct {
	devicemap.Series
	page uint32
}

type identity struct {
	family *devicemap.Family
	labels *devicemap.Labels
}

func newCache(v *devicemap.Vendor) cache {
	return cache{
		vendor:   v,
		texts:    map[string]*string{},
		lines:    map[text]*line{},
		metas:    map[*line]*meta{},
		families: map[string]*devicemap.Family{},
		labels:   map[string]*devicemap.Labels{},
		series:   map[identity]*series{},
	}
}

// find returns the line with a text, nil if there is none.
func (c *cache) find(name, labels []byte) *line {
	t := text{c.texts[string(name)], c.texts[string(labels)]}
	if t.name == nil || t.labels == nil {
		return nil
	}
	return c.lines[t]
}

func (c *cache) findMeta(whole []byte) *line {
	t := text{name: c.texts[string(whole)]}
	if t.name == nil {
		return nil
	}
	return c.lines[t]
}

func (c *cache) remember(name, labels []byte, s *series) *line {
	l := &line{text: text{c.text(name), c.text(labels)}, series: s}
	c.lines[l.text] = l
	return l
}

func (c *cache) rememberMeta(whole []byte, m *meta) *line {
	l := &line{text: text{name: c.text(whole)}}
	c.lines[l.text], c.metas[l] = l, m
	return l
}

// text returns the one copy of a text.
func (c *cache) text(b []byte) *string {
	if s, ok := c.texts[string(b)]; ok {
		return s
	}
	s := string(b)
	c.texts[s] = &s
	return &s
}

func (c *cache) family(name string) *devicemap.Family {
	f := c.families[name]
	if f == nil {
		name = strings.Clone(name) // not a part of a line
		f = c.vendor.NewFamily(name)
		c.families[name] = f
	}
	return f
}

// canonical returns the one series with a name and labels. pairs are sorted.
func (c *cache) canonical(name string, pairs [][2]string) *series {
	c.key = c.key[:0]
	for _, p := range pairs {
		c.key = append(append(c.key, p[0]...), 0xff) // in no text that is UTF-8
		c.key = append(append(c.key, p[1]...), 0xff)
	}
	l := c.labels[string(c.key)]
	if l == nil {
		l = c.vendor.NewLabels(pairs)
		c.labels[string(c.key)] = l
	}
	id := identity{c.family(name), l}
	s := c.series[id]
	if s == nil {
		var whole *devicemap.Family
		for _, suffix := range [...]string{"_bucket", "_sum", "_count"} {
			if of, ok := strings.CutSuffix(name, suffix); ok && of != "" {
				whole = c.family(of)
			}
		}
		s = &series{Series: *devicemap.NewSeries(id.family, l, whole)}
		c.series[id] = s
	}
	return s
}

// forget drops what the last page did not have, once that is more than half of
// what there is: owners come and go, and an exporter may be replaced. used is
// what the page had.
func (c *cache) forget(page uint32, used int) {
	const few = 1000
	if len(c.lines)+len(c.series) <= 2*used+few {
		return
	}
	old := *c
	*c = newCache(c.vendor) // maps do not shrink
	families, labels := map[*devicemap.Family]bool{}, map[*devicemap.Labels]bool{}
	for key, l := range old.lines {
		if l.page != page {
			continue
		}
		c.lines[key] = l
		c.texts[*l.name] = l.name
		if m := old.metas[l]; m != nil {
			c.metas[l] = m
			families[m.family] = true
		} else {
			c.texts[*l.labels] = l.labels
		}
	}
	for id, s := range old.series {
		if s.page == page {
			c.series[id] = s
			families[id.family], families[s.Whole()], labels[id.labels] = true, true, true
		}
	}
	for name, f := range old.families {
		if families[f] {
			c.families[name] = f
		}
	}
	for key, l := range old.labels {
		if labels[l] {
			c.labels[key] = l
		}
	}
}
