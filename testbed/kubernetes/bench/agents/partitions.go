// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/vendors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

const (
	partitionedNode = "cpx-node" // has 8 boards in 64 partitions
	// profilerFamilies are printed for each partition beside what is simulated, as many as
	// make a page of 10,000 samples.
	profilerFamilies = 136
)

var PartitionsEntry = frame.Entry{
	Name:    "partitions",
	Title:   "A node of 64 partitions",
	Sources: []string{"receiver/amdgpureceiver", "receiver/dcgmreceiver", "extension/footprintextension"},
	Text: fmt.Sprintf("The page of AMD's exporter on a simulated node of 8 MI300X in mode CPX, 64 partitions, with %d families of its profiler, which have no name of their own, scraped every %v by a Collector with one receiver that hands what it reads to a debug exporter that writes nothing. "+
		"A sample is one of the page. The stock Collector is the same binary with prometheusreceiver alone, which maps nothing; the dcgm receiver reads pages of 8 GPUs with about as many samples together. "+
		"The rows run at the same time; those of our receivers have `footprint` and `GOGC=50`, as the agent.", profilerFamilies, scrapeEvery),
	Together: true, Turns: 1, Window: 6 * time.Minute,
	Columns: []frame.Column{
		{Key: "cpu", Title: "CPU, us a sample", Decimals: 2, Ratio: true, Goal: "3.5"},
		{Key: "core", Title: "CPU, % of a core", Decimals: 2, Goal: "0.3"},
		{Key: "rss", Title: "resident, MiB", Decimals: 1, Ratio: true, Goal: "90"},
		{Key: "anon", Title: "anonymous, MiB", Decimals: 1, Ratio: true},
		{Key: "samples", Title: "samples", Decimals: 0},
	},
	Rows: func(*frame.World) []frame.Row {
		receiver := func(kind string) func(targets []string) m {
			return func(targets []string) m {
				config := frame.Stock(nil, scrapeEvery, "debug", m{"debug": m{"verbosity": "basic"}})
				var endpoints []string
				for _, target := range targets {
					endpoints = append(endpoints, "http://"+target+"/metrics")
				}
				config["receivers"] = m{kind: m{"endpoints": endpoints, "collection_interval": scrapeEvery.String()}}
				service := config["service"].(m)
				service["pipelines"].(m)["metrics"].(m)["receivers"] = []string{kind}
				config["extensions"].(m)["footprint"], service["extensions"] = m{}, []string{"health_check", "footprint"}
				return config
			}
		}
		return []frame.Row{
			{Name: "stock Collector", Measure: partitioned(func(targets []string) m {
				return frame.Stock(targets, scrapeEvery, "debug", m{"debug": m{"verbosity": "basic"}})
			})},
			{Name: "amd_gpu receiver", Measure: partitioned(receiver("amd_gpu"), gogc)},
			{Name: "dcgm receiver, 16 nodes of 8 GPUs", Measure: scraping(16, func(ctx context.Context, w *frame.World, targets []string, _ *frame.Sink) (frame.Program, error) {
				return collect(ctx, w, receiver("dcgm")(targets), gogc)
			})},
		}
	},
}

// gogc is that of the agent's DaemonSet.
const gogc = "GOGC=50"

func collect(ctx context.Context, w *frame.World, config m, env ...string) (frame.Program, error) {
	return w.Collect(ctx, env, func(p collector.Ports) []string {
		return []string{frame.Overlay(config), frame.Overlay(frame.Moved(p))}
	})
}

// partitioned measures a Collector that scrapes the partitioned node.
func partitioned(config func(targets []string) m, env ...string) func(context.Context, *frame.World) (frame.Figures, error) {
	return func(ctx context.Context, w *frame.World) (frame.Figures, error) {
		fleet, err := vendors.New(vendors.Config{Seed: 1, Nodes: []vendors.Node{{Name: partitionedNode, Model: "MI300X", Boards: 8, Compute: "cpx", Memory: "nps4"}}}, time.Now)
		if err != nil {
			return nil, err
		}
		listener, err := net.Listen("tcp", collector.Loopback+":0")
		if err != nil {
			return nil, err
		}
		var pages atomic.Int64
		server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			page, err := fleet.Page(partitionedNode, time.Now())
			if err != nil {
				http.Error(rw, err.Error(), http.StatusInternalServerError)
				return
			}
			rw.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
			_, _ = rw.Write(profiled(page, pages.Add(1)))
		})}
		go func() { _ = server.Serve(listener) }()
		defer server.Close()
		samples, err := countSamples("http://" + listener.Addr().String() + "/metrics")
		if err != nil {
			return nil, err
		}
		p, err := collect(ctx, w, config([]string{listener.Addr().String()}), env...)
		if err != nil {
			return nil, err
		}
		used, read, err := w.Measure(ctx, p, pages.Load)
		if err != nil {
			return nil, err
		}
		if err := scrapedAll(read, used.Took.Seconds()/scrapeEvery.Seconds()-1); err != nil {
			return nil, err
		}
		return frame.Figures{
			"cpu": used.CPU.Seconds() * 1e6 / (read * float64(samples)), "core": 100 * used.Core(),
			"rss": used.RSS, "anon": used.Anon, "samples": float64(samples),
		}, nil
	}
}

// profiled is a page with families of the profiler, of which the values are the page's
// number and a few around it.
func profiled(page []byte, number int64) []byte {
	var partitions [][]byte
	for line := range bytes.Lines(page) {
		if labels, of := bytes.CutPrefix(line, []byte("gpu_used_vram{")); of {
			partitions = append(partitions, labels[:bytes.LastIndexByte(labels, '}')])
		}
	}
	for family := range profilerFamilies {
		page = fmt.Appendf(page, "# TYPE gpu_prof_counter_%d gauge\n", family)
		for i, labels := range partitions {
			page = fmt.Appendf(page, "gpu_prof_counter_%d{%s} %d\n", family, labels, number+int64(i))
		}
	}
	return page
}
