// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"fmt"
	"strings"
	"time"
)

// exporter describes how one line of dcgm-exporter versions prints its page.
type exporter struct {
	version       string
	driver        string // driver version of its time
	major         int
	spaceAfterGPU bool   // {gpu="0", UUID="…"}: a blank after the first comma
	deviceLabel   bool   // device="nvidia0"
	pciBusID      bool   // pci_bus_id="00000000:53:00.0"
	modelName     bool   // modelName="…"
	hostname      string // spelling of the host label; "" is no such label
	driverLabel   string // name of the label with the driver's version; "" is no such label
	emptyPod      bool   // a free device carries container="",namespace="",pod=""
	podLabels     bool   // can print labels of the pod
	podPrefix     string // prefix of those labels
	xidZero       bool   // prints 0 before the first XID; later versions print nothing
	xidText       bool   // err_code and err_msg on the XID series
	sentinels     bool   // prints unsupported fields as sentinels; later versions drop them
	gddrTempZero  bool   // prints memory temperature 0 on boards without the sensor
	nvlinkAlways  bool   // prints NVLINK_BANDWIDTH_TOTAL 0 on boards without NVLink
	reserved      bool   // knows FB_RESERVED
	byFieldID     bool   // families in the order of field ids; before, in that of the CSV
	headerFirst   bool   // all HELP and TYPE lines first, then the samples by device
	oldTexts      bool   // ratios described as "in %", violations as "in us"
	throttleName  bool   // CLOCK_THROTTLE_REASONS, later CLOCKS_EVENT_REASONS
	xidCount      string // TYPE of DCGM_EXP_XID_ERRORS_COUNT; "" is no such family
	xidTotal      bool   // has DCGM_EXP_XID_ERRORS_TOTAL
	first         bool   // the names and labels until DCGM 1.7
	newest        bool   // the names and units of DCGM 4.7
	byProcess     bool   // with virtual GPUs, reports GPU_UTIL and FB_USED by process
}

const oldDriverLabel = "DCGM_FI_DRIVER_VERSION"

var exporters = []exporter{
	{version: "1.7", driver: "418.87.01", major: 1, first: true, xidZero: true, nvlinkAlways: true, oldTexts: true},
	{version: "2.1", driver: "450.80.02", major: 2, spaceAfterGPU: true, emptyPod: true, xidZero: true, sentinels: true, nvlinkAlways: true, headerFirst: true, oldTexts: true, throttleName: true},
	{version: "2.4", driver: "470.82.01", major: 2, deviceLabel: true, modelName: true, hostname: "Hostname", emptyPod: true, xidZero: true, nvlinkAlways: true, oldTexts: true, throttleName: true},
	{version: "3.0", driver: "520.56.06", major: 3, deviceLabel: true, modelName: true, hostname: "Hostname", driverLabel: oldDriverLabel, emptyPod: true, xidZero: true, nvlinkAlways: true, oldTexts: true, throttleName: true},
	{version: "3.3", driver: "550.54.14", major: 3, deviceLabel: true, pciBusID: true, modelName: true, hostname: "Hostname", driverLabel: oldDriverLabel, xidZero: true, xidText: true, gddrTempZero: true, nvlinkAlways: true, throttleName: true, xidCount: "counter"},
	{version: "4.5", driver: "580.105.08", major: 4, deviceLabel: true, pciBusID: true, modelName: true, hostname: "Hostname", driverLabel: oldDriverLabel, podLabels: true, xidText: true, gddrTempZero: true, reserved: true, byFieldID: true, xidCount: "counter"},
	{version: "4.6", driver: "580.126.09", major: 4, deviceLabel: true, pciBusID: true, modelName: true, hostname: "hostname", driverLabel: oldDriverLabel, podLabels: true, podPrefix: "pod_label_", xidText: true, gddrTempZero: true, reserved: true, byFieldID: true, xidCount: "gauge", xidTotal: true, byProcess: true},
	{version: "4.9", driver: "590.48.01", major: 4, deviceLabel: true, pciBusID: true, modelName: true, hostname: "hostname", driverLabel: "DCGM_FI_SYSTEM_DRIVER_VERSION", podLabels: true, podPrefix: "pod_label_", xidText: true, gddrTempZero: true, reserved: true, byFieldID: true, xidCount: "gauge", xidTotal: true, newest: true, byProcess: true},
}

func findExporter(version string) (*exporter, error) {
	known := make([]string, 0, len(exporters))
	for i := range exporters {
		if exporters[i].version == version {
			return &exporters[i], nil
		}
		known = append(known, exporters[i].version)
	}
	return nil, fmt.Errorf("unknown exporter version %q: use one of %s", version, strings.Join(known, ", "))
}

// xidText is the text that goes with an XID code in err_msg.
func xidText(code int) string {
	switch code {
	case 0:
		return "No Error"
	case 13:
		return "Graphics Engine Exception"
	case 31:
		return "GPU memory page fault"
	case 43:
		return "GPU stopped processing"
	case 45:
		return "Preemptive cleanup, due to previous errors"
	case 48:
		return "Double Bit ECC Error"
	case 63:
		return "ECC page retirement or row remapping recording event"
	case 64:
		return "ECC page retirement or row remapper recording failure"
	case 74:
		return "NVLINK Error"
	case 79:
		return "GPU has fallen off the bus"
	case 94:
		return "Contained ECC error"
	case 95:
		return "Uncontained ECC error"
	case 119:
		return "GSP RPC timeout"
	}
	return "Unknown Error"
}

// sanitize turns a Kubernetes label key into a Prometheus label name, as the
// exporter does: every other character becomes an underscore.
func sanitize(key string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '_'
	}, key)
}

// Transport is how a node's exporter responds now.
type Transport struct {
	Down  bool
	Delay time.Duration
	Cut   string        // "", short or clean
	Skew  time.Duration // of its clock
	Fails bool          // answers with an error; of engines alone
}

// transport is how the exporter responds at a time.
func (all faults) transport(t time.Duration, request bool) Transport {
	var out Transport
	for _, f := range all {
		if !f.holds(t) {
			continue
		}
		switch f.Kind {
		case ExporterDown, Reboot:
			out.Down = true
		case ExporterSlow:
			out.Delay = max(out.Delay, f.delay(request))
		case PageCut:
			out.Cut = f.Mode
		case ClockSkew:
			out.Skew = time.Duration(f.Skew)
		}
	}
	return out
}

// delay of a page by a fault that lasts, and counts a request if it is for one.
func (f *fault) delay(request bool) time.Duration {
	if request {
		f.asked++
	}
	if f.Every == 0 || f.asked%f.Every == 0 {
		return time.Duration(f.Delay)
	}
	return 0
}
