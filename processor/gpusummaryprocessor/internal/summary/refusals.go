// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

// Reason is why a point, or a pod of the Kubernetes API, is no part of the summary.
type Reason uint8

// The reasons; those from LimitPods on are limits.
const (
	accepted Reason = iota
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
	LimitPods
	limitServices
	limitDevices

	// NumReasons is how many there are.
	NumReasons
)

var reasonNames = [NumReasons]string{
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
	LimitPods:     "pods",
	limitServices: "services",
	limitDevices:  "devices",
}

var remedies = [NumReasons]string{
	noNamespace:   "the resource has k8s.pod.name without k8s.namespace.name: run gpu_pod before gpu_summary",
	noService:     "the resource has a pod without service.name: run gpu_pod or k8s_attributes, which compute it, before gpu_summary",
	noDevice:      "neither the point nor its resource has hw.id",
	noTimestamp:   "the point has no timestamp",
	wrongUnit:     "the metric's unit is not that of the semantic conventions",
	wrongKind:     "the metric is neither a gauge nor a cumulative sum",
	outOfRange:    "the value is negative, a ratio above 1, or more than any device has",
	tooOld:        "the point is older than service_ttl, or allocation_ttl where it is gpu.allocation: check the clock of its machine",
	LimitPods:     "max_pods is reached: raise it",
	limitServices: "max_services is reached: raise it",
	limitDevices:  "one pod has points of more devices than any machine holds: check hw.id",
}

// String is the name of the reason in telemetry.
func (r Reason) String() string { return reasonNames[r] }

// Remedy is what an operator can do about it; "" where nothing is wrong.
func (r Reason) Remedy() string { return remedies[r] }

// IsLimit distinguishes limits from what is wrong with the point itself.
func (r Reason) IsLimit() bool { return r >= LimitPods }

// Tally counts what became of the points of one batch.
type Tally struct {
	Accepted int
	Future   int // accepted or not, further than 30 s ahead
	Refused  [NumReasons]int
	// Examples is nil while nothing is refused: the stack of each request, which
	// is new and grows by being copied, would have to hold it.
	Examples *[NumReasons]Example
}

// Example is where a refusal was met first.
type Example struct {
	Cluster, Namespace, Pod, Metric string
}

// Any reports whether something was refused.
func (t *Tally) Any() bool { return t.Refused != [NumReasons]int{} }

func (t *Tally) refuse(why Reason, n int, pod podKey, metric string) {
	if n > 0 && t.Refused[why] == 0 {
		if t.Examples == nil {
			t.Examples = new([NumReasons]Example)
		}
		t.Examples[why] = Example{inKubernetes(pod.cluster), pod.namespace, readable(pod.name), metric}
	}
	t.Refused[why] += n
}
