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
func (r *reading) grid(w Window) grid {
	least := time.Second
	if r.options.MaxPoints > 1 {
		least = time.Duration(math.Ceil(w.Length.Seconds()/float64(r.options.MaxPoints-1))) * time.Second
	}
	g := newGrid(r.at, w.Length, max(w.step, least))
	g.points = min(g.points, r.options.MaxPoints)
	g.start = r.at.Truncate(g.step).UTC().Add(-time.Duration(g.points-1) * g.step)
	return g
}

// askWindow asks which window to open with: the smallest that has all data, and
// not more than an hour. The function returns it after wait.
func (r *reading) askWindow() func() Window {
	opening := Windows[:len(Windows)-1]
	var before []*model.Vector
	for _, w := range opening[:len(opening)-1] {
		before = append(before, r.vector(queries.TelemetryBefore(w.Length)))
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

// Range reads the charts of a service over a window that ends now.
func (r *Reader) Range(ctx context.Context, key Key, w Window, by string) (*consoleapi.RangeAnswer, error) {
	reading := r.read(ctx)
	g := reading.grid(w)
	how := queries.Smooth{Step: g.step, Gap: r.options.gap()}
	out := &consoleapi.RangeAnswer{
		Window: w.Name, By: by, Start: g.start, End: g.end(), Step: g.step.Seconds(), Points: g.points,
		Charts: consoleapi.Charts{Utilization: newChart("1"), Memory: newChart("By"), Tensor: newChart("1"), Power: newChart("W")},
	}
	var err error
	if by == ByPod {
		err = reading.podLines(ctx, out, key, w, g, how)
	} else {
		err = reading.serviceLines(out, key, g, how)
	}
	if err != nil {
		return nil, err
	}
	out.Freshness = reading.freshness()
	return out, nil
}

func newChart(unit string) consoleapi.Chart {
	return consoleapi.Chart{Unit: unit, Series: []consoleapi.Series{}}
}

// serviceLines puts one line, of the service, on each chart.
func (r *reading) serviceLines(out *consoleapi.RangeAnswer, key Key, g grid, how queries.Smooth) error {
	s := key.selector()
	ask := func(metric string, more ...queries.Selector) *model.Matrix {
		return r.matrix(queries.ServiceChart(metric, queries.And(slices.Concat([]queries.Selector{s}, more)...), how), g)
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
	pods := r.matrix(queries.PodsInMean(s, how), g)
	evaluated := r.vector(queries.ServicesEvaluated(s))
	if err := r.wait(); err != nil {
		return err
	}
	r.newestOf(evaluated)
	if len(*pods) == 0 {
		return nil // nothing is known of the service
	}
	inMean := make([]*int, g.points)
	counts := g.line()
	for _, stream := range *pods {
		g.fill(counts, stream)
	}
	for i, n := range counts {
		inMean[i] = whole(n)
	}
	for _, f := range figures {
		line := consoleapi.Series{Name: key.Service, Values: g.line(), Pods: inMean}
		for _, stream := range *f.found {
			g.fill(line.Values, stream)
		}
		for i, n := range inMean {
			// A mean over no pod is that of the sample before.
			if how.Step <= how.Gap && n != nil && *n == 0 {
				line.Values[i] = nil
			}
		}
		f.chart.Series = append(f.chart.Series, line)
	}
	out.Charts.Memory.Limit = g.line()
	for _, stream := range *limit {
		g.fill(out.Charts.Memory.Limit, stream)
	}
	return nil
}

// newestOf notes the newest of the times that a query returns.
func (r *reading) newestOf(times *model.Vector) {
	for _, sample := range *times {
		r.used(seconds(sample.Value))
	}
}

// podLines puts one line a pod on each chart, the busiest pods first.
func (r *reading) podLines(ctx context.Context, out *consoleapi.RangeAnswer, key Key, w Window, g grid, how queries.Smooth) error {
	s := key.selector()
	active := r.vector(queries.PodActivity(s, w.Length))
	seen := r.vector(queries.DeviceUtilizationTime(s))
	inventory := r.askInventory(queries.Is(queries.Cluster, key.Cluster))
	if err := r.wait(); err != nil {
		return err
	}
	inv, err := inventory(ctx)
	if err != nil {
		return err
	}
	frozen := inv.frozenPods(key)
	r.newestOf(seen)
	slices.SortFunc(*active, func(a, b *model.Sample) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Metric[queries.Pod], b.Metric[queries.Pod]))
	})
	if n := r.options.MaxLines; len(*active) > n {
		out.Truncated = len(*active) - n
		*active = (*active)[:n]
	}
	if len(*active) == 0 {
		return nil
	}
	names := make([]string, 0, len(*active))
	for _, sample := range *active {
		names = append(names, string(sample.Metric[queries.Pod]))
	}
	if out.Truncated > 0 {
		s = queries.And(s, queries.Fits(queries.OneOf(queries.Pod, names...)))
	}
	r.more(ctx)
	general := queries.And(s, queries.Is(queries.Task, "general"))
	figures := []struct {
		chart *consoleapi.Chart
		found *model.Matrix
	}{
		{&out.Charts.Utilization, r.matrix(queries.PodMean(queries.Utilization, general, how), g)},
		{&out.Charts.Memory, r.matrix(queries.PodSum(queries.MemoryUsage, s, how), g)},
		{&out.Charts.Tensor, r.matrix(queries.PodMean(queries.PipeActive, queries.And(s, queries.Is(queries.Pipe, "tensor")), how), g)},
		{&out.Charts.Power, r.matrix(queries.PodSum(queries.Power, s, how), g)},
	}
	if err := r.wait(); err != nil {
		return err
	}
	for _, f := range figures {
		lines := map[string][]*float64{}
		for _, name := range names {
			lines[name] = g.line()
			f.chart.Series = append(f.chart.Series, consoleapi.Series{Name: name, Values: lines[name]})
		}
		for _, stream := range *f.found {
			if line := lines[string(stream.Metric[queries.Pod])]; line != nil {
				g.fill(line, stream)
			}
		}
		for name, line := range lines {
			g.endAt(line, frozen[name])
		}
	}
	return nil
}

// frozenPods are the pods of a service that have a device of a frozen exporter, and
// since when: what it repeats is no data.
func (inv *inventory) frozenPods(key Key) map[string]time.Time {
	frozen := map[string]time.Time{}
	for _, d := range inv.devices {
		for _, h := range d.owners {
			if d.frozenSince.IsZero() || h.Namespace != key.Namespace || value(h.Service) != key.Service {
				continue
			}
			if t, found := frozen[h.Pod]; !found || d.frozenSince.Before(t) {
				frozen[h.Pod] = d.frozenSince
			}
		}
	}
	return frozen
}

// endAt leaves out what a line has after a time; zero is never.
func (g grid) endAt(line []*float64, t time.Time) {
	for i := range line {
		if !t.IsZero() && g.start.Add(time.Duration(i)*g.step).After(t) {
			line[i] = nil
		}
	}
}

// grid is the times of a line: start, start+step and so on.
type grid struct {
	start  time.Time
	step   time.Duration
	points int
}

// newGrid is a grid over a window that ends at a time at the latest. It lies on
// multiples of its step, so that a later one has the same times.
func newGrid(end time.Time, window, step time.Duration) grid {
	last := end.Truncate(step).UTC()
	points := int(window/step) + 1
	return grid{start: last.Add(-time.Duration(points-1) * step), step: step, points: points}
}

func (g grid) end() time.Time { return g.start.Add(time.Duration(g.points-1) * g.step) }

// line is a line without any data.
func (g grid) line() []*float64 { return make([]*float64, g.points) }

// fill puts a series on a line; what is no number is no data.
func (g grid) fill(line []*float64, s *model.SampleStream) {
	for _, p := range s.Values {
		i := int(p.Timestamp.Time().Sub(g.start) / g.step)
		if i >= 0 && i < g.points && isNumber(float64(p.Value)) {
			line[i] = pointer(float64(p.Value))
		}
	}
}
