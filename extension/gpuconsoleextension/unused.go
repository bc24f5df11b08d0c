// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension"

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.uber.org/zap"
)

var _ extensioncapabilities.ConfigSnapshotWatcher = (*console)(nil)

// lacks is what is missing where a component of ours is configured and in no
// pipeline.
var lacks = map[string]string{
	"dcgm":             "no dcgm-exporter is scraped",
	"gpu_allocation":   "the kubelet is not asked who owns which device",
	"gpu_scheduling":   "free, stranded and pending devices are not reported",
	"slurm_allocation": "devices have no job as their owner",
	"gpu_pod":          "devices have no owner, and the series of a former owner do not end",
	"gpu_summary":      "services have no averages and no partial state",
	"gpu_events":       "no event is raised",
	"gpu_cost":         "time, cost and energy are not counted, and there are no reports of them",
	"webhook":          "no endpoint gets an event",
	"gpu_store":        "nothing of it is stored, and the console does not show it",
}

// instead are receivers that may stand in the place of dcgm: the machine has GPUs of
// another vendor.
var instead = []string{"nvml", "amd_gpu", "gaudi", "intel_gpu"}

// NotifyConfigSnapshot warns of components of ours that are configured and in no
// pipeline, as where an overlay replaced a list of them. The Collector does not even
// make those, so that they cannot report it themselves: only an extension sees the
// whole configuration.
func (c *console) NotifyConfigSnapshot(_ context.Context, snapshot extensioncapabilities.ConfigSnapshot) error {
	for _, one := range unused(snapshot.Effective()) {
		kind, _, _ := strings.Cut(one.id, "/")
		c.settings.Logger.Warn("component is configured and in no pipeline: name it in a pipeline under service::pipelines, or remove it",
			zap.String("component", one.class+"::"+one.id), zap.String("effect", lacks[kind]))
	}
	return nil
}

type configured struct{ class, id string }

// unused are the components of lacks that no pipeline names.
func unused(conf *confmap.Conf) (out []configured) {
	if conf == nil {
		return nil
	}
	used := map[configured]bool{}
	others := false // a receiver of instead is used
	pipelines, _ := conf.Get("service::pipelines").(map[string]any)
	for _, p := range pipelines {
		pipeline, _ := p.(map[string]any)
		for class, list := range pipeline {
			ids, _ := list.([]any)
			for _, id := range ids {
				used[configured{class, fmt.Sprint(id)}] = true
				kind, _, _ := strings.Cut(fmt.Sprint(id), "/")
				others = others || slices.Contains(instead, kind)
			}
		}
	}
	for _, class := range []string{"receivers", "processors", "connectors", "exporters"} {
		defined, _ := conf.Get(class).(map[string]any)
		for _, id := range slices.Sorted(maps.Keys(defined)) {
			kind, _, _ := strings.Cut(id, "/")
			in := used[configured{class, id}] || class == "connectors" && used[configured{"exporters", id}]
			if lacks[kind] != "" && !in && (kind != "dcgm" || !others) {
				out = append(out, configured{class, id})
			}
		}
	}
	return out
}
