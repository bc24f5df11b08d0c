// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"cmp"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// row is what the labels of a row say.
type row struct {
	uuid, instance string
	facts          facts
	holder         holder
}

// read sorts labels. Empty values and the sentinels of DCGM's
// STRING fields count as absent.
func (r *row) read(labels []label) {
	*r = row{}
	var exported bool
	for _, l := range labels {
		key, text := l.key, l.value
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
		r.readExported(labels)
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
func (r *row) readExported(labels []label) {
	r.holder.pod, r.holder.namespace, r.holder.container, r.holder.podUID = "", "", "", ""
	for _, l := range labels {
		if exporterlabels.Exported(l.key) && l.value != "" && !stringSentinel(l.value) {
			r.readHolder(exporterlabels.Classify(l.key), l.value)
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
