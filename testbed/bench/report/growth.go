// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/bench/report/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

var growthEntry = entry{
	name:  "growth",
	title: "One gateway as the fleet grows",
	text: "`config/gateway.yaml` behind agents with `config/agent-raw.yaml`: nodes of 8 GPUs and 8 pods send the summary's input, 10 points a GPU, over OTLP/gRPC, uncompressed, " +
		"each every 15 s; in the row with everything all 60. Without store and console, which at these sizes are a Prometheus of the user's; with the Prometheus output, which nobody scrapes, " +
		"but in the last row, which hands it to a debug exporter that writes nothing: what the gateway takes without it. " +
		"Pods are those of `gpu.allocation`. The generator runs on the same two cores. A request is late that is sent more than a second after its time, because the one before is still unanswered: who cannot keep up is not asked more.",
	columns: []column{
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
	rows: func(*world) (all []row) {
		at := func(nodes int, note string, everything bool, output string) {
			all = append(all, row{name: fmt.Sprintf("%d nodes, %d GPUs%s", nodes, nodes*fleet.Devices, note), measure: func(ctx context.Context, w *world) (figures, error) {
				return measureGrowth(ctx, w, nodes, everything, output)
			}})
		}
		for _, nodes := range []int{10, 100, 1000, 5000} {
			at(nodes, "", false, "prometheus")
		}
		at(1000, ", everything", true, "prometheus")
		at(5000, ", no Prometheus output", false, "debug/nothing")
		return all
	},
}

// measureGrowth runs config/gateway.yaml with output in place of its Prometheus
// exporters.
func measureGrowth(ctx context.Context, w *world, nodes int, everything bool, output string) (figures, error) {
	template, err := fleet.New(everything)
	if err != nil {
		return nil, err
	}
	f, err := load(ctx, w, template, nodes, 15*time.Second, func(ports collector.Ports) []string {
		moved := ports.Overlay()
		delete(moved["extensions"].(m), "gpu_store")
		delete(moved["extensions"].(m), "gpu_console")
		moved["exporters"].(m)["debug/nothing"] = m{"verbosity": "basic", "use_internal_logger": false, "output_paths": []string{os.DevNull}}
		moved["processors"] = m{"gpu_summary": m{"expected_pods": "allocation"}}
		moved["service"].(m)["extensions"] = []string{"health_check", "file_storage/state"}
		moved["service"].(m)["pipelines"] = m{
			"metrics/prometheus": m{"exporters": []string{output}},
			"logs/events":        m{"exporters": []string{"debug/events"}},
		}
		return []string{w.config("gateway.yaml"), overlay(moved)}
	}, "MEMORY_LIMIT_MIB="+strconv.Itoa(8192), "K8S_CLUSTER_NAME=fleet")
	if err != nil {
		return nil, err
	}
	f["kib"] = f["anon"] * 1024 / float64(nodes*fleet.Devices)
	return f, nil
}
