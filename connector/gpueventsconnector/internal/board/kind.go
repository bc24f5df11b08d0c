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
)

// KindOf returns the features of a model by its name, hw.model.
func KindOf(model string) Kind { return health.KindOf(model) }
