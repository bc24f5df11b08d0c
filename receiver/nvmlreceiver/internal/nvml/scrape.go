// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package nvml is what NVIDIA's library reads, as data for the machinery that all vendors'
// receivers share: the table of its readings (fields.go), and how a helper's frames become
// a page of that machinery (page.go).
package nvml

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/internal/seendevices"
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
	// Registry is what the dcgm receiver of this process emits, by default that of the process.
	Registry *seendevices.Registry
}

// Scrape is what one scrape gave, without what was late.
type Scrape struct {
	Time     time.Time
	Duration time.Duration
	Up       bool   // a helper answered for at least one board, or there is none to answer for
	Driver   string // its version
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
	// Processes appends the metrics of the processes on a device, by its hw.id. nil: none.
	Processes func(device string, at time.Time, to pmetric.MetricSlice)
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
	// Rose is that a count rose since the scrape before: it is emitted even if the device is
	// in no frame any more, such as a board that fell off its bus.
	Rose bool
}

// XIDCount is how often a code came, and since when that was counted.
type XIDCount struct {
	Code, N int64
	Start   time.Time
}

// Holder has a share of a device.
type Holder struct {
	Namespace, Pod, Container, PodUID string
	// Memory is in bytes, Utilization between 0 and 1; negative: not known.
	Memory, Utilization float64
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
	// IDs are the hw.id of the boards that were read, by their Thread. They have no mistake in
	// their identity.
	IDs map[string]string
}
