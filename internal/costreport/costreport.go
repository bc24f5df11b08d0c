// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package costreport adds up usage rows into a report: GPU time, cost, energy and carbon
// dioxide of tenants, services or models, of what has no owner, and of the fleet. It has no
// clock and no I/O but the writers of its files.
//
// Amounts are whole numbers: milliseconds of a GPU, billionths of the currency,
// millijoules, micrograms. Each is the sum of the amounts of single rows, so the lines of a
// report add up to its total exactly, whatever they are grouped by.
package costreport // import "github.com/otelcol-gpu/otelcol-gpu/internal/costreport"

import (
	"fmt"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// By is what the rows of owners are grouped by.
type By string

const (
	ByTenant    By = "tenant"
	ByNamespace By = "namespace"
	ByService   By = "service"
	ByModel     By = "model"
	ByCapacity  By = "capacity"
	ByNodePool  By = "node_pool"
	ByRow       By = "row" // by all that a usage row is of
)

// Groupings are all values of By.
var Groupings = []By{ByTenant, ByNamespace, ByService, ByModel, ByCapacity, ByNodePool, ByRow}

// Step is the length of the periods of a report.
type Step string

const (
	Whole  Step = "" // one period
	Hourly Step = "hour"
	Daily  Step = "day" // of UTC
)

// MaxTop is how many groups Options.Top may ask for.
const MaxTop = 50

// Unheld are the states without owner, in the order of a report.
var Unheld = []string{usage.Free, usage.Stranded, usage.Unavailable, usage.Unknown}

// Options are what a report is of.
type Options struct {
	By   By
	Step Step
	// From and To limit the hours: those that begin in the hour of From or later, and before
	// To. Zero: they do not.
	From, To time.Time
	// ShareUnheld spreads the cost of what has no owner over the owners, in proportion to the
	// time that they held in the same period.
	ShareUnheld bool
	// Top groups have lines, those with the greatest cost, or time where nothing has a price,
	// and the others one line together. 0: all have.
	Top int
	// Owned: rows of owners alone are added. What has no owner is then not known, and has no
	// lines.
	Owned bool
}

// Check refuses what is no grouping, step or range.
func (o *Options) Check() error {
	switch {
	case !slices.Contains(Groupings, o.By):
		return fmt.Errorf("by: %q: use tenant, namespace, service, model, capacity, node_pool or row", o.By)
	case o.Step != Whole && o.Step != Hourly && o.Step != Daily:
		return fmt.Errorf("step: %q: use hour or day, or leave it out", o.Step)
	case o.Top < 0 || o.Top > MaxTop:
		return fmt.Errorf("top: %d: use 1 to %d, or leave it out", o.Top, MaxTop)
	case !o.From.IsZero() && !o.To.IsZero() && !o.From.Before(o.To):
		return fmt.Errorf("to: %s is not after from, %s", o.To.UTC().Format(time.RFC3339), o.From.UTC().Format(time.RFC3339))
	}
	return nil
}

// Group is what a line is of: the fields that the report is grouped by. The others are
// empty, and so is State.
type Group = usage.Key

// Amounts are the sums of some rows. Used, Idle and Unmeasured are parts of Held, Held and
// Priced parts of Time; Unplaced is no part of it.
type Amounts struct {
	Time, Held, Used, Idle, Unmeasured, Unplaced, Priced int64        // ms of a GPU
	Cost, IdleCost                                       prices.Money // of what has a price
	Shared                                               prices.Money // cost that was spread: what owners get, and below 0 what is taken from the others
	Energy                                               [3]int64     // mJ: of whole boards, split by share, integrated from power
	Carbon                                               int64        // µg, of the energy with a known intensity
	CarbonEnergy                                         int64        // mJ: that energy
}

// Unpriced is the time without a price, in ms of a GPU.
func (a *Amounts) Unpriced() int64 { return a.Time - a.Priced }

// Measured reports whether the utilization of some of the time is known.
func (a *Amounts) Measured() bool { return a.Unmeasured < a.Held }

// AllEnergy is the energy of every basis, in mJ.
func (a *Amounts) AllEnergy() int64 { return a.Energy[0] + a.Energy[1] + a.Energy[2] }

// CarbonKnown reports whether Carbon is that of all the energy.
func (a *Amounts) CarbonKnown() bool { return a.CarbonEnergy > 0 && a.CarbonEnergy == a.AllEnergy() }

// Marks are what a reader of a line has to know.
type Marks struct {
	Open         bool // an hour of it is not closed: the amounts grow
	UnknownHours bool // in an hour of its period more than 1 % of the fleet's time is unknown
	Contested    bool // several owners had the same device, and have a part each
	BoardMetered bool // used is by the utilization of the whole board
	Estimated    bool // a share is an estimate
}

func (m *Marks) or(o Marks) {
	m.Open = m.Open || o.Open
	m.UnknownHours = m.UnknownHours || o.UnknownHours
	m.Contested = m.Contested || o.Contested
	m.BoardMetered = m.BoardMetered || o.BoardMetered
	m.Estimated = m.Estimated || o.Estimated
}

// Line is a group in a period.
type Line struct {
	Start, End time.Time // zero: as far as there are hours
	State      string    // empty: the fleet
	Group      Group
	Others     bool // the groups that have no line of their own
	Amounts
	Marks
}

// Unpriced is a class of boards that had time without a price.
type Unpriced struct {
	Model, HostType, Region, CapacityType string
	Time                                  int64 // ms of a GPU
}

// Report is the lines of each period: the owners, those with the greatest cost first, then
// what has no owner. Every state is in it, even if there was nothing of it.
type Report struct {
	Options
	// Currency is that of all money; empty: nothing has a price. What was priced in another
	// one, which OtherCurrencies lists, counts as unpriced: nothing is converted.
	Currency        string
	OtherCurrencies []string
	Lines           []Line
	States          []Line // the sums of all periods: held, and then as Unheld
	Total           Line   // the fleet: the sum of all lines
	Unpriced        []Unpriced
	Intensities     []string    // kinds of carbon intensity: average, marginal
	OpenHours       []time.Time // that are not closed
	UnknownHours    []time.Time // with more than 1 % unknown
	// PartDays are days of which a part was asked for, and of which the store has the sum of the
	// day alone: From and To are then those of what counts.
	PartDays []time.Time
}

// Money reports whether the costs are those of all the time.
func (r *Report) Money(a *Amounts) bool { return r.Currency != "" && a.Unpriced() == 0 }

// groupOf returns the group of a row.
func (by By) groupOf(k *usage.Key) Group {
	switch by {
	case ByTenant:
		return Group{Tenant: k.Tenant}
	case ByNamespace:
		return Group{Cluster: k.Cluster, SlurmCluster: k.SlurmCluster, Namespace: k.Namespace}
	case ByService:
		return Group{Cluster: k.Cluster, SlurmCluster: k.SlurmCluster, Namespace: k.Namespace, Service: k.Service}
	case ByModel:
		return Group{Model: k.Model}
	case ByCapacity:
		return Group{CapacityType: k.CapacityType}
	case ByNodePool:
		return Group{Cluster: k.Cluster, NodePool: k.NodePool}
	}
	g := *k
	g.State = ""
	return g
}

// ofBoards reports whether the grouping is by boards: then it groups what has no owner too.
func (by By) ofBoards() bool {
	return by == ByModel || by == ByCapacity || by == ByNodePool || by == ByRow
}
