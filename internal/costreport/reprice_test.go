// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package costreport

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// Lines of a report by row are the rows again: the same report comes of them.
func TestRowsAreReadBack(t *testing.T) {
	rows := fleet()
	for i := range rows {
		rows[i].Labels, rows[i].Region, rows[i].NodePool, rows[i].Profile = "pool=own", "eu", "p", "1g.10gb"
	}
	for _, step := range []Step{Hourly, Daily} {
		by := Build(rows, Options{By: ByRow, Step: step})
		text, err := json.Marshal(JSON(&by))
		require.NoError(t, err)
		var answer consoleapi.CostReport
		require.NoError(t, json.Unmarshal(text, &answer))
		var back []usage.Row
		for i := range answer.Lines {
			if answer.Lines[i].Time == "0" {
				continue // states that there is nothing of
			}
			r, err := Row(&answer.Lines[i], step)
			require.NoError(t, err)
			back = append(back, r)
		}
		want, got := Build(rows, Options{By: ByService, Step: Daily}), Build(back, Options{By: ByService, Step: Daily})
		for i := range want.Lines {
			assert.InDelta(t, want.Lines[i].Cost.Float(), got.Lines[i].Cost.Float(), 1e-6, "rounded once a row")
			for _, l := range []*Line{&want.Lines[i], &got.Lines[i]} {
				l.Cost, l.IdleCost = prices.Money{}, prices.Money{}
			}
		}
		assert.Equal(t, want.Lines, got.Lines)
		assert.Equal(t, want.Unpriced, got.Unpriced)
	}
	_, err := Row(&consoleapi.CostLine{}, Daily)
	assert.ErrorIs(t, err, errLine)
}

func TestReprice(t *testing.T) {
	p, err := NewRepricer("EUR", []prices.RuleConfig{
		{Match: map[string]string{prices.MatchModel: "H100", "node.label.pool": "own"}, InstanceHour: "8.00", GPUs: 8, Kind: "contracted"},
		{Match: map[string]string{prices.MatchModel: "H100"}, GPUHour: "2", ValidFrom: "2026-05-02"},
	})
	require.NoError(t, err)
	assert.Equal(t, Daily, p.Step)
	rows := node()
	rows[0].Labels = "pool=own,zone=a"
	for i := range rows {
		p.Price(&rows[i])
	}
	own := rows[0]
	assert.Equal(t, usage.Key{
		Cluster: "c", Model: "H100", HostType: "h100x8", CapacityType: "on_demand", Labels: "pool=own,zone=a", State: usage.Held, Namespace: "ns", Service: "a", Tenant: "ml",
		Currency: "EUR", RateNano: 1_000_000_000, RatePer: 1, Kind: "contracted",
	}, own.Key, "the boards of its node are not known, and are not compared")
	assert.Zero(t, rows[1].RatePer, "the other price was not valid yet")
	rows[1].Hour = rows[1].Hour.AddDate(0, 0, 1)
	p.Price(&rows[1])
	assert.Equal(t, int64(2_000_000_000), rows[1].RateNano)

	p, err = NewRepricer("EUR", []prices.RuleConfig{{Match: map[string]string{prices.MatchModel: "*"}, GPUHour: "1", ValidFrom: "2026-05-02T12:00:00Z"}})
	require.NoError(t, err)
	assert.Equal(t, Hourly, p.Step, "the price changes within a day")
	_, err = NewRepricer("EUR", []prices.RuleConfig{{Match: map[string]string{prices.MatchProfile: "1g.10gb"}, GPUHour: "1"}})
	assert.ErrorContains(t, err, "prices::0::match::gpu.mig.profile")
	_, err = NewRepricer("EUR", []prices.RuleConfig{{Match: map[string]string{prices.MatchModel: "*"}, PriceMetric: "node_gpu_hourly_cost"}})
	assert.ErrorContains(t, err, "prices::0::price_metric")
}
