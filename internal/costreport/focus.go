// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package costreport

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/exact"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

const (
	gpuHours = "GPU-Hours"
	billion  = 1_000_000_000
	// methodHeldTime and methodUnheldShared are the values of AllocatedMethodId.
	methodHeldTime     = "held-time"
	methodUnheldShared = "held-time-unheld-proportional"
)

// focusLine is a line with what it has beside it in FOCUS.
type focusLine struct {
	*Line
	report *Report
	ratio  int64 // billionths of the time of its boards in the period
}

// focusColumns are the columns of WriteFOCUS: those of FOCUS 1.2, those of its allocations
// since 1.3, and our own. Columns without function are what only a provider can know.
var focusColumns = []struct {
	name string
	cell func(*focusLine) string
}{
	{"BilledCost", nil},
	{"BillingAccountId", nil},
	{"BillingAccountName", nil},
	{"BillingCurrency", func(l *focusLine) string { return l.report.Currency }},
	{"BillingPeriodEnd", nil},
	{"BillingPeriodStart", nil},
	{"ChargeCategory", func(*focusLine) string { return "Usage" }},
	{"ChargeClass", nil},
	{"ChargeDescription", (*focusLine).description},
	{"ChargeFrequency", func(*focusLine) string { return "Usage-Based" }},
	{"ChargePeriodEnd", func(l *focusLine) string { return focusTime(l.End) }},
	{"ChargePeriodStart", func(l *focusLine) string { return focusTime(l.Start) }},
	{"ConsumedQuantity", (*focusLine).hours},
	{"ConsumedUnit", func(*focusLine) string { return gpuHours }},
	{"ContractedCost", func(l *focusLine) string { return l.costOf("contracted") }},
	{"ContractedUnitPrice", func(l *focusLine) string { return l.priceOf("contracted") }},
	{"EffectiveCost", (*focusLine).effective},
	{"InvoiceIssuerName", nil},
	{"ListCost", func(l *focusLine) string { return l.costOf("list") }},
	{"ListUnitPrice", func(l *focusLine) string { return l.priceOf("list") }},
	{"PricingCategory", (*focusLine).category},
	{"PricingQuantity", (*focusLine).hours},
	{"PricingUnit", func(*focusLine) string { return gpuHours }},
	{"ProviderName", nil},
	{"PublisherName", nil},
	{"RegionId", func(l *focusLine) string { return harmless(l.Group.Region) }},
	{"ServiceCategory", func(*focusLine) string { return "Compute" }},
	{"ServiceName", nil},
	{"AllocatedMethodId", (*focusLine).method},
	{"AllocatedMethodDetails", (*focusLine).details},
	{"AllocatedResourceId", (*focusLine).owner},
	{"AllocatedResourceName", func(l *focusLine) string { return harmless(l.Group.Service) }},
	{"AllocatedTags", (*focusLine).tags},
	{"x_CapacityState", func(l *focusLine) string { return l.State }},
	{"x_CapacityType", func(l *focusLine) string { return harmless(l.Group.CapacityType) }},
	{"x_GpuModel", func(l *focusLine) string { return harmless(l.Group.Model) }},
	{"x_GpuMigProfile", func(l *focusLine) string { return harmless(l.Group.Profile) }},
	{"x_HostType", func(l *focusLine) string { return harmless(l.Group.HostType) }},
	{"x_NodePool", func(l *focusLine) string { return harmless(l.Group.NodePool) }},
	{"x_GpuUsedHours", func(l *focusLine) string { return l.measured(l.Used) }},
	{"x_GpuIdleHours", func(l *focusLine) string { return l.measured(l.Idle) }},
	{"x_SharedCost", (*focusLine).shared},
	{"x_EnergyJoules", func(l *focusLine) string {
		if l.AllEnergy() == 0 {
			return "" // not measured
		}
		return exact.Decimal(l.AllEnergy(), 3)
	}},
	{"x_CarbonGrams", func(l *focusLine) string {
		if !l.CarbonKnown() {
			return ""
		}
		return exact.Decimal(l.Carbon, 6)
	}},
}

var errFOCUS = errors.New("a report in columns of FOCUS is by row, and has all of its lines")

// WriteFOCUS writes a report by row as CSV with the columns of FOCUS 1.2 and the allocation
// columns of 1.3. It divides what boards cost, and is not a bill: what only an invoice
// contains is empty, though FOCUS wants it, and the file claims no conformance. Hours are
// rounded to billionths; costs are exact.
func WriteFOCUS(w io.Writer, r *Report) error {
	if r.By != ByRow || r.Top != 0 {
		return errFOCUS
	}
	out := bufio.NewWriter(w)
	cells := make([]string, len(focusColumns))
	for i, c := range focusColumns {
		cells[i] = c.name
	}
	writeLine(out, cells)
	ratios := ratiosOf(r)
	for i := range r.Lines {
		l := focusLine{&r.Lines[i], r, ratios[i]}
		if l.Time == 0 && l.AllEnergy() == 0 {
			continue
		}
		for i, c := range focusColumns {
			if cells[i] = ""; c.cell != nil {
				cells[i] = c.cell(&l)
			}
		}
		writeLine(out, cells)
	}
	return out.Flush()
}

// ratiosOf are the parts that lines have of the time of their boards in their period, in
// billionths: they add up to one.
func ratiosOf(r *Report) []int64 {
	type boards struct {
		start int64
		of    Group
	}
	lines, weights := map[boards][]int{}, map[boards][]int64{}
	for i := range r.Lines {
		l := &r.Lines[i]
		key := boards{l.Start.UnixNano(), l.Group}
		key.of.SlurmCluster, key.of.Namespace, key.of.Service, key.of.Tenant, key.of.Pod, key.of.Profile = "", "", "", "", "", ""
		if l.Time > 0 {
			lines[key], weights[key] = append(lines[key], i), append(weights[key], l.Time)
		}
	}
	ratios := make([]int64, len(r.Lines))
	for key, all := range lines {
		parts := make([]int64, len(all))
		exact.Proportion(billion, weights[key], parts)
		for i, line := range all {
			ratios[line] = parts[i]
		}
	}
	return ratios
}

func (l *focusLine) held() bool { return l.State == usage.Held }

func (l *focusLine) description() string {
	if l.held() {
		return "GPU time of an owner"
	}
	return "GPU time without owner: " + l.State
}

// effective is the cost and what was spread. Without a price it is not known: what was spread
// is a part of it.
func (l *focusLine) effective() string {
	if !l.report.Money(&l.Amounts) {
		return ""
	}
	return l.Cost.Add(l.Shared).String()
}

// shared is what was spread to the line, or from it.
func (l *focusLine) shared() string {
	if !l.report.ShareUnheld || l.report.Currency == "" {
		return ""
	}
	return l.Shared.String()
}

func (l *focusLine) costOf(kind string) string {
	if l.Group.Kind != kind || !l.report.Money(&l.Amounts) {
		return ""
	}
	return l.Cost.String()
}

func (l *focusLine) priceOf(kind string) string {
	if l.Group.Kind != kind || l.Group.RatePer == 0 || l.Group.Currency != l.report.Currency {
		return ""
	}
	return prices.Billionths(l.Group.RateNano / l.Group.RatePer).String()
}

// category is the pricing model, where the capacity type implies it. Committed needs the
// id of a discount, which is not known.
func (l *focusLine) category() string {
	switch l.Group.CapacityType {
	case "on_demand":
		return "Standard"
	case "spot":
		return "Dynamic"
	}
	return ""
}

func (l *focusLine) method() string {
	if l.report.ShareUnheld {
		return methodUnheldShared
	}
	return methodHeldTime
}

func (l *focusLine) details() string {
	type element struct {
		AllocatedRatio json.Number
		UsageUnit      string
		UsageQuantity  json.Number
	}
	return compact(struct{ Elements []element }{[]element{{json.Number(exact.Decimal(l.ratio, 9)), gpuHours, json.Number(l.hours())}}})
}

// owner is empty for what no cost is allocated to.
func (l *focusLine) owner() string {
	if !l.held() {
		return ""
	}
	parts := []string{cmp.Or(l.Group.SlurmCluster, l.Group.Cluster), l.Group.Namespace, l.Group.Service}
	if l.Group.Pod != "" {
		parts = append(parts, l.Group.Pod)
	}
	return harmless(strings.Join(parts, "/"))
}

func (l *focusLine) tags() string {
	if !l.held() {
		return ""
	}
	tags, namespace := map[string]string{}, "k8s.namespace.name"
	if l.Group.SlurmCluster != "" {
		namespace = "service.namespace"
	}
	for key, value := range map[string]string{
		"tenant": l.Group.Tenant, "k8s.cluster.name": l.Group.Cluster, "slurm.cluster.name": l.Group.SlurmCluster, namespace: l.Group.Namespace,
		"service.name": l.Group.Service, "k8s.pod.name": l.Group.Pod,
	} {
		if value != "" {
			tags[key] = value
		}
	}
	return compact(tags)
}

func (l *focusLine) hours() string { return hoursOf(l.Time) }

func (l *focusLine) measured(ms int64) string {
	if !l.Measured() {
		return ""
	}
	return hoursOf(ms)
}

// hoursOf rounds to billionths of an hour.
func hoursOf(ms int64) string {
	const hour = 3_600_000
	return exact.Decimal(exact.MulDiv(ms%hour, billion, hour)+ms/hour*billion, 9)
}

func focusTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

func compact(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers alone
	}
	return string(text)
}
