// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

func inferenceBoard() board {
	of := func(q, histogram string) query {
		return query{
			expr:   "histogram_quantile(" + q + ", " + sum(rate(named(histogram+"_bucket", aService)), append(service[:len(service):len(service)], "le")...) + ")",
			legend: ofService + " p" + q[2:],
		}
	}
	both := func(title, description, histogram string) panel {
		return lines(title, description, units.Seconds, of("0.50", histogram), of("0.95", histogram), of("0.99", histogram))
	}
	per := func(expr string) query { return query{expr: sum(expr, service...), legend: ofService} }
	throttle := withMax(lines("Thermal throttling", "Share of the time in which a device of the service slowed down to protect itself.", units.PercentUnit,
		query{expr: most(mean(queries.Of(queries.Throttle, protecting, aService)), service...), legend: ofService}))
	boardOf := serviceBoard()
	return board{
		uid: "otelcol-gpu-inference", title: "GPU inference",
		description: "Requests beside the GPUs that serve them: is it the load, the model, or the hardware. vLLM's names, or those of the semantic conventions.",
		variables:   boardOf.variables,
		rows: []row{
			{"Requests", []panel{
				both("Time to first token", "What a user waits for the first word.", "("+vllmFirst+"|"+genFirst+")"),
				both("Whole request", "From request to last token.", "("+vllmEndToEnd+"|"+genDuration+")"),
				lines("Requests waiting and running", "Waiting ones have no place in a batch yet.", units.Short,
					query{expr: sum(last(named(vllmWaiting, aService)), service...), legend: ofService + " waiting"},
					query{expr: sum(last(named(vllmRunning, aService)), service...), legend: ofService + " running"}),
				lines("Tokens", "Tokens generated a second.", units.CountsPerSecond, per(rate(named(vllmTokens, aService)))),
				withMax(lines("KV cache", "Share in use, of the fullest replica.", units.PercentUnit,
					query{expr: most(last(named(vllmCache, aService)), service...), legend: ofService})),
				lines("Finished", "Requests, a second, by reason. Aborted ones were given up by the client.", units.CountsPerSecond,
					query{expr: sum(rate(named(vllmDone, aService)), append(service[:len(service):len(service)], "finished_reason")...), legend: ofService + " {{finished_reason}}"}),
			}},
			{"GPUs beside them", []panel{
				withMax(line("GPU utilization", "Mean over the pods that report.", units.PercentUnit, queries.ServiceUtilization)),
				withMax(line("Tensor activity", "Mean over the pods that report.", units.PercentUnit, queries.ServicePipe, pipe("tensor"))),
				line("Power", "Of all boards of the service.", units.Watt, queries.ServicePower),
				throttle,
				lines("Tokens a joule", "Generated tokens for the energy of the service's boards.", units.Short,
					query{expr: sum(rate(named(vllmTokens, aService)), service...) + " / " + sum(mean(queries.Of(queries.ServicePower, aService)), service...), legend: ofService}),
			}},
		},
	}
}
