// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"cmp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// row is what the labels of one row say. It is reused for every row of a page.
type row struct {
	uuid, instance string
	facts          facts
	holder         holder
}

// read sorts the labels of one row. Empty values and the sentinels of DCGM's
// STRING fields count as absent.
func (r *row) read(attrs pcommon.Map) {
	more := r.holder.more[:0]
	*r = row{}
	r.holder.more = more
	var exported bool
	for key, v := range attrs.All() {
		text := v.Str()
		if text == "" || stringSentinel(text) {
			continue
		}
		switch kind := exporterlabels.Classify(key); kind {
		case exporterlabels.UUID:
			r.uuid = text
		case exporterlabels.MIGInstance:
			r.instance = text
		case exporterlabels.MIGProfile:
			r.facts.profile = text
		case exporterlabels.Index:
			r.facts.index = text
		case exporterlabels.PCIAddress:
			r.facts.pci = text
		case exporterlabels.Model:
			r.facts.model = text
		case exporterlabels.Host:
			r.facts.host = text
		case exporterlabels.Field:
			r.readField(key, text)
		case exporterlabels.Pod, exporterlabels.Namespace, exporterlabels.Container, exporterlabels.PodUID:
			exported = exported || exporterlabels.Exported(key)
			r.readHolder(kind, text)
		case exporterlabels.Other:
			if unprefixedPodLabel(key) {
				r.holder.more = append(r.holder.more, label{names.ExporterPodLabel + key, text})
			}
		case exporterlabels.PodLabel, exporterlabels.VGPU, exporterlabels.HPCJob, exporterlabels.DRA:
			r.holder.more = append(r.holder.more, label{key, text})
			if key == "dra_mig_device_uuid" {
				r.facts.migUUID = text
			}
		}
	}
	if exported {
		r.readExported(attrs)
	}
	if len(r.holder.more) > 1 {
		slices.SortFunc(r.holder.more, func(a, b label) int {
			return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(b.value, a.value))
		})
		// app and pod_label_app are one label.
		r.holder.more = slices.CompactFunc(r.holder.more, func(a, b label) bool { return a.key == b.key })
	}
}

func (r *row) readHolder(kind exporterlabels.Label, text string) {
	switch kind {
	case exporterlabels.Pod:
		r.holder.pod = text
	case exporterlabels.Namespace:
		r.holder.namespace = text
	case exporterlabels.Container:
		r.holder.container = text
	case exporterlabels.PodUID:
		r.holder.podUID = text
	}
}

// unprefixedPodLabel knows the labels of a pod that can name its service, as
// exporters before 4.8.3 print them: without pod_label_. Only on pages that we
// scraped ourselves: elsewhere such a label may be the exporter pod's own.
func unprefixedPodLabel(key string) bool {
	switch key {
	case "app", "app_kubernetes_io_name", "app_kubernetes_io_instance":
		return true
	default:
		return false
	}
}

// readExported reads the holder from the exported_* labels alone: where a
// scraper renamed any of them, the plain ones name the exporter's own pod.
func (r *row) readExported(attrs pcommon.Map) {
	r.holder.pod, r.holder.namespace, r.holder.container, r.holder.podUID = "", "", "", ""
	for key, v := range attrs.All() {
		if text := v.Str(); exporterlabels.Exported(key) && text != "" && !stringSentinel(text) {
			r.readHolder(exporterlabels.Classify(key), text)
		}
	}
}

// readField reads a field of type label.
func (r *row) readField(key, text string) {
	switch key {
	case "DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION":
		r.facts.driver = text
	case "DCGM_FI_DEV_SERIAL", "DCGM_FI_DEV_BOARD_SERIAL":
		r.facts.serial = text
	case "DCGM_FI_DEV_VBIOS_VERSION":
		r.facts.firmware = text
	default:
		if r.facts.other == nil {
			r.facts.other = map[string]string{}
		}
		r.facts.other[unmappedName(key)] = text
	}
}

// stringSentinel tells <<<NULL>>>, <<<NOT_SUPPORTED>>> and their like, as
// dcgm_fields.h does. s is not empty.
func stringSentinel(s string) bool {
	return s[0] == '<' && strings.HasPrefix(s, "<<<") && strings.Contains(s, ">>>")
}
