// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporterlabels

// Gaudi is Classify for the labels of Intel's Gaudi metric exporter, which identifies a
// device by its serial number.
func Gaudi(key string) Label {
	switch key {
	case "id":
		return Index
	case "UUID", "uuid", "spi":
		return Scrape // neither is needed: not the identity, and one part of the firmware
	case "Serial", "driver", "fit":
		return Field
	case "pod", "namespace", "container", "pod_uid", "exported_pod", "exported_namespace", "exported_container", "exported_pod_uid":
		return Scrape // the exporter's own, from a scraper: it prints pod_name and pod_namespace
	default:
		return Classify(key)
	}
}
