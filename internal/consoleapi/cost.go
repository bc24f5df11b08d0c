// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package consoleapi // import "github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"

import (
	"encoding/json"
	"time"
)

// CostAnswer is a page of the lines of a report.
type CostAnswer struct {
	Freshness Freshness `json:"freshness"`
	CostReport
	// Budgets are null where the metrics of the store cannot be read.
	Budgets   []CostBudget `json:"budgets"`
	Oldest    *time.Time   `json:"oldest"` // the first hour that is kept; null: nothing is kept
	Newest    *time.Time   `json:"newest"`
	LineCount int          `json:"line_count"` // of all pages
	Next      *string      `json:"next"`
	// Reason is why there is nothing: NoUsage or UsageNotKept. Null where there is
	// something.
	Reason *string `json:"reason"`
}

// Reasons of a CostAnswer.
const (
	NoUsage      = "no_usage" // nothing has arrived yet
	UsageNotKept = "not_kept" // the store is configured to keep none
)

// CostBudget is a budget in the period that runs.
type CostBudget struct {
	Name   string       `json:"name"`
	Kind   string       `json:"kind"`   // cost or hours
	Tenant *string      `json:"tenant"` // null: not known, or the whole fleet
	Used   *json.Number `json:"used"`   // of the currency, or GPU hours; null: not known
	Limit  *json.Number `json:"limit"`
	Ratio  *float64     `json:"ratio"` // 1 is all of it
	Start  *time.Time   `json:"start"`
	End    *time.Time   `json:"end"`
}

// CostReport is the use of GPUs in some time, and what it cost. Times are seconds of a
// GPU, money is in Currency, energy in joules, carbon dioxide in grams; all of these are
// exact decimals.
type CostReport struct {
	By   string     `json:"by"`
	Step *string    `json:"step"` // hour or day; null: one period
	From *time.Time `json:"from"`
	To   *time.Time `json:"to"`
	// ShareUnheld is true where the cost of what has no owner was spread over the owners.
	ShareUnheld bool `json:"share_unheld"`
	// Currency is that of all money; null: nothing has a price.
	Currency *string `json:"currency"`
	// OtherCurrencies are those in which a part was priced that counts as unpriced.
	OtherCurrencies []string   `json:"other_currencies"`
	Lines           []CostLine `json:"lines"`
	// States are the sums of the whole time by state, and always all of them: held, free,
	// stranded, unavailable, unknown.
	States []CostLine `json:"states"`
	Total  CostLine   `json:"total"` // the fleet
	// Unpriced are the boards that have no price, those with the most time first.
	Unpriced []CostUnpriced `json:"unpriced"`
	// Intensities are the kinds of carbon intensity in it: average, marginal.
	Intensities []string `json:"intensities"`
	// OpenHours are hours that are not closed, UnknownHours those in which more than 1 % of
	// the fleet's time is unknown.
	OpenHours    []time.Time `json:"open_hours"`
	UnknownHours []time.Time `json:"unknown_hours"`
	// PartDays are days of which a part was asked for, and of which only the sum is kept: From
	// and To are then of what counts.
	PartDays []time.Time `json:"part_days"`
}

// CostLine is a group, or what has no owner, in a period.
type CostLine struct {
	Start *time.Time `json:"start"` // null: as far back as there are hours
	End   *time.Time `json:"end"`
	State *string    `json:"state"` // null: the fleet
	// Others is true for the sum of the groups that have no line of their own.
	Others bool      `json:"others"`
	Group  CostGroup `json:"group"`

	Time       json.Number  `json:"time"`
	Used       *json.Number `json:"used"` // null: not measured, or without owner
	Idle       *json.Number `json:"idle"`
	Unmeasured *json.Number `json:"unmeasured"` // null: without owner
	Unplaced   json.Number  `json:"unplaced"`   // on boards that are not known; no part of Time
	// Cost is null where a part of the time has no price. PricedCost is that of the rest.
	Cost       *json.Number `json:"cost"`
	IdleCost   *json.Number `json:"idle_cost"`   // null: Cost or Idle is
	PricedCost *json.Number `json:"priced_cost"` // null: none of the time has a price
	// SharedCost is what is spread: of owners what they get, of the others, below 0, what is
	// taken. Null where nothing is spread.
	SharedCost *json.Number `json:"shared_cost"`
	Unpriced   json.Number  `json:"unpriced"` // seconds without a price
	Energy     *CostEnergy  `json:"energy"`   // null: none was measured
	Carbon     *json.Number `json:"carbon"`   // null: the intensity of a part is not known

	Open         bool `json:"open"`          // an hour of it is not closed: the amounts grow
	UnknownHours bool `json:"unknown_hours"` // an hour of its period has more than 1 % unknown
	Contested    bool `json:"contested"`     // several owners had the same device
	BoardMetered bool `json:"board_metered"` // used is by the utilization of the whole board
	Estimated    bool `json:"estimated"`     // a share is an estimate
}

// CostGroup is what a line is of. What the report is not grouped by is null; what it is
// grouped by and is not known is empty.
type CostGroup struct {
	Cluster      *string    `json:"cluster"`
	SlurmCluster *string    `json:"slurm_cluster,omitempty"` // of jobs; then Namespace is their account
	Namespace    *string    `json:"namespace"`
	Service      *string    `json:"service"`
	Tenant       *string    `json:"tenant"`
	Pod          *string    `json:"pod"`
	Model        *string    `json:"model"`
	HostType     *string    `json:"host_type"`
	Region       *string    `json:"region"`
	CapacityType *string    `json:"capacity_type"`
	NodePool     *string    `json:"node_pool"`
	NodeLabels   *string    `json:"node_labels"`
	MIGProfile   *string    `json:"mig_profile"`
	Price        *CostPrice `json:"price"` // null: not grouped by it, or none
}

// CostPrice is the price of a GPU for an hour: Nano billionths of the currency, divided by
// Per.
type CostPrice struct {
	Currency string `json:"currency"`
	Nano     int64  `json:"nano"`
	Per      int64  `json:"per"`
	Kind     string `json:"kind"` // list or contracted
}

// CostEnergy is energy by how it was computed.
type CostEnergy struct {
	Board      json.Number `json:"board"`      // the counter of a board that was held whole
	Share      json.Number `json:"share"`      // a share of the counter
	Integrated json.Number `json:"integrated"` // from power
}

// CostUnpriced is a class of boards that had time without a price.
type CostUnpriced struct {
	Model        string      `json:"model"`
	HostType     string      `json:"host_type"`
	Region       string      `json:"region"`
	CapacityType string      `json:"capacity_type"`
	Time         json.Number `json:"time"`
}
