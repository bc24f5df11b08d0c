// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

// reason is why a point is no part of the summary.
type reason uint8

const (
	accepted reason = iota
	noNamespace
	noService
	noDevice
	noTimestamp
	wrongUnit
	wrongKind
	outOfRange
	tooOld
	late
	duplicate
	limitPods
	limitServices
	limitDevices
	numReasons
)

var reasonNames = [numReasons]string{
	noNamespace:   "no_namespace",
	noService:     "no_service",
	noDevice:      "no_device",
	noTimestamp:   "no_timestamp",
	wrongUnit:     "wrong_unit",
	wrongKind:     "wrong_kind",
	outOfRange:    "out_of_range",
	tooOld:        "too_old",
	late:          "late",
	duplicate:     "duplicate",
	limitPods:     "pods",
	limitServices: "services",
	limitDevices:  "devices",
}

var remedies = [numReasons]string{
	noNamespace:   "the resource has k8s.pod.name without k8s.namespace.name: run gpu_pod before gpu_summary",
	noService:     "the resource has a pod without service.name: run gpu_pod or k8s_attributes, which compute it, before gpu_summary",
	noDevice:      "neither the point nor its resource has hw.id",
	noTimestamp:   "the point has no timestamp",
	wrongUnit:     "the metric's unit is not that of the semantic conventions",
	wrongKind:     "the metric is neither a gauge nor a cumulative sum",
	outOfRange:    "the value is negative, a ratio above 1, or more than any device has",
	tooOld:        "the point is older than service_ttl: check the clock of its machine",
	limitPods:     "max_pods is reached: raise it",
	limitServices: "max_services is reached: raise it",
	limitDevices:  "one pod has points of more devices than any machine holds: check hw.id",
}

func (r reason) isLimit() bool { return r >= limitPods }

// tally counts what became of the points of one batch.
type tally struct {
	accepted int
	future   int
	refused  [numReasons]int
	examples [numReasons]example
}

// example is where a refusal was met first.
type example struct {
	pod    podKey
	metric string
}

func (t *tally) refuse(why reason, n int, src *source, metric string) {
	if n > 0 && t.refused[why] == 0 {
		t.examples[why] = example{src.pod, metric}
	}
	t.refused[why] += n
}
