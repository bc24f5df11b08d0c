// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

var GrowthEntry = frame.Entry{
	Name:  "growth",
	Title: "One gateway as the fleet grows",
	Sources: []string{
		"config/gateway.yaml", "config/scale-out-gateway.yaml", "processor/gpusummaryprocessor", "connector/besteffortconnector",
		"connector/gpueventsconnector", "connector/gpucostconnector", "extension/requestlimitextension",
	},
	Text: "`config/gateway.yaml` behind agents with `config/agent-raw.yaml`: nodes of 8 GPUs and 8 pods send the summary's input, 10 points a GPU, over OTLP/gRPC, uncompressed, " +
		"each every 15 s; in the row with everything all 60. Its Prometheus output has all of it, which is not scraped. Rows with `scale-out-gateway.yaml` have that file over it, as is meant for large fleets: " +
		"only what the summary adds goes out, by remote write, to a server that throws it away. Without store and console, which at these sizes are a Prometheus of the user's. " +
		"Pods are those of `gpu.allocation`. The generator runs on the same two cores. A request is late that is sent more than a second after its time, because the one before is still unanswered: who cannot keep up is not asked more.",
	Columns: []frame.Column{
		{Key: "points", Title: "points a second", Decimals: 0},
		{Key: "core", Title: "CPU, % of a core", Decimals: 1},
		{Key: "cpu", Title: "CPU, us a point", Decimals: 2},
		{Key: "rss", Title: "resident, MiB", Decimals: 0},
		{Key: "kib", Title: "anonymous, KiB a pod", Decimals: 1},
		{Key: "evaluation", Title: "evaluation, ms", Decimals: 1},
		{Key: "pods", Title: "pods seen", Decimals: 0},
		{Key: "failed", Title: "requests refused", Decimals: 0},
		{Key: "late", Title: "sent late", Decimals: 0},
	},
	Rows: func(*frame.World) (all []frame.Row) {
		at := func(nodes int, note string, everything, scaleOut bool) {
			all = append(all, frame.Row{Name: fmt.Sprintf("%d nodes, %d GPUs%s", nodes, nodes*fleet.Devices, note), Measure: func(ctx context.Context, w *frame.World) (frame.Figures, error) {
				return measureGrowth(ctx, w, nodes, everything, scaleOut)
			}})
		}
		for _, nodes := range []int{10, 100, 1000, 5000} {
			at(nodes, "", false, false)
		}
		at(1000, ", everything", true, false)
		for _, nodes := range []int{1000, 5000} {
			at(nodes, ScaleOutNote, false, true)
		}
		return all
	},
}

const ScaleOutNote = ", scale-out-gateway.yaml"

// measureGrowth runs config/gateway.yaml, with config/scale-out-gateway.yaml over
// it or without.
func measureGrowth(ctx context.Context, w *frame.World, nodes int, everything, scaleOut bool) (frame.Figures, error) {
	template, err := fleet.New(everything)
	if err != nil {
		return nil, err
	}
	s, err := frame.NewSink()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	f, err := load(ctx, w, template, nodes, 15*time.Second, func(ports collector.Ports) []string {
		moved := ports.Overlay()
		delete(moved["extensions"].(m), "gpu_store")
		delete(moved["extensions"].(m), "gpu_console")
		moved["processors"] = m{"gpu_summary": m{"expected_pods": "allocation"}}
		service := moved["service"].(m)
		service["extensions"] = []string{"health_check", "request_limit", "file_storage/state"}
		if scaleOut {
			service["pipelines"] = m{"logs/events": m{"exporters": []string{"debug/events"}}, "logs/usage": m{"exporters": []string{"debug/events"}}}
			return []string{w.Config("gateway.yaml"), w.Config("scale-out-gateway.yaml"), frame.Overlay(moved)}
		}
		service["pipelines"] = m{
			"metrics/prometheus": m{"exporters": []string{"prometheus"}},
			"logs/events":        m{"exporters": []string{"debug/events"}},
			"logs/usage":         m{"exporters": []string{"debug/events"}},
		}
		return []string{w.Config("gateway.yaml"), frame.Overlay(moved)}
	}, "MEMORY_LIMIT_MIB="+strconv.Itoa(8192), "K8S_CLUSTER_NAME=fleet", "REMOTE_WRITE_URL=http://"+s.Write, "QUERY_URL=http://"+s.Write)
	if err != nil {
		return nil, err
	}
	if scaleOut {
		if err := s.Reached(); err != nil {
			return nil, err
		}
	}
	f["kib"] = f["anon"] * 1024 / float64(nodes*fleet.Devices)
	return f, nil
}
