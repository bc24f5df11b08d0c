// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package telemetry is the probe of a collector's own metrics.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/web"
)

// Ask reads a collector's own metrics.
func Ask(ctx context.Context, address string) (Metrics, *web.Answer, error) {
	a, err := web.Get(ctx, web.Direct(nil), "http://"+address+"/metrics", http.Header{"Accept": {"text/plain;version=0.0.4"}})
	if err != nil {
		return nil, nil, err
	}
	if a.Status != http.StatusOK {
		return nil, a, fmt.Errorf("it answers %d", a.Status)
	}
	own, err := readOwn(a.Body, a.Header.Get("Content-Type"))
	if err == nil && len(own["otelcol_process_uptime"])+len(own["otelcol_process_uptime_seconds"]) == 0 {
		err = errors.New("these are no metrics of a collector")
	}
	return own, a, err
}

// Probe applies the rules to the collector's own metrics.
func Probe(ctx context.Context, env probe.Env) []probe.Result {
	address := env.Config.OwnAddress()
	if address == "" {
		return []probe.Result{probe.New("", probe.Skipped, "the collector's own metrics are not served over HTTP", "add a pull reader to service::telemetry::metrics::readers")}
	}
	own, _, err := Ask(ctx, address)
	if err != nil {
		return []probe.Result{probe.New(address, probe.Fail, web.Why(err), "the collector does not run, or serves its own metrics elsewhere (service::telemetry::metrics::readers); "+probe.Logs)}
	}
	var later Metrics
	if env.Watch > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(env.Watch):
			if later, _, err = Ask(ctx, address); err != nil {
				return []probe.Result{probe.New(address, probe.Fail, "it went away while it was watched: "+web.Why(err), probe.Logs)}
			}
		}
	}
	return judge(env.Watch, address, own, later)
}

// judge applies the rules. later is nil where nothing was watched.
func judge(watch time.Duration, address string, own, later Metrics) []probe.Result {
	var results []probe.Result
	for _, r := range rules {
		results = append(results, r.judge(own, later, watch)...)
	}
	now := own
	if later != nil {
		now = later
	}
	results = append(results, queues(now)...)
	results = append(results, neverScraped(now)...)
	if len(results) > 0 {
		return results
	}
	uptime := time.Duration(now.sum("otelcol_process_uptime", nil)+now.sum("otelcol_process_uptime_seconds", nil)) * time.Second
	return []probe.Result{probe.New(address, probe.OK, fmt.Sprintf("nothing refused, dropped or failed in %v", uptime), "")}
}

func (r *rule) judge(own, later Metrics, watch time.Duration) []probe.Result {
	keep := func(ls labels.Labels) bool {
		value := ls.Get(r.label)
		if r.label == "exporter" {
			value = typeOf(value)
		}
		if r.only != nil {
			return slices.Contains(r.only, value)
		}
		return r.label == "" || !slices.Contains(r.fine, value)
	}
	now := own
	if later != nil {
		now = later
	}
	var seen []string
	more := 0
	for _, s := range now[r.metric] {
		if !keep(s.labels) || s.value <= r.above {
			continue
		}
		if len(seen) == probe.MaxListed {
			more++
			continue
		}
		text := strconv.FormatFloat(s.value, 'f', -1, 64)
		if of := distinguishing(s.labels); of != "" {
			text += " (" + of + ")"
		}
		seen = append(seen, text)
	}
	if len(seen) == 0 {
		return nil
	}
	if more > 0 {
		seen = append(seen, fmt.Sprintf("%d more", more))
	}
	result := probe.New(r.metric, probe.Warn, r.means+": "+strings.Join(seen, ", "), r.remedy)
	switch {
	case r.gauge && r.warns:
	case r.gauge:
		result.Status = probe.Fail
	case later == nil:
		result.Seen += " since the start"
	case later.sum(r.metric, keep) > own.sum(r.metric, keep):
		result.Status = probe.Fail
		result.Seen += fmt.Sprintf(", and rising (%v more in %v)", later.sum(r.metric, keep)-own.sum(r.metric, keep), watch)
	default:
		result.Status = probe.OK
		result.Seen += fmt.Sprintf(" since the start, none in the last %v", watch)
		result.Remedy = ""
	}
	return []probe.Result{result}
}

// typeOf returns the type of the component with this id: webhook of webhook/ops.
func typeOf(id string) string {
	name, _, _ := strings.Cut(id, "/")
	return name
}

// queues are those that are nearly full.
func queues(own Metrics) []probe.Result {
	var results []probe.Result
	for _, capacity := range own["otelcol_exporter_queue_capacity"] {
		of := func(ls labels.Labels) bool {
			return ls.Get("exporter") == capacity.labels.Get("exporter") && ls.Get("data_type") == capacity.labels.Get("data_type")
		}
		part := own.sum("otelcol_exporter_queue_size", of) / capacity.value
		if capacity.value <= 0 || part <= queueFull {
			continue
		}
		exporter := capacity.labels.Get("exporter")
		remedy := "the next one is away or slow: gpuctl doctor gateway; then raise sending_queue::queue_size"
		if typeOf(exporter) == "webhook" {
			remedy = "an endpoint is away or slow, otelcol_exporter_webhook_queue_length has the events that wait for each: gpuctl doctor webhook; then raise receivers::NAME::queue_size or workers"
		}
		results = append(results, probe.New("otelcol_exporter_queue_size", probe.Fail, fmt.Sprintf("the queue of %s is %.0f %% full", exporter, part*100), remedy))
	}
	return results
}

// neverScraped is that no scrape of a receiver has ever succeeded.
func neverScraped(own Metrics) (results []probe.Result) {
	for _, receiver := range config.ExporterReceivers {
		scrapes := own.sum(scrapesOf(receiver), nil)
		well := own.sum(scrapesOf(receiver), func(ls labels.Labels) bool { return ls.Get("outcome") == "ok" })
		if scrapes > 0 && well == 0 {
			results = append(results, probe.New(scrapesOf(receiver), probe.Fail, "not one scrape has succeeded since the start", "gpuctl doctor exporter"))
		}
	}
	return results
}
