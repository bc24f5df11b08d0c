// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
)

// Labels are the labels of an exporter, in whichever spelling. Empty values are
// absent ones.
type Labels struct {
	Plain, Exported owner.Owner
	uid, vgpu       string
	exportedUID     string
	job, amdJob     string
	podLabels       bool // there are pod_label_*, so that points with and without them differ

	// For points that another program scraped: which device they are about, and
	// the label "service", with which scrapers name their target.
	HwID, HwType, UUID, MIGInstance, Service string
}

func ReadLabels(attrs pcommon.Map) (l Labels) {
	for key, value := range attrs.All() {
		if value.Type() == pcommon.ValueTypeStr && value.Str() != "" {
			l.read(key, value)
		}
	}
	return l
}

// read takes one label with a value that is not empty, and reports whether it is
// consumed.
func (l *Labels) read(key string, value pcommon.Value) bool {
	own := &l.Plain
	if exporterlabels.Exported(key) {
		own = &l.Exported
	}
	label := exporterlabels.Classify(key)
	switch label {
	case exporterlabels.UUID:
		first(&l.UUID, value)
	case exporterlabels.MIGInstance:
		first(&l.MIGInstance, value)
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
	case exporterlabels.HPCJob:
		first(&l.job, value)
	case exporterlabels.Other:
		switch key {
		case names.HwID:
			first(&l.HwID, value)
		case names.HwType:
			first(&l.HwType, value)
		case "job_id":
			first(&l.amdJob, value)
		case "service":
			first(&l.Service, value)
		}
	}
	return consumedAs(label, key)
}

func first(dst *string, v pcommon.Value) {
	if *dst == "" {
		*dst = v.Str()
	}
}

// Renamed reports whether a scraper renamed the exporter's labels.
func (l *Labels) Renamed() bool { return !l.Exported.IsZero() }

// Owner is who owns the device according to l.
//
// A scraper renames a label of the exporter only if its target has that label
// too, and the exporter prints pod, namespace and container together. So where
// one of them is renamed, a plain one that is not renamed is the exporter's own
// label. The container alone is ignored then: a target mostly has it.
func (l *Labels) Owner() (owner.Owner, Source) {
	h := l.Plain
	if l.Renamed() {
		h = l.Exported
		if h.Pod == "" {
			h.Pod = l.Plain.Pod
		}
		if h.Namespace == "" {
			h.Namespace = l.Plain.Namespace
		}
	}
	switch {
	case h.Pod == "" && h.Namespace == "":
		return owner.Owner{}, SourceNone
	case h.Pod == "" || h.Namespace == "":
		return owner.Owner{}, SourceIncomplete
	case l.vgpu != "":
		return owner.Owner{}, SourceShared
	}
	return h, SourceLabels
}

// maxJobDigits is how many digits the id of a job of Slurm has at most.
const maxJobDigits = 10

// Job is the id of the job that the exporter names on the device id; "" where it names none
// that can be one of Slurm. AMD's exporter has a label of its own.
func (l *Labels) Job(id string) string {
	job := l.job
	if job == "" && l.amdJob != "" && deviceid.MakeOf(id) == deviceid.MakeAMD {
		job = l.amdJob
	}
	if len(job) > maxJobDigits || strings.Trim(job, "0123456789") != "" {
		return ""
	}
	return job
}

func (l *Labels) PodUID() string {
	if l.exportedUID != "" {
		return l.exportedUID
	}
	return l.uid
}

// Consumed reports whether the label named key becomes k8s.* attributes of the
// resource, or is taken off because it no longer means anything: the replica's
// number, and the exporter's own pod. The batch job and the DRA claim stay, and
// so do pod labels without their prefix: after a scrape by another program they
// may as well be those of the target.
func Consumed(key string) bool { return consumedAs(exporterlabels.Classify(key), key) }

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

// NamedDevice is the id of the GPU that attrs name, or "".
func NamedDevice(attrs pcommon.Map) string {
	var id, uuid, instance string
	for key, value := range attrs.All() {
		if value.Type() != pcommon.ValueTypeStr || value.Str() == "" {
			continue
		}
		switch key {
		case names.HwID:
			id = value.Str()
			continue
		case names.HwType:
			if value.Str() != names.HwTypeGPU {
				return ""
			}
			continue
		}
		switch exporterlabels.Classify(key) {
		case exporterlabels.UUID:
			if uuid == "" && deviceid.Known(value.Str()) {
				uuid = value.Str()
			}
		case exporterlabels.MIGInstance:
			instance = value.Str()
		}
	}
	switch {
	case id != "":
		return id
	case uuid != "" && instance != "":
		return deviceid.MIG(uuid, instance)
	}
	return uuid
}
