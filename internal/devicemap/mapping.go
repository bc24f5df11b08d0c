// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package devicemap turns pages of dcgm-exporter into OpenTelemetry metrics: one
// resource a device.
//
// A page is read in two steps. Reading sorts every row to its device and keeps
// one value a field (read.go, row.go, device.go). Writing then makes the device's series from
// those values (emit.go, events.go), which is where values of several fields
// meet. What a family says of the holders of a shared device is in shares.go. What a device needs from one page to the next (start times of counters,
// the last XID) stays in its device.
//
// A Target is not safe for concurrent use; an exporter is scraped by one
// goroutine at a time.
package devicemap

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Options are the receiver's settings that change what is emitted.
type Options struct {
	OTel         bool   // OpenTelemetry names
	DCGM         bool   // DCGM families under their own names
	DropUnmapped bool   // leave out families that the table does not know
	NodeName     string // k8s.node.name, where known
	ClusterName  string // k8s.cluster.name, where configured
	ScopeName    string // instrumentation scope of everything emitted
	ScopeVersion string
	// FrozenAfter is the number of pages, and FrozenFor the time, for which an
	// exporter's values must stand still to be called frozen.
	FrozenAfter int
	FrozenFor   time.Duration
}

// Limits of one target. A page is bounded by the scrape's body size limit; these
// bound what is kept from page to page.
const (
	maxDevices  = 1024             // physical GPUs and MIG instances on one page
	maxHolders  = 256              // holders of one shared device
	maxXIDCodes = 256              // codes counted for one device
	maxUnmapped = 20_000           // series of unknown families
	MaxLines    = 60_000           // lines of one page
	forgetAfter = 10 * time.Minute // a device that left the page
)

// Reason says why a row became no data.
type Reason uint8

const (
	Sentinel   Reason = iota // DCGM's blank, not found, not supported, not permitted
	NotANumber               // NaN and infinities
	Negative                 // below zero where no value can be
	NoSensor                 // 0 where the board lacks the sensor
	NoDevice                 // without a device id where one is needed
	NotDCGM                  // a family of the exporter's process, not of a GPU
	Unmapped                 // unknown family, and the configuration drops those
	WrongType                // histograms and summaries: a mistyped counters file
	Limit                    // over one of the limits of a target
	Repeated                 // a series that the page has twice
	Unparsable               // a line that is none of the text format
	numReasons
)

var reasonNames = [numReasons]string{
	"sentinel", "not_a_number", "negative", "no_sensor",
	"no_device", "not_dcgm", "unmapped", "wrong_type", "limit", "repeated", "unparsable",
}

func (r Reason) String() string { return reasonNames[r] }

// Refused counts rows that became no data, by Reason.
type Refused [numReasons]int

// Target keeps what is known about one exporter from page to page.
type Target struct {
	opts    Options
	gpus    map[string]*device // physical GPUs by hw.id; their instances hang on them
	devices int                // GPUs and instances together
	page    pageState
	// unmapped are the series of families that the table does not know.
	unmapped map[string]*unmappedSeries
	still    still
	judged   bool   // gpu.exporter.frozen was written
	key      []byte // buffer for keys of unmapped
}

// pageState is what one page has said so far; its memory serves the next page.
type pageState struct {
	number  uint64
	time    pcommon.Timestamp // 0 where no row has a value
	order   []*device         // devices on this page, in order of appearance
	loose   []rawPoint        // rows without a device, of unknown families
	shares  []share           // rows that may be shares, see shares.go
	refused Refused
	over    Over // the first limit of a target that it is over
}

// NewTarget returns the state of an exporter that was never scraped.
func NewTarget(opts Options) *Target {
	return &Target{opts: opts, gpus: map[string]*device{}, unmapped: map[string]*unmappedSeries{}}
}

// value is what the page says for one field of one device.
type value struct {
	v    float64
	rank rank
}

// rank orders rows of one field for one device: the higher one wins.
type rank uint8

const (
	rankNone     rank = iota
	rankInstance      // board field on the row of one of its MIG instances
	rankHolder        // row that names a holder: one of several on a shared device
	rankOwn           // the device's own row
)

// offer keeps the better of what is there and the new row: rank, then the
// greater. A code is not a quantity: the last row wins.
func (x *value) offer(v float64, r rank, code bool) {
	if r < x.rank || r == x.rank && !code && v < x.v {
		return
	}
	*x = value{v: v, rank: r}
}

// counter turns the readings of a cumulative counter into a start time. Nobody
// tells us when a counter began, so it starts with the first reading, and again
// with each reading that is smaller than the one before (a reset).
type counter struct {
	start pcommon.Timestamp
	last  float64
}

func (c *counter) observe(v float64, t pcommon.Timestamp) (start pcommon.Timestamp) {
	if c.start == 0 || v < c.last || t < c.start {
		c.start = t
	}
	c.last = v
	return c.start
}
