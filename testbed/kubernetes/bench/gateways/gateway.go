// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package gateways measures a gateway behind a fleet, of one size and of growing ones.
package gateways

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

type m = map[string]any

// StockMeanRow is the contender that stands beside goals of the gateway.
const StockMeanRow = "stock mean: transform, groupbyattrs, transform"

// gatewayNodes is the fleet that pipelines are compared with: 10,000 GPUs.
const gatewayNodes = 1250

// pace is how often a node sends there: 60,000 points a second in all, so that the
// cost of a point is distinguished from that of being there.
const pace = 10 * time.Second

var gatewayColumns = []frame.Column{
	{Key: "cpu", Title: "CPU, us a point", Decimals: 2},
	{Key: "receiving", Title: "who only receives, at the same time, us", Decimals: 2},
	{Key: "added", Title: "of it beyond receiving, us", Decimals: 2, Goal: "gpu_summary and gpu_events together 0.3"},
	{Key: "rss", Title: "resident, MiB", Decimals: 0},
	{Key: "anon", Title: "anonymous, MiB", Decimals: 0},
	{Key: "failed", Title: "requests refused", Decimals: 0},
	{Key: "late", Title: "sent late", Decimals: 0},
}

var GatewayEntry = frame.Entry{
	Name:    "gateway",
	Title:   "Gateway: pipelines on the same input",
	Sources: []string{"processor/gpusummaryprocessor", "connector/gpueventsconnector"},
	Text: fmt.Sprintf("%d nodes of %d GPUs and as many pods send 60 points a GPU over OTLP/gRPC, uncompressed, each every %v. What is received goes to a debug exporter that writes nothing. "+
		"All rows are one binary. Beside each row a collector that only receives takes the same from a fleet of its own at the same time: what the machine does to one it does to the other, "+
		"and what is beyond receiving is the difference. A process with more memory collects garbage less often, so a small difference can be below zero. "+
		"gpu_summary expects the pods of `gpu.allocation`, and evaluates every 15 s. "+
		"The stock mean is wrong as soon as a service is spread over batches; it is here for what it costs. Prometheus stores what it takes, because its rules read from there; "+
		"they average the same inputs over the pods of each service every 15 s. The row *receive* is two of the same: what it has beyond receiving is what chance makes of the difference. "+
		"A request is late that is sent more than a second after its time, because the one before is still unanswered: who cannot keep up is not asked more.", gatewayNodes, fleet.Devices, pace),
	Columns: gatewayColumns,
	Rows: func(*frame.World) []frame.Row {
		at := func(name string, processors m, order []string, connectors m) frame.Row {
			return frame.Row{Name: name, Measure: func(ctx context.Context, w *frame.World) (frame.Figures, error) {
				return besideReceiving(ctx, w, func() (frame.Figures, error) {
					return measureGateway(ctx, w, Pipelines(processors, order, connectors))
				})
			}}
		}
		summary := m{"gpu_summary": m{"expected_pods": "allocation"}}
		events := m{"gpu_events": m{"rules": []string{"service"}}}
		return []frame.Row{
			at("receive", nil, nil, nil),
			at("gpu_summary", summary, []string{"gpu_summary"}, nil),
			at("gpu_summary, gpu_events", summary, []string{"gpu_summary"}, events),
			at("stock: transform, 6 statements", m{"transform": m{"metric_statements": renames()}}, []string{"transform"}, nil),
			at("stock: groupbyattrs by service", m{"groupbyattrs": m{"keys": []string{"k8s.namespace.name", "service.name"}}}, []string{"groupbyattrs"}, nil),
			{Name: "Prometheus: OTLP/HTTP in, recording rules", Measure: func(ctx context.Context, w *frame.World) (frame.Figures, error) {
				return besideReceiving(ctx, w, func() (frame.Figures, error) { return measureRules(ctx, w) })
			}},
			at(StockMeanRow, stockMean(), []string{"transform/keep", "groupbyattrs", "transform/mean"}, nil),
		}
	},
}

// besideReceiving measures a row while a collector that only receives has the same
// load, and adds what the row takes beyond that.
func besideReceiving(ctx context.Context, w *frame.World, measure func() (frame.Figures, error)) (frame.Figures, error) {
	var receiving, f frame.Figures
	var errs [2]error
	var both sync.WaitGroup
	both.Go(func() { receiving, errs[0] = measureGateway(ctx, w, Pipelines(nil, nil, nil)) })
	both.Go(func() { f, errs[1] = measure() })
	both.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	f["receiving"], f["added"] = receiving["cpu"], f["cpu"]-receiving["cpu"]
	return f, nil
}

// Pipelines is a collector with one pipeline of these processors.
func Pipelines(processors m, order []string, connectors m) m {
	exporters := []string{"debug"}
	service := m{"metrics": m{"receivers": []string{"otlp"}, "processors": order, "exporters": exporters}}
	config := m{
		"receivers":  m{"otlp": m{"protocols": m{"grpc": m{"endpoint": "localhost:4317", "max_recv_msg_size_mib": 32}, "http": m{}}}},
		"exporters":  m{"debug": m{"verbosity": "basic"}},
		"extensions": m{"health_check": m{}},
		"service": m{
			"extensions": []string{"health_check"},
			"pipelines":  service,
			// Else it writes a line for each batch.
			"telemetry": m{"logs": m{"level": "warn"}},
		},
	}
	if processors != nil {
		config["processors"] = processors
	}
	for name := range connectors {
		config["connectors"] = connectors
		service["metrics"].(m)["exporters"] = append(exporters, name)
		service["logs"] = m{"receivers": []string{name}, "exporters": exporters}
	}
	return config
}

// renames is what a stock pipeline would do to take the names over.
func renames() []m {
	var all []string
	for i, name := range []string{"hw.gpu.utilization", "gpu.sm.active", "gpu.dram.active", "hw.power"} {
		all = append(all, fmt.Sprintf("set(metric.name, \"renamed.%d\") where metric.name == %q", i, name))
	}
	for _, name := range []string{"hw.gpu.memory.usage", "hw.gpu.memory.limit"} {
		all = append(all, fmt.Sprintf("scale_metric(0.5) where metric.name == %q", name))
	}
	return []m{{"context": "metric", "statements": all}}
}

func stockMean() m {
	return m{
		"transform/keep": m{"metric_statements": []m{
			{"context": "resource", "statements": []string{`keep_keys(resource.attributes, ["k8s.namespace.name", "service.name"])`}},
			{"context": "datapoint", "statements": []string{`set(datapoint.time, TruncateTime(datapoint.time, Duration("15s")))`}},
		}},
		"groupbyattrs":   m{},
		"transform/mean": m{"metric_statements": []m{{"context": "metric", "statements": []string{`aggregate_on_attributes("mean", ["hw.gpu.task", "gpu.pipe"])`}}}},
	}
}

// measureGateway gives a collector the load of the fleet.
func measureGateway(ctx context.Context, w *frame.World, config m) (frame.Figures, error) {
	template, err := fleet.New(true)
	if err != nil {
		return nil, err
	}
	return load(ctx, w, template, gatewayNodes, pace, func(ports collector.Ports) []string {
		moved := ports.Overlay()
		delete(moved, "exporters")
		delete(moved["extensions"].(m), "gpu_store")
		delete(moved["extensions"].(m), "gpu_console")
		return []string{frame.Overlay(config), frame.Overlay(moved)}
	})
}

// load runs a collector with the fleet in front of it.
func load(ctx context.Context, w *frame.World, template *fleet.Template, nodes int, interval time.Duration, configs func(collector.Ports) []string, env ...string) (frame.Figures, error) {
	directory, err := w.Folder("gateway")
	if err != nil {
		return nil, err
	}
	ports, err := collector.FreePorts()
	if err != nil {
		return nil, err
	}
	c, err := collector.Start(collector.Options{
		Binary: w.Bin("otelcol-gpu"), Configs: configs(ports), Env: env, LogPath: filepath.Join(directory, "collector.log"), Ports: ports,
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Stop() }() // what it was measured for is over
	if err := c.WaitReady(ctx); err != nil {
		return nil, err
	}
	var own, now own
	var errs [2]error
	f, err := feed(ctx, w, c.PID(), fmt.Sprintf("%s:%d", collector.Loopback, ports.OTLPGRPC), template, nodes, interval,
		func() { own, errs[0] = scrapeOwn(ctx, c) }, func() { now, errs[1] = scrapeOwn(ctx, c) })
	err = errors.Join(append(errs[:], err)...)
	if err != nil {
		select {
		case <-c.Exited():
			return nil, c.Died()
		default:
			return nil, err
		}
	}
	if n := now.evaluations - own.evaluations; n > 0 {
		f["evaluation"] = 1000 * (now.evaluating - own.evaluating) / n
	}
	f["pods"] = now.pods
	return f, nil
}

// feed puts the fleet in front of a process and measures that.
func feed(ctx context.Context, w *frame.World, pid int, endpoint string, template *fleet.Template, nodes int, interval time.Duration, begin, end func()) (frame.Figures, error) {
	sender, err := fleet.Start(endpoint, template, nodes, interval)
	if err != nil {
		return nil, err
	}
	defer sender.Stop()
	if err := frame.Sleep(ctx, w.Warmup); err != nil {
		return nil, err
	}
	begin()
	before := sender.Counts()
	used, err := frame.Watch(ctx, pid, w.Window)
	if err != nil {
		return nil, err
	}
	after := sender.Counts()
	end()
	points := float64(after.Sent-before.Sent) * float64(template.Points)
	if points == 0 {
		return nil, fmt.Errorf("nothing was taken: %s", sender.LastError())
	}
	return frame.Figures{
		"cpu": used.CPU.Seconds() * 1e6 / points, "core": 100 * used.Core(), "rss": used.RSS, "anon": used.Anon,
		"failed": float64(after.Failed - before.Failed), "late": float64(after.Late - before.Late), "points": points / used.Took.Seconds(),
	}, nil
}

// own is what a gateway reports of itself; a pipeline without gpu_summary has none
// of it.
type own struct{ evaluations, evaluating, pods float64 }

func scrapeOwn(ctx context.Context, c *collector.Collector) (o own, err error) {
	families, err := c.OwnMetrics(ctx)
	if err != nil {
		return o, err
	}
	for name, family := range families {
		for _, sample := range family.GetMetric() {
			switch {
			case strings.HasPrefix(name, "otelcol_gpu_summary_evaluation_duration"):
				o.evaluations += float64(sample.GetHistogram().GetSampleCount())
				o.evaluating += sample.GetHistogram().GetSampleSum()
			case strings.HasPrefix(name, "otelcol_gpu_summary_pods_expected"):
				o.pods += collector.Value(sample)
			}
		}
	}
	return o, nil
}
