// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/helper"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/lifecycle"
)

// TestJudge: an answer without boards is one where none was asked for, and no other.
func TestJudge(t *testing.T) {
	const a, b = "0000:17:00.0", "0000:65:00.0"
	both := lifecycle.Plan{Read: []string{a, b}}
	answer := func(boards ...nvmlproto.Board) helper.Answer {
		return helper.Answer{System: nvmlproto.System{Boards: 2}, Boards: boards}
	}
	late := answer()
	late.Late = []helper.Late{{Thread: a, Stuck: true}, {Thread: b}}
	stuck := answer()
	stuck.Late = []helper.Late{{Thread: a, Stuck: true}}
	for name, c := range map[string]struct {
		plan   lifecycle.Plan
		answer helper.Answer
		want   nvmlproto.Cause
	}{
		"one answers":                  {both, answer(nvmlproto.Board{Thread: a}), nvmlproto.CauseNone},
		"all are lost":                 {both, answer(nvmlproto.Board{Lost: true}, nvmlproto.Board{Lost: true}), nvmlproto.CauseNone},
		"none is left":                 {lifecycle.Plan{}, answer(), nvmlproto.CauseNone},
		"none answers":                 {both, answer(), nvmlproto.CauseTimeout},
		"none answers, by index":       {lifecycle.Plan{ByIndex: true}, answer(), nvmlproto.CauseTimeout},
		"the library has none":         {lifecycle.Plan{ByIndex: true}, helper.Answer{}, nvmlproto.CauseNoBoards},
		"none is known to the library": {both, answer(nvmlproto.Board{Return: nvmlproto.NotFound}), nvmlproto.CauseNoBoards},
		"one is late":                  {both, late, nvmlproto.CauseTimeout},
		"the only one is stuck":        {lifecycle.Plan{Read: []string{a}}, stuck, nvmlproto.CauseStuck},
	} {
		v := judge(&c.plan, &c.answer)
		assert.Equal(t, c.want, v.cause, name)
		assert.Equal(t, c.want != nvmlproto.CauseNone, v.err != nil, name)
	}
}
