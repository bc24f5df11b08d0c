// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
)

// DCGM prints "no value" as values that no sensor has (dcgm_fields.h): BLANK,
// NOT_FOUND, NOT_SUPPORTED and NOT_PERMISSIONED for each type, consecutive.
const (
	// All four INT64 sentinels and everything above are 2^63 once parsed as a
	// float64.
	int64Blank = float64(1 << 63)
	int32Blank = float64(0x7ffffff0)
	// NVML_VALUE_NOT_AVAILABLE, -1, in 32 bits. A field with bounds refuses it as implausible.
	uint32Blank = float64(1<<32 - 1)
	fp64Blank   = float64(1 << 47)
	// No GPU has 1 PiB of memory; what is below stays an int64 in bytes, summed over
	// instances too.
	maxMiB = float64(1 << 30)
)

// unknown stands for a field that is not in the table.
var unknown = devicetable.Field{Type: devicetable.Double}

// sentinel reports whether v, as printed on the page, means that there is no
// value. INT32 sentinels appear on INT64 fields too, since some drivers hand
// DCGM 32 bits. The FP64 ones are tested on doubles alone: a byte counter may
// pass 2^47.
func sentinel(f *devicetable.Field, v float64) bool {
	if f == nil {
		f = &unknown
	}
	return v >= int64Blank ||
		v >= int32Blank && v <= int32Blank+3 && v == float64(int64(v)) ||
		f.Type == devicetable.Int64 && f.Bounds == devicetable.NoBounds && v == uint32Blank ||
		f.Type == devicetable.Double && v >= fp64Blank && v <= fp64Blank+3 ||
		f.Unit == "MiB" && v >= maxMiB
}

// textSentinel knows <<<NULL>>>, <<<NOT_SUPPORTED>>> and their like, as
// dcgm_fields.h does. s is not empty.
func textSentinel(s string) bool {
	return s[0] == '<' && strings.HasPrefix(s, "<<<") && strings.Contains(s, ">>>")
}

// mistypedCounter knows the families outside of the table that the exporter's
// counters files type counter although their values fall: counts in a sliding
// window, states, and rates (DCGM computes *_BANDWIDTH_* from two readings).
func mistypedCounter(family string) bool {
	switch family {
	case "DCGM_EXP_XID_ERRORS_COUNT":
		return true
	}
	return strings.HasPrefix(family, "DCGM_FI_DEV_NVLINK_") &&
		(strings.Contains(family, "_BANDWIDTH_") || strings.Contains(family, "_THROUGHPUT_"))
}
