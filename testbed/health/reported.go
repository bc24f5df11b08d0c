// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// unknown is the state of which there is no point.
const unknown = "unknown"

// reported is what has left the agents, as a backend has it.
type reported struct {
	mu     sync.Mutex
	boards map[string]*board
	nodes  map[string]map[string]float64 // by hw.state
	wrong  []string
	events []string // all events, as "name state"
}

// board is what is reported of a board.
type board struct {
	status   map[string]float64 // by hw.state
	reasons  map[string]reason
	coverage float64
	event    string // the last event's verdict
	events   int
}

type reason struct{ state, action string }

func newReported() *reported {
	return &reported{boards: map[string]*board{}, nodes: map[string]map[string]float64{}}
}

func (r *reported) board(id string) *board {
	b := r.boards[id]
	if b == nil {
		b = &board{status: map[string]float64{}, reasons: map[string]reason{}}
		r.boards[id] = b
	}
	return b
}

func (r *reported) takeMetrics(md pmetric.Metrics) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				dps, _ := points.Numbers(m)
				for _, p := range dps.All() {
					r.point(m.Name(), p)
				}
			}
		}
	}
}

func (r *reported) point(metric string, p pmetric.NumberDataPoint) {
	attribute := func(key string) string {
		v, ok := p.Attributes().Get(key)
		if !ok {
			return ""
		}
		return v.Str()
	}
	ends, state := p.Flags().NoRecordedValue(), attribute(names.HwState)
	set := func(of map[string]float64) {
		delete(of, state)
		if !ends {
			of[state] = points.Value(p)
		}
	}
	switch metric {
	case names.HwStatus.Name:
		set(r.board(attribute(names.HwID)).status)
	case names.GPUNodeStatus.Name:
		node := attribute(names.K8sNodeName)
		if r.nodes[node] == nil {
			r.nodes[node] = map[string]float64{}
		}
		set(r.nodes[node])
	case names.GPUHealthCoverage.Name:
		b := r.board(attribute(names.HwID))
		b.coverage = 0
		if !ends {
			b.coverage = points.Value(p)
		}
	case names.GPUHealthReason.Name:
		b, name := r.board(attribute(names.HwID)), attribute(names.GPUHealthReason.Name)
		is := reason{state, attribute(names.GPUHealthAction)}
		switch {
		case !ends:
			b.reasons[name] = is
		case b.reasons[name] == is: // not the end of a series that another one has replaced
			delete(b.reasons, name)
		}
	}
}

func (r *reported) takeEvents(ld plog.Logs) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, e := range sl.LogRecords().All() {
				attrs := e.Attributes().AsRaw()
				switch e.EventName() {
				case names.EventHealth:
					if before := r.health(rl.Resource().Attributes().AsRaw(), attrs); !before {
						continue // another state, or another reason
					}
				}
				r.events = append(r.events, fmt.Sprint(e.EventName(), " ", attrs[names.GPUEventState]))
			}
		}
	}
}

// health takes an event about health. It reports whether the board was well before, or is.
func (r *reported) health(resource, attrs map[string]any) (turn bool) {
	id, _ := attrs[names.HwID].(string)
	if id == "" {
		id, _ = resource[names.HwID].(string)
	}
	all, _ := attrs[names.GPUHealthReasons].([]any)
	reasons := make([]string, len(all))
	for i := range all {
		reasons[i] = fmt.Sprint(all[i])
	}
	b := r.board(id)
	v := verdict(fmt.Sprint(attrs[names.HwState]), reasons, fmt.Sprint(attrs[names.GPUHealthAction]))
	if v == b.event || b.event == "" && len(reasons) == 0 {
		r.wrong = append(r.wrong, fmt.Sprintf("%s: an event without a change: %s", id, v))
	}
	if cleared := attrs[names.GPUEventState] == names.EventCleared; cleared != (len(reasons) == 0) {
		r.wrong = append(r.wrong, fmt.Sprintf("%s: %s is %v", id, v, attrs[names.GPUEventState]))
	}
	well := func(v string) bool { return v == "" || strings.HasPrefix(v, "ok ") || strings.HasPrefix(v, "<nil> ") }
	turn = well(b.event) || well(v)
	b.event = v
	b.events++
	return turn
}

// verdict is a health in a line. Reasons are in alphabetical order.
func verdict(state string, reasons []string, action string) string {
	reasons = slices.Sorted(slices.Values(reasons))
	return strings.Join(append(append([]string{state}, reasons...), "→", action), " ")
}

// state is the one whose point is 1; what is wrong with the others is returned too.
func state(of map[string]float64) (is, wrong string) {
	if len(of) == 0 {
		return unknown, ""
	}
	for state, v := range of {
		switch v {
		case 0:
		case 1:
			if is != "" {
				wrong = "two states"
			}
			is = state
		default:
			wrong = fmt.Sprint("a value ", v)
		}
	}
	if len(of) != 4 || is == "" {
		wrong = fmt.Sprint("not one of four states: ", of)
	}
	return is, wrong
}

// actions are in the order of their weight.
var actions = []string{
	"none", "check_app", "restart_app", "read_log", "update_software", "restart_fabric_manager", "drain_p2p", "reset_gpu",
	"drain_and_reset", "restart_vm", "reboot_node", "run_diagnostics", "check_mechanics", "contact_support", "rma",
}

// now is what the metrics have of a board now, and what is wrong with them in
// themselves.
func (b *board) now() (v, wrong string) {
	is, wrong := state(b.status)
	if is == unknown {
		if len(b.reasons) > 0 || b.coverage != 0 {
			wrong = "series of a board that is unknown"
		}
		return unknown, wrong
	}
	if _, lost := b.reasons["lost"]; !(b.coverage > 0 && b.coverage <= 1) && !(lost && b.coverage == 0) {
		wrong = fmt.Sprint("a coverage of ", b.coverage)
	}
	heaviest := 0
	for _, r := range b.reasons {
		heaviest = max(heaviest, slices.Index(actions, r.action))
	}
	return verdict(is, slices.Collect(maps.Keys(b.reasons)), actions[heaviest]), wrong
}
