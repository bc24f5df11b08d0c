// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"fmt"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Events has one block for each event, under the event's name.
type Events struct {
	ExporterDown    DownEvent        `mapstructure:"gpu.exporter.down"`
	DeviceLost      DeviceLostEvent  `mapstructure:"gpu.device.lost"`
	XID             NoticeEvent      `mapstructure:"gpu.xid"`
	ECCUncorrected  NoticeEvent      `mapstructure:"gpu.ecc.uncorrected"`
	RowRemapFailure Event            `mapstructure:"gpu.row_remap.failure"`
	Throttle        ThrottleEvent    `mapstructure:"gpu.throttle"`
	Temperature     TemperatureEvent `mapstructure:"gpu.temperature"`
	MemoryPressure  MemoryEvent      `mapstructure:"gpu.memory.pressure"`
	NodeLost        NodeLostEvent    `mapstructure:"gpu.node.lost"`
	ServicePartial  Event            `mapstructure:"gpu.service.partial"`
	ServiceNoData   Event            `mapstructure:"gpu.service.no_data"`
	IdleHeld        Event            `mapstructure:"gpu.idle_held"`
}

// Event is what can be configured for every event.
type Event struct {
	Enabled bool `mapstructure:"enabled"`
}

// DownEvent configures gpu.exporter.down.
type DownEvent struct {
	Event `mapstructure:",squash"`
	// For is how long an exporter does not answer, or is frozen.
	For time.Duration `mapstructure:"for"`
}

// DeviceLostEvent configures gpu.device.lost.
type DeviceLostEvent struct {
	Event `mapstructure:",squash"`
	// Scrapes is how many successful ones in a row are without the device.
	Scrapes int `mapstructure:"scrapes"`
}

// NoticeEvent configures an event that is not cleared.
type NoticeEvent struct {
	Event `mapstructure:",squash"`
	// RepeatAfter is for how long the same about the same device is not told
	// again. What happens in between is told with the next one.
	RepeatAfter time.Duration `mapstructure:"repeat_after"`
}

// ThrottleEvent configures gpu.throttle.
type ThrottleEvent struct {
	Event    `mapstructure:",squash"`
	For      time.Duration `mapstructure:"for"`
	ClearFor time.Duration `mapstructure:"clear_for"`
}

// TemperatureEvent configures gpu.temperature; temperatures are in degrees Celsius.
type TemperatureEvent struct {
	Event          `mapstructure:",squash"`
	High           float64       `mapstructure:"high"`
	HighFor        time.Duration `mapstructure:"high_for"`
	Critical       float64       `mapstructure:"critical"`
	CriticalFor    time.Duration `mapstructure:"critical_for"`
	MemoryHigh     float64       `mapstructure:"memory_high"`
	MemoryCritical float64       `mapstructure:"memory_critical"`
	// Hysteresis is how far below high it has to be to be over.
	Hysteresis float64 `mapstructure:"hysteresis"`
}

// MemoryEvent configures gpu.memory.pressure; values are fractions of the memory.
type MemoryEvent struct {
	Event       `mapstructure:",squash"`
	High        float64       `mapstructure:"high"`
	HighFor     time.Duration `mapstructure:"high_for"`
	Critical    float64       `mapstructure:"critical"`
	CriticalFor time.Duration `mapstructure:"critical_for"`
	// Hysteresis is how far below high it has to be to be over.
	Hysteresis float64 `mapstructure:"hysteresis"`
}

// NodeLostEvent configures gpu.node.lost.
type NodeLostEvent struct {
	Event `mapstructure:",squash"`
	// LostAfter is how long a node is silent.
	LostAfter time.Duration `mapstructure:"lost_after"`
}

func defaultEvents() Events {
	on := Event{Enabled: true}
	return Events{
		ExporterDown:    DownEvent{on, time.Minute},
		DeviceLost:      DeviceLostEvent{on, 3},
		XID:             NoticeEvent{on, 5 * time.Minute},
		ECCUncorrected:  NoticeEvent{on, 5 * time.Minute},
		RowRemapFailure: on,
		Throttle:        ThrottleEvent{on, 2 * time.Minute, 2 * time.Minute},
		// HBM runs hotter than the chip.
		Temperature: TemperatureEvent{
			Event: on, High: 85, HighFor: 5 * time.Minute, Critical: 90, CriticalFor: 2 * time.Minute,
			MemoryHigh: 95, MemoryCritical: 105, Hysteresis: 3,
		},
		MemoryPressure: MemoryEvent{
			Event: on, High: 0.95, HighFor: 2 * time.Minute, Critical: 0.98, CriticalFor: time.Minute, Hysteresis: 0.02,
		},
		NodeLost:       NodeLostEvent{on, 2 * time.Minute},
		ServicePartial: on,
		ServiceNoData:  on,
		IdleHeld:       on,
	}
}

// any reports whether an event of the rule sets is enabled.
func (c *Events) any(sets []RuleSet) bool {
	return slices.Contains(sets, RuleSetDevice) && (c.ExporterDown.Enabled || c.DeviceLost.Enabled || c.XID.Enabled ||
		c.ECCUncorrected.Enabled || c.RowRemapFailure.Enabled || c.Throttle.Enabled || c.Temperature.Enabled || c.MemoryPressure.Enabled) ||
		slices.Contains(sets, RuleSetService) && (c.NodeLost.Enabled || c.ServicePartial.Enabled || c.ServiceNoData.Enabled || c.IdleHeld.Enabled)
}

// validate reports the keys that cannot be used.
func (c *Events) validate() (errs []error) {
	bad := func(event, key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("events::%s::%s: "+format, append([]any{event, key}, args...)...))
	}
	for _, d := range []struct {
		event, key string
		value      time.Duration
		least      time.Duration
		most       time.Duration
	}{
		{names.EventExporterDown, "for", c.ExporterDown.For, 0, maxFor},
		{names.EventXID, "repeat_after", c.XID.RepeatAfter, 0, 24 * time.Hour},
		{names.EventECCUncorrected, "repeat_after", c.ECCUncorrected.RepeatAfter, 0, 24 * time.Hour},
		{names.EventThrottle, "for", c.Throttle.For, 0, maxFor},
		{names.EventThrottle, "clear_for", c.Throttle.ClearFor, 0, maxFor},
		{names.EventTemperature, "high_for", c.Temperature.HighFor, 0, maxFor},
		{names.EventTemperature, "critical_for", c.Temperature.CriticalFor, 0, maxFor},
		{names.EventMemoryPressure, "high_for", c.MemoryPressure.HighFor, 0, maxFor},
		{names.EventMemoryPressure, "critical_for", c.MemoryPressure.CriticalFor, 0, maxFor},
		{names.EventNodeLost, "lost_after", c.NodeLost.LostAfter, 30 * time.Second, maxFor},
	} {
		if d.value < d.least || d.value > d.most {
			bad(d.event, d.key, "%s: set it to %s or more, and to %s at most", d.value, d.least, d.most)
		}
	}
	if n := c.DeviceLost.Scrapes; n < 1 || n > 1000 {
		bad(names.EventDeviceLost, "scrapes", "%d: set it to 1 or more, and to 1000 at most", n)
	}
	t, m := &c.Temperature, &c.MemoryPressure
	for _, d := range []struct {
		key   string
		value float64
	}{{"high", t.High}, {"critical", t.Critical}, {"memory_high", t.MemoryHigh}, {"memory_critical", t.MemoryCritical}} {
		if !(d.value >= coolest && d.value <= hottest) {
			bad(names.EventTemperature, d.key, "%g: it is in degrees Celsius: set it between %d and %d", d.value, coolest, hottest)
		}
	}
	if !(t.Critical > t.High) {
		bad(names.EventTemperature, "critical", "%g: set it above high (%g)", t.Critical, t.High)
	}
	if !(t.MemoryCritical > t.MemoryHigh) {
		bad(names.EventTemperature, "memory_critical", "%g: set it above memory_high (%g)", t.MemoryCritical, t.MemoryHigh)
	}
	if !(t.Hysteresis >= 0 && t.Hysteresis <= 50) {
		bad(names.EventTemperature, "hysteresis", "%g: set it to 0 degrees or more, and to 50 at most", t.Hysteresis)
	}
	if !(m.High > 0 && m.High < 1) {
		bad(names.EventMemoryPressure, "high", "%g: it is a fraction of the memory: set it between 0 and 1", m.High)
	}
	if !(m.Critical > m.High && m.Critical < 1) {
		bad(names.EventMemoryPressure, "critical", "%g: set it above high (%g) and below 1", m.Critical, m.High)
	}
	if !(m.Hysteresis >= 0 && m.Hysteresis < m.High) {
		bad(names.EventMemoryPressure, "hysteresis", "%g: set it to 0 or more, and below high (%g)", m.Hysteresis, m.High)
	}
	return errs
}

// Thresholds for temperatures lie between these, in degrees Celsius: below, every
// GPU raises an event, and above none does.
const coolest, hottest = 30, 150

// maxFor bounds durations: what lasts for longer is no event.
const maxFor = 24 * time.Hour
