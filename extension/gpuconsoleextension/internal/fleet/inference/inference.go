// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package inference reads what the inference servers of services report.
package inference // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inference"

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// Why a figure that all engines of a service could give is null.
const (
	quiet   = "nothing of it was reported in the last five minutes"
	partial = "pods of the service are missing, so it would not be of the whole service"
	silent  = "%d of %d inference servers did not answer, so it would not be of the whole service"
	young   = "its inference servers have been read for less than five minutes"
	noPower = "the power of every GPU that the service holds is not known"
)

// field returns where a figure is put.
func field(of *consoleapi.Inference, figure string) **float64 {
	return map[string]**float64{
		"time_to_first_token": &of.TimeToFirstToken, "time_per_output_token": &of.TimePerOutputToken, "inter_token_latency": &of.InterTokenLatency,
		"request_duration": &of.RequestDuration, "output_tokens": &of.OutputTokens, "waiting": &of.Waiting, "running": &of.Running,
		"kv_cache": &of.KVCache, "error_ratio": &of.ErrorRatio, "tokens_per_joule": &of.TokensPerJoule,
	}[figure]
}

// briefly stands in for queries.InferenceWindow where servers were not read for as long.
const briefly = time.Minute

// Found is what services report, by their names: those without engines are not in it.
type Found map[inventory.Key]*service

type service struct {
	consoleapi.Inference
	young bool // tokens were not read when the window began
}

// Ask asks which engines services have. The function asks what those report, after Wait.
func Ask(q *ask.Questions, s queries.Selector) func(context.Context) (Found, error) {
	engines := q.Vector(queries.InferenceEngines(s))
	return func(ctx context.Context) (Found, error) {
		found := Found{}
		for _, sample := range *engines {
			key := inventory.KeyOf(sample.Metric)
			if found[key] == nil {
				found[key] = &service{}
			}
			found[key].Engines = append(found[key].Engines, string(sample.Metric[queries.Engine]))
		}
		if len(found) == 0 {
			return found, nil
		}
		return found, found.figures(ctx, q, s)
	}
}

func (f Found) figures(ctx context.Context, q *ask.Questions, s queries.Selector) error {
	q.More(ctx)
	all, up, newly := q.Vector(queries.InferenceServers(s)), q.Vector(queries.InferenceServersUp(s)), q.Vector(queries.TokensNewlyRead(s))
	answers := make([]*model.Vector, len(queries.InferenceFigures))
	for i, figure := range queries.InferenceFigures {
		answers[i] = q.Vector(figure.Service(queries.Whole{Where: s, Over: queries.InferenceWindow, Briefly: briefly}))
	}
	if err := q.Wait(); err != nil {
		return err
	}
	each := func(answer *model.Vector, put func(*service, float64)) {
		for _, sample := range *answer {
			if one := f[inventory.KeyOf(sample.Metric)]; one != nil {
				put(one, float64(sample.Value))
			}
		}
	}
	each(all, func(one *service, v float64) { one.Servers = &consoleapi.Servers{Of: int(v)} })
	each(up, func(one *service, v float64) {
		if one.Servers != nil {
			one.Servers.Up = int(v)
		}
	})
	each(newly, func(one *service, _ float64) { one.young = true })
	for i, figure := range queries.InferenceFigures {
		each(answers[i], func(one *service, v float64) { *field(&one.Inference, figure.Name) = &v })
	}
	return nil
}

// Of is what a service reports, with the reasons for what is lacking; nil if it has no
// engine. part reports whether pods of the service are missing; nil is not known.
func (f Found) Of(key inventory.Key, part *bool) *consoleapi.Inference {
	one := f[key]
	if one == nil {
		return nil
	}
	slices.Sort(one.Engines)
	one.Lacking = []consoleapi.Lacking{}
	for _, figure := range queries.InferenceFigures {
		if *field(&one.Inference, figure.Name) != nil {
			continue
		}
		able := true
		for _, engine := range one.Engines {
			if reason := queries.InferenceCannot(engine, figure.Name); reason != "" {
				able = false
				one.Lacking = append(one.Lacking, consoleapi.Lacking{Figure: figure.Name, Engine: &engine, Reason: reason})
			}
		}
		if able {
			one.Lacking = append(one.Lacking, consoleapi.Lacking{Figure: figure.Name, Reason: why(one, figure.Name, part)})
		}
	}
	return &one.Inference
}

// why is the reason for a figure that is null, though every engine could give it.
func why(one *service, figure string, part *bool) string {
	joint := figure == "tokens_per_joule"
	switch s := one.Servers; {
	case part != nil && *part:
		return partial
	case s != nil && (joint && s.Up < s.Of || 4*s.Up <= 3*s.Of):
		return fmt.Sprintf(silent, s.Of-s.Up, s.Of)
	case joint && one.OutputTokens != nil:
		return noPower
	case one.young && (joint || figure == "output_tokens"):
		return young
	}
	return quiet
}
