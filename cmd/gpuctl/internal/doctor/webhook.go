// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/remedies"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// checkWebhooks connects to every receiver, and tells none of them anything.
func (in *installation) checkWebhooks(ctx context.Context) []Result {
	var results []Result
	for _, id := range in.unused("exporters", "webhook") {
		results = append(results, Result{"webhook", id, Warn, "no pipeline names it: nothing is sent to its receivers", "name it in service::pipelines::logs/events::exporters, or remove it"})
	}
	exporters := in.of("exporters", "webhook")
	if len(exporters) == 0 && len(results) == 0 {
		return []Result{{"webhook", "", Skipped, "the configuration has no webhook exporter in a pipeline: nobody is told of events", ""}}
	}
	for _, c := range exporters {
		cfg := webhookexporter.NewFactory().CreateDefaultConfig().(*webhookexporter.Config)
		if c.conf.Unmarshal(cfg) != nil {
			// The error may quote what is secret.
			results = append(results, Result{"webhook", c.id, Fail, "its configuration is not understood", "otelcol-gpu validate with the same --config says why"})
			continue
		}
		probes, err := cfg.Probe(ctx)
		if err != nil {
			results = append(results, Result{"webhook", c.id, Fail, err.Error(), "correct the key that is named"})
			continue
		}
		for _, p := range probes {
			results = append(results, reached(p))
		}
		if len(probes) == 0 {
			results = append(results, Result{"webhook", c.id, Warn, "there is no receiver", "name one in receivers, or put its file into receivers_dir"})
		}
	}
	return results
}

func reached(p webhookexporter.Probe) Result {
	r := Result{"webhook", p.Receiver, OK, "reached: " + p.Scheme + "://" + p.Host, ""}
	if p.Proxied {
		r.Seen += " through proxy_url"
	}
	switch {
	case p.Problem != "":
		r.Status, r.Seen, r.Remedy = Fail, p.Problem, remedies.Of(p.Error)
	case p.Error != audit.ErrorNone:
		r.Status, r.Seen, r.Remedy = Fail, "not reached: "+p.Scheme+"://"+p.Host+": "+string(p.Error), remedies.Of(p.Error)
	}
	return r
}
