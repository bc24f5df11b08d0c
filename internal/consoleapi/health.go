// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package consoleapi // import "github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"

import (
	"slices"
	"time"
)

// HealthState is the health of a board or a node.
type HealthState string

// The states, the best first. A board is unknown where nothing fresh is known of its
// health: that is not ok.
const (
	HealthOK               HealthState = "ok"
	HealthDegraded         HealthState = "degraded"
	HealthPredictedFailure HealthState = "predicted_failure"
	HealthFailed           HealthState = "failed"
	HealthUnknown          HealthState = "unknown"
)

// HealthStates are all of them, the best known one first.
var HealthStates = []HealthState{HealthOK, HealthDegraded, HealthPredictedFailure, HealthFailed, HealthUnknown}

// AtLeast reports whether a known state is as bad as another one, or worse.
func (s HealthState) AtLeast(least HealthState) bool {
	known := HealthStates[:len(HealthStates)-1]
	return slices.Contains(known, s) && slices.Index(known, s) >= slices.Index(known, least)
}

// Health is the health of a board or a node. The reasons of one that is unknown are the
// last that were known.
type Health struct {
	State        HealthState     `json:"state"`
	Since        *time.Time      `json:"since"`
	Reasons      []HealthReason  `json:"reasons"`
	Action       *string         `json:"action"`
	Score        *float64        `json:"score"`
	Coverage     *HealthCoverage `json:"coverage"`
	WatchedSince *time.Time      `json:"watched_since"`
}

// HealthReason is a reason against a board or a node. Device is null where it is the
// node's own; value and threshold where the reason compares nothing.
type HealthReason struct {
	Name      string      `json:"name"`
	Device    *string     `json:"device"`
	State     HealthState `json:"state"`
	Action    string      `json:"action"`
	Since     *time.Time  `json:"since"`
	Text      string      `json:"text"`
	Value     *float64    `json:"value"`
	Threshold *float64    `json:"threshold"`
	Runbook   string      `json:"runbook"`
}

// HealthCoverage is how many of the checks that fit have fresh inputs.
type HealthCoverage struct {
	WithData   int      `json:"with_data"`
	Applicable int      `json:"applicable"`
	Missing    []string `json:"missing"`
}

// HealthCounts are boards by their health.
type HealthCounts struct {
	OK               int `json:"ok"`
	Degraded         int `json:"degraded"`
	PredictedFailure int `json:"predicted_failure"`
	Failed           int `json:"failed"`
	Unknown          int `json:"unknown"`
}

// Add counts a board.
func (c *HealthCounts) Add(s HealthState) {
	switch s {
	case HealthOK:
		c.OK++
	case HealthDegraded:
		c.Degraded++
	case HealthPredictedFailure:
		c.PredictedFailure++
	case HealthFailed:
		c.Failed++
	default:
		c.Unknown++
	}
}
