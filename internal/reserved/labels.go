// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package reserved // import "github.com/otelcol-gpu/otelcol-gpu/internal/reserved"

import (
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// deviceLabels are the labels of GPU telemetry that do not begin with hw_, by which
// a series could be joined with that of a device. Training frameworks have a gpu_id
// or gpu_name of their own: those stay.
var deviceLabels = labelsOf(
	names.GPUIndex, names.GPUPCIAddress, names.GPUMIGProfile, names.GPUMIGInstanceID, names.GPUMIGUUID,
	names.GPUPodState, names.GPUDeviceState, names.GPUXIDCode, names.GPUXIDDerived, names.GPUValueScope,
	names.GPUAttributionSource, names.GPUSharing, names.GPUAllocationResolved,
	names.GPUDeviceIDs, names.GPUDeviceCount,
	names.GPUPartitionID, names.GPUPartitionProfile, names.GPULinkIndex, names.GPULinkKind, names.GPUECCBlock, names.GPURASSeverity,
	names.GPUPCIeErrorType,
)

// podDevices are the labels of attributes in which gpu_pod states the devices of a pod
// on the resource of its spans and log records.
var podDevices = labelsOf(names.GPUDeviceIDs, names.GPUDeviceCount)

// ownerLabels name the owner of a series, beside those that begin with k8s_ or slurm_. They
// come from the resource, job and instance in Prometheus.
var ownerLabels = labelsOf(names.ServiceName, names.ServiceNamespace, names.HostName, "job", "instance")

// ownerAttribute reports whether an attribute of an application's resource names it in the
// spelling of the conventions.
func ownerAttribute(key string) bool {
	return strings.HasPrefix(key, "k8s.") || strings.HasPrefix(key, "slurm.") || key == names.ServiceName || key == names.ServiceNamespace || key == names.HostName
}

func labelsOf(attributes ...string) map[string]bool {
	labels := map[string]bool{}
	for _, a := range attributes {
		labels[label(a)] = true
	}
	return labels
}

// label is what becomes of an attribute's key: letters and digits as they are, all
// else one underscore, none in front.
func label(key string) string {
	return strings.Join(strings.FieldsFunc(key, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}), "_")
}

// InferenceAttribute reports whether an attribute would become a label of the
// inference processor: by inference_engine its gen_ai.server.* differs from what SDKs
// measure under the same names.
func InferenceAttribute(key string) bool {
	if !strings.Contains(key, "inference") {
		return false // as nearly every key, for which no label is made here
	}
	l := label(key)
	return l == "inference" || strings.HasPrefix(l, "inference_")
}

// Attribute reports whether an attribute of an application's point would become a
// label of a device, of an owner, or of Prometheus itself.
func Attribute(key string) bool {
	l := label(key)
	return device(l) || owner(l) || strings.HasPrefix(key, "__")
}

// ResourceAttribute is Attribute for a resource, which names its owner, and does so
// in the spelling of the conventions alone.
func ResourceAttribute(key string) bool {
	l := label(key)
	return device(l) || strings.HasPrefix(key, "__") ||
		owner(l) && !ownerAttribute(key)
}

// RecordAttribute reports whether an attribute of an application's span or log record,
// or of their scope, would pass for what gpu_pod states about its pod.
func RecordAttribute(key string) bool {
	// What every span has is looked at closer only if it may be one of them.
	return strings.Contains(key, "device") && podDevices[label(key)]
}

// RecordResourceAttribute is RecordAttribute for the resource of spans or log records.
func RecordResourceAttribute(key string) bool {
	return RecordAttribute(key) || strings.Contains(key, "model") && label(key) == hwModel
}

var hwModel = label(names.HwModel)

func device(label string) bool {
	return label == "hw" || strings.HasPrefix(label, "hw_") || deviceLabels[label]
}

func owner(label string) bool {
	return strings.HasPrefix(label, "k8s_") || strings.HasPrefix(label, "slurm_") || ownerLabels[label]
}
