// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// reachRemedies say what to do about a receiver that is not reached.
var reachRemedies = map[audit.ErrorType]string{
	audit.ErrorDNS:         "its host has no address here: check the URL, and the cluster's DNS",
	audit.ErrorConnect:     "nobody answers there, or the proxy refuses: check the URL and the way out (NetworkPolicy, firewall, proxy_url)",
	audit.ErrorTLS:         "its certificate is not trusted or not valid for this name: add your authority to the system's (SSL_CERT_FILE)",
	audit.ErrorTimeout:     "no connection within the receiver's timeout: a firewall drops what is sent, or proxy_url is needed",
	audit.ErrorSSRFBlocked: "its address is closed by default (private, loopback, link-local, metadata, or a port outside allow_ports): if it is yours, add its range to allow_cidrs",
	audit.ErrorConfig:      "correct the receiver's configuration",
}

// checkWebhooks connects to every receiver, and tells none of them anything.
func (in *installation) checkWebhooks(ctx context.Context) []Result {
	exporters := in.of("exporters", "webhook")
	if len(exporters) == 0 {
		return []Result{{"webhook", "", Skipped, "the configuration has no webhook exporter in a pipeline: nobody is told of events", ""}}
	}
	var results []Result
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
		r.Status, r.Seen, r.Remedy = Fail, p.Problem, reachRemedies[p.Error]
	case p.Error != audit.ErrorNone:
		r.Status, r.Seen, r.Remedy = Fail, "not reached: "+p.Scheme+"://"+p.Host+": "+string(p.Error), reachRemedies[p.Error]
	}
	return r
}
