// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"context"
	"os"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

type m = map[string]any

var StartEntry = frame.Entry{
	Name:    "start",
	Title:   "Start and size",
	Sources: append([]string{"builder-config.yaml"}, frame.Standalone...),
	Text:    "From the start of the process until its health check answers (asked every 50 ms), and the CPU until then. The page cache is warm.",
	Columns: []frame.Column{
		{Key: "ready", Title: "ready after, ms", Decimals: 0, Ratio: true},
		{Key: "cpu", Title: "CPU until then, ms", Decimals: 0, Ratio: true},
		{Key: "rss", Title: "resident then, MiB", Decimals: 0, Ratio: true},
		{Key: "size", Title: "binary, MiB", Decimals: 1},
	},
	Rows: func(*frame.World) []frame.Row {
		at := func(name string, configs func(*frame.World, collector.Ports) []string) frame.Row {
			return frame.Row{Name: name, Measure: func(ctx context.Context, w *frame.World) (frame.Figures, error) { return measureStart(ctx, w, configs) }}
		}
		return []frame.Row{
			at("stock Collector, prometheusreceiver alone", func(_ *frame.World, p collector.Ports) []string {
				return []string{frame.Overlay(frame.Stock([]string{"localhost:1"}, time.Minute, "debug", m{"debug": m{}})), frame.Overlay(frame.Moved(p))}
			}),
			at("standalone.yaml", func(w *frame.World, p collector.Ports) []string {
				return []string{w.Config("standalone.yaml"), frame.Overlay(p.Overlay())}
			}),
		}
	},
}

func measureStart(ctx context.Context, w *frame.World, configs func(*frame.World, collector.Ports) []string) (frame.Figures, error) {
	info, err := os.Stat(w.Bin("otelcol-gpu"))
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	p, err := w.Collect(ctx, nil, func(ports collector.Ports) []string { return configs(w, ports) })
	if err != nil {
		return nil, err
	}
	defer p.Stop()
	took := time.Since(begin)
	used, err := frame.Read(p.PID)
	if err != nil {
		return nil, err
	}
	return frame.Figures{"ready": float64(took.Milliseconds()), "cpu": float64(used.CPU.Milliseconds()), "rss": used.RSS, "size": float64(info.Size()) / (1 << 20)}, nil
}
