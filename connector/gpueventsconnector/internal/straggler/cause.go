// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"slices"
	"time"
)

// Cause is why a board is slow, as far as telemetry shows it: a value of
// gpu.straggler.cause.
type Cause string

const (
	// Thermal and Power: it is throttled for that for more of the time than its peers.
	Thermal Cause = "thermal"
	Power   Cause = "power"
	// Link: there is a reason against its link.
	Link Cause = "link"
	// Clock: none of these.
	Clock Cause = "clock"
)

// Causes are all causes.
func Causes() []Cause { return []Cause{Thermal, Power, Link, Clock} }

// The kinds of throttling that are compared.
const (
	byHeat = iota
	byPower
	throttles
)

// explaining are the reasons against a board that explain a slow clock, and whether they
// are about its link.
var explaining = map[string]bool{
	"throttle": false, "temperature": false,
	"pcie_width": true, "pcie_replays": true, "nvlink_errors": true, "nvlink_down": true, "fabric": true,
}

// explain finds the causes of the slow boards among peers, in the minute that ends now.
func explain(boards []*Board, now time.Duration, reasons Reasons) {
	if !slices.ContainsFunc(boards, func(b *Board) bool { return b.Slow }) {
		return
	}
	shares := make([][throttles]float64, len(boards))
	var medians [throttles]float64
	all := make([]float64, len(boards))
	for kind := range throttles {
		for i, b := range boards {
			t := b.total(int(now / time.Minute))
			shares[i][kind] = float64(t.throttled[kind]) / float64(t.samples)
			all[i] = shares[i][kind]
		}
		medians[kind] = middle(all)
	}
	for i, b := range boards {
		if !b.Slow {
			continue
		}
		link := b.explain(now, reasons)
		more := func(kind int) bool { return shares[i][kind] >= medians[kind]+moreThrottled }
		switch {
		case more(byHeat):
			b.Cause = Thermal
		case more(byPower):
			b.Cause = Power
		case link:
			b.Cause = Link
		default:
			b.Cause = Clock
		}
	}
}

// explain finds out whether reasons against the board explain that it is slow, and whether
// one of them is about its link.
func (b *Board) explain(now time.Duration, reasons Reasons) (link bool) {
	b.Explained = false
	take := func(name string) {
		ofLink, explains := explaining[name]
		b.Explained, link = b.Explained || explains, link || ofLink
	}
	for name, seen := range b.reasons {
		if now-seen > reasonFor {
			delete(b.reasons, name)
		} else {
			take(name)
		}
	}
	if reasons != nil {
		for _, name := range reasons(b.ID) {
			take(name)
		}
	}
	return link
}
