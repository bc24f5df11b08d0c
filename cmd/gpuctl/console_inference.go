// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"strconv"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
)

// inferenceColumns are those of -o wide, which inferenceCells fills.
var inferenceColumns = []string{"TTFT-P95", "TOKENS/S", "WAITING/RUNNING", "KV-CACHE"}

func inferenceCells(i *consoleapi.Inference) []string {
	i = cmp.Or(i, &consoleapi.Inference{})
	requests := number(i.Waiting) + "/" + number(i.Running)
	if i.Waiting == nil && i.Running == nil {
		requests = none
	}
	return []string{seconds(i.TimeToFirstToken), number(i.OutputTokens), requests, percent(i.KVCache)}
}

// seconds shows a latency: 84 ms, 1.2 s.
func seconds(v *float64) string {
	switch {
	case v == nil:
		return none
	case *v < 0.9995:
		return strconv.FormatFloat(*v*1000, 'f', 0, 64) + " ms"
	default:
		return strconv.FormatFloat(*v, 'f', 1, 64) + " s"
	}
}

// number shows a figure with one decimal below 10, unless it is whole.
func number(v *float64) string {
	switch {
	case v == nil:
		return none
	case *v < 9.95 && *v != float64(int(*v)):
		return strconv.FormatFloat(*v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(*v, 'f', 0, 64)
	}
}
