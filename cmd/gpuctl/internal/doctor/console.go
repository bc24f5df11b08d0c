// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
)

func (in *installation) checkConsole(ctx context.Context) []Result {
	extensions := in.of("extensions", "gpu_console")
	if len(extensions) == 0 {
		return []Result{{"console", "", Skipped, "the configuration has no gpu_console", ""}}
	}
	cfg := struct {
		Endpoint string         `mapstructure:"endpoint"`
		TLS      *tlsServer     `mapstructure:"tls"`
		Auth     authentication `mapstructure:"auth"`
	}{Endpoint: "localhost:8480"}
	if err := extensions[0].read(&cfg); err != nil {
		return []Result{{"console", "", Fail, err.Error(), "otelcol-gpu validate with the same --config says why"}}
	}
	address := near(cfg.Endpoint)
	r := Result{Check: "console", Subject: address, Status: Fail}
	scheme := "http"
	client := direct(nil)
	if cfg.TLS != nil && cfg.TLS.CertFile != "" {
		// Its own certificate, on its own machine: it is not verified by a name.
		scheme, client = "https", direct(&tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true})
	}
	// The configuration may have its token; without one it says that it asks for it.
	header, err := in.credentials(otlpExporter{Auth: cfg.Auth})
	if err != nil {
		header = http.Header{}
	}
	header.Set("Accept", "application/json")
	if in.Token != "" {
		header.Set("Authorization", "Bearer "+in.Token)
	}
	a, err := get(ctx, client, scheme+"://"+address+"/api/v1/status", header)
	if err != nil {
		r.Seen, r.Remedy = why(err), "the collector does not run, or gpu_console listens elsewhere; "+logs
		return []Result{r}
	}
	results := clock("console", address, a.header, a.asked, a.answered)
	var status consoleapi.StatusAnswer
	switch {
	case a.status == http.StatusUnauthorized:
		r.Status, r.Seen, r.Remedy = Skipped, "it asks for a token", "give its token with --token-file, or in OTELCOL_GPU_TOKEN"
		return append([]Result{r}, results...)
	case a.status != http.StatusOK:
		r.Seen, r.Remedy = fmt.Sprintf("it answers %d", a.status), logs
		return append([]Result{r}, results...)
	case json.Unmarshal(a.body, &status) != nil || status.Version == "":
		r.Seen, r.Remedy = "this is no console", "check gpu_console::endpoint"
		return append([]Result{r}, results...)
	}
	return append(append([]Result{store(&status), data(&status)}, exportersOf(&status)...), results...)
}

// store tells whether the console's store answers.
func store(status *consoleapi.StatusAnswer) Result {
	r := Result{"console", "store", OK, status.Store.Engine + ", answers", ""}
	if !status.Store.Reachable || status.Store.CircuitOpen {
		r.Status, r.Seen = Fail, status.Store.Engine+", does not answer"
		if status.Store.Error != nil {
			r.Seen += ": " + status.Store.Error.Error()
		}
		r.Remedy = "engine prometheus: check gpu_store::url and its credentials; embedded: gpuctl doctor state telemetry"
	} else if problems := status.Store.Problems; len(problems) > 0 {
		p := &problems[0] // the worst
		r.Status, r.Seen = Fail, fmt.Sprintf("%s are not stored: %s, since %s, %d refused", p.Part, p.Reason, p.Since.UTC().Format(time.RFC3339), p.Refused)
		if p.Ended != nil {
			r.Status, r.Seen = Warn, fmt.Sprintf("%s were not stored: %s, until %s, %d refused", p.Part, p.Reason, p.Ended.UTC().Format(time.RFC3339), p.Refused)
		}
		r.Remedy = p.Detail
	}
	return r
}

// data tells whether there is current data.
func data(status *consoleapi.StatusAnswer) Result {
	r := Result{Check: "console", Subject: "data"}
	f := status.Freshness
	switch {
	case status.State == consoleapi.StoreUnreachable:
		r.Status, r.Seen = Skipped, "not known, the store does not answer"
	case status.State == consoleapi.NotStored:
		r.Status, r.Seen, r.Remedy = Fail, "none is current, for the store did not take what arrived", "see console store"
	case f.DataAge == nil:
		r.Status, r.Seen, r.Remedy = Fail, "none has arrived", "gpuctl doctor exporter, and gateway on the agents; a minute after the start it is too early to tell"
	case f.Stale:
		r.Status, r.Seen, r.Remedy = Fail, fmt.Sprintf("the newest is %v old", time.Duration(*f.DataAge)*time.Second), "gpuctl doctor telemetry here, and exporter and gateway on the agents"
	default:
		r.Status, r.Seen = OK, fmt.Sprintf("%v old, %s GPUs, %s services", time.Duration(*f.DataAge)*time.Second, number(status.Telemetry.Devices), number(status.Telemetry.Services))
		if status.State == consoleapi.NoServices {
			r.Status, r.Remedy = Warn, "no pod holds a GPU, or nobody says which: gpuctl doctor kubelet exporter on an agent"
		}
	}
	return r
}

// exportersOf tells which exporters the collector itself finds down or frozen.
func exportersOf(status *consoleapi.StatusAnswer) []Result {
	t := status.Telemetry
	if positive(t.ExportersDown) || positive(t.ExportersFrozen) {
		seen := fmt.Sprintf("%s up, %s down, %s frozen", number(t.ExportersUp), number(t.ExportersDown), number(t.ExportersFrozen))
		for i, e := range t.DownExporters {
			if i == maxTold {
				break
			}
			seen += "; " + string(e.State) + ": " + e.Address
			if e.Node != nil {
				seen += " on " + *e.Node
			}
		}
		return []Result{{
			"console", "exporters", Fail, seen,
			"down: gpuctl doctor exporter on its node; frozen: it answers with the same values again and again, restart dcgm-exporter (and nv-hostengine) there",
		}}
	}
	if t.ExportersUp == nil {
		return nil
	}
	return []Result{{"console", "exporters", OK, number(t.ExportersUp) + " up", ""}}
}

func positive(n *int) bool { return n != nil && *n > 0 }

func number(n *int) string {
	if n == nil {
		return "an unknown number of"
	}
	return fmt.Sprint(*n)
}
