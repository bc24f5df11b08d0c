// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

// maxTold is how many samples of one metric are shown.
const maxTold = 3

// ownAddress is where the collector serves its own metrics.
func (in *installation) ownAddress() string {
	readers, _ := in.conf.Get("service::telemetry::metrics::readers").([]any)
	for _, reader := range readers {
		prometheus := mapOf(mapOf(mapOf(mapOf(reader)["pull"])["exporter"])["prometheus"])
		if prometheus == nil {
			continue
		}
		host, _ := prometheus["host"].(string)
		port, err := strconv.Atoi(fmt.Sprint(prometheus["port"]))
		if err == nil {
			return near(net.JoinHostPort(host, strconv.Itoa(port)))
		}
	}
	if readers == nil { // what the collector does without any
		return "localhost:8888"
	}
	return ""
}

// askOwn reads a collector's own metrics.
func askOwn(ctx context.Context, address string) (ownMetrics, *answer, error) {
	a, err := get(ctx, direct(nil), "http://"+address+"/metrics", http.Header{"Accept": {"text/plain;version=0.0.4"}})
	if err != nil {
		return nil, nil, err
	}
	if a.status != http.StatusOK {
		return nil, a, fmt.Errorf("it answers %d", a.status)
	}
	own, err := readOwn(a.body, a.header.Get("Content-Type"))
	if err == nil && len(own["otelcol_process_uptime"])+len(own["otelcol_process_uptime_seconds"]) == 0 {
		err = errors.New("these are no metrics of a collector")
	}
	return own, a, err
}

func (in *installation) checkTelemetry(ctx context.Context) []Result {
	address := in.ownAddress()
	if address == "" {
		return []Result{{"telemetry", "", Skipped, "the collector's own metrics are not served over HTTP", "add a pull reader to service::telemetry::metrics::readers"}}
	}
	own, _, err := askOwn(ctx, address)
	if err != nil {
		return []Result{{"telemetry", address, Fail, why(err), "the collector does not run, or serves its own metrics elsewhere (service::telemetry::metrics::readers); " + logs}}
	}
	var later ownMetrics
	if in.Watch > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(in.Watch):
			if later, _, err = askOwn(ctx, address); err != nil {
				return []Result{{"telemetry", address, Fail, "it went away while it was watched: " + why(err), logs}}
			}
		}
	}
	return in.judge(address, own, later)
}

// judge applies the rules. later is nil where nothing was watched.
func (in *installation) judge(address string, own, later ownMetrics) []Result {
	var results []Result
	for _, r := range rules {
		results = append(results, r.judge(own, later, in.Watch)...)
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
	return []Result{{"telemetry", address, OK, fmt.Sprintf("nothing refused, dropped or failed in %v", uptime), ""}}
}

func (r *rule) judge(own, later ownMetrics, watch time.Duration) []Result {
	keep := func(ls labels.Labels) bool {
		if r.only != nil {
			return slices.Contains(r.only, ls.Get(r.label))
		}
		return r.label == "" || !slices.Contains(r.fine, ls.Get(r.label))
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
		if len(seen) == maxTold {
			more++
			continue
		}
		text := strconv.FormatFloat(s.value, 'f', -1, 64)
		if of := told(s.labels); of != "" {
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
	result := Result{"telemetry", r.metric, Warn, r.means + ": " + strings.Join(seen, ", "), r.remedy}
	switch {
	case r.gauge:
		result.Status = Fail
	case later == nil:
		result.Seen += " since the start"
	case later.sum(r.metric, keep) > own.sum(r.metric, keep):
		result.Status = Fail
		result.Seen += fmt.Sprintf(", and rising (%v more in %v)", later.sum(r.metric, keep)-own.sum(r.metric, keep), watch)
	default:
		result.Status = OK
		result.Seen += fmt.Sprintf(" since the start, none in the last %v", watch)
		result.Remedy = ""
	}
	return []Result{result}
}

// queues tells of those that are nearly full.
func queues(own ownMetrics) []Result {
	var results []Result
	for _, capacity := range own["otelcol_exporter_queue_capacity"] {
		of := func(ls labels.Labels) bool {
			return ls.Get("exporter") == capacity.labels.Get("exporter") && ls.Get("data_type") == capacity.labels.Get("data_type")
		}
		if part := own.sum("otelcol_exporter_queue_size", of) / capacity.value; capacity.value > 0 && part > queueFull {
			results = append(results, Result{
				"telemetry", "otelcol_exporter_queue_size", Fail,
				fmt.Sprintf("the queue of %s is %.0f %% full", capacity.labels.Get("exporter"), part*100),
				"the next one is away or slow: gpuctl doctor gateway; then raise sending_queue::queue_size",
			})
		}
	}
	return results
}

// neverScraped is that no scrape has ever succeeded.
func neverScraped(own ownMetrics) []Result {
	scrapes := own.sum("otelcol_dcgm_receiver_scrapes", nil)
	well := own.sum("otelcol_dcgm_receiver_scrapes", func(ls labels.Labels) bool { return ls.Get("outcome") == "ok" })
	if scrapes == 0 || well > 0 {
		return nil
	}
	return []Result{{"telemetry", "otelcol_dcgm_receiver_scrapes", Fail, "not one scrape has succeeded since the start", "gpuctl doctor exporter"}}
}
