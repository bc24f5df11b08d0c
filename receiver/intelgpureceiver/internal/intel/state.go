// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intel

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// state is what is kept of a device from page to page, and writes its throttle reasons
// and health.
type state struct {
	domain string // of power and energy, empty until it is chosen
}

// domains are those of power that can stand for a device, the widest first; memory alone
// cannot.
var domains = [...]string{"card", "package", "gpu", "stack"}

// choose returns the domain that stands for the device, chosen on the first page that
// has one. Domains contain each other and are never added. The card's counter does not
// contain everything on some boards: where it is below the package's, that one counts.
func (s *state) choose(d *devicemap.Device) string {
	if s.domain != "" {
		return s.domain
	}
	energy, power := d.Rows(Energy2), d.Rows(Power2)
	for _, domain := range domains {
		_, counted := energy[domain]
		if _, measured := power[domain]; counted || measured && len(energy) == 0 {
			s.domain = domain
			break
		}
	}
	card, inner := energy["card"], energy["package"]
	if s.domain == "card" && inner.Known() && card.V < inner.V {
		s.domain = "package"
	}
	return s.domain
}

// Write implements devicemap.Derivation.
func (s *state) Write(d *devicemap.Device, w *devicemap.Writer) {
	writeThrottle(d, w)
	writeHealth(d, w)
}

// reasons are Level Zero's reasons for throttling that have a name among the reasons of
// other vendors. The others keep theirs.
var reasons = map[string]string{
	"ave_pwr_cap": "power_cap", "burst_pwr_cap": "power_cap", "power": "power_cap",
	"thermal_limit": "hw_thermal", "thermal": "hw_thermal",
	"psu_alert": "hw_power_brake", "sw_range": "clocks_setting",
}

// writeThrottle writes for each reason that the page has whether it holds a clock down.
func writeThrottle(d *devicemap.Device, w *devicemap.Writer) {
	active := map[string]bool{}
	for text, x := range d.Rows(Throttle2) {
		if text == "" {
			continue // without the reason
		}
		text = plain(text)
		reason := cmp.Or(reasons[text], text)
		active[reason] = active[reason] || x.V > 0
	}
	for _, reason := range slices.Sorted(maps.Keys(active)) {
		w.State(&names.GPUThrottleActive, active[reason], names.GPUThrottleReason, reason)
	}
}

// watches are the names of health watches for values of hw_type. Throttling, the state of
// frequency domains, is no health.
var watches = map[string]string{
	"": "exporter", "frequency": "", "pci_link": "pcie", "temperature": "thermal",
}

// level is how bad a state of a component is, as Writer.Health has it.
func level(text string) int {
	switch text {
	case "ok":
		return 0
	case "failed", "critical", "replace", "reset_needed", "wedged", "gpu_lost":
		return 2
	default:
		return 1
	}
}

// watch is what the rows of one component state.
type watch struct {
	worst   int  // level of the worst state that is active
	active  bool // there is one
	spared  bool // a state other than ok is there, and not active
	unknown bool // ok is not active, or the state is unknown
}

// writeHealth writes one point a state for each watch: 1 for the state that it is in. XPU
// Manager prints a bad state once it was known. So a component is well where its ok is 1,
// and also where it prints no ok, only other states, and none of them is active. A
// component that is not ok without a reason has no point.
func writeHealth(d *devicemap.Device, w *devicemap.Writer) {
	all := map[string]watch{}
	for text, x := range d.Rows(Status2) {
		component, condition, _ := strings.Cut(text, ",")
		name, renamed := watches[component]
		if !renamed {
			name = component
		}
		if name == "" || condition == "" {
			continue
		}
		now := all[name]
		switch active := x.V > 0; {
		case condition == "unknown":
			now.unknown = now.unknown || active
		case active:
			now.active, now.worst = true, max(now.worst, level(condition))
		case condition == "ok":
			now.unknown = true
		default:
			now.spared = true
		}
		all[name] = now
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		now := all[name]
		if !now.active && (now.unknown || !now.spared) {
			continue
		}
		w.Health(name, now.worst)
	}
}
