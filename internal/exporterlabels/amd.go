// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporterlabels

import "strings"

// AMD is Classify for the labels of AMD's Device Metrics Exporter. Labels that
// distinguish rows of one family are Other; what a user had the exporter add (CustomLabels,
// ExtraPodLabels) is not, and neither is what differs for every process.
func AMD(key string) Label {
	switch lower := strings.ToLower(key); lower {
	case "gpu_id":
		return Index
	case "driver_version", "serial_number", "vbios_version":
		return Field
	case "job_id", "job_user", "job_partition":
		return HPCJob
	case "clock_type", "severity":
		return Other
	default:
		if strings.HasSuffix(lower, "_index") {
			return Other
		}
	}
	switch kind := Classify(key); kind {
	case Host, PCIAddress, Pod, Namespace, Container, PodUID, PodLabel:
		return kind
	default:
		return Scrape
	}
}
