// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inference // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inference"

import (
	"context"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// Chart reads the charts of inference servers: a line for the service if it is named,
// else one for each of the pods. A chart without any value is left out. Questions may
// not be open.
func Chart(ctx context.Context, q *ask.Questions, s queries.Selector, g ask.Grid, service string, pods []string, out *consoleapi.Charts) error {
	over, lines := max(queries.InferenceWindow, g.Step), pods
	if service != "" {
		lines = []string{service}
	}
	q.More(ctx)
	charts := map[string]struct {
		unit string
		put  **consoleapi.Chart
	}{
		"time_to_first_token": {"s", &out.TimeToFirstToken}, "time_per_output_token": {"s", &out.TimePerOutputToken},
		"inter_token_latency": {"s", &out.InterTokenLatency}, "output_tokens": {"{token}/s", &out.OutputTokens},
	}
	answers := map[string]*model.Matrix{}
	for _, figure := range queries.InferenceFigures {
		if _, ok := charts[figure.Name]; !ok {
			continue
		}
		if service != "" {
			answers[figure.Name] = q.Matrix(figure.Service(queries.Whole{Where: s, Over: over, Briefly: briefly}), g)
		} else {
			answers[figure.Name] = q.Matrix(figure.Pods(s, over), g)
		}
	}
	if err := q.Wait(); err != nil {
		return err
	}
	for name, c := range charts {
		values := map[string][]*float64{}
		for _, stream := range *answers[name] {
			line := g.Line()
			g.Fill(line, stream)
			if service != "" {
				values[service] = line
			} else {
				values[string(stream.Metric[queries.Pod])] = line
			}
		}
		chart := &consoleapi.Chart{Unit: c.unit, Series: []consoleapi.Series{}}
		some := false
		for _, line := range lines {
			shown := values[line]
			if shown == nil {
				shown = g.Line()
			}
			for _, v := range shown {
				some = some || v != nil
			}
			chart.Series = append(chart.Series, consoleapi.Series{Name: line, Values: shown})
		}
		if some {
			*c.put = chart
		}
	}
	return nil
}
