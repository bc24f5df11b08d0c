// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// The fleet command sends what the agents of a fleet send to a gateway, until it
// is interrupted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/fleet"
)

func main() {
	endpoint := flag.String("endpoint", "localhost:4317", "the gateway's OTLP/gRPC")
	nodes := flag.Int("nodes", 100, "nodes, of 8 GPUs and 8 pods each")
	interval := flag.Duration("interval", 15*time.Second, "how often each sends")
	everything := flag.Bool("everything", false, "60 points a GPU, not the summary's input alone")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *endpoint, *nodes, *interval, *everything); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, endpoint string, nodes int, interval time.Duration, everything bool) error {
	template, err := fleet.New(everything)
	if err != nil {
		return err
	}
	sender, err := fleet.Start(endpoint, template, nodes, interval)
	if err != nil {
		return err
	}
	defer sender.Stop()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			c := sender.Counts()
			fmt.Printf("%d requests of %d points taken, %d refused, %d late %s\n", c.Sent, template.Points, c.Failed, c.Late, sender.LastError())
		}
	}
}
