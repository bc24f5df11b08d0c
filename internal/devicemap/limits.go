// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"fmt"
	"strings"
	"time"
)

// Limits of one target. A page is bounded by the scrape's body size limit; these
// bound what is kept from page to page.
const (
	MaxDevices  = 1024             // boards and their parts on one page
	MaxOwners   = 256              // owners of one shared device
	MaxUnmapped = 20_000           // series of unknown families
	MaxLines    = 60_000           // lines of one page
	forgetAfter = 10 * time.Minute // a device that left the page
)

// Over names the limit of a target that a page is over, empty where it is over none.
type Over string

// The limits of a target, beside that of devices, which has the vendor's word for them.
// OverLines is found by the reader of the page.
var (
	OverLines    = OverLimit(MaxLines, "lines")
	OverOwners   = OverLimit(MaxOwners, "pods on one GPU")
	OverUnmapped = OverLimit(MaxUnmapped, "series of families that are not in the field table")
)

// OverLimit names a limit of a number of things.
func OverLimit(limit int, of string) Over { return Over(fmt.Sprintf("more than %d %s", limit, of)) }

// Reason is why a row became no data.
type Reason uint8

const (
	Sentinel    Reason = iota // the vendor's values for no value
	NotANumber                // NaN and infinities
	Negative                  // below zero where no value can be
	NoSensor                  // 0 where the board lacks the sensor
	NoDevice                  // without a device id where one is needed
	NotVendor                 // a family of the exporter's process, not of a device
	Unmapped                  // unknown family, and the configuration drops those
	WrongType                 // histograms and summaries: a mistyped family
	Limit                     // over one of the limits of a target
	Repeated                  // a series that the page has twice
	Unparsable                // a line that is not in the text format
	Dropped                   // one of the families that the table drops
	Implausible               // no device can have the value
	Ambiguous                 // the page contradicts itself about the unit
	numReasons
)

var reasonNames = [numReasons]string{
	"sentinel", "not_a_number", "negative", "no_sensor",
	"no_device", "not_", "unmapped", "wrong_type", "limit", "repeated", "unparsable", "dropped", "implausible", "ambiguous",
}

// Refused counts rows that became no data, by Reason.
type Refused [numReasons]int

// Lack is what a page lacks that gives no device.
type Lack uint8

const (
	LacksNothing  Lack = iota // there are devices
	LacksFamilies             // samples, none of a family of the vendor
	LacksValues               // devices are named, and no row of them has a value
	LacksDevices              // families of the vendor, and no row names a device
	LacksRows                 // samples, all of which relabelling drops
	LacksPage                 // where EmptyIsDown: nothing but what the exporter prints of itself
)

// lack is what the page lacks, with the evidence in words.
func (p *Page) lack(v *Vendor) (Lack, string) {
	system := v.System
	if len(p.Rows) == 0 {
		return LacksRows, fmt.Sprintf("samples: %d, all dropped by metric_relabel_configs or a limit", p.Samples)
	}
	ours, named, others, known := 0, map[string]bool{}, 0, 0
	for _, row := range p.Rows {
		if !row.Series.family.ours {
			if !ofProcess(row.Series.family.name) {
				others++
			}
			continue
		}
		ours++
		if row.Series.family.field != nil && !v.counts(row.Series.family) {
			known++
		}
		if board := row.Series.labels.row.board; board != "" && board != DropRows && len(named) < MaxDevices {
			named[board] = true
		}
	}
	switch {
	case v.EmptyIsDown && known == 0 && len(named) == 0 && (ours > 0 || others == 0):
		return LacksPage, fmt.Sprintf("samples: %d, of a device: 0, first: %.100s", p.Samples, p.Rows[0].Series.family.name)
	case ours == 0:
		return LacksFamilies, fmt.Sprintf("samples: %d, of %s: 0, first: %.100s", p.Samples, system, p.Rows[0].Series.family.name)
	case len(named) > 0:
		return LacksValues, fmt.Sprintf("GPUs: %d, rows: %d, values: 0", len(named), ours)
	default:
		return LacksDevices, fmt.Sprintf("samples of %s: %d, of a GPU: 0", system, ours)
	}
}

// ofProcess reports whether a family is one that clients of Prometheus print of the
// program that they are in.
func ofProcess(family string) bool {
	for _, prefix := range [...]string{"go_", "process_", "promhttp_", "python_"} {
		if strings.HasPrefix(family, prefix) {
			return true
		}
	}
	return false
}
