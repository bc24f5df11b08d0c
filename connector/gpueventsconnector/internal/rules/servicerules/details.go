// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package servicerules

import (
	"fmt"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Details is what an evaluation contains about the pods and devices of a service, for
// an event about it.
type Details struct {
	Ratio            float64 // of missing pods; NaN: unknown
	Idle             int64   // devices; -1: unknown
	Missing, Settled int64   // pods; -1: unknown
	Pods             []string
	units            string // what pods are called: on Slurm they are jobs, each once a node
}

// NewDetails returns details of which nothing is known.
func NewDetails() *Details { return &Details{Ratio: math.NaN(), Idle: -1, Missing: -1, Settled: -1} }

// ReadsDetails reports whether Add uses points of the metric.
func ReadsDetails(metric string) bool {
	switch metric {
	case names.ServiceMissingRatio.Name, names.ServicePods.Name, names.PodState.Name, names.ServiceIdleDevices.Name:
		return true
	}
	return false
}

// Add takes a point: its value, and the state and the pod that it is about.
func (d *Details) Add(metric string, v float64, state, pod string) {
	switch metric {
	case names.ServiceMissingRatio.Name:
		d.Ratio = v
	case names.ServiceIdleDevices.Name:
		d.Idle = int64(v)
	case names.ServicePods.Name:
		d.countPods(state, int64(v))
	case names.PodState.Name:
		if state == "missing" && v == 1 && pod != "" {
			d.Pods = append(d.Pods, event.Clean(pod))
		}
	}
}

func (d *Details) countPods(state string, pods int64) {
	switch state {
	case "missing":
		d.Missing = pods
	case "reporting", "degraded":
	default:
		return
	}
	d.Settled = max(d.Settled, 0) + pods
}

// Finish completes the details after the last point.
func (d *Details) Finish() {
	slices.Sort(d.Pods)
	d.Pods = slices.Compact(d.Pods)
	if d.Missing < 0 && len(d.Pods) > 0 {
		d.Missing = int64(len(d.Pods))
	}
	if len(d.Pods) > event.MaxNames {
		d.Pods = slices.Clip(d.Pods[:event.MaxNames])
	}
}

// pods is the end of a sentence about the service, with its full stop.
func (d *Details) pods() string {
	switch {
	case d.Missing < 0 || d.Settled <= 0:
		return "."
	case d.Missing == 0:
		return fmt.Sprintf(": none of %d settled %s is missing.", d.Settled, d.units)
	}
	verb := "are"
	if d.Missing == 1 {
		verb = "is"
	}
	return fmt.Sprintf(": %d of %d settled %s %s missing", d.Missing, d.Settled, d.units, verb) + event.InBrackets(d.Pods, int(d.Missing)) + "."
}

// putPods writes what is known of the pods.
func (d *Details) putPods(attrs pcommon.Map) {
	event.PutList(attrs, names.GPUServiceMissingPods, d.Pods)
	if d.Missing >= 0 {
		attrs.PutInt(names.GPUServiceMissingPodCount, d.Missing)
	}
	if d.Settled >= 0 {
		attrs.PutInt(names.GPUServiceSettledPodCount, d.Settled)
	}
	if !math.IsNaN(d.Ratio) {
		attrs.PutDouble(names.GPUServiceMissingRatio, d.Ratio)
	}
}
