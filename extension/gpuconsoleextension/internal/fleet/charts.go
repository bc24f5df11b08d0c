// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/age"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inference"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// Window is a window of charts.
type Window struct {
	Name   string
	Length time.Duration
	step   time.Duration
}

// Windows are those that the API knows.
var Windows = []Window{
	{"5m", 5 * time.Minute, 5 * time.Second},
	{"30m", 30 * time.Minute, 15 * time.Second},
	{"1h", time.Hour, 15 * time.Second},
	{"24h", 24 * time.Hour, 2 * time.Minute},
}

// ByPod and ByService are what a line of a chart can be.
const (
	ByPod     = "pod"
	ByService = "service"
)

// WindowNamed is the window of that name.
func WindowNamed(name string) Window {
	return Windows[slices.IndexFunc(Windows, func(w Window) bool { return w.Name == name })]
}

// gap is the longest time between two samples that is not a gap: half of what makes
// data stale.
func (o *Options) gap() time.Duration { return o.StaleAfter / 2 }

// grid is the grid of a window, of no more points than allowed.
func (w Window) grid(at time.Time, maxPoints int) ask.Grid {
	least := time.Second
	if maxPoints > 1 {
		least = time.Duration(math.Ceil(w.Length.Seconds()/float64(maxPoints-1))) * time.Second
	}
	g := ask.NewGrid(at, w.Length, max(w.step, least))
	g.Points = min(g.Points, maxPoints)
	g.Start = at.Truncate(g.Step).UTC().Add(-time.Duration(g.Points-1) * g.Step)
	return g
}

// askWindow asks which window to open with: the smallest that has all data, and
// not more than an hour. The function returns it after Wait.
func askWindow(q *ask.Questions) func() Window {
	opening := Windows[:len(Windows)-1]
	var before []*model.Vector
	for _, w := range opening[:len(opening)-1] {
		before = append(before, q.Vector(queries.TelemetryBefore(w.Length)))
	}
	return func() Window {
		for i, v := range before {
			if len(*v) == 0 {
				return opening[i]
			}
		}
		return opening[len(opening)-1]
	}
}

func readRange(ctx context.Context, r *reading, key Key, w Window, by string) (*consoleapi.RangeAnswer, error) {
	g := w.grid(r.At, r.options.MaxPoints)
	how := queries.Smooth{Step: g.Step, Gap: r.options.gap()}
	out := &consoleapi.RangeAnswer{
		Window: w.Name, By: by, Start: g.Start, End: g.End(), Step: g.Step.Seconds(), Points: g.Points,
		Charts: consoleapi.Charts{Utilization: newChart("1"), Memory: newChart("By"), Tensor: newChart("1"), Power: newChart("W")},
	}
	var err error
	if by == ByPod {
		err = podLines(ctx, r, out, key, w, g, how)
	} else {
		err = serviceLines(r.Questions, r.Judge, out, key, g, how)
	}
	if err == nil {
		err = inferenceLines(ctx, r.Questions, out, key, g)
	}
	if err != nil {
		return nil, err
	}
	out.Freshness = r.Freshness()
	return out, nil
}

func newChart(unit string) consoleapi.Chart {
	return consoleapi.Chart{Unit: unit, Series: []consoleapi.Series{}}
}

// serviceLines puts one line, of the service, on each chart.
func serviceLines(q *ask.Questions, j *age.Judge, out *consoleapi.RangeAnswer, key Key, g ask.Grid, how queries.Smooth) error {
	s := key.Selector()
	ask := func(metric string, more ...queries.Selector) *model.Matrix {
		return q.Matrix(queries.ServiceChart(metric, queries.And(slices.Concat([]queries.Selector{s}, more)...), how), g)
	}
	figures := []struct {
		chart *consoleapi.Chart
		found *model.Matrix
	}{
		{&out.Charts.Utilization, ask(queries.ServiceUtilization)},
		{&out.Charts.Memory, ask(queries.ServicePodMemory)},
		{&out.Charts.Tensor, ask(queries.ServicePipe, queries.Is(queries.Pipe, "tensor"))},
		{&out.Charts.Power, ask(queries.ServicePodPower)},
	}
	limit := ask(queries.ServicePodLimit)
	pods := q.Matrix(queries.PodsInMean(s, how), g)
	evaluated := q.Vector(queries.ServicesEvaluated(s))
	if err := q.Wait(); err != nil {
		return err
	}
	newestOf(j, evaluated)
	if len(*pods) == 0 {
		return nil // nothing is known of the service
	}
	inMean := make([]*int, g.Points)
	counts := g.Line()
	for _, stream := range *pods {
		g.Fill(counts, stream)
	}
	for i, n := range counts {
		inMean[i] = optional.Whole(n)
	}
	for _, f := range figures {
		line := consoleapi.Series{Name: key.Service, Values: g.Line(), Pods: inMean}
		for _, stream := range *f.found {
			g.Fill(line.Values, stream)
		}
		for i, n := range inMean {
			// A mean over no pod is that of the sample before.
			if how.Step <= how.Gap && n != nil && *n == 0 {
				line.Values[i] = nil
			}
		}
		f.chart.Series = append(f.chart.Series, line)
	}
	out.Charts.Memory.Limit = g.Line()
	for _, stream := range *limit {
		g.Fill(out.Charts.Memory.Limit, stream)
	}
	return nil
}

// newestOf notes the newest of the times that a query returns.
func newestOf(j *age.Judge, times *model.Vector) {
	for _, sample := range *times {
		j.Used(ask.Seconds(sample.Value))
	}
}

// inferenceLines adds the charts of inference servers, with the lines of the others.
func inferenceLines(ctx context.Context, q *ask.Questions, out *consoleapi.RangeAnswer, key Key, g ask.Grid) error {
	var names []string
	for _, line := range out.Charts.Utilization.Series {
		names = append(names, line.Name)
	}
	s, service := key.Selector(), key.Service
	if out.By == ByPod {
		s, service = queries.And(s, queries.Fits(queries.OneOf(queries.Pod, names...))), ""
	}
	if len(names) == 0 || out.By == ByPod && key.Slurm != "" {
		return nil // nothing is known of the service
	}
	return inference.Chart(ctx, q, s, g, service, names, &out.Charts)
}

// podLines puts one line a pod on each chart, the busiest pods first.
func podLines(ctx context.Context, r *reading, out *consoleapi.RangeAnswer, key Key, w Window, g ask.Grid, how queries.Smooth) error {
	s := key.Selector()
	active := r.Vector(queries.PodActivity(key.Unit(), s, w.Length))
	seen := r.Vector(queries.DevicesSeen(s))
	read := r.inventory(queries.Is(queries.Cluster, key.Cluster))
	if err := r.Wait(); err != nil {
		return err
	}
	inv, err := read(ctx)
	if err != nil {
		return err
	}
	frozen := inv.FrozenPods(key)
	newestOf(r.Judge, seen)
	slices.SortFunc(*active, func(a, b *model.Sample) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(inventory.UnitOf(a.Metric), inventory.UnitOf(b.Metric)))
	})
	if n := r.options.MaxLines; len(*active) > n {
		out.Truncated = len(*active) - n
		*active = (*active)[:n]
	}
	if len(*active) == 0 {
		return nil
	}
	names, values := make([]string, 0, len(*active)), make([]string, 0, len(*active))
	unit := key.Unit()
	for _, sample := range *active {
		names = append(names, inventory.UnitOf(sample.Metric))
		values = append(values, string(sample.Metric[model.LabelName(unit[0])]))
	}
	if out.Truncated > 0 {
		s = queries.And(s, queries.Fits(queries.OneOf(unit[0], values...)))
	}
	r.More(ctx)
	general := queries.And(s, queries.Is(queries.Task, "general"))
	figures := []struct {
		chart *consoleapi.Chart
		found *model.Matrix
	}{
		{&out.Charts.Utilization, r.Matrix(queries.PodMean(unit, queries.Utilization, general, how), g)},
		{&out.Charts.Memory, r.Matrix(queries.PodSum(unit, queries.MemoryUsage, s, how), g)},
		{&out.Charts.Tensor, r.Matrix(queries.PodMean(unit, queries.PipeActive, queries.And(s, queries.Is(queries.Pipe, "tensor")), how), g)},
		{&out.Charts.Power, r.Matrix(queries.PodSum(unit, queries.Power, s, how), g)},
	}
	if err := r.Wait(); err != nil {
		return err
	}
	for _, f := range figures {
		lines := map[string][]*float64{}
		for _, name := range names {
			lines[name] = g.Line()
			f.chart.Series = append(f.chart.Series, consoleapi.Series{Name: name, Values: lines[name]})
		}
		for _, stream := range *f.found {
			if line := lines[inventory.UnitOf(stream.Metric)]; line != nil {
				g.Fill(line, stream)
			}
		}
		for name, line := range lines {
			g.EndAt(line, frozen[name])
		}
	}
	return nil
}
