// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import "slices"

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
