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

// NotifyConfigSnapshot warns of webhook exporters in no pipeline. The Collector
// does not even make those, so that they cannot say so themselves: only an
// extension sees the whole configuration.
func (c *console) NotifyConfigSnapshot(_ context.Context, snapshot extensioncapabilities.ConfigSnapshot) error {
	for _, id := range unusedWebhooks(snapshot.Effective()) {
		c.settings.Logger.Warn("exporter is in no pipeline, and no receiver of it gets an event: name it in the exporters of a pipeline under service::pipelines, as in logs/events", zap.String("exporter", id))
	}
	return nil
}

func unusedWebhooks(conf *confmap.Conf) []string {
	if conf == nil {
		return nil
	}
	used := map[string]bool{}
	pipelines, _ := conf.Get("service::pipelines").(map[string]any)
	for _, p := range pipelines {
		pipeline, _ := p.(map[string]any)
		exporters, _ := pipeline["exporters"].([]any)
		for _, id := range exporters {
			used[fmt.Sprint(id)] = true
		}
	}
	defined, _ := conf.Get("exporters").(map[string]any)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(defined)), func(id string) bool {
		kind, _, _ := strings.Cut(id, "/")
		return kind != "webhook" || used[id]
	})
}
