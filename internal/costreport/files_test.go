// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package costreport

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/exact"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// records reads a file back, with a map from the names of its columns.
func records(t *testing.T, write func(*bytes.Buffer) error) []map[string]string {
	var file bytes.Buffer
	require.NoError(t, write(&file))
	lines, err := csv.NewReader(&file).ReadAll()
	require.NoError(t, err)
	var all []map[string]string
	for _, line := range lines[1:] {
		cells := map[string]string{}
		for i, name := range lines[0] {
			cells[name] = line[i]
		}
		require.Len(t, cells, len(lines[0]), "a column is there twice")
		all = append(all, cells)
	}
	return all
}

func sum(t *testing.T, all []map[string]string, column string) string {
	total := new(big.Rat)
	for _, cells := range all {
		text, found := cells[column]
		require.True(t, found, column)
		if text == "" {
			continue
		}
		n, ok := new(big.Rat).SetString(text)
		require.True(t, ok, "%s: %s", column, text)
		total.Add(total, n)
	}
	return strings.TrimSuffix(strings.TrimRight(total.FloatString(9), "0"), ".")
}

// fleet is two days of several owners and boards, one of which has no price.
func fleet() []usage.Row {
	var rows []usage.Row
	for hour := range 30 {
		for _, r := range node() {
			r.Hour = r.Hour.Add(time.Duration(hour) * time.Hour)
			r.RateNano, r.RatePer = 23_600_000_000, 8
			if hour%2 == 1 {
				r.CapacityType, r.Kind = "spot", "contracted"
				r.RateNano, r.RatePer = 10_000_000_000, 3
			}
			r.Open = hour == 29
			rows = append(rows, r)
		}
		unpriced := row(hour, usage.Held, "=cmd()", "-x", hourMS/3)
		unpriced.Model, unpriced.Kind, unpriced.RateNano, unpriced.RatePer, unpriced.Pod = "L40S", "", 0, 0, "-x-0"
		rows = append(rows, unpriced)
	}
	return rows
}

// The columns of the CSV add up to what the JSON has, whatever it is grouped by.
func TestCSV(t *testing.T) {
	for _, by := range Groupings {
		for _, o := range []Options{{By: by}, {By: by, Step: Daily, ShareUnheld: true}, {By: by, Step: Hourly, Top: 1}} {
			r := Build(fleet(), o)
			total := JSON(&r).Total
			all := records(t, func(file *bytes.Buffer) error { return WriteCSV(file, &r) })
			assert.Len(t, all, len(r.Lines))
			for column, want := range map[string]json.Number{
				"gpu_seconds": total.Time, "used_gpu_seconds": *total.Used, "idle_gpu_seconds": *total.Idle, "unmeasured_gpu_seconds": *total.Unmeasured,
				"unpriced_gpu_seconds": total.Unpriced, "priced_cost": *total.PricedCost,
				"share_energy_joules": total.Energy.Share, "board_energy_joules": total.Energy.Board, "carbon_grams": json.Number(exact.Decimal(r.Total.Carbon, 6)),
			} {
				got := sum(t, all, column)
				if column == "carbon_grams" { // of lines that have all of it
					assert.True(t, got == string(want) || got == "0", "%s %v: %s", column, o, got)
					continue
				}
				if (column == "used_gpu_seconds" || column == "idle_gpu_seconds") && by != ByTenant && by != ByModel {
					continue // a line without measurements has none, and its 0 is no loss
				}
				assert.Equal(t, string(want), got, "%s %v", column, o)
			}
			if o.ShareUnheld {
				assert.Equal(t, "0", sum(t, all, "shared_cost"))
			}
		}
	}
}

func TestCSVCells(t *testing.T) {
	r := Build(fleet(), Options{By: ByTenant, Step: Hourly})
	all := records(t, func(file *bytes.Buffer) error { return WriteCSV(file, &r) })
	first := all[0]
	assert.Equal(t, "2026-05-01T22:00:00Z", first["period_start"])
	assert.Equal(t, "2026-05-01T23:00:00Z", first["period_end"])
	assert.Equal(t, "ml", first["tenant"])
	assert.Equal(t, "8.1125", first["cost"])
	assert.NotContains(t, first, "namespace")
	i := slices.IndexFunc(all, func(l map[string]string) bool { return strings.Contains(l["tenant"], "cmd") })
	assert.Equal(t, "'=cmd()", all[i]["tenant"], "a spreadsheet would compute it")
	assert.Empty(t, all[i]["cost"], "no price is not 0")
	assert.Empty(t, all[i]["priced_cost"])
	assert.Equal(t, "1200", all[i]["unpriced_gpu_seconds"])
	assert.Equal(t, "true", all[len(all)-7]["open"])
}

// Others choose the names of tenants and services: no spreadsheet takes one for a formula.
func TestNamesAreNoFormulas(t *testing.T) {
	for name, want := range map[string]string{
		"svc": "svc", "a=b": "a=b", "": "", "=1+1": "'=1+1", "@x": "'@x", "-1": "'-1", " =1": "' =1", "\t+1": "'\t+1", "＝1": "'＝1", "＠x": "'＠x",
	} {
		assert.Equal(t, want, harmless(name), name)
	}
	var line bytes.Buffer
	out := bufio.NewWriter(&line)
	writeLine(out, []string{"svc;=cmd()", `a"b`, "1", "ns/a-b"})
	require.NoError(t, out.Flush())
	assert.Equal(t, "\"svc;=cmd()\",\"a\"\"b\",1,ns/a-b\n", line.String(), "a semicolon separates no cells")
}

// column is a column of FOCUS as the specification has it.
type column struct {
	kind      string // Decimal, DateTime, String or JSON
	since     string
	mandatory bool
	values    []string // that are allowed
}

// specified are the columns of the FOCUS specification, version 1.2, that are mandatory or
// that we write, and those for allocations of version 1.3.
var specified = map[string]column{
	"BilledCost":             {kind: "Decimal", since: "0.5", mandatory: true},
	"BillingAccountId":       {kind: "String", since: "0.5", mandatory: true},
	"BillingAccountName":     {kind: "String", since: "0.5", mandatory: true},
	"BillingCurrency":        {kind: "String", since: "0.5", mandatory: true},
	"BillingPeriodEnd":       {kind: "DateTime", since: "0.5", mandatory: true},
	"BillingPeriodStart":     {kind: "DateTime", since: "0.5", mandatory: true},
	"ChargeCategory":         {kind: "String", since: "1.0-preview", mandatory: true, values: []string{"Usage", "Purchase", "Tax", "Credit", "Adjustment"}},
	"ChargeClass":            {kind: "String", since: "1.0", mandatory: true, values: []string{"Correction"}},
	"ChargeDescription":      {kind: "String", since: "1.0-preview", mandatory: true},
	"ChargeFrequency":        {kind: "String", since: "1.0-preview", values: []string{"One-Time", "Recurring", "Usage-Based"}},
	"ChargePeriodEnd":        {kind: "DateTime", since: "0.5", mandatory: true},
	"ChargePeriodStart":      {kind: "DateTime", since: "0.5", mandatory: true},
	"ConsumedQuantity":       {kind: "Decimal", since: "1.0"},
	"ConsumedUnit":           {kind: "String", since: "1.0"},
	"ContractedCost":         {kind: "Decimal", since: "1.0", mandatory: true},
	"ContractedUnitPrice":    {kind: "Decimal", since: "1.0"},
	"EffectiveCost":          {kind: "Decimal", since: "0.5", mandatory: true},
	"InvoiceIssuerName":      {kind: "String", since: "0.5", mandatory: true},
	"ListCost":               {kind: "Decimal", since: "1.0-preview", mandatory: true},
	"ListUnitPrice":          {kind: "Decimal", since: "1.0-preview"},
	"PricingCategory":        {kind: "String", since: "1.0-preview", values: []string{"Standard", "Dynamic", "Committed", "Other"}},
	"PricingQuantity":        {kind: "Decimal", since: "1.0-preview", mandatory: true},
	"PricingUnit":            {kind: "String", since: "1.0-preview", mandatory: true},
	"ProviderName":           {kind: "String", since: "0.5", mandatory: true},
	"PublisherName":          {kind: "String", since: "0.5", mandatory: true},
	"RegionId":               {kind: "String", since: "1.0"},
	"ServiceCategory":        {kind: "String", since: "0.5", mandatory: true, values: []string{"Compute"}},
	"ServiceName":            {kind: "String", since: "0.5", mandatory: true},
	"AllocatedMethodId":      {kind: "String", since: "1.3"},
	"AllocatedMethodDetails": {kind: "JSON", since: "1.3"},
	"AllocatedResourceId":    {kind: "String", since: "1.3"},
	"AllocatedResourceName":  {kind: "String", since: "1.3"},
	"AllocatedTags":          {kind: "JSON", since: "1.3"},
}

var (
	focusDecimal  = regexp.MustCompile(`^-?\d+(\.\d+)?$`)
	focusDateTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)
	customColumn  = regexp.MustCompile(`^x_[A-Z][A-Za-z0-9]+$`)
)

// An account of Slurm is no namespace; what has no jobs has no column of them.
func TestFilesOfJobs(t *testing.T) {
	job := row(0, usage.Held, "ml", "ada/train", hourMS)
	job.SlurmCluster = "hpc"
	rows := []usage.Row{row(0, usage.Held, "ml", "a", hourMS), job}
	for _, by := range []By{ByNamespace, ByService, ByRow} {
		r := Build(rows, Options{By: by, From: t0, To: t0.Add(time.Hour)})
		var file strings.Builder
		require.NoError(t, WriteCSV(&file, &r))
		assert.Equal(t, 1, strings.Count(file.String(), ",c,hpc,ns"), file.String())
		assert.Equal(t, 1, strings.Count(file.String(), ",c,,ns"), file.String())
		file.Reset()
		r = Build(rows[:1], Options{By: by, From: t0, To: t0.Add(time.Hour)})
		require.NoError(t, WriteCSV(&file, &r))
		assert.NotContains(t, file.String(), "slurm")
	}
	var file strings.Builder
	r := Build(rows, Options{By: ByRow, From: t0, To: t0.Add(time.Hour)})
	require.NoError(t, WriteFOCUS(&file, &r))
	assert.Contains(t, file.String(), `""service.namespace"":""ns"",""slurm.cluster.name"":""hpc""`)
	assert.Contains(t, file.String(), "hpc/ns/ada/train")
}

func TestFOCUS(t *testing.T) {
	r := Build(fleet(), Options{By: ByRow, Step: Daily})
	all := records(t, func(file *bytes.Buffer) error { return WriteFOCUS(file, &r) })
	for name, c := range specified {
		if c.mandatory || c.since == "1.3" {
			assert.Contains(t, all[0], name)
		}
	}
	for _, cells := range all {
		for name, cell := range cells {
			c, known := specified[name]
			if !known {
				assert.Regexp(t, customColumn, name)
				continue
			}
			if cell == "" {
				continue
			}
			switch c.kind {
			case "Decimal":
				assert.Regexp(t, focusDecimal, cell, name)
			case "DateTime":
				assert.Regexp(t, focusDateTime, cell, name)
			case "JSON":
				assert.True(t, json.Valid([]byte(cell)), name)
			}
			if c.values != nil {
				assert.Contains(t, c.values, cell, name)
			}
		}
		assert.Empty(t, cells["BilledCost"], "it is no bill")
		assert.Empty(t, cells["ServiceName"])
		assert.NotEmpty(t, cells["AllocatedMethodId"])
		assert.Equal(t, cells["x_CapacityState"] == usage.Held, cells["AllocatedResourceId"] != "", "what has no owner is not allocated")
		assert.Equal(t, cells["x_GpuModel"] == "H100", cells["EffectiveCost"] != "")
		assert.Equal(t, cells["x_CapacityType"] == "spot", cells["ContractedCost"] != "")
	}
	assert.Equal(t, r.Total.Cost.String(), sum(t, all, "EffectiveCost"))
	for _, column := range []string{"PricingQuantity", "ConsumedQuantity"} {
		hours, _ := new(big.Rat).SetString(sum(t, all, column))
		got, _ := hours.Float64()
		assert.InDelta(t, float64(r.Total.Time)/hourMS, got, 1e-7, column)
	}
	assert.Equal(t, exact.Decimal(r.Total.AllEnergy(), 3), sum(t, all, "x_EnergyJoules"))
}

// The parts of the boards of a period are the whole of them.
func TestFOCUSRatios(t *testing.T) {
	rows := fleet()
	r := Build(rows, Options{By: ByRow, Step: Daily, ShareUnheld: true})
	all := records(t, func(file *bytes.Buffer) error { return WriteFOCUS(file, &r) })
	sums := map[string]*big.Rat{}
	for _, cells := range all {
		var details struct {
			Elements []struct {
				AllocatedRatio, UsageQuantity json.Number
				UsageUnit                     string
			}
		}
		require.NoError(t, json.Unmarshal([]byte(cells["AllocatedMethodDetails"]), &details))
		require.Len(t, details.Elements, 1)
		assert.Equal(t, gpuHours, details.Elements[0].UsageUnit)
		assert.Equal(t, cells["PricingQuantity"], string(details.Elements[0].UsageQuantity))
		boards := cells["ChargePeriodStart"] + cells["x_GpuModel"] + cells["x_CapacityType"]
		if sums[boards] == nil {
			sums[boards] = new(big.Rat)
		}
		ratio, ok := new(big.Rat).SetString(string(details.Elements[0].AllocatedRatio))
		require.True(t, ok)
		sums[boards].Add(sums[boards], ratio)
	}
	assert.NotEmpty(t, sums)
	for boards, s := range sums {
		assert.Equal(t, "1", s.RatString(), boards)
	}
	effective, ok := new(big.Rat).SetString(sum(t, all, "EffectiveCost"))
	require.True(t, ok)
	unpriced := 0
	for _, cells := range all {
		if cells["EffectiveCost"] != "" {
			continue
		}
		unpriced++
		assert.NotEqual(t, "H100", cells["x_GpuModel"], "what has no price has no cost")
		shared, ok := new(big.Rat).SetString(cells["x_SharedCost"])
		require.True(t, ok)
		effective.Add(effective, shared)
	}
	assert.Positive(t, unpriced)
	total, ok := new(big.Rat).SetString(r.Total.Cost.String())
	require.True(t, ok)
	assert.Equal(t, total.RatString(), effective.RatString(), "of what is spread nothing is lost")
	assert.Equal(t, "0", sum(t, all, "x_SharedCost"))
	assert.ErrorIs(t, WriteFOCUS(&bytes.Buffer{}, &Report{Options: Options{By: ByTenant}}), errFOCUS)
}
