// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgm

import "github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"

// The label with the driver's version. DCGM 4.6 knows both names, and exporters before
// 4.9 print the old one by default.
const (
	oldDriverLabel = "DCGM_FI_DRIVER_VERSION"
	newDriverLabel = "DCGM_FI_SYSTEM_DRIVER_VERSION"
)

// What a page shows of the version of DCGM.
const (
	newNames devicemap.Evidence = devicemap.VendorEvidence << iota // of a field that only DCGM 4.7 has
	oldDriver
	newDriver
)

// Last46 is the last number of a field that DCGM 4.6.1 has as well.
const Last46 = 1612

// evidence is what the name of a family, or of a field of type label, shows.
func evidence(name string) devicemap.Evidence {
	switch name {
	case oldDriverLabel:
		return oldDriver
	case newDriverLabel:
		return newDriver
	}
	if named, known := Table.Named(name); known && named.Or == nil && named.Field.Number > Last46 {
		return newNames
	}
	return 0
}

// meaning decides about DCGM_FI_DEV_GPU_UTIL_RATIO: until DCGM 4.6 it is another name of
// field 203, an integer from 0 to 100; from 4.7 on that of field 1613, a double from 0 to 1.
// An exporter prints doubles with six decimals. A server that passes pages on, as
// Prometheus' /federate does, prints 0 and 1 of both in the same way.
func meaning(now, before devicemap.Evidence) (devicemap.Meaning, string) {
	const version = newNames | oldDriver | newDriver
	fraction, percent := now&devicemap.Fraction != 0, now&devicemap.AboveOne != 0
	switch {
	case fraction && percent:
		return devicemap.Contradictory, "values with a decimal point or between 0 and 1, as DCGM 4.7 has them, and values above 1, as DCGM 4.6 has them"
	case percent && now&newNames != 0:
		return devicemap.Contradictory, "values above 1, as DCGM 4.6 has them, beside fields that only DCGM 4.7 has"
	case fraction, now&newNames != 0:
		return devicemap.OtherUnit, ""
	case percent:
		return devicemap.OwnUnit, ""
	// What is left are 0 and 1 without a decimal point.
	case before&version == now&version && before&devicemap.Fraction != 0:
		return devicemap.OtherUnit, ""
	case before&version == now&version && before&devicemap.AboveOne != 0:
		return devicemap.OwnUnit, ""
	case now&newDriver != 0 && now&oldDriver == 0:
		return devicemap.Undecided, "1 without a decimal point, as DCGM 4.6 has it, beside the label " + newDriverLabel + ", as DCGM 4.7 has it"
	default:
		return devicemap.OwnUnit, ""
	}
}
