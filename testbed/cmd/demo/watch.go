// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// tableEvery is the time between two tables of services.
const tableEvery = 15 * time.Second

// watch prints what happens until ctx ends or the collector does.
func (d *demo) watch(ctx context.Context, c *collector.Collector) error {
	log, err := os.Open(c.LogPath)
	if err != nil {
		return err
	}
	defer log.Close()
	audit := bufio.NewReader(log)
	var rest string
	var seen uint64
	partial := map[string]bool{}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	table := time.NewTicker(tableEvery)
	defer table.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.Exited():
			return c.Died()
		case <-table.C:
			d.table(ctx, c)
		case <-tick.C:
			if d.sink != nil {
				seen = d.webhooks(seen)
			}
			rest = d.audit(audit, rest)
			d.changes(ctx, c, partial)
		}
	}
}

// webhooks prints what arrived at the sink after number seen.
func (d *demo) webhooks(seen uint64) uint64 {
	for _, r := range d.sink.Received() {
		if r.Seq <= seen {
			continue
		}
		seen = r.Seq
		var body struct {
			Type, Action string
			Data         struct{ Message, State string }
			Text         string // in Slack's format
		}
		what := ""
		if json.Unmarshal([]byte(r.Body), &body) == nil {
			what = body.Text
			if what == "" {
				what = strings.TrimSpace(body.Type + body.Action + " " + body.Data.State + ": " + body.Data.Message)
			}
		}
		d.logf("webhook at %s: %s", r.Path, what)
	}
	return seen
}

// audit prints the audit lines that the collector's log got since last time. rest
// is a line that was not complete then.
func (d *demo) audit(log *bufio.Reader, rest string) string {
	for {
		line, err := log.ReadString('\n')
		rest += line
		if err != nil {
			return rest
		}
		if i := strings.Index(rest, "audit_type="); i >= 0 {
			text, _, _ := strings.Cut(strings.TrimSpace(rest[i:]), "\t")
			d.logf("audit line: %s", text)
		}
		rest = ""
	}
}

// changes prints when a service becomes partial and when it is whole again.
func (d *demo) changes(ctx context.Context, c *collector.Collector, partial map[string]bool) {
	families, err := c.Metrics(ctx)
	if err != nil {
		return // the table states so
	}
	for name, v := range byService(families["gpu_service_partial"]) {
		if now := v == 1; now != partial[name] {
			partial[name] = now
			if now {
				d.logf("%s is PARTIAL: more than a quarter of its pods are silent", name)
			} else {
				d.logf("%s is whole again", name)
			}
		}
	}
}

// table prints one line a service.
func (d *demo) table(ctx context.Context, c *collector.Collector) {
	families, err := c.Metrics(ctx)
	if err != nil {
		d.logf("no metrics yet: %v", err)
		return
	}
	utilization := byService(families["gpu_service_utilization_ratio"])
	power := byService(families["gpu_service_power_watts"])
	pods := map[string]map[string]float64{}
	for _, m := range families["gpu_service_pods"].GetMetric() {
		name := service(m)
		if pods[name] == nil {
			pods[name] = map[string]float64{}
		}
		pods[name][collector.Label(m, "gpu_pod_state")] += collector.Value(m)
	}
	if len(pods) == 0 {
		d.logf("no service yet: no device with a pod has reported")
		return
	}
	names := make([]string, 0, len(pods))
	for name := range pods {
		names = append(names, name)
	}
	sort.Strings(names)
	d.logf("%-36s %11s %9s   %s", "service", "utilization", "power", "pods reporting / degraded / missing / warming")
	for _, name := range names {
		p := pods[name]
		d.logf("%-36s %11s %9s   %.0f / %.0f / %.0f / %.0f", name, show(utilization, name, "%.1f %%", 100), show(power, name, "%.0f W", 1),
			p["reporting"], p["degraded"], p["missing"], p["warming"])
	}
}

func show(values map[string]float64, name, format string, factor float64) string {
	v, ok := values[name]
	if !ok {
		return "-"
	}
	return fmt.Sprintf(format, v*factor)
}

func byService(f *dto.MetricFamily) map[string]float64 {
	values := map[string]float64{}
	for _, m := range f.GetMetric() {
		values[service(m)] = collector.Value(m)
	}
	return values
}

func service(m *dto.Metric) string {
	return collector.Label(m, "k8s_namespace_name") + "/" + collector.Label(m, "service_name")
}
