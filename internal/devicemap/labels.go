// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"cmp"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/migprofile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Fact is a text that describes a device.
type Fact uint8

const (
	Index Fact = iota
	PCIAddress
	Model
	Host
	Driver
	Serial
	Firmware
	Minor
	PartProfile // of a part alone, as is the next
	PartUUID
	numFacts
)

// facts describe a device. Rows may differ in which they have; where they contradict
// each other the greater text wins, so that the order of rows does not matter.
type facts struct {
	text  [numFacts]string
	other map[string]string // label-type fields without a convention, by their metrics' names
}

// row is what is read from the labels of a row.
type row struct {
	board, part string
	facts       facts
	owner       owner
	evidence    Evidence
}

// read sorts labels. Empty values and texts that stand for no value count as absent.
func (r *row) read(v *Vendor, labels []label) {
	*r = row{}
	var exported, scraped, ofPart bool
	for _, l := range labels {
		key, text := l.key, l.value
		if v.absentText(text) {
			continue
		}
		switch kind := v.Label(key); kind {
		case exporterlabels.MIGProfile:
			r.facts.text[PartProfile] = migprofile.Normal(text)
		case exporterlabels.Index:
			r.facts.text[Index] = text
		case exporterlabels.PCIAddress:
			r.facts.text[PCIAddress] = text
		case exporterlabels.Model:
			r.facts.text[Model] = text
		case exporterlabels.Host:
			r.facts.text[Host] = text
		case exporterlabels.Scrape:
			scraped = scraped || isTarget(key)
		case exporterlabels.Field:
			r.readField(v, key, text)
			r.evidence |= v.evidence(key)
		case exporterlabels.Pod, exporterlabels.Namespace, exporterlabels.Container, exporterlabels.PodUID:
			exported = exported || exporterlabels.Exported(key)
			r.readOwner(kind, text)
		case exporterlabels.Other:
			if v.podLabel(key) {
				r.owner.more = append(r.owner.more, label{names.ExporterPodLabel + key, text})
			}
		case exporterlabels.PodLabel, exporterlabels.VGPU, exporterlabels.HPCJob, exporterlabels.DRA:
			r.owner.more = append(r.owner.more, label{key, text})
			ofPart = ofPart || exporterlabels.OfPart(key)
			if fact, known := v.Facts[key]; known {
				r.facts.text[fact] = text
			}
		}
	}
	if v.Survey == nil {
		r.board, r.part = v.Identify(pairs(labels))
	}
	switch {
	case exported:
		r.readExported(v, labels)
	case scraped && v.PodNeedsContainer && r.owner.container == "":
		r.owner.pod, r.owner.namespace, r.owner.podUID = "", "", ""
	}
	if ofPart && r.part == "" {
		r.owner.ofPart = true
	}
	if len(r.owner.more) > 1 {
		slices.SortFunc(r.owner.more, func(a, b label) int {
			return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(b.value, a.value))
		})
		// app and pod_label_app are one label.
		r.owner.more = slices.CompactFunc(r.owner.more, func(a, b label) bool { return a.key == b.key })
	}
}

func (r *row) readOwner(kind exporterlabels.Label, text string) {
	switch kind {
	case exporterlabels.Pod:
		r.owner.pod = text
	case exporterlabels.Namespace:
		r.owner.namespace = text
	case exporterlabels.Container:
		r.owner.container = text
	case exporterlabels.PodUID:
		r.owner.podUID = text
	}
}

// readExported reads the owner from the exported_* labels alone: where a
// scraper renamed any of them, the plain ones name the exporter's own pod.
func (r *row) readExported(v *Vendor, labels []label) {
	r.owner.pod, r.owner.namespace, r.owner.container, r.owner.podUID = "", "", "", ""
	for _, l := range labels {
		if exporterlabels.Exported(l.key) && !v.absentText(l.value) {
			r.readOwner(v.Label(l.key), l.value)
		}
	}
}

// readField reads a field of type label.
func (r *row) readField(v *Vendor, key, text string) {
	if fact, known := v.Facts[key]; known {
		r.facts.text[fact] = text
		return
	}
	if r.facts.other == nil {
		r.facts.other = map[string]string{}
	}
	r.facts.other[v.Unmapped(key)] = text
}

// isTarget reports whether a label is one that Prometheus puts on the samples of a target,
// renamed by a second scrape or not.
func isTarget(key string) bool {
	switch strings.TrimPrefix(key, "exported_") {
	case "job", "instance":
		return true
	}
	return false
}

// Survey knows which device each of the labels of one page is about, where the labels of
// a row alone do not identify it. It is not changed once it is made.
//
// It stands as long as the page has the same labels. One that depends on something else
// as well has a method Stale() bool, which is asked before every other page.
type Survey interface {
	// Identify finds the device that labels of the page are about, as Vendor.Identify.
	Identify(l *Labels) (board, part string)
}

// DropRows is what Identify returns as the board of labels with which rows are counted as
// dropped: sums over devices that have rows of their own.
const DropRows = "\x00"

// surveyed is the survey of a target's page with the labels that it is of.
type surveyed struct {
	survey Survey
	labels []*Labels // each once, in the order of the page
	next   []*Labels
}

// find finds the devices of all labels of a page, which has a number.
func (s *surveyed) find(v *Vendor, p *Page, number uint64) {
	if !p.Up {
		return
	}
	s.next = s.next[:0]
	for i := range p.Rows {
		row := p.Rows[i].Series
		if l := row.labels; row.family.ours && l.page != number {
			l.page = number
			s.next = append(s.next, l)
		}
	}
	if s.survey != nil && slices.Equal(s.labels, s.next) {
		if stale, may := s.survey.(interface{ Stale() bool }); !may || !stale.Stale() {
			return
		}
	}
	s.labels, s.next = s.next, s.labels
	clear(s.next[:cap(s.next)]) // what left the page is not kept
	var previous any
	if s.survey != nil {
		previous = s.survey
	}
	s.survey = v.Survey(previous, slices.Values(s.labels))
	for _, l := range s.labels {
		board, part := s.survey.Identify(l)
		if board != l.row.board || part != l.row.part {
			l.row.board, l.row.part, l.device = board, part, nil
		}
	}
}
