// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

const scrapeEvery = 15 * time.Second

var ScrapeEntry = frame.Entry{
	Name:    "scrape",
	Title:   "Scraping many exporters from one place",
	Sources: []string{"receiver/dcgmreceiver"},
	Text: fmt.Sprintf("Simulated exporters of 8 GPUs, all fields, each scraped every %v by one process. A sample is one of a page that was scraped in that time. The Collectors hand what they read to a debug exporter that writes nothing, "+
		"Prometheus in agent mode writes it to a server that throws it away. The stock Collector is the same binary with prometheusreceiver alone.", scrapeEvery),
	Columns: []frame.Column{
		{Key: "cpu", Title: "CPU, us a sample", Decimals: 2, Ratio: true, Goal: "3.0"},
		{Key: "kib", Title: "anonymous, KiB a series, the process itself included", Decimals: 2, Ratio: true, Goal: "2"},
		{Key: "rss", Title: "resident, MiB", Decimals: 0, Ratio: true},
		{Key: "core", Title: "CPU, % of a core", Decimals: 1},
	},
	Rows: func(*frame.World) (all []frame.Row) {
		for _, n := range []int{100, 500} {
			name := func(of string) string { return fmt.Sprintf("%d exporters, %s", n, of) }
			first := name("stock Collector")
			debug := m{"debug": m{"verbosity": "basic"}}
			all = append(all,
				frame.Row{Name: first, Beside: first, Measure: scraping(n, func(ctx context.Context, w *frame.World, targets []string, _ *frame.Sink) (frame.Program, error) {
					return w.Collect(ctx, nil, func(p collector.Ports) []string {
						return []string{frame.Overlay(frame.Stock(targets, scrapeEvery, "debug", debug)), frame.Overlay(frame.Moved(p))}
					})
				})},
				frame.Row{Name: name("dcgm receiver"), Beside: first, Measure: scraping(n, func(ctx context.Context, w *frame.World, targets []string, _ *frame.Sink) (frame.Program, error) {
					return w.Collect(ctx, nil, func(p collector.Ports) []string {
						config := frame.Stock(nil, scrapeEvery, "debug", debug)
						var endpoints []string
						for _, target := range targets {
							endpoints = append(endpoints, "http://"+target+"/metrics")
						}
						config["receivers"] = m{"dcgm": m{"endpoints": endpoints, "collection_interval": scrapeEvery.String()}}
						config["service"].(m)["pipelines"].(m)["metrics"].(m)["receivers"] = []string{"dcgm"}
						return []string{frame.Overlay(config), frame.Overlay(frame.Moved(p))}
					})
				})},
				frame.Row{Name: name("Prometheus agent"), Beside: first, Measure: scraping(n, func(ctx context.Context, w *frame.World, targets []string, s *frame.Sink) (frame.Program, error) {
					return w.PrometheusAgent(ctx, targets, scrapeEvery, s)
				})},
			)
		}
		return all
	},
}

// scraping measures a contender that scrapes so many exporters.
func scraping(exporters int, start func(context.Context, *frame.World, []string, *frame.Sink) (frame.Program, error)) func(context.Context, *frame.World) (frame.Figures, error) {
	return func(ctx context.Context, w *frame.World) (frame.Figures, error) {
		server, targets, samples, err := simulate(exporters)
		if err != nil {
			return nil, err
		}
		defer server.Close()
		s, err := frame.NewSink()
		if err != nil {
			return nil, err
		}
		defer s.Close()
		p, err := start(ctx, w, targets, s)
		if err != nil {
			return nil, err
		}
		used, pages, err := w.Measure(ctx, p, server.Pages)
		if err != nil {
			return nil, err
		}
		if err := scrapedAll(pages, float64(exporters)*used.Took.Seconds()/scrapeEvery.Seconds()); err != nil {
			return nil, err
		}
		series := float64(samples * exporters)
		return frame.Figures{"cpu": used.CPU.Seconds() * 1e6 / (pages * float64(samples)), "kib": used.Anon * 1024 / series, "rss": used.RSS, "core": 100 * used.Core()}, nil
	}
}

// scrapedAll fails where many fewer pages were asked for than were due: who does
// not scrape takes little for it. A window need not have as many scrapes of each.
func scrapedAll(pages, due float64) error {
	if pages < 0.8*due {
		return fmt.Errorf("%.0f pages were scraped, and %.0f were due", pages, due)
	}
	return nil
}

// simulate serves the pages of so many nodes, and counts the samples of one.
func simulate(nodes int) (server *exporters.Server, targets []string, samples int, err error) {
	config := gpusim.Config{Seed: 1}
	for i := range nodes {
		config.Nodes = append(config.Nodes, gpusim.Node{Name: fmt.Sprintf("node-%d", i), Version: "4.6", Model: "H100", Devices: 8, Fields: "all"})
	}
	fleet, err := gpusim.New(config, time.Now)
	if err != nil {
		return nil, nil, 0, err
	}
	server, err = exporters.Serve(fleet, collector.Loopback, 0)
	if err != nil {
		return nil, nil, 0, err
	}
	for _, node := range config.Nodes {
		address, err := url.Parse(server.URL(node.Name))
		if err != nil {
			server.Close()
			return nil, nil, 0, err
		}
		targets = append(targets, address.Host)
	}
	if samples, err = countSamples(server.URL(config.Nodes[0].Name)); err != nil {
		server.Close()
		return nil, nil, 0, err
	}
	return server, targets, samples, nil
}

// countSamples reads a page.
func countSamples(url string) (int, error) {
	resp, err := http.Get(url)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	samples := 0
	for line := range bytes.Lines(page) {
		if len(bytes.TrimSpace(line)) > 0 && line[0] != '#' {
			samples++
		}
	}
	if samples == 0 {
		return 0, fmt.Errorf("%s has no samples", url)
	}
	return samples, nil
}
