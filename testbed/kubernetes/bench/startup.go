// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

var startEntry = entry{
	name:  "start",
	title: "Start and size",
	text:  "From the start of the process until its health check answers (asked every 50 ms), and the CPU until then. The page cache is warm.",
	columns: []column{
		{Key: "ready", Title: "ready after, ms", Decimals: 0, Ratio: true},
		{Key: "cpu", Title: "CPU until then, ms", Decimals: 0, Ratio: true},
		{Key: "rss", Title: "resident then, MiB", Decimals: 0, Ratio: true},
		{Key: "size", Title: "binary, MiB", Decimals: 1},
	},
	rows: func(*world) []row {
		at := func(name string, configs func(*world, collector.Ports) []string) row {
			return row{name: name, measure: func(ctx context.Context, w *world) (figures, error) { return measureStart(ctx, w, configs) }}
		}
		return []row{
			at("stock Collector, prometheusreceiver alone", func(_ *world, p collector.Ports) []string {
				return []string{overlay(stock([]string{"localhost:1"}, time.Minute, "debug", m{"debug": m{}})), overlay(moved(p))}
			}),
			at("standalone.yaml", func(w *world, p collector.Ports) []string {
				return []string{w.config("standalone.yaml"), overlay(p.Overlay())}
			}),
		}
	},
}

func measureStart(ctx context.Context, w *world, configs func(*world, collector.Ports) []string) (figures, error) {
	info, err := os.Stat(w.bin("otelcol-gpu"))
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	p, err := w.collect(ctx, nil, func(ports collector.Ports) []string { return configs(w, ports) })
	if err != nil {
		return nil, err
	}
	defer p.stop()
	took := time.Since(begin)
	used, err := read(p.pid)
	if err != nil {
		return nil, err
	}
	return figures{"ready": float64(took.Milliseconds()), "cpu": float64(used.cpu.Milliseconds()), "rss": used.rss, "size": float64(info.Size()) / (1 << 20)}, nil
}
