// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package conditions // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/conditions"

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// BoardReason is a reason against a board or a node.
type BoardReason struct {
	Name  string
	State consoleapi.HealthState
	Since time.Time // zero: not known
	// Text describes in one sentence what raised it; empty where the event has no sentence.
	Text             string
	Value, Threshold *float64
}

// BoardLog is what the events about health report of one board, or of a node.
type BoardLog struct {
	State   consoleapi.HealthState
	Since   time.Time // of the state
	Reasons []BoardReason
}

// Boards are the boards and nodes with events about their health, by the resource of the
// events: those of a device by its hw.id, those of a node by its name. Events are the
// newest first.
type Boards struct{ Devices, Nodes map[Place]*BoardLog }

// ReadBoards reads the events about health.
func ReadBoards(events []*store.Event) Boards {
	b := Boards{map[Place]*BoardLog{}, map[Place]*BoardLog{}}
	for _, e := range slices.Backward(events) { // the oldest first
		if e.Name != names.EventHealth {
			continue
		}
		one := ofEvent(e, false)
		all, id := b.Devices, one.device
		if id.Name == "" {
			all, id = b.Nodes, one.node
		}
		if id.Name == "" {
			continue
		}
		if all[id] == nil {
			all[id] = &BoardLog{}
		}
		all[id].take(e)
	}
	return b
}

// take takes the next event. What the event before had goes on, since then.
func (b *BoardLog) take(e *store.Event) {
	before := b.Reasons
	state := consoleapi.HealthState(text(e, names.HwState))
	if state != b.State {
		b.State, b.Since = state, e.Time.UTC()
	}
	b.Reasons = nil
	if e.State != names.EventRaised {
		return
	}
	causes, values, thresholds := list(e, names.GPUHealthCauses), list(e, names.GPUHealthValues), list(e, names.GPUHealthThresholds)
	for i, name := range list(e, names.GPUHealthReasons) {
		r := BoardReason{Name: at(name), State: stateOf(at(name), state), Since: e.Time.UTC()}
		if i < len(causes) {
			r.Text = sentence(at(causes[i]))
		}
		if i < len(values) && i < len(thresholds) {
			r.Value, r.Threshold = figure(values[i]), figure(thresholds[i])
		}
		if j := slices.IndexFunc(before, func(old BoardReason) bool { return old.Name == r.Name }); j >= 0 {
			r.Since = before[j].Since
		}
		b.Reasons = append(b.Reasons, r)
	}
}

// stateOf is the state that a reason usually means. A board with a later one is in none
// that is worse than its own.
func stateOf(reason string, worst consoleapi.HealthState) consoleapi.HealthState {
	known, ok := names.HealthReasonNamed(reason)
	if s := consoleapi.HealthState(known.State); ok && !s.AtLeast(worst) {
		return s
	}
	return worst
}

// list returns an attribute that is a list. Logs of older versions have it as a text in JSON.
func list(e *store.Event, key string) []any {
	all, _ := e.Attributes[key].([]any)
	if written, ok := e.Attributes[key].(string); ok && json.Unmarshal([]byte(written), &all) != nil {
		return nil
	}
	return all
}

func at(v any) string {
	s, _ := v.(string)
	return s
}

// sentence is a text with a full stop.
func sentence(text string) string {
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// figure is a number of a list; those that a reason does not have are no numbers.
func figure(v any) *float64 {
	if i, ok := v.(int64); ok {
		v = float64(i)
	}
	f, ok := v.(float64)
	if !ok {
		return nil
	}
	return &f
}

// pending is the condition of a row that waits for a reset.
const pending = "gpu.row_remap.pending"

// shown reports whether a reason against a board stands among the reasons already, as the
// condition or notice that is its cause: one fault is one reason.
func shown(reason string, entries []*entry) bool {
	return slices.ContainsFunc(entries, func(e *entry) bool {
		if !e.Pressing() {
			return false
		}
		switch reason {
		case "ecc_uncorrected":
			return e.Kind == consoleapi.ECCUncorrected
		case "remap_pending":
			return e.Kind == consoleapi.RetiredPages || e.event == pending || e.event == names.EventMemoryRepair
		case "remap_failed":
			return e.Kind == consoleapi.RowRemapFailure || e.event == names.EventMemoryRepair
		case "ras_fatal":
			return e.event == names.EventRAS
		case "link_down":
			return e.event == names.EventLinkDown
		case "throttle":
			return e.Kind == consoleapi.Throttled
		case "temperature":
			return e.Kind == consoleapi.Temperature || e.Kind == consoleapi.MemoryTemperature
		case "lost":
			return e.Kind == consoleapi.LostDevice
		case "recovery_action": // which the code explains
			return e.Kind == consoleapi.XID
		}
		return strings.HasPrefix(reason, "xid_") && e.Kind == consoleapi.XID
	})
}

// health adds one reason for each board, and for each node, against which there is
// something that no other reason shows.
func (f *Fleet) health(raised []*store.Event, t *Telemetry) {
	of := map[Place][]*entry{}
	for _, e := range f.entries {
		of[e.device] = append(of[e.device], e)
	}
	put := func(e *entry, reasons []BoardReason, entries []*entry) {
		worst, words := consoleapi.HealthOK, []string{}
		for _, r := range reasons {
			if shown(r.Name, entries) {
				continue
			}
			words = append(words, inWords(r.Name))
			if r.State.AtLeast(worst) {
				worst = r.State
			}
		}
		if len(words) == 0 {
			return
		}
		e.Kind, e.Severity = consoleapi.Unhealthy, consoleapi.SeverityWarn
		if worst == consoleapi.HealthFailed {
			e.Severity = consoleapi.SeverityError
		}
		e.Label = inWords(string(worst)) + ": " + strings.Join(words, ", ")
		f.entries = append(f.entries, e)
	}
	logged := map[Place]*entry{}
	boards := ReadBoards(raised)
	for _, e := range raised {
		if e.Name != names.EventHealth {
			continue
		}
		switch one := ofEvent(e, false); {
		case one.device.Name != "":
			logged[one.device] = one
		case one.node.Name != "":
			put(one, boards.Nodes[one.node].Reasons, nil)
		}
	}
	for i := range t.Devices {
		d := &t.Devices[i]
		if !d.HealthKnown {
			continue
		}
		e := logged[d.ID]
		delete(logged, d.ID) // telemetry is newer
		if e == nil {
			e = ofHealth(d)
		}
		put(e, d.Health, of[d.ID])
	}
	for id, e := range logged {
		put(e, boards.Devices[id].Reasons, of[id])
	}
}

// ofHealth is the reason of a board of which the log has no event.
func ofHealth(d *Device) *entry {
	e := &entry{device: d.ID, node: d.Node, same: sameDevice(consoleapi.Unhealthy, d.ID, ""), Reason: consoleapi.Reason{
		Subject: consoleapi.Subject{Cluster: pointer(d.ID.Cluster), Device: pointer(d.ID.Name)},
	}}
	var words []string
	for _, r := range d.Health {
		words = append(words, inWords(r.Name)+" ("+inWords(string(r.State))+")")
	}
	name := d.Label
	if d.Node.Name != "" {
		name += " of " + d.Node.Name
	}
	e.Text = name + " is not well: " + strings.Join(words, ", ") + "."
	return e
}
