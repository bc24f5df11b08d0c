// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// The cluster command runs a Kubernetes control plane with simulated GPU nodes
// on loopback until it is interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/node"
)

type options struct {
	nodes, dra, gpus int
	model            string
	keep             bool
}

func main() {
	var o options
	flag.IntVar(&o.nodes, "nodes", 2, "nodes with GPUs that a device plugin serves: node-0 and so on")
	flag.IntVar(&o.dra, "dra", 1, "nodes with GPUs that a DRA driver serves: dra-0 and so on")
	flag.IntVar(&o.gpus, "gpus", 8, "GPUs of each node, 1 to 8")
	flag.StringVar(&o.model, "model", "H100", "model of the GPUs, as gpusim names it")
	flag.BoolVar(&o.keep, "keep", false, "leave the cluster's folder with the logs behind")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	begin := time.Now()
	c, err := cluster.Start(ctx, cluster.Options{KeepDir: o.keep})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if err := node.CreateDeviceClasses(ctx, c.Client()); err != nil {
		return err
	}
	for i := range o.nodes + o.dra {
		spec := node.Options{Name: fmt.Sprintf("node-%d", i), Model: o.model, GPUs: o.gpus}
		if i >= o.nodes {
			spec.Name, spec.DRA = fmt.Sprintf("dra-%d", i-o.nodes), true
		}
		n, err := node.Start(ctx, c, spec)
		if err != nil {
			return err
		}
		defer n.Stop()
		fmt.Printf("%s: exporter %s, pod-resources %s\n", n.Name(), n.ExporterURL(), n.Socket())
	}
	fmt.Printf("ready after %.1f s, logs in %s, Ctrl-C ends it\nexport KUBECONFIG=%s\n",
		time.Since(begin).Seconds(), c.Dir(), c.AdminKubeconfig())
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := c.Err(); err != nil {
				return err
			}
		}
	}
}
