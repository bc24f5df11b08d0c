// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package costtable writes an answer about cost as text for a terminal.
package costtable // import "github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/costtable"

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

const (
	none = "-"
	hour = "2006-01-02 15:04"
	// named is how many hours or boards a note names.
	named = 5
	// width bounds a cell, in characters: labels and namespaces of Kubernetes have up to 63.
	width = 63
)

// group is a column of what lines are of.
type group struct {
	title string
	of    func(*consoleapi.CostGroup) *string
	by    []string
}

// slurmCluster is a column where there are jobs.
const slurmCluster = "SLURM-CLUSTER"

var groups = []group{
	{"TENANT", func(g *consoleapi.CostGroup) *string { return g.Tenant }, []string{"tenant", "row"}},
	{"CLUSTER", func(g *consoleapi.CostGroup) *string { return g.Cluster }, []string{"namespace", "service", "node_pool", "row"}},
	{slurmCluster, func(g *consoleapi.CostGroup) *string { return g.SlurmCluster }, []string{"namespace", "service", "row"}},
	{"NAMESPACE", func(g *consoleapi.CostGroup) *string { return g.Namespace }, []string{"namespace", "service", "row"}},
	{"SERVICE", func(g *consoleapi.CostGroup) *string { return g.Service }, []string{"service", "row"}},
	{"MODEL", func(g *consoleapi.CostGroup) *string { return g.Model }, []string{"model", "row"}},
	{"MIG", func(g *consoleapi.CostGroup) *string { return g.MIGProfile }, []string{"row"}},
	{"CAPACITY", func(g *consoleapi.CostGroup) *string { return g.CapacityType }, []string{"capacity", "row"}},
	{"NODE-POOL", func(g *consoleapi.CostGroup) *string { return g.NodePool }, []string{"node_pool", "row"}},
}

// Over reports whether more than the budget is used.
func Over(b consoleapi.CostBudget) bool { return b.Ratio != nil && *b.Ratio > 1 }

// Write writes the lines, the fleet or the sum of chosen owners as the last one, and what a reader has to know of them.
func Write(w io.Writer, a *consoleapi.CostAnswer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	jobs := slices.ContainsFunc(a.Lines, func(l consoleapi.CostLine) bool { return l.Group.SlurmCluster != nil })
	columns := slices.DeleteFunc(slices.Clone(groups), func(g group) bool {
		return !slices.Contains(g.by, a.By) || g.title == slurmCluster && !jobs
	})
	titles := []string{}
	if a.Step != nil {
		titles = append(titles, "PERIOD (UTC)")
	}
	for _, g := range columns {
		titles = append(titles, g.title)
	}
	cost := "COST"
	if a.Currency != nil {
		cost += " " + name(*a.Currency)
	}
	titles = append(titles, "STATE", "GPU-HOURS", "USED", "IDLE", cost, "IDLE-COST")
	if a.ShareUnheld {
		titles = append(titles, "WITH-UNHELD")
	}
	titles = append(titles, "KWH", "KG-CO2", "NOTES")
	fmt.Fprintln(t, strings.Join(titles, "\t"))
	for _, l := range append(slices.Clip(a.Lines), a.Total) {
		fmt.Fprintln(t, strings.Join(cells(a, &l, columns), "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	text := strings.Join(append(notes(a), budgets(a)...), "\n")
	if text == "" {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%s\n", text)
	return err
}

func cells(a *consoleapi.CostAnswer, l *consoleapi.CostLine, columns []group) (all []string) {
	if a.Step != nil {
		all = append(all, period(*a.Step, l))
	}
	for i, g := range columns {
		cell := none
		if value := g.of(&l.Group); value != nil {
			cell = safetext.Strip(name(*value), width)
		} else if l.Others && i == 0 {
			cell = "(others)"
		}
		all = append(all, cell)
	}
	state := "fleet"
	switch {
	case l.State != nil:
		state = name(*l.State)
	case !slices.ContainsFunc(a.Lines, func(l consoleapi.CostLine) bool { return l.State != nil && *l.State != usage.Held }):
		state = "sum" // of the owners that were asked for
	}
	all = append(all, state, hours(&l.Time), hours(l.Used), hours(l.Idle), decimals(l.Cost, 1, 2), decimals(l.IdleCost, 1, 2))
	if a.ShareUnheld {
		all = append(all, decimals(sum(l.Cost, l.SharedCost), 1, 2))
	}
	return append(all, kilowattHours(l.Energy), decimals(l.Carbon, 1000, 2), marks(l))
}

func kilowattHours(e *consoleapi.CostEnergy) string {
	if e == nil {
		return none
	}
	return strconv.FormatFloat((float(&e.Board)+float(&e.Share)+float(&e.Integrated))/3.6e6, 'f', 2, 64)
}

func period(step string, l *consoleapi.CostLine) string {
	if l.Start == nil || l.State == nil {
		return none
	}
	if step == "day" {
		return l.Start.UTC().Format(time.DateOnly)
	}
	return l.Start.UTC().Format(hour)
}

// marks are what a reader has to know of a line.
func marks(l *consoleapi.CostLine) string {
	var all []string
	for _, m := range []struct {
		is   bool
		text string
	}{
		{l.Open, "open"}, {l.UnknownHours, "unknown > 1 %"}, {l.Contested, "contested"}, {l.BoardMetered, "used of the board"}, {l.Estimated, "estimated share"},
	} {
		if m.is {
			all = append(all, m.text)
		}
	}
	if l.Cost == nil && l.PricedCost != nil {
		all = append(all, fmt.Sprintf("%s h without a price, the others %s", hours(&l.Unpriced), decimals(l.PricedCost, 1, 2)))
	}
	if l.Unmeasured != nil && float(l.Unmeasured) > 0 {
		all = append(all, hours(l.Unmeasured)+" h not measured")
	}
	if float(&l.Unplaced) > 0 {
		all = append(all, hours(&l.Unplaced)+" h on boards that are not known")
	}
	if len(all) == 0 {
		return none
	}
	return strings.Join(all, ", ")
}

// notes are what a reader has to know of all.
func notes(a *consoleapi.CostAnswer) (all []string) {
	if a.Reason != nil {
		switch *a.Reason {
		case "no_usage":
			all = append(all, "No hour has come from gpu_cost yet.")
		case "not_kept":
			all = append(all, "The store keeps no hours: gpu_cost has no pipeline to it, or it has no directory.")
		default:
			all = append(all, "There is nothing: "+name(*a.Reason)+".")
		}
	}
	if a.Currency == nil && float(&a.Total.Time) > 0 {
		all = append(all, "Nothing has a price: gpu_cost has no prices, or none that matches.")
	}
	if a.Currency != nil && len(a.Unpriced) > 0 {
		var boards []string
		for _, u := range a.Unpriced[:min(named, len(a.Unpriced))] {
			boards = append(boards, fmt.Sprintf("%s h of %s", hours(&u.Time), class(&u)))
		}
		all = append(all, "Without a price: "+strings.Join(boards, "; ")+more(len(a.Unpriced))+".")
	}
	if len(a.OtherCurrencies) > 0 {
		all = append(all, "Priced in "+safetext.Strip(strings.Join(a.OtherCurrencies, ", "), 100)+", which is not converted and counts as without a price.")
	}
	if len(a.Intensities) > 0 {
		all = append(all, "CO2 is location-based, by "+safetext.Strip(strings.Join(a.Intensities, " and "), 100)+" intensity.")
	}
	if len(a.OpenHours) > 0 {
		all = append(all, "Not closed, and growing: "+hoursOf(a.OpenHours)+".")
	}
	if len(a.UnknownHours) > 0 {
		all = append(all, "More than 1 % of the fleet is unknown: "+hoursOf(a.UnknownHours)+".")
	}
	if len(a.PartDays) > 0 && a.From != nil && a.To != nil {
		all = append(all, fmt.Sprintf("Of days as old as the first or the last, hours are not kept: the report is from %s to %s.", a.From.UTC().Format(hour), a.To.UTC().Format(hour)))
	}
	return all
}

func class(u *consoleapi.CostUnpriced) string {
	text := name(u.Model)
	for _, part := range []string{u.HostType, u.Region, u.CapacityType} {
		if part != "" {
			text += " " + name(part)
		}
	}
	return text
}

func hoursOf(all []time.Time) string {
	var text []string
	for _, t := range all[:min(named, len(all))] {
		text = append(text, t.UTC().Format(hour))
	}
	return strings.Join(text, ", ") + more(len(all))
}

func more(n int) string {
	if n <= named {
		return ""
	}
	return fmt.Sprintf(" and %d more", n-named)
}

// budgets are a line for each.
func budgets(a *consoleapi.CostAnswer) (all []string) {
	for _, b := range a.Budgets {
		unit := "h"
		if b.Kind == "cost" {
			unit = ""
			if a.Currency != nil {
				unit = name(*a.Currency)
			}
		}
		text := "Budget " + name(b.Name) + ": "
		switch {
		case b.Ratio == nil:
			text += "how much is used is not known"
		case b.Used == nil || b.Limit == nil:
			text += fmt.Sprintf("%.0f %% used", *b.Ratio*100)
		default:
			text += fmt.Sprintf("%.0f %% used, %s of %s", *b.Ratio*100, decimals(b.Used, 1, 2), strings.TrimSpace(decimals(b.Limit, 1, 2)+" "+unit))
		}
		if b.Start != nil && b.End != nil {
			text += fmt.Sprintf(", %s to %s UTC", b.Start.UTC().Format(hour), b.End.UTC().Format(hour))
		}
		if Over(b) {
			text += ", EXCEEDED"
		}
		all = append(all, text)
	}
	return all
}

func name(text string) string {
	if text = safetext.Strip(text, 253); text == "" {
		return none
	}
	return text
}

func hours(seconds *json.Number) string { return decimals(seconds, 3600, 2) }

// decimals shows a number divided by what one of its unit is.
func decimals(n *json.Number, by float64, digits int) string {
	if n == nil {
		return none
	}
	return strconv.FormatFloat(float(n)/by, 'f', digits, 64)
}

func float(n *json.Number) float64 {
	if n == nil {
		return 0
	}
	v, err := n.Float64()
	if err != nil {
		return 0 // the decoder has accepted it, so it is one
	}
	return v
}

func sum(a, b *json.Number) *json.Number {
	if a == nil {
		return nil
	}
	n := json.Number(strconv.FormatFloat(float(a)+float(b), 'f', 9, 64))
	return &n
}
