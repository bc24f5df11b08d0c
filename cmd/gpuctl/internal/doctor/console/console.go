// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package console is the probe of the console and of the store behind it.
package console

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/web"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
)

// Probe asks the console for its status.
func Probe(ctx context.Context, env probe.Env) []probe.Result {
	extensions := env.Config.Of("extensions", "gpu_console")
	if len(extensions) == 0 {
		return []probe.Result{probe.New("", probe.Skipped, "the configuration has no gpu_console", "")}
	}
	cfg := struct {
		Endpoint string                `mapstructure:"endpoint"`
		TLS      *config.TLSServer     `mapstructure:"tls"`
		Auth     config.Authentication `mapstructure:"auth"`
	}{Endpoint: "localhost:8480"}
	if err := extensions[0].Read(&cfg); err != nil {
		return []probe.Result{probe.Invalid("", err)}
	}
	address := config.Near(cfg.Endpoint)
	r := probe.Result{Subject: address, Status: probe.Fail}
	scheme := "http"
	client := web.Direct(nil)
	if cfg.TLS != nil && cfg.TLS.CertFile != "" {
		// Its own certificate, on its own machine: it is not verified by a name.
		scheme, client = "https", web.Direct(&tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true})
	}
	// The configuration may have its token; without one the result is that it asks for it.
	header, err := env.Config.Credentials(nil, cfg.Auth)
	if err != nil {
		header = http.Header{}
	}
	header.Set("Accept", "application/json")
	if env.Token != "" {
		header.Set("Authorization", "Bearer "+env.Token)
	}
	a, err := web.Get(ctx, client, scheme+"://"+address+"/api/v1/status", header)
	if err != nil {
		r.Seen, r.Remedy = web.Why(err), "the collector does not run, or gpu_console listens elsewhere; "+probe.Logs
		return []probe.Result{r}
	}
	results := probe.Clock(address, a)
	var status consoleapi.StatusAnswer
	switch {
	case a.Status == http.StatusUnauthorized:
		r.Status, r.Seen, r.Remedy = probe.Skipped, "it asks for a token", "give its token with --token-file, or in OTELCOL_GPU_TOKEN"
		return append([]probe.Result{r}, results...)
	case a.Status != http.StatusOK:
		r.Seen, r.Remedy = fmt.Sprintf("it answers %d", a.Status), probe.Logs
		return append([]probe.Result{r}, results...)
	case json.Unmarshal(a.Body, &status) != nil || status.Version == "":
		r.Seen, r.Remedy = "this is no console", "check gpu_console::endpoint"
		return append([]probe.Result{r}, results...)
	}
	return append(append([]probe.Result{store(&status), data(&status)}, exportersOf(&status)...), results...)
}

// store is whether the console's store answers.
func store(status *consoleapi.StatusAnswer) probe.Result {
	r := probe.New("store", probe.OK, status.Store.Engine+", answers", "")
	if !status.Store.Reachable || status.Store.CircuitOpen {
		r.Status, r.Seen = probe.Fail, status.Store.Engine+", does not answer"
		if status.Store.Error != nil {
			r.Seen += ": " + status.Store.Error.Error()
		}
		r.Remedy = "engine prometheus: check gpu_store::url and its credentials; embedded: gpuctl doctor state telemetry"
	} else if problems := status.Store.Problems; len(problems) > 0 {
		p := &problems[0] // the worst
		r.Status, r.Seen = probe.Fail, fmt.Sprintf("%s are not stored: %s, since %s, %d refused", p.Part, p.Reason, p.Since.UTC().Format(time.RFC3339), p.Refused)
		if p.Ended != nil {
			r.Status, r.Seen = probe.Warn, fmt.Sprintf("%s were not stored: %s, until %s, %d refused", p.Part, p.Reason, p.Ended.UTC().Format(time.RFC3339), p.Refused)
		}
		r.Remedy = p.Detail
	}
	return r
}

// data is whether there is current data.
func data(status *consoleapi.StatusAnswer) probe.Result {
	r := probe.Result{Subject: "data"}
	f := status.Freshness
	switch {
	case status.State == consoleapi.StoreUnreachable:
		r.Status, r.Seen = probe.Skipped, "not known, the store does not answer"
	case status.State == consoleapi.NotStored:
		r.Status, r.Seen, r.Remedy = probe.Fail, "none is current, for the store did not take what arrived", "see console store"
	case f.DataAge == nil:
		r.Status, r.Seen, r.Remedy = probe.Fail, "none has arrived", "gpuctl doctor exporter, and gateway on the agents; within a minute of the start it is too early to know"
	case f.Stale:
		r.Status, r.Seen, r.Remedy = probe.Fail, fmt.Sprintf("the newest is %v old", time.Duration(*f.DataAge)*time.Second), "gpuctl doctor telemetry here, and exporter and gateway on the agents"
	default:
		r.Status, r.Seen = probe.OK, fmt.Sprintf("%v old, %s GPUs, %s services", time.Duration(*f.DataAge)*time.Second, number(status.Telemetry.Devices), number(status.Telemetry.Services))
		if status.State == consoleapi.NoServices {
			r.Status, r.Remedy = probe.Warn, "no pod holds a GPU, or nothing reports which: gpuctl doctor kubelet exporter on an agent"
		}
	}
	return r
}

// exportersOf are the exporters that the collector itself finds down or frozen, or with fields
// that are not known.
func exportersOf(status *consoleapi.StatusAnswer) []probe.Result {
	t := status.Telemetry
	if positive(t.ExportersDown) || positive(t.ExportersFrozen) || positive(t.ExportersUnrecognized) {
		seen := fmt.Sprintf("%s up, %s down, %s frozen", number(t.ExportersUp), number(t.ExportersDown), number(t.ExportersFrozen))
		remedy := "down: gpuctl doctor exporter on its node; frozen: it answers with the same values again and again, restart dcgm-exporter (and nv-hostengine) there"
		if positive(t.ExportersUnrecognized) {
			seen += fmt.Sprintf(", %d with fields that are not known", *t.ExportersUnrecognized)
			remedy += "; unrecognized: its fields have names that are not known, gpuctl doctor exporter on its node lists them"
		}
		for i, e := range t.DownExporters {
			if i == probe.MaxListed {
				break
			}
			seen += "; " + string(e.State) + ": " + e.Address
			if e.Node != nil {
				seen += " on " + *e.Node
			}
		}
		return []probe.Result{probe.New("exporters", probe.Fail, seen, remedy)}
	}
	if t.ExportersUp == nil {
		return nil
	}
	return []probe.Result{probe.New("exporters", probe.OK, number(t.ExportersUp)+" up", "")}
}

func positive(n *int) bool { return n != nil && *n > 0 }

func number(n *int) string {
	if n == nil {
		return "an unknown number of"
	}
	return fmt.Sprint(*n)
}
