// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package rules lists the rules of gpu_events.
package rules

import (
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/devicerules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/servicerules"
)

// All returns every rule, in the order in which people read them.
func All() []*rule.Rule {
	all := []*rule.Rule{&devicerules.Health, &devicerules.ExporterDown, &devicerules.DeviceLost}
	all = append(all, devicerules.Notices...)
	for _, r := range devicerules.Conditions {
		all = append(all, &r.Rule)
	}
	all = append(all, &servicerules.NodeLost)
	for _, r := range servicerules.Rules {
		all = append(all, &r.Rule)
	}
	return append(all, &servicerules.Straggler)
}
