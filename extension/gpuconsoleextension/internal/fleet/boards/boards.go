// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package boards puts together what the store and the log of events have about the health
// of boards and nodes.
package boards // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/boards"

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/conditions"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// Fleet is the health of all boards and nodes.
type Fleet struct {
	states, nodes map[inventory.Place]consoleapi.HealthState
	reasons       map[inventory.Place][]reason // active now, against boards
	ofNodes       map[inventory.Place][]reason // likewise, against the nodes themselves
	coverage      map[inventory.Place]float64
	score         map[inventory.Place]float64
	log           conditions.Boards
	// Reported is whether the health of any board is, or was within a time.
	Reported bool
}

type reason struct {
	name, action string
	state        consoleapi.HealthState
}

// Ask asks for the health of boards; the function returns it after Wait, and asks once
// more where no board is known. What is older than staleAfter is not known.
func Ask(q *ask.Questions, staleAfter, remembered time.Duration, log conditions.Boards, s queries.Selector) func(context.Context) (*Fleet, error) {
	states, reasons := q.Vector(queries.BoardStates(s, staleAfter)), q.Vector(queries.BoardReasons(s, staleAfter))
	nodes := q.Vector(queries.NodeStates(s, staleAfter))
	coverage, score := q.Vector(queries.OfDevices(queries.BoardCoverage, s, staleAfter)), q.Vector(queries.OfDevices(queries.BoardScore, s, staleAfter))
	return func(ctx context.Context) (*Fleet, error) {
		f := &Fleet{
			states: map[inventory.Place]consoleapi.HealthState{}, nodes: map[inventory.Place]consoleapi.HealthState{},
			reasons: map[inventory.Place][]reason{}, ofNodes: map[inventory.Place][]reason{},
			coverage: byDevice(*coverage), score: byDevice(*score), log: log,
		}
		for _, sample := range *states {
			worse(f.states, inventory.PlaceOf(sample.Metric), stateOf(sample.Metric))
		}
		for _, sample := range *nodes {
			worse(f.nodes, nodeOf(sample.Metric), stateOf(sample.Metric))
		}
		for _, sample := range *reasons {
			m, of, id := sample.Metric, f.reasons, inventory.PlaceOf(sample.Metric)
			if id.Name == "" {
				of, id = f.ofNodes, nodeOf(m)
			}
			of[id] = append(of[id], reason{string(m[queries.HealthReason]), string(m[queries.HealthAction]), stateOf(m)})
		}
		f.Reported = len(f.states) > 0
		if f.Reported {
			return f, nil
		}
		q.More(ctx)
		ever := q.Vector(queries.BoardsEver(s, remembered))
		if err := q.Wait(); err != nil {
			return nil, err
		}
		f.Reported = len(*ever) > 0
		return f, nil
	}
}

// worse notes a state, unless a worse one is noted: of one hw.id two agents may report.
func worse(of map[inventory.Place]consoleapi.HealthState, id inventory.Place, s consoleapi.HealthState) {
	if is := of[id]; is == "" || s.AtLeast(is) {
		of[id] = s
	}
}

func byDevice(v model.Vector) map[inventory.Place]float64 {
	out := map[inventory.Place]float64{}
	for _, sample := range v {
		out[inventory.PlaceOf(sample.Metric)] = float64(sample.Value)
	}
	return out
}

// stateOf is the state that a series is of. One of a later version is not known here.
func stateOf(m model.Metric) consoleapi.HealthState {
	s := consoleapi.HealthState(m[queries.HwState])
	if !slices.Contains(consoleapi.HealthStates, s) {
		return consoleapi.HealthUnknown
	}
	return s
}

func nodeOf(m model.Metric) inventory.Place {
	name := m[queries.Node]
	if name == "" {
		name = m[queries.Host]
	}
	return inventory.Place{Cluster: string(m[queries.Cluster]), Name: string(name)}
}

// State is that of a board.
func (f *Fleet) State(id inventory.Place) consoleapi.HealthState {
	if s := f.states[id]; s != "" {
		return s
	}
	return consoleapi.HealthUnknown
}

// Count counts boards; nil where the health of none is reported. An instance or a replica
// stands for its board.
func (f *Fleet) Count(devices []*inventory.Device) *consoleapi.HealthCounts {
	if !f.Reported {
		return nil
	}
	counts, counted := &consoleapi.HealthCounts{}, map[inventory.Place]bool{}
	for _, d := range devices {
		if id := Board(d); !counted[id] {
			counted[id] = true
			counts.Add(f.State(id))
		}
	}
	return counts
}

// Board is the board of a device: that of an instance or a replica is its parent, and
// that of an instance's replica the parent of that.
func Board(d *inventory.Device) inventory.Place {
	if d.Parent == "" {
		return d.ID
	}
	return inventory.Place{Cluster: d.ID.Cluster, Name: cmp.Or(deviceid.Parent(d.Parent), d.Parent)}
}

// Note notes the health of a device for what needs attention.
func (f *Fleet) Note(id inventory.Place, to *conditions.Device) {
	if _, to.HealthKnown = f.states[id]; !to.HealthKnown {
		return
	}
	for _, r := range f.sorted(f.reasons[id]) {
		to.Health = append(to.Health, conditions.BoardReason{Name: r.name, State: r.state})
	}
}

// sorted are reasons, the worst first, and those of one state as gpu_events lists them.
func (f *Fleet) sorted(all []reason) []reason {
	place := func(name string) int {
		return slices.IndexFunc(names.HealthReasons(), func(r names.HealthReason) bool { return r.Name == name })
	}
	slices.SortFunc(all, func(a, b reason) int {
		return cmp.Or(slices.Index(consoleapi.HealthStates, b.state)-slices.Index(consoleapi.HealthStates, a.state), place(a.name)-place(b.name), cmp.Compare(a.name, b.name))
	})
	return all
}

// Details are what is asked about the boards of one page.
type Details struct {
	inputs     map[inventory.Place]map[string]bool // by the name of a metric in Prometheus
	watched    map[inventory.Place]time.Time
	stragglers map[inventory.Place]string
}

// Straggler is why a board is slow among its peers; nil if it is not, as far as is known.
func (d *Details) Straggler(id inventory.Place) *string {
	cause, slow := d.stragglers[id]
	if !slow {
		return nil
	}
	return &cause
}

// day is how far back Details look for the beginning.
const day = 24 * time.Hour

// AskDetails asks for what the boards of one page are judged by; the function returns it
// after Wait.
func AskDetails(q *ask.Questions, staleAfter time.Duration, s queries.Selector) func() *Details {
	inputs, watched := q.Vector(queries.BoardInputs(s, staleAfter)), q.Vector(queries.BoardsWatched(s, day))
	stragglers := q.Vector(queries.Stragglers(s, staleAfter))
	return func() *Details {
		d := &Details{map[inventory.Place]map[string]bool{}, map[inventory.Place]time.Time{}, map[inventory.Place]string{}}
		for _, sample := range *stragglers {
			d.stragglers[inventory.PlaceOf(sample.Metric)] = string(sample.Metric[queries.StragglerCause])
		}
		for _, sample := range *inputs {
			id := inventory.PlaceOf(sample.Metric)
			if d.inputs[id] == nil {
				d.inputs[id] = map[string]bool{}
			}
			d.inputs[id][string(sample.Metric[model.MetricNameLabel])] = true
		}
		for _, sample := range *watched {
			d.watched[inventory.PlaceOf(sample.Metric)] = ask.Seconds(sample.Value)
		}
		return d
	}
}

// missing are the checks that lack their inputs, of all that fit a model.
func (d *Details) missing(id inventory.Place, model string) (missing []string, all int) {
	missing = []string{}
	kind, metrics := health.KindOf(id.Name, model), names.HealthMetrics()
	for _, r := range names.HealthReasons() {
		judged := r.Judged(func(metric string) bool { return d.inputs[id][metrics[metric]] })
		if !r.Fits(kind, judged) {
			continue
		}
		all++
		if !judged {
			missing = append(missing, r.Name)
		}
	}
	return missing, all
}

// Of is the health of a board.
func (f *Fleet) Of(board *inventory.Device, details *Details) consoleapi.Health {
	id := board.ID
	out := consoleapi.Health{State: f.State(id), Reasons: []consoleapi.HealthReason{}}
	log := f.log.Devices[id.Shown()]
	if t, known := details.watched[id]; known {
		out.WatchedSince = &t
	}
	if out.State == consoleapi.HealthUnknown {
		out.Reasons = lastKnown(id.Name, log)
		return out
	}
	if log != nil && log.State == out.State {
		out.Since = &log.Since
	}
	out.Reasons = f.active(f.reasons[id], id.Name, log)
	out.Action = heaviest(out.Reasons)
	if score, known := f.score[id]; known {
		out.Score = &score
	}
	if ratio, known := f.coverage[id]; known {
		missing, all := details.missing(id, string(board.Identity[queries.Model]))
		out.Coverage = &consoleapi.HealthCoverage{WithData: int(math.Round(ratio * float64(all))), Applicable: all, Missing: missing}
	}
	return out
}

// active are reasons with what the log of events knows of them.
func (f *Fleet) active(reasons []reason, device string, log *conditions.BoardLog) []consoleapi.HealthReason {
	out := []consoleapi.HealthReason{}
	for _, r := range f.sorted(reasons) {
		one := newReason(r.name, device, r.state, r.action)
		if log != nil {
			if i := slices.IndexFunc(log.Reasons, func(l conditions.BoardReason) bool { return l.Name == r.name }); i >= 0 {
				know(&one, &log.Reasons[i])
			}
		}
		out = append(out, one)
	}
	return out
}

// lastKnown are the reasons that were reported last.
func lastKnown(device string, log *conditions.BoardLog) []consoleapi.HealthReason {
	out := []consoleapi.HealthReason{}
	if log == nil {
		return out
	}
	for i := range log.Reasons {
		l := &log.Reasons[i]
		table, _ := names.HealthReasonNamed(l.Name)
		one := newReason(l.Name, device, l.State, table.Action)
		know(&one, l)
		out = append(out, one)
	}
	return out
}

func newReason(name, device string, state consoleapi.HealthState, action string) consoleapi.HealthReason {
	out := consoleapi.HealthReason{
		Name: name, State: state, Action: cmp.Or(action, health.None.String()), Runbook: runbooks + names.HealthRunbook(name),
		Text: strings.ToUpper(name[:min(1, len(name))]) + strings.ReplaceAll(name[min(1, len(name)):], "_", " ") + ".",
	}
	if table, known := names.HealthReasonNamed(name); known && table.Means != "" {
		out.Text = table.Means
	}
	if device != "" {
		out.Device = &device
	}
	return out
}

func know(r *consoleapi.HealthReason, l *conditions.BoardReason) {
	if !l.Since.IsZero() {
		r.Since = &l.Since
	}
	r.Text = cmp.Or(l.Text, r.Text)
	r.Value, r.Threshold = l.Value, l.Threshold
}

// runbooks is where the runbooks can be read.
const runbooks = "https://github.com/otelcol-gpu/otelcol-gpu/blob/main/docs/runbooks/"

// heaviest is the heaviest action of reasons.
func heaviest(reasons []consoleapi.HealthReason) *string {
	heaviest := health.None
	for i := range reasons {
		if a, known := health.ParseAction(reasons[i].Action); known {
			heaviest = max(heaviest, a)
		}
	}
	text := heaviest.String()
	return &text
}
