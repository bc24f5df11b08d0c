// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package costreport

import (
	"encoding/json"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exact"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// JSON is the report as the console's API has it.
func JSON(r *Report) consoleapi.CostReport {
	out := consoleapi.CostReport{
		By: string(r.By), Step: known(string(r.Step)), From: instant(r.From), To: instant(r.To), ShareUnheld: r.ShareUnheld,
		Currency: known(r.Currency), OtherCurrencies: notNil(r.OtherCurrencies), Lines: []consoleapi.CostLine{}, States: []consoleapi.CostLine{},
		Total: r.line(&r.Total), Unpriced: []consoleapi.CostUnpriced{}, Intensities: notNil(r.Intensities),
		OpenHours: notNil(r.OpenHours), UnknownHours: notNil(r.UnknownHours), PartDays: notNil(r.PartDays),
	}
	for i := range r.Lines {
		out.Lines = append(out.Lines, r.line(&r.Lines[i]))
	}
	for i := range r.States {
		out.States = append(out.States, r.line(&r.States[i]))
	}
	for _, u := range r.Unpriced {
		out.Unpriced = append(out.Unpriced, consoleapi.CostUnpriced{
			Model: u.Model, HostType: u.HostType, Region: u.Region, CapacityType: u.CapacityType, Time: thousandths(u.Time),
		})
	}
	return out
}

func (r *Report) line(l *Line) consoleapi.CostLine {
	out := consoleapi.CostLine{
		Start: instant(l.Start), End: instant(l.End), State: known(l.State), Others: l.Others,
		Time: thousandths(l.Time), Unplaced: thousandths(l.Unplaced), Unpriced: thousandths(l.Unpriced()),
		Open: l.Open, UnknownHours: l.Marks.UnknownHours, Contested: l.Contested, BoardMetered: l.BoardMetered, Estimated: l.Estimated,
	}
	if !l.Others && l.State != "" {
		out.Group = r.group(l)
	}
	if l.AllEnergy() > 0 || l.Time == 0 { // boards without work burn power too
		out.Energy = &consoleapi.CostEnergy{Board: thousandths(l.Energy[0]), Share: thousandths(l.Energy[1]), Integrated: thousandths(l.Energy[2])}
	}
	number := func(n json.Number) *json.Number { return &n }
	if l.Held > 0 {
		out.Unmeasured = number(thousandths(l.Unmeasured))
	}
	if l.Measured() {
		out.Used, out.Idle = number(thousandths(l.Used)), number(thousandths(l.Idle))
	}
	if r.Currency != "" && (l.Priced > 0 || l.Time == 0) {
		out.PricedCost = number(json.Number(l.Cost.String()))
	}
	if r.Money(&l.Amounts) {
		out.Cost = out.PricedCost
		if out.Idle != nil {
			out.IdleCost = number(json.Number(l.IdleCost.String()))
		}
	}
	if r.ShareUnheld && r.Currency != "" {
		out.SharedCost = number(json.Number(l.Shared.String()))
	}
	if l.CarbonKnown() {
		out.Carbon = number(json.Number(exact.Decimal(l.Carbon, 6)))
	}
	return out
}

// group is what the report is grouped by.
func (r *Report) group(l *Line) (g consoleapi.CostGroup) {
	k := &l.Group
	owned := l.State == usage.Held
	switch r.By {
	case ByTenant:
		if owned {
			g.Tenant = &k.Tenant
		}
	case ByNamespace:
		if owned {
			g.Cluster, g.SlurmCluster, g.Namespace = &k.Cluster, known(k.SlurmCluster), &k.Namespace
		}
	case ByService:
		if owned {
			g.Cluster, g.SlurmCluster, g.Namespace, g.Service = &k.Cluster, known(k.SlurmCluster), &k.Namespace, &k.Service
		}
	case ByModel:
		g.Model = &k.Model
	case ByCapacity:
		g.CapacityType = &k.CapacityType
	case ByNodePool:
		g.Cluster, g.NodePool = &k.Cluster, &k.NodePool
	case ByRow:
		g = consoleapi.CostGroup{
			Cluster: &k.Cluster, SlurmCluster: known(k.SlurmCluster), Namespace: &k.Namespace, Service: &k.Service, Tenant: &k.Tenant, Pod: &k.Pod, Model: &k.Model,
			HostType: &k.HostType, Region: &k.Region, CapacityType: &k.CapacityType, NodePool: &k.NodePool, NodeLabels: &k.Labels, MIGProfile: &k.Profile,
		}
		if k.RatePer > 0 {
			g.Price = &consoleapi.CostPrice{Currency: k.Currency, Nano: k.RateNano, Per: k.RatePer, Kind: k.Kind}
		}
	}
	return g
}

func thousandths(n int64) json.Number { return json.Number(exact.Decimal(n, 3)) }

func known(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func notNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
