// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// ours are names of GPU telemetry, of recorded series, of Prometheus' own and of
// the collector's, as OpenTelemetry or Prometheus write them.
var ours = []string{
	"hw.gpu.utilization", "hw.gpu.memory.usage", "hw.gpu.temperature", "hw.power", "hw.errors", "gpu.service.partial", "gpu.service.pods",
	"gpu.exporter.up", "gpu.xid.errors", "gpu.node.schedulable", "gpu.allocation", "gpu.pod.state", "DCGM_FI_DEV_GPU_UTIL", "dcgm.scrapes",
	"otelcol_dcgm_receiver_scrapes", "otelcol_exporter_webhook_receiver_disabled", "up", "ALERTS", "ALERTS_FOR_STATE",
	"device:gpu_xid_errors:max", "scrape_duration_seconds", "target_info",
}

// disguises are ways to write a name that Prometheus makes the same of.
var disguises = []func(name string) (string, string){
	func(n string) (string, string) { return n, "" },
	func(n string) (string, string) { return n, "1" },
	func(n string) (string, string) { return "_" + n, "1" },
	func(n string) (string, string) { return "." + n, "Cel" },
	func(n string) (string, string) { return "__" + n, "" },
	func(n string) (string, string) { return " " + n, "" },
	func(n string) (string, string) { return "é" + n, "" },
	func(n string) (string, string) { return "-" + strings.ReplaceAll(n, ".", "/"), "By" },
	func(n string) (string, string) { return strings.ReplaceAll(n, ".", "_"), "" },
	func(n string) (string, string) { return strings.ReplaceAll(n, ".", "._-"), "W" },
	func(n string) (string, string) { return "total." + n, "" },
	func(n string) (string, string) { return "ratio." + n, "1" },
	func(n string) (string, string) { // the unit has the rest of the name
		first, rest, _ := strings.Cut(n, ".")
		return first, strings.ReplaceAll(rest, ".", "_")
	},
	func(n string) (string, string) { return "", strings.ReplaceAll(n, ".", "_") },
	func(n string) (string, string) { return "{}" + n, "{x}" },
	func(n string) (string, string) { return n + "\x00", "" },
}

// forgeries are all names in all disguises as gauges, and as counters and
// histograms.
func forgeries() []metric {
	var made []metric
	for _, name := range ours {
		for _, disguise := range disguises {
			n, unit := disguise(name)
			labels := map[string]string{"hw_id": identity["hw.id"], "gpu_xid_code": "79", "alertname": "x", "alertstate": "firing"}
			made = append(made, metric{name: n, unit: unit, kind: pmetric.MetricTypeGauge, labels: labels},
				metric{name: n, unit: unit, kind: pmetric.MetricTypeSum, monotonic: true, labels: labels},
				metric{name: n, unit: unit, kind: pmetric.MetricTypeHistogram})
		}
	}
	return made
}

// reserved reports whether Prometheus' name is one that applications may not have.
func reserved(name string) bool {
	for _, prefix := range []string{"hw_", "gpu_", "dcgm_", "DCGM_", "otelcol_", "ALERTS", "scrape_", "target_info", "device:"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return name == "up"
}

// honest is a metric that an application may send; that it arrives shows that
// forgeries had a way.
var honest = metric{name: "http.server.requests", kind: pmetric.MetricTypeGauge}

// spoken lists the series of applications that have a reserved name, in
// everything that Prometheus or the console read.
func spoken(ctx context.Context, p *process) (achieved []string, arrived bool, err error) {
	for _, port := range []int{p.ports.prometheus, p.ports.appsPrometheus} {
		families, err := collector.Scrape(ctx, at(port, "/metrics"))
		if err != nil {
			return nil, false, err
		}
		for name, family := range families {
			for _, series := range family.GetMetric() {
				if collector.Label(series, forged) == "" && collector.Label(series, "hw_id") != identity["hw.id"] {
					continue
				}
				arrived = arrived || strings.HasPrefix(name, "http_server_requests")
				if reserved(name) {
					achieved = append(achieved, fmt.Sprintf("port %d serves %s of an application", port, name))
				}
			}
		}
	}
	found, err := p.query(ctx, `{`+forged+`!=""} or {hw_id="`+identity["hw.id"]+`"}`)
	if err != nil {
		return nil, false, err
	}
	for _, s := range found {
		if reserved(s.Metric["__name__"]) {
			achieved = append(achieved, fmt.Sprintf("the store has %v of an application", s.Metric))
		}
	}
	return achieved, arrived, nil
}

// speak sends every forgery through one OTLP port and looks what became of it.
func speak(ctx context.Context, to, seen *process) ([]string, error) {
	all := append(forgeries(), honest)
	for len(all) > 0 {
		n := min(len(all), 200)
		status, err := post(ctx, to.ports.http, "metrics", request(identity, all[:n]...), nil)
		if err != nil {
			return nil, err
		}
		if status != http.StatusOK {
			return nil, fmt.Errorf("the receiver answers %d", status)
		}
		all = all[n:]
	}
	var achieved []string
	err := until(ctx, "the honest metric of the application", func() (arrived bool, err error) {
		achieved, arrived, err = spoken(ctx, seen)
		return arrived, err
	})
	if err != nil {
		return nil, err
	}
	// Forgeries before it in the queue have passed; what a scrape makes of them
	// needs none.
	return append(achieved, seen.blind(ctx)...), nil
}

func namesOfGPUs(ctx context.Context, l *lab) ([]string, error) {
	c, err := l.cluster(ctx)
	if err != nil {
		return nil, err
	}
	return speak(ctx, c.agent, c.gateway)
}

func namesInStandalone(ctx context.Context, l *lab) ([]string, error) {
	s, _, err := l.standalone(ctx, nil)
	if err != nil {
		return nil, err
	}
	return speak(ctx, s, s)
}

// typeTakeover sends a histogram under the name of a gauge before the first GPU
// telemetry arrives: the first decides the type in one registry. It goes
// straight to the gateway's port for applications, as an agent would send it.
func typeTakeover(ctx context.Context, l *lab) ([]string, error) {
	g, err := l.gateway(ctx, nil)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(local(g.ports.appsGRPC), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	send := func(to pmetricotlp.GRPCClient, metrics ...metric) error {
		r := pmetricotlp.NewExportRequest()
		if err := r.UnmarshalProto(request(identity, metrics...)); err != nil {
			return err
		}
		_, err := to.Export(ctx, r)
		return err
	}
	apps := pmetricotlp.NewGRPCClient(conn)
	for _, name := range []string{"_gpu.exporter.up", "gpu.exporter.up", ".gpu.exporter.up"} {
		if err := send(apps, metric{name: name, kind: pmetric.MetricTypeHistogram}); err != nil {
			return nil, err
		}
	}
	if err := send(apps, honest); err != nil {
		return nil, err
	}
	if err := until(ctx, "the honest metric", func() (bool, error) {
		f, err := collector.Scrape(ctx, at(g.ports.appsPrometheus, "/metrics"))
		return len(f["http_server_requests"].GetMetric()) > 0, err
	}); err != nil {
		return nil, err
	}
	// The gauge of a node, as its agent sends it.
	if status, err := post(ctx, g.ports.http, "metrics", request(map[string]string{"k8s.node.name": nodeName}, metric{name: "gpu.exporter.up", kind: pmetric.MetricTypeGauge}), nil); err != nil || status != http.StatusOK {
		return nil, errors.Join(err, fmt.Errorf("the gateway answers an agent with %d", status))
	}
	if err := until(ctx, "the gauge", func() (bool, error) {
		f, err := g.Metrics(ctx)
		family := f["gpu_exporter_up"]
		return len(family.GetMetric()) == 1 && family.GetMetric()[0].GetGauge() != nil, err
	}); err != nil {
		return []string{"gpu_exporter_up of a node is not served: " + err.Error()}, nil
	}
	return nil, nil
}

// engines are pods of a tenant that claim to be inference engines: the page of
// one has GPU telemetry, that of the other redirects the agent to an address
// inside the cluster.
type engines struct{ away, inside counter }

func (e *engines) add(l *lab, api *kubeapi.API) error {
	var b strings.Builder
	for _, name := range ours {
		name = strings.ReplaceAll(name, ".", "_")
		for _, n := range []string{name, "_" + name, "__" + name, name + "_ratio", ":" + name} {
			fmt.Fprintf(&b, "%s{%s=\"true\",hw_id=\"%s\",gpu_xid_code=\"79\"} 1\n", n, forged, identity["hw.id"])
		}
	}
	fmt.Fprintf(&b, "%s{%s=\"true\"} 1\n", honestEngine, forged)
	inside, err := l.serve(&e.inside)
	if err != nil {
		return err
	}
	e.away.then = http.RedirectHandler(inside+"/internal/metrics?secret=1", http.StatusFound)
	for name, page := range map[string]http.Handler{
		"engine":      http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(b.String())) }),
		"engine-away": &e.away,
	} {
		served, err := l.serve(page)
		if err != nil {
			return err
		}
		at, err := url.Parse(served)
		if err != nil {
			return err
		}
		api.AddPod("tenant", name, m{"annotations": m{"otelcol-gpu.io/port": at.Port()}}, at.Hostname(), m{"name": "vllm", "image": "vllm"})
	}
	return nil
}

// honestEngine is a metric that an engine may have.
const honestEngine = "vllm:num_requests_running"

func enginePage(ctx context.Context, l *lab) ([]string, error) {
	c, err := l.cluster(ctx)
	if err != nil {
		return nil, err
	}
	if err := until(ctx, "the engine's honest metric, and the redirecting page", func() (bool, error) {
		f, err := collector.Scrape(ctx, at(c.gateway.ports.appsPrometheus, "/metrics"))
		return len(f[honestEngine].GetMetric()) > 0 && c.engines.away.n.Load() >= 3, err
	}); err != nil {
		return nil, err
	}
	achieved, _, err := spoken(ctx, c.gateway)
	if err != nil {
		return nil, err
	}
	if n := c.engines.inside.n.Load(); n > 0 {
		achieved = append(achieved, fmt.Sprintf("the agent asked an address inside the cluster %d times", n))
	}
	return append(achieved, c.gateway.blind(ctx)...), nil
}

// events are log records that look like events of GPUs; the last is an honest
// one. None may reach the store's log of events.
func eventsOfGPUs(ctx context.Context, l *lab) ([]string, error) {
	c, err := l.cluster(ctx)
	if err != nil {
		return nil, err
	}
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	for k, v := range identity {
		rl.Resource().Attributes().PutStr(k, v)
	}
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	for _, name := range []string{"gpu.xid", "GPU.XID", " gpu.xid", "_gpu.xid", "gpu.xid\u200b", "\u200bgpu.xid", "ｇpu.xid", "gpu.service.partial"} {
		for _, legacy := range []bool{false, true} {
			r := records.AppendEmpty()
			if legacy {
				r.Attributes().PutStr("event.name", name)
			} else {
				r.SetEventName(name)
			}
			r.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
			r.SetSeverityNumber(plog.SeverityNumberFatal)
			r.Attributes().PutStr("gpu.event.id", fmt.Sprintf("forged-%d", records.Len()))
			r.Attributes().PutStr("gpu.event.key", "gpu.xid/forged")
			r.Attributes().PutStr("gpu.event.state", "raised")
		}
	}
	body, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	if err != nil {
		return nil, err
	}
	if status, err := post(ctx, c.agent.ports.http, "logs", body, nil); err != nil || status != http.StatusOK {
		return nil, errors.Join(err, fmt.Errorf("the agent answers %d", status))
	}
	// The control is a metric that goes the same way, behind it in the same queue.
	if status, err := post(ctx, c.agent.ports.http, "metrics", request(identity, honest), nil); err != nil || status != http.StatusOK {
		return nil, errors.Join(err, fmt.Errorf("the agent answers %d", status))
	}
	if err := until(ctx, "the honest metric of the application", func() (arrived bool, err error) {
		_, arrived, err = spoken(ctx, c.gateway)
		return arrived, err
	}); err != nil {
		return nil, err
	}
	var answer struct {
		Events []struct{ ID string } `json:"events"`
	}
	if err := getJSON(ctx, at(c.gateway.ports.console, "/api/v1/events"), &answer); err != nil {
		return nil, err
	}
	var achieved []string
	for _, e := range answer.Events {
		if strings.HasPrefix(e.ID, "forged") {
			achieved = append(achieved, "the console has the event "+e.ID)
		}
	}
	return achieved, nil
}
