// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// The cluster command runs a Kubernetes control plane on loopback until it is
// interrupted: go run ./cmd/cluster
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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
)

func main() {
	nodes := flag.Int("nodes", 2, "nodes to begin with")
	gpus := flag.Int("gpus", 8, "nvidia.com/gpu of each node")
	keep := flag.Bool("keep", false, "leave the cluster's folder behind")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *nodes, *gpus, *keep); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, nodes, gpus int, keep bool) (err error) {
	start := time.Now()
	c, err := cluster.Start(ctx, cluster.Options{KeepDir: keep})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	for i := range nodes {
		spec := cluster.NodeSpec{Name: fmt.Sprintf("node-%d", i), Capacity: corev1.ResourceList{
			"nvidia.com/gpu": *resource.NewQuantity(int64(gpus), resource.DecimalSI),
		}}
		if err := c.AddNode(ctx, spec); err != nil {
			return err
		}
	}
	fmt.Printf("ready after %.1f s, logs in %s, Ctrl-C ends it\nexport KUBECONFIG=%s\n",
		time.Since(start).Seconds(), c.Dir(), c.AdminKubeconfig())
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
