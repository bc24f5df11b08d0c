// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	twoMinutes  = 2 * time.Minute
	fiveMinutes = 5 * time.Minute
)

// twoLevels is the Spec of a value with the keys high_for and critical_for.
func twoLevels(s rule.Settings) condition.Spec {
	return condition.Spec{Levels: []condition.Level{
		{For: s.Duration("high_for"), Severity: plog.SeverityNumberWarn},
		{For: s.Duration("critical_for"), Severity: plog.SeverityNumberError},
	}}
}

// above judges a value by two thresholds. It is over when the value is below the lower
// one by the hysteresis.
func above(v, high, critical, hysteresis float64) condition.Verdict {
	if math.IsNaN(v) {
		return condition.Verdict{}
	}
	// 0.95 - 0.02 is a little less than 0.93.
	verdict := condition.Verdict{Known: true, Over: v <= high-hysteresis+1e-9}
	if v > high {
		verdict.Met |= 1
	}
	if v > critical {
		verdict.Met |= 2
	}
	return verdict
}

// limit states how a value at that level is related to the thresholds.
func limit(level uint8, high, critical float64, unit string) string {
	switch level {
	case 0:
		return ", no longer above " + decimal(high) + unit
	case 1:
		return ", above " + decimal(high) + unit + " (" + names.EventLevelHigh + ")"
	}
	return ", above " + decimal(critical) + unit + " (" + names.EventLevelCritical + ")"
}

// measured are the attributes of an event about a value with two levels.
func measured(level uint8, v, high, critical float64) func(pcommon.Map) {
	return func(attrs pcommon.Map) {
		if !math.IsNaN(v) {
			attrs.PutDouble(names.GPUEventValue, v)
		}
		switch level {
		case 1:
			attrs.PutStr(names.GPUEventLevel, names.EventLevelHigh)
			attrs.PutDouble(names.GPUEventThreshold, high)
		case 2:
			attrs.PutStr(names.GPUEventLevel, names.EventLevelCritical)
			attrs.PutDouble(names.GPUEventThreshold, critical)
		}
	}
}

// decimal has three digits after the point at most.
func decimal(v float64) string { return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64) }
