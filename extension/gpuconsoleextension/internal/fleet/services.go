// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inference"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

func readServices(ctx context.Context, r *reading, match string) (*Services, error) {
	attention := r.askAttention(queries.All)
	found, inv, err := r.fleet(ctx)
	if err != nil {
		return nil, err
	}
	wrong, err := attention(ctx, inv)
	if err != nil {
		return nil, err
	}
	attend(found, wrong)
	out := &Services{reading: r, Summary: summarize(r.Judge, r.thresholds.IdleThreshold, found, inv, ofFleet(found, wrong, endpoints(r.store, r.options.Now())))}
	out.Summary.Health = wrong.health.Count(physicalOf(inv))
	match = strings.ToLower(match)
	for _, s := range found {
		if match == "" || contains(match, s.key.Service, s.key.Namespace, s.key.Cluster, s.key.Slurm) {
			out.list = append(out.list, s)
		}
	}
	return out, nil
}

func contains(match string, texts ...string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(strings.ToLower(t), match) })
}

// Services are all services that match.
type Services struct {
	reading *reading
	list    []*service
	Summary consoleapi.FleetSummary
}

// Freshness of the services.
func (s *Services) Freshness() consoleapi.Freshness { return s.reading.Freshness() }

// Len is how many there are.
func (s *Services) Len() int { return len(s.list) }

// Key distinguishes one from all others.
func (s *Services) Key(i int) string {
	k := s.list[i].key
	return k.Cluster + "\x00" + k.Slurm + "\x00" + k.Namespace + "\x00" + k.Service
}

// Some returns some of them, which can be completed while others read the same services.
func (s *Services) Some(ctx context.Context, from, to int) *Services {
	r := *s.reading
	r.Questions = r.Again(ctx)
	some := &Services{reading: &r, Summary: s.Summary}
	for _, one := range s.list[from:to] {
		own := *one
		some.list = append(some.list, &own)
	}
	return some
}

// Page returns them with their averages, and the trend of each on a grid if wanted: over a window,
// or over the one to open with.
func (s *Services) Page(ctx context.Context, trend bool, over *Window) ([]consoleapi.Service, *consoleapi.Grid, error) {
	if err := s.reading.readAverages(ctx, s.list); err != nil {
		return nil, nil, err
	}
	page := make([]consoleapi.Service, 0, len(s.list))
	for _, one := range s.list {
		page = append(page, one.Service)
	}
	if !trend {
		return page, nil, nil
	}
	if over == nil {
		s.reading.More(ctx)
		opening := askWindow(s.reading.Questions)
		if err := s.reading.Wait(); err != nil {
			return nil, nil, err
		}
		over = optional.Pointer(opening())
	}
	g := ask.NewGrid(s.reading.At, over.Length, over.Length/(trendPoints-1))
	if len(page) > 0 {
		lines, err := trends(ctx, s.reading.Questions, s.reading.options.gap(), s.list, g)
		if err != nil {
			return nil, nil, err
		}
		for i := range page {
			page[i].Trend = lines[i]
		}
	}
	return page, &consoleapi.Grid{Start: g.Start, Step: g.Step.Seconds(), Points: g.Points}, nil
}

// AddInference adds what their inference servers report, before Page.
func (s *Services) AddInference(ctx context.Context) error {
	for _, part := range inParts(s.list, selectorOf) {
		s.reading.More(ctx)
		engines := inference.Ask(s.reading.Questions, selectorOf(part))
		if err := s.reading.Wait(); err != nil {
			return err
		}
		reported, err := engines(ctx)
		if err != nil {
			return err
		}
		for _, one := range part {
			one.Inference = reported.Of(one.key, one.Partial)
		}
	}
	return nil
}

// mostInPart is how many services or devices are selected at once. A selector of services may
// select as many times as many namespaces.
const mostInPart = 100

// inParts divides a list into parts that one selector can select.
func inParts[T any](list []T, selectorOf func([]T) queries.Selector) [][]T {
	switch n := len(list); {
	case n == 0:
		return nil
	case n > mostInPart, n > 1 && selectorOf(list) == queries.All:
		return append(inParts(list[:n/2], selectorOf), inParts(list[n/2:], selectorOf)...)
	}
	return [][]T{list}
}

// selectorOf selects services, and maybe others: names are matched one label at a time. It
// selects all where that would be too long.
func selectorOf(list []*service) queries.Selector {
	var services, namespaces []string
	for _, s := range list {
		services = append(services, s.key.Service)
		if s.key.Slurm == "" {
			namespaces = append(namespaces, s.key.Namespace)
		} else {
			namespaces = append(namespaces, "") // it is in an account
		}
	}
	slices.Sort(services)
	slices.Sort(namespaces)
	return queries.Fits(queries.And(
		queries.OneOf(queries.Service, slices.Compact(services)...), queries.OneOf(queries.Namespace, slices.Compact(namespaces)...)))
}

// trendPoints is how many values a trend has.
const trendPoints = 31

func trends(ctx context.Context, q *ask.Questions, gap time.Duration, list []*service, g ask.Grid) ([][]*float64, error) {
	lines := make([][]*float64, len(list))
	at := map[Key]int{}
	for i, s := range list {
		lines[i] = g.Line()
		at[s.key] = i
	}
	q.More(ctx)
	var answers []*model.Matrix
	for _, part := range inParts(list, selectorOf) {
		answers = append(answers, q.Matrix(queries.Trend(selectorOf(part), queries.Smooth{Step: g.Step, Gap: gap}), g))
	}
	if err := q.Wait(); err != nil {
		return nil, err
	}
	for _, found := range answers {
		for _, stream := range *found {
			if i, ok := at[inventory.KeyOf(stream.Metric)]; ok {
				g.Fill(lines[i], stream)
			}
		}
	}
	return lines, nil
}

func readService(ctx context.Context, r *reading, key Key) (*consoleapi.ServiceAnswer, error) {
	pods := r.Vector(queries.MissingPods(key.Selector()))
	engines := inference.Ask(r.Questions, key.Selector())
	// Of the whole cluster, for a device that is lost has no owner.
	attention := r.askAttention(queries.Is(queries.Cluster, key.Cluster))
	found, inv, err := r.servicesAndDevices(ctx, key.Selector(), queries.Is(queries.Cluster, key.Cluster))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	wrong, err := attention(ctx, inv)
	if err != nil {
		return nil, err
	}
	attend(found, wrong)
	one := found[0]
	if err := r.readAverages(ctx, found[:1]); err != nil {
		return nil, err
	}
	shown, err := r.show(ctx, one.held)
	if err != nil {
		return nil, err
	}
	reported, err := engines(ctx)
	if err != nil {
		return nil, err
	}
	one.Inference = reported.Of(key, one.Partial)
	_, one.Coverage = over(figures(r.Judge, one.held, shown))
	missing := []string{}
	for _, sample := range *pods {
		if sample.Value == 1 {
			missing = append(missing, inventory.UnitOf(sample.Metric))
		}
	}
	slices.Sort(missing)
	return &consoleapi.ServiceAnswer{
		Service: one.Service, MissingPods: missing[:min(len(missing), maxMissing)], Freshness: r.Freshness(),
	}, nil
}

// maxMissing is how many missing pods are named.
const maxMissing = 50
