// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pricing

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

const at = 1_800_000_000_000 // 2027-01-15

func newPricing(t *testing.T, rules ...prices.RuleConfig) *Pricing {
	book, err := prices.New("USD", rules)
	require.NoError(t, err)
	return New(book, nil)
}

func of(model string) *ledger.Priced {
	return &ledger.Priced{Class: &ledger.Class{Cluster: "c", Model: model, HostType: "h"}, Node: "n", Boards: 8, Share: share.Whole}
}

func TestWithoutPrices(t *testing.T) {
	p := New(nil, nil)
	assert.Equal(t, ledger.Price{Until: math.MaxInt64}, p.Price(of("x"), at))
	_, known := p.Carbon(&ledger.Class{Region: "r"}, at)
	assert.False(t, known)
}

// A version holds until the next one, an unknown price until there is one.
func TestUntil(t *testing.T) {
	match := map[string]string{"hw.model": "x"}
	p := newPricing(t,
		prices.RuleConfig{Match: match, GPUHour: "1", ValidFrom: "2027-01-01"},
		prices.RuleConfig{Match: match, GPUHour: "2", ValidFrom: "2027-02-01"},
	)
	ms := func(day string) int64 {
		when, err := time.Parse(time.DateOnly, day)
		require.NoError(t, err)
		return when.UnixMilli()
	}
	assert.Equal(t, ledger.Price{Until: ms("2027-01-01")}, p.Price(of("x"), ms("2026-12-31")))
	assert.Equal(t, ledger.Price{Rate: prices.Rate{Nano: 1e9, Per: 1}, Kind: "list", Until: ms("2027-02-01")}, p.Price(of("x"), at))
	assert.Equal(t, ledger.Price{Rate: prices.Rate{Nano: 2e9, Per: 1}, Kind: "list", Until: math.MaxInt64}, p.Price(of("x"), ms("2027-02-01")))
	assert.Equal(t, ledger.Price{Until: math.MaxInt64}, p.Price(of("y"), at))
}

// A zero that was written is a price.
func TestZero(t *testing.T) {
	p := newPricing(t, prices.RuleConfig{Match: map[string]string{"hw.model": "x"}, GPUHour: "0"})
	assert.True(t, p.Price(of("x"), at).Rate.Known())
	assert.Zero(t, p.Price(of("x"), at).Rate.Hour())
}

// The price of an instance is that of a GPU of which it is the share.
func TestInstance(t *testing.T) {
	p := newPricing(t, prices.RuleConfig{Match: map[string]string{"gpu.mig.profile": "3g.40gb"}, GPUHour: "1.20"})
	instance := of("x")
	instance.Profile, instance.Share = "3g.40gb", share.Fraction{P: 3, Q: 7}
	assert.Equal(t, prices.Rate{Nano: 2_800_000_000, Per: 1}, p.Price(instance, at).Rate)
	assert.False(t, p.Price(of("x"), at).Rate.Known(), "of the rest of the board nothing is known")
}

func TestMismatches(t *testing.T) {
	p := newPricing(t, prices.RuleConfig{Match: map[string]string{"host.type": "h"}, InstanceHour: "8", GPUs: 4})
	for range 3 {
		assert.Equal(t, ledger.Price{Until: math.MaxInt64}, p.Price(of("x"), at))
	}
	virtual, anywhere := of("x"), of("x")
	virtual.Boards, anywhere.Node = 0, ""
	p.Price(virtual, at)
	p.Price(anywhere, at)
	assert.Equal(t, []Mismatch{{Cluster: "c", Node: "n", HostType: "h", Boards: 8}}, p.Mismatches())
	p.Price(of("x"), at)
	assert.Empty(t, p.Mismatches(), "once a node")
}

func TestCarbon(t *testing.T) {
	carbon, err := prices.NewCarbon(prices.CarbonConfig{PUE: 1.2, Intensity: []prices.IntensityConfig{{Region: "eu-*", GramsPerKWh: 45, Kind: "average"}}})
	require.NoError(t, err)
	p := New(nil, carbon)
	milligrams, known := p.Carbon(&ledger.Class{Region: "eu-north1"}, at)
	assert.True(t, known)
	assert.Equal(t, int64(54_000), milligrams)
	_, known = p.Carbon(&ledger.Class{Region: "us-east1"}, at)
	assert.False(t, known)
}

func TestUnpriced(t *testing.T) {
	total := func(model string, unpriced, ms int64) ledger.Total {
		r := ledger.Total{Unpriced: unpriced}
		r.Key.Model, r.Time = model, ms
		return r
	}
	assert.Equal(t, map[string]int64{"x": 7}, Unpriced([]ledger.Total{total("x", 3, 3), total("x", 4, 9), total("x", 0, 9), total("y", 0, 9), total("z", 0, 0)}))
}

func TestLabels(t *testing.T) {
	labels := []Label{{"a", "1"}, {"b.c/d", "2"}}
	assert.Equal(t, "a=1,b.c/d=2", Labels(labels))
	assert.Equal(t, map[string]string{"a": "1", "b.c/d": "2"}, parseLabels(Labels(labels)))
	assert.Empty(t, parseLabels(Labels(nil)))
}
