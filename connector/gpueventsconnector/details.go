// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	// maxNamed is how many names an event lists.
	maxNamed = 50
	// maxPods is how many missing pods an event names.
	maxPods = maxNamed
	// maxPodsInBody is how many of them the sentence names.
	maxPodsInBody = 5
)

// moment is one evaluation of one service. All metrics of an evaluation have
// one timestamp and come in one batch, which may hold several evaluations.
type moment struct {
	service service
	at      pcommon.Timestamp
}

// details is what an evaluation says about the pods of a service.
type details struct {
	ratio   float64 // NaN is unknown
	idle    int64   // devices; -1 is unknown
	missing int64   // -1 is unknown
	settled int64   // -1 is unknown
	pods    []string
}

// gather collects the details of the moments at which something changed.
func gather(changes []moment, md pmetric.Metrics) map[moment]*details {
	known := make(map[moment]*details, len(changes))
	for _, c := range changes {
		known[c] = &details{ratio: math.NaN(), missing: -1, settled: -1, idle: -1}
	}
	eachPoint(md, func(metric string, resource pcommon.Map, p pmetric.NumberDataPoint) {
		switch metric {
		case names.ServiceMissingRatio.Name, names.ServicePods.Name, names.PodState.Name, names.ServiceIdleDevices.Name:
		default:
			return
		}
		v := number(p)
		if math.IsNaN(v) {
			return
		}
		d := known[moment{serviceOf(resource, p.Attributes()), p.Timestamp()}]
		if d == nil {
			return
		}
		state := text(names.GPUPodState, resource, p.Attributes())
		switch metric {
		case names.ServiceMissingRatio.Name:
			d.ratio = v
		case names.ServiceIdleDevices.Name:
			d.idle = int64(v)
		case names.ServicePods.Name:
			d.count(state, int64(v))
		case names.PodState.Name:
			pod := text(names.K8sPodName, resource, p.Attributes())
			if state == "missing" && v == 1 && pod != "" {
				d.pods = append(d.pods, clean(pod))
			}
		}
	})
	for _, d := range known {
		d.finish()
	}
	return known
}

// count adds the pods in one state; settled pods are in one of three.
func (d *details) count(state string, pods int64) {
	switch state {
	case "missing":
		d.missing = pods
	case "reporting", "degraded":
	default:
		return
	}
	d.settled = max(d.settled, 0) + pods
}

func (d *details) finish() {
	slices.Sort(d.pods)
	d.pods = slices.Compact(d.pods)
	if d.missing < 0 && len(d.pods) > 0 {
		d.missing = int64(len(d.pods))
	}
	if len(d.pods) > maxPods {
		d.pods = slices.Clip(d.pods[:maxPods])
	}
}

// put writes what is known; what is not known is absent.
func (d *details) put(attrs pcommon.Map) {
	if len(d.pods) > 0 {
		list := attrs.PutEmptySlice(names.GPUServiceMissingPods)
		list.EnsureCapacity(len(d.pods))
		for _, pod := range d.pods {
			list.AppendEmpty().SetStr(pod)
		}
	}
	if d.missing >= 0 {
		attrs.PutInt(names.GPUServiceMissingPodCount, d.missing)
	}
	if d.settled >= 0 {
		attrs.PutInt(names.GPUServiceSettledPodCount, d.settled)
	}
	if !math.IsNaN(d.ratio) {
		attrs.PutDouble(names.GPUServiceMissingRatio, d.ratio)
	}
}

// sentence is the end of a sentence about the service, with its full stop.
func (d *details) sentence() string {
	switch {
	case d.missing < 0 || d.settled <= 0:
		return "."
	case d.missing == 0:
		return fmt.Sprintf(": none of %d settled pods is missing.", d.settled)
	}
	verb := "are"
	if d.missing == 1 {
		verb = "is"
	}
	return fmt.Sprintf(": %d of %d settled pods %s missing", d.missing, d.settled, verb) + inBrackets(d.pods, int(d.missing)) + "."
}

// inBrackets are the first of the names, in brackets, and how many more there are.
func inBrackets(all []string, count int) string {
	if len(all) == 0 {
		return ""
	}
	named := all[:min(len(all), maxPodsInBody)]
	out := " (" + strings.Join(named, ", ")
	if more := count - len(named); more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out + ")"
}

// explain completes an event about a service with what its evaluation said; d is
// nil where there was none.
func (ev *event) explain(s service, d *details) {
	if d == nil {
		d = &details{ratio: math.NaN(), missing: -1, settled: -1, idle: -1}
	}
	of := map[string]struct{ is, state string }{
		names.EventServicePartial: {"partial", "its partial state"},
		names.EventServiceNoData:  {"without data", "its lack of data"},
		names.EventIdleHeld:       {"holding idle GPUs", "its idle GPUs"},
	}[ev.name]
	tail := d.sentence()
	put := d.put
	if ev.name == names.EventIdleHeld {
		tail, put = ".", d.putIdle
		if d.idle > 0 {
			tail = fmt.Sprintf(": %s did no work for long.", plural(int(d.idle), "GPU"))
		}
	}
	switch {
	case ev.state == names.EventRaised:
		ev.body = s.String() + " is " + of.is + tail
	case ev.why == "unheard":
		ev.body = s.String() + " was not heard of since the restart, and is no longer " + of.is + "."
	case ev.why == "gone":
		ev.body = s.String() + " is gone, and " + of.state + " with it."
	default:
		ev.body = s.String() + " is no longer " + of.is + tail
	}
	ev.details = append(ev.details, put)
}

func (d *details) putIdle(attrs pcommon.Map) {
	if d.idle >= 0 {
		attrs.PutInt(names.GPUServiceIdle, d.idle)
	}
}
