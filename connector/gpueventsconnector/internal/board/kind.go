// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import "github.com/otelcol-gpu/otelcol-gpu/internal/health"

// Kind are the features of a board that decide which inputs it can have. They are in
// internal/health, for the console names the checks that lack their inputs.
type Kind = health.Kind

// The features.
const (
	NVIDIA       = health.NVIDIA
	RemapsRows   = health.RemapsRows
	RetiresPages = health.RetiresPages
	NVLink       = health.NVLink
	Fabric       = health.Fabric
	CountsErrors = health.CountsErrors
	Replays      = health.Replays
	Throttles    = health.Throttles
	OwnHealth    = health.OwnHealth
)

// KindOf returns the features of a board by its hw.id and its hw.model.
func KindOf(id, model string) Kind { return health.KindOf(id, model) }
