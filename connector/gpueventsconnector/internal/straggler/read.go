// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// Reads are the metrics of boards that are compared, and those that explain the result.
var Reads = []rule.Input{
	{Metric: &names.GPUClockFrequency}, {Metric: &names.GPUUtilization}, {Metric: &names.GPUPowerLimit},
	{Metric: &names.GPUThrottleActive}, {Metric: &names.GPUThrottleDuration}, {Metric: &names.GPUHealthReason},
}

// Source is the resource of points, and the board that it is.
type Source struct {
	subject.Resource
	board    *Board
	searched bool // board was looked up, and is not known yet
	left     bool // the resource is no board, or there is no room for it
}

// Input reads a point of a resource.
type Input func(f *Fleet, s *Source, p pmetric.NumberDataPoint)

// Inputs are the functions that read the metrics of Reads, by their names. A board without a
// clock is never compared, so only a clock adds one.
var Inputs = map[string]Input{
	names.GPUClockFrequency.Name:   sampled((*Fleet).add, takeClock),
	names.GPUUtilization.Name:      sampled((*Fleet).find, takeBusy),
	names.GPUPowerLimit.Name:       sampled((*Fleet).find, takeLimit),
	names.GPUThrottleActive.Name:   sampled((*Fleet).find, takeThrottle),
	names.GPUThrottleDuration.Name: sampled((*Fleet).find, takeDuration),
	names.GPUHealthReason.Name:     takeReason,
}

// sampled passes the value of a point on, unless the point is late or its value is no finite
// number of at least 0.
func sampled(board func(*Fleet, *Source) *Board, take func(b *Board, p pmetric.NumberDataPoint, v float64)) Input {
	return func(f *Fleet, s *Source, p pmetric.NumberDataPoint) {
		b := s.board
		if b == nil {
			if b = board(f, s); b == nil {
				return
			}
		}
		if v := points.Value(p); v >= 0 && !math.IsInf(v, 1) && b.openAt(p.Timestamp(), f.now) {
			take(b, p, v)
			if b.rare >= leastSamples {
				f.apart = max(f.apart, b.apart)
			}
		}
	}
}

func takeClock(b *Board, p pmetric.NumberDataPoint, v float64) {
	if points.Str(p.Attributes(), names.GPUClockDomain) == "sm" {
		b.open.clock = v
	}
}

func takeBusy(b *Board, p pmetric.NumberDataPoint, v float64) {
	if points.Str(p.Attributes(), names.HwGPUTask) == "general" {
		b.open.busy = v
	}
}

func takeLimit(b *Board, p pmetric.NumberDataPoint, v float64) {
	kind := 0
	if points.Str(p.Attributes(), names.GPUPowerLimitKind) != "enforced" {
		kind = 1
	}
	b.limits[kind] = math.Round(v)
}

// takeThrottle takes whether a reason holds the clocks down. It is as good as a duration
// where there are many samples.
func takeThrottle(b *Board, p pmetric.NumberDataPoint, v float64) {
	if v <= 0 {
		return
	}
	switch points.Str(p.Attributes(), names.GPUThrottleReason) {
	case names.ThrottleHWThermal, names.ThrottleSWThermal:
		b.open.throttled[byHeat] = 1
	case names.ThrottleHWPowerBrake, "power_cap":
		b.open.throttled[byPower] = 1
	}
}

// duration is the last point of a counter of seconds.
type duration struct {
	at      pcommon.Timestamp
	seconds float64
}

func takeDuration(b *Board, p pmetric.NumberDataPoint, v float64) {
	kind := byHeat
	switch points.Str(p.Attributes(), names.GPUThrottleReason) {
	case "thermal":
	case "power":
		kind = byPower
	default:
		return
	}
	last := &b.durations[kind]
	if passed := time.Duration(p.Timestamp() - last.at).Seconds(); last.at != 0 && p.Timestamp() > last.at && v >= last.seconds {
		rose := min(v-last.seconds, max(passed, time.Minute.Seconds())) // of a refresh, which may be longer ago
		b.open.throttled[kind] = max(b.open.throttled[kind], float32(rose/passed))
	}
	*last = duration{p.Timestamp(), v}
}

// Advance moves the time on before a batch is read.
func (f *Fleet) Advance(now time.Duration, wall time.Time) { f.now, f.wall = now, wall }

// find returns the known board of a resource; nil if there is none.
func (f *Fleet) find(s *Source) *Board {
	if s.searched {
		return nil
	}
	s.searched = true
	return f.open(s, f.boards[s.Device])
}

// add returns the board of a resource; nil if the resource is no board, or there is no room for
// it. A part of a board, or a replica, only shows that its board is divided.
func (f *Fleet) add(s *Source) *Board {
	if s.left {
		return nil
	}
	s.left = true // unless a board is opened below
	if s.NotGPU || s.Device.ID == "" {
		return nil
	}
	parent := s.Facts.Parent
	if s.Replica {
		parent, _ = deviceid.CutReplica(s.Device.ID)
	}
	if parent != "" {
		if b := f.boards[subject.DeviceID{Cluster: s.Device.Cluster, ID: parent}]; b != nil {
			b.divided = f.now
		}
		return nil
	}
	return f.open(s, f.get(s.Device))
}

// open makes a board the one of the resource, and takes what the resource contains.
func (f *Fleet) open(s *Source, b *Board) *Board {
	if s.board = b; b != nil {
		s.left = false
		b.present(&s.Facts, s.Start, f.now, f.wall)
	}
	return b
}

// takeReason takes a reason against a board, as its agent publishes it: on a resource that
// has no owner.
func takeReason(f *Fleet, s *Source, p pmetric.NumberDataPoint) {
	name := points.Str(p.Attributes(), names.GPUHealthReason.Name)
	if _, explains := explaining[name]; !explains {
		return
	}
	b := f.boards[s.Device]
	switch {
	case b == nil:
	case points.Value(p) > 0: // an end is no number
		if b.reasons == nil {
			b.reasons = map[string]time.Duration{}
		}
		b.reasons[strings.Clone(name)] = f.now
	default:
		delete(b.reasons, name)
	}
}
