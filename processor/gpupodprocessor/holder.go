// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/serviceidentity"
)

// source is where a holder is known from, or why it is not.
type source uint8

// The order of those from the exporter's labels matters: where rows of one device
// say different things, the later one counts.
const (
	sourceNone         source = iota // nobody says who holds the device
	sourceIncomplete                 // a pod without namespace, or the other way round
	sourceShared                     // several containers hold it: no one of them does
	sourceLabels                     // the exporter's labels
	sourceResource                   // k8s.pod.name was on the resource already
	sourcePodResources               // gpu.allocation, from the kubelet
	sourceDRA                        // gpu.allocation, from a ResourceClaim
	sourceReplica                    // gpu.allocation: a part of a shared device
	sourceFree                       // gpu.allocation: nobody
	sourceMIGParent                  // its instances are held, it is not
	sourceContested                  // gpu.allocation: several, and that cannot be
	sourceExpired                    // gpu.allocation said it too long ago
	sourceUnresolved                 // an allocation of its node is joined to no device
	sourceCount
)

var sourceNames = [sourceCount]string{
	"none", "incomplete", "shared", "exporter_labels", "resource", "pod_resources", "dra", "replica",
	"free", "mig_parent", "contested", "expired", "unresolved",
}

// held reports whether the device has a holder.
func (s source) held() bool {
	switch s {
	case sourceLabels, sourceResource, sourcePodResources, sourceDRA, sourceReplica:
		return true
	}
	return false
}

// allocated reports whether gpu.allocation may have said so.
func (s source) allocated() bool {
	return s == sourceShared || s >= sourcePodResources && s != sourceUnresolved
}

// unattributed reports whether the device should have a holder and has not.
func (s source) unattributed() bool {
	switch s {
	case sourceNone, sourceIncomplete, sourceContested, sourceExpired, sourceUnresolved:
		return true
	}
	return false
}

// labels is what an exporter's labels say, in whichever spelling. Empty values
// are absent ones.
type labels struct {
	plain, exported owner.Owner
	uid, vgpu       string
	exportedUID     string
	podLabels       bool // there are pod_label_*, so that points with and without them differ

	// For points that somebody else scraped: which device they are about, and
	// the label "service", with which scrapers name their target.
	hwID, hwType, uuid, migInstance, service string
}

func readLabels(attrs pcommon.Map) (l labels) {
	for key, value := range attrs.All() {
		if value.Type() == pcommon.ValueTypeStr && value.Str() != "" {
			l.read(key, value)
		}
	}
	return l
}

// read takes one label, whose value is not empty, and reports whether it is
// consumed.
func (l *labels) read(key string, value pcommon.Value) bool {
	own := &l.plain
	if exporterlabels.Exported(key) {
		own = &l.exported
	}
	label := exporterlabels.Classify(key)
	switch label {
	case exporterlabels.UUID:
		first(&l.uuid, value)
	case exporterlabels.MIGInstance:
		first(&l.migInstance, value)
	case exporterlabels.Pod:
		first(&own.Pod, value)
	case exporterlabels.Namespace:
		first(&own.Namespace, value)
	case exporterlabels.Container:
		first(&own.Container, value)
	case exporterlabels.PodUID:
		if exporterlabels.Exported(key) {
			first(&l.exportedUID, value)
		} else {
			first(&l.uid, value)
		}
	case exporterlabels.PodLabel:
		l.podLabels = l.podLabels || strings.HasPrefix(key, names.ExporterPodLabel)
	case exporterlabels.VGPU:
		first(&l.vgpu, value)
	case exporterlabels.Other:
		switch key {
		case names.HwID:
			first(&l.hwID, value)
		case names.HwType:
			first(&l.hwType, value)
		case "service":
			first(&l.service, value)
		}
	}
	return consumedAs(label, key)
}

func first(dst *string, v pcommon.Value) {
	if *dst == "" {
		*dst = v.Str()
	}
}

// renamed reports whether a scraper renamed the exporter's labels.
func (l *labels) renamed() bool { return !l.exported.IsZero() }

// holder is who holds the device according to l.
//
// A scraper renames a label of the exporter only if its target has that label
// too, and the exporter prints pod, namespace and container together. So where
// one of them is renamed, a plain one that is not renamed is the exporter's own
// word. The container alone is not believed then: a target mostly has it.
func (l *labels) holder() (owner.Owner, source) {
	h := l.plain
	if l.renamed() {
		h = l.exported
		if h.Pod == "" {
			h.Pod = l.plain.Pod
		}
		if h.Namespace == "" {
			h.Namespace = l.plain.Namespace
		}
	}
	switch {
	case h.Pod == "" && h.Namespace == "":
		return owner.Owner{}, sourceNone
	case h.Pod == "" || h.Namespace == "":
		return owner.Owner{}, sourceIncomplete
	case l.vgpu != "":
		return owner.Owner{}, sourceShared
	}
	return h, sourceLabels
}

func (l *labels) podUID() string {
	if l.exportedUID != "" {
		return l.exportedUID
	}
	return l.uid
}

// consumed reports whether the label named key becomes k8s.* attributes of the
// resource, or is taken off because it no longer says anything: the replica's
// number, and the exporter's own pod. The batch job and the DRA claim stay, and
// so do pod labels without their prefix: after a scrape by somebody else they
// may as well be those of the target.
func consumed(key string) bool { return consumedAs(exporterlabels.Classify(key), key) }

func consumedAs(label exporterlabels.Label, key string) bool {
	switch label {
	case exporterlabels.Pod, exporterlabels.Namespace, exporterlabels.Container,
		exporterlabels.PodUID, exporterlabels.VGPU:
		return true
	case exporterlabels.PodLabel:
		return strings.HasPrefix(key, names.ExporterPodLabel)
	}
	return false
}

func str(attrs pcommon.Map, key string) string {
	v, ok := attrs.Get(key)
	if !ok || v.Type() != pcommon.ValueTypeStr {
		return ""
	}
	return v.Str()
}

// putIdentity writes the owner, the pod's uid and the service, as far as they are known.
func putIdentity(attrs pcommon.Map, who owner.Owner, uid, service string) {
	who.Put(attrs)
	if uid != "" {
		attrs.PutStr(names.K8sPodUID, uid)
	}
	if service != "" {
		attrs.PutStr(names.ServiceName, service)
	}
}

// podLabelKeys are the labels of serviceidentity as an exporter prints them: a
// Prometheus label has no dots and slashes.
var podLabelKeys = func() (keys [len(serviceidentity.Labels)]string) {
	for i, label := range serviceidentity.Labels {
		keys[i] = names.ExporterPodLabel + strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(label)
	}
	return keys
}()

// serviceName is the service of the pod, according to the pod labels in attrs.
func serviceName(pod string, attrs pcommon.Map) string {
	return serviceidentity.FromLabels(pod, func(i int) string { return str(attrs, podLabelKeys[i]) })
}
