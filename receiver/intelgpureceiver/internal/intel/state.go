// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intel

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// state is what is kept of a device from page to page, and writes its throttle reasons
// and health.
type state struct {
	domain string // of power and energy, empty until it is chosen
	// errors are the rows of errorRows that were on a page, see keepErrors.
	errors map[devicetable.ID]map[string]float64
}

// keepErrors gives a board and its tiles the rows of errors that are missing on this page, as
// they were: an error that was counted did happen, and a total without it would fall and rise
// again. A reset, which all rows show, ends that; so does a page without any error.
func keepErrors(devices []*devicemap.Device) {
	printed, fell := false, false
	for _, d := range devices {
		kept := d.Derivation().(*state).errors
		for field := range errorRows {
			for text, x := range d.Rows(field) {
				printed, fell = true, fell || x.V < kept[field][text]
			}
		}
	}
	if !printed {
		return
	}
	for _, d := range devices {
		d.Derivation().(*state).keep(d, fell)
	}
}

func (s *state) keep(d *devicemap.Device, reset bool) {
	if reset {
		s.errors = nil
	}
	for field, kept := range s.errors {
		for text, v := range kept {
			if _, there := d.Rows(field)[text]; !there {
				d.SetRow(field, text, v)
			}
		}
	}
	for field := range errorRows {
		rows := d.Rows(field)
		if len(rows) == 0 || len(rows) > maxKept {
			continue
		}
		if s.errors == nil {
			s.errors = map[devicetable.ID]map[string]float64{}
		}
		s.errors[field] = make(map[string]float64, len(rows))
		for text, x := range rows {
			s.errors[field][text] = x.V
		}
	}
}

// maxKept is of how many rows of one family a device's errors are kept.
const maxKept = 256

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
