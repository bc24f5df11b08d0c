// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/egress"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/folder"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

const probesAtOnce = 8

// Probe is how far an endpoint can be reached without sending it anything.
type Probe struct {
	Receiver string
	// Scheme and Host are all that may be shown of its URL.
	Scheme, Host string
	// Proxied is whether the way leads through proxy_url.
	Proxied bool
	// Error is empty where it was reached, else the error of an audit record.
	Error audit.ErrorType
	// Problem is why no attempt was made, in words: an endpoint's configuration
	// that is refused. It never holds the URL.
	Problem string
}

// Probe looks up every receiver, those of receivers_dir too, and connects to it
// as a delivery would: by the same rules for addresses, through the same proxy,
// with a TLS handshake. It sends no request, so no endpoint learns of it.
// An error is a configuration that the exporter refuses as a whole.
func (c *Config) Probe(ctx context.Context) ([]Probe, error) {
	return c.probe(ctx, egress.Network{})
}

func (c *Config) probe(ctx context.Context, env egress.Network) ([]Probe, error) {
	g, err := c.guard()
	if err != nil {
		return nil, err
	}
	var targets []*endpoint.Endpoint
	var probes []Probe
	taken := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(c.Receivers)) {
		taken[name] = true
		t, err := endpoint.New(name, c.Receivers[name], c.defaults())
		if err != nil {
			if !endpoint.NamePattern.MatchString(name) {
				name = "…" // it may be a URL in the wrong place
			}
			probes = append(probes, Probe{Receiver: name, Error: audit.ErrorConfig, Problem: err.Error()})
			continue
		}
		targets = append(targets, t)
	}
	if c.ReceiversDir != "" {
		found, err := folder.NewDir(c.ReceiversDir, taken, g, c.defaults()).Scan()
		if err != nil {
			return nil, fmt.Errorf("receivers_dir: %w", err)
		}
		targets = append(targets, found.Targets...)
		for _, f := range found.Findings {
			if f.Reason != folder.SkipNone {
				probes = append(probes, Probe{Receiver: f.Name, Error: audit.ErrorConfig, Problem: "its file in receivers_dir " + f.Text})
			}
		}
	}
	results := make([]Probe, len(targets))
	var wg sync.WaitGroup
	slots := make(chan struct{}, probesAtOnce)
	for i, t := range targets {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() {
				<-slots
				if recover() != nil { // it must not cost the others
					results[i] = Probe{Receiver: t.Name, Error: audit.ErrorConfig, Problem: "to look at it broke: a defect, please report it"}
				}
			}()
			results[i] = probe(ctx, t, g, env)
		})
	}
	wg.Wait()
	return append(results, probes...), nil
}

func probe(ctx context.Context, ep *endpoint.Endpoint, g *egress.Guard, n egress.Network) Probe {
	return Probe{
		Receiver: ep.Name, Scheme: ep.URL.Scheme, Host: ep.URL.Hostname(), Proxied: g.Proxied(),
		Error: egress.Connect(ctx, &ep.Address, ep.Timeout, g, n),
	}
}
