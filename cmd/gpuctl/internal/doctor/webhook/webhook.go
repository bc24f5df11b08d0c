// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package webhook is the probe of the endpoints that events are sent to.
package webhook

import (
	"context"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/remedies"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// Probe connects to every endpoint, and sends nothing to it.
func Probe(ctx context.Context, env probe.Env) []probe.Result {
	var results []probe.Result
	for _, id := range env.Config.Unused("exporters", "webhook") {
		results = append(results, probe.New(id, probe.Warn, "no pipeline names it: nothing is sent to its receivers", "name it in service::pipelines::logs/events::exporters, or remove it"))
	}
	exporters := env.Config.Of("exporters", "webhook")
	if len(exporters) == 0 && len(results) == 0 {
		return []probe.Result{probe.New("", probe.Skipped, "the configuration has no webhook exporter in a pipeline: events are not delivered", "")}
	}
	for _, c := range exporters {
		cfg := webhookexporter.NewFactory().CreateDefaultConfig().(*webhookexporter.Config)
		if c.Conf.Unmarshal(cfg) != nil {
			// The error may quote what is secret.
			results = append(results, probe.New(c.ID, probe.Fail, "its configuration is not understood", "otelcol-gpu validate with the same --config shows why"))
			continue
		}
		probes, err := cfg.Probe(ctx)
		if err != nil {
			results = append(results, probe.New(c.ID, probe.Fail, err.Error(), "correct the key that is named"))
			continue
		}
		for _, p := range probes {
			results = append(results, reached(p))
		}
		if len(probes) == 0 {
			results = append(results, probe.New(c.ID, probe.Warn, "there is no receiver", "name one in receivers, or put its file into receivers_dir"))
		}
	}
	return results
}

func reached(p webhookexporter.Probe) probe.Result {
	r := probe.New(p.Receiver, probe.OK, "reached: "+p.Scheme+"://"+p.Host, "")
	if p.Proxied {
		r.Seen += " through proxy_url"
	}
	switch {
	case p.Problem != "":
		r.Status, r.Seen, r.Remedy = probe.Fail, p.Problem, remedies.Of(p.Error)
	case p.Error != audit.ErrorNone:
		r.Status, r.Seen, r.Remedy = probe.Fail, "not reached: "+p.Scheme+"://"+p.Host+": "+string(p.Error), remedies.Of(p.Error)
	}
	return r
}
