// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package nvml is what NVIDIA's library reads, as data for the machinery that all vendors'
// receivers share: the table of its readings (fields.go), and how a helper's frames become
// a page of that machinery (page.go).
package nvml

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// Options are the receiver's settings that change what is emitted.
type Options struct {
	Groups       []nvmlproto.Group // what is emitted
	NodeName     string            // k8s.node.name, empty where there is none
	ClusterName  string            // k8s.cluster.name
	HostName     string            // host.name
	ScopeName    string            // instrumentation scope of everything emitted
	ScopeVersion string
	// FrozenAfter is the number of scrapes, and FrozenFor the time, for which all values must
	// stand still to be called frozen.
	FrozenAfter int
	FrozenFor   time.Duration
	// Interval is that of the scrapes.
	Interval time.Duration
}

// Scrape is what one scrape gave, without what was late.
type Scrape struct {
	Time     time.Time
	Duration time.Duration
	Up       bool // a helper answered for at least one board, or there is none to answer for
	Driver   string
	Boards   []nvmlproto.Board
	// Managed are the boards, by their Thread, with runtime power management: of these
	// alone it is emitted whether they are suspended.
	Managed map[string]bool
	// Resting are boards that were not read so that they can sleep. They are emitted if
	// they were read before.
	Resting []Resting
	// Released is that the driver is left alone: there is no board, and instead of
	// what is known about the source there is gpu.driver.released.
	Released bool
	// XIDs are the counts by hw.id of a board or an instance, from the receiver's start on. An
	// entry without counts is a board that is watched and had no XID. A board without an
	// entry is not watched.
	XIDs map[string]XIDs
	// Holders are who shares a device, by its hw.id.
	Holders map[string][]Holder
	// Processes are the points of processes, by hw.id of a board or an instance. The points
	// of one metric stand next to each other.
	Processes map[string][]ProcessPoint
}

// Resting is a board that was not read.
type Resting struct {
	Thread    string // as in nvmlproto.Board
	Suspended bool   // or left alone until it is
}

// XIDs are those of one device.
type XIDs struct {
	Counts []XIDCount
	Last   int64 // code of the newest, 0 for none
}

// XIDCount is how often a code came.
type XIDCount struct{ Code, N int64 }

// Holder has a share of a device.
type Holder struct {
	Namespace, Pod, Container, PodUID string
	// Memory is in bytes, Utilization between 0 and 1; negative: not known.
	Memory, Utilization float64
}

// ProcessPoint is a point about processes on a device.
type ProcessPoint struct {
	Metric *names.Metric
	Value  float64 // in the metric's unit
	// Put writes the attributes beside hw.id.
	Put func(pcommon.Map)
}

// Refusal is why values became no data.
type Refusal struct {
	Call   string // nvmlproto.Reading.Symbol, or what else was called
	Reason string // of devicemap or nvmlproto, or return_<number>
}

// Result is what one scrape became.
type Result struct {
	devicemap.Result
	// Refusals count values, devices and attributes that became no data. What a board does
	// not have is no refusal.
	Refusals map[Refusal]int
	// Denied are the calls that returned 4 or 17, and on how many devices.
	Denied map[string]int
	// LeftToDCGM is the number of points that the dcgm receiver of this process emits.
	LeftToDCGM int
	// IDs are the hw.id of boards, by their Thread, and UUIDs those of the boards in this
	// scrape. They are the boards that have no mistake in their identity.
	IDs map[string]string
}

// Mapping turns scrapes into metrics. It keeps what is known from scrape to scrape, and is
// not safe for concurrent use.
type Mapping struct {
	opts Options
}

// New returns the state of a host that was never scraped.
func New(opts Options) *Mapping { return &Mapping{opts: opts} }

// Map turns one scrape into metrics.
func (m *Mapping) Map(s *Scrape) Result { return Result{} }

// ID is the hw.id of a board that was in a scrape, by its Thread; empty for another.
func (m *Mapping) ID(thread string) string { return "" }
