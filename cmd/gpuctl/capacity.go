// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

const capacityLong = `What of a Kubernetes cluster's GPUs the scheduler has to give, as gpu_scheduling reports it:
free and stranded devices and why, how many requests of --size devices fit now and on which nodes,
and which pods wait for how long and for what. --show stranded, free or all lists other nodes.
--check is about pods that wait, and clusters that report no more.
`

func newCapacity() *command {
	c := &consoleClient{}
	var size int
	var cluster, resource, model, q, show string
	return &command{
		name: "capacity", args: "[--size 8] [--cluster NAME] [--resource NAME] [--model NAME] [-q TEXT] [--show fit] [--check] [--endpoint URL] [--token-file FILE] [-o json]",
		short: "free and stranded GPUs, where a request of 8 fits, and which pods wait",
		long:  capacityLong + checkedLong,
		flags: func(f *pflag.FlagSet) {
			c.flags(f)
			c.checkFlag(f)
			f.IntVar(&size, "size", 8, "devices of a request, 1 to 1024")
			f.StringVar(&cluster, "cluster", "", "only of this cluster")
			f.StringVar(&resource, "resource", "", "only of this resource, as nvidia.com/gpu")
			f.StringVar(&model, "model", "", "only devices of this model")
			f.StringVarP(&q, "query", "q", "", "only nodes with this in their name")
			f.StringVar(&show, "show", "fit", "which nodes: fit, stranded, free or all")
		},
		run: c.run(func(ctx context.Context, s streams) error {
			ctx, cancel := context.WithTimeout(ctx, c.timeout)
			defer cancel()
			query := url.Values{"size": {strconv.Itoa(size)}, "show": {show}}
			for key, value := range map[string]string{"cluster": cluster, "resource": resource, "model": model, "q": q} {
				if value != "" {
					query.Set(key, value)
				}
			}
			all, err := capacityOf(ctx, c, query)
			if err != nil {
				return err
			}
			unstored := notes(ctx, c, s.err, all.Freshness)
			if c.output == outputJSON {
				err = writeIndented(s.out, all)
			} else {
				err = capacityTables(s.out, all)
			}
			return cmp.Or(err, c.finish(all.Freshness, unstored || all.WaitingTotal > 0 || len(all.Silent) > 0))
		}),
	}
}

// capacityOf asks for all pages.
func capacityOf(ctx context.Context, c *consoleClient, query url.Values) (*consoleapi.CapacityAnswer, error) {
	all := &consoleapi.CapacityAnswer{Nodes: []consoleapi.CapacityNode{}}
	return all, c.pages(query, func(query url.Values) (*string, error) {
		var page consoleapi.CapacityAnswer
		if err := c.get(ctx, "capacity", query, &page); err != nil {
			return nil, err
		}
		next := page.Next
		page.Nodes, page.Next = append(all.Nodes, page.Nodes...), nil
		*all = page
		return next, nil
	})
}

func capacityTables(w io.Writer, all *consoleapi.CapacityAnswer) error {
	for _, one := range all.Silent {
		fmt.Fprintf(w, "gpu_scheduling of cluster %s reports nothing since %s.\n", named(one.Cluster), one.Last.Local().Format(time.DateTime))
	}
	if all.Reason != nil {
		_, err := fmt.Fprintln(w, "gpu_scheduling reports nothing: it is in no pipeline, or the clusters have no accelerators. config/scheduler.yaml adds it.")
		return err
	}
	t := newTable(w, "CLUSTER", "RESOURCE", "MODEL", "ALLOCATABLE", "REQUESTED", "FREE", "STRANDED", "WHY", fmt.Sprintf("FIT OF %d", all.Size), "NODES", "FRAGMENTED")
	for i := range all.Pools {
		p := &all.Pools[i]
		t.row(named(p.Cluster), name(p.Resource), named(p.Model), count(p.Allocatable), count(p.Requested), count(p.Free), count(p.Stranded), strandedBy(p.StrandedBy),
			count(p.Fits), count(p.FitNodes), percent(p.Fragmentation))
	}
	if err := t.end(); err != nil {
		return err
	}
	if len(all.Waiting) > 0 {
		fmt.Fprint(w, "\nPods that wait for a node, the oldest first:\n")
		t = newTable(w, "CLUSTER", "NAMESPACE", "QUEUE", "REASON", "RESOURCE", "PODS", "DEVICES", "OLDEST")
		for i := range all.Waiting {
			one := &all.Waiting[i]
			t.row(named(one.Cluster), name(one.Namespace), named(one.Queue), name(one.Reason), name(one.Resource), count(one.Pods), count(one.Devices), waited(one.Oldest))
		}
		if err := t.end(); err != nil {
			return err
		}
		if more := all.WaitingTotal - len(all.Waiting); more > 0 {
			fmt.Fprintf(w, "and %d more\n", more)
		}
	}
	for _, hint := range all.Hints {
		fmt.Fprintf(w, "\n%s\n", safetext.Strip(hint.Text, 1000))
	}
	if !all.NodesKnown {
		_, err := fmt.Fprint(w, "\nOn which nodes is not known: gpu_scheduling reports none (nodes: false).\n")
		return err
	}
	if len(all.Nodes) == 0 {
		_, err := fmt.Fprint(w, "\nThere is no such node.\n")
		return err
	}
	fmt.Fprintln(w)
	t = newTable(w, "CLUSTER", "NODE", "RESOURCE", "MODEL", "ALLOCATABLE", "REQUESTED", "FREE", "STRANDED", fmt.Sprintf("FIT OF %d", all.Size))
	for i := range all.Nodes {
		n := &all.Nodes[i]
		node := name(n.Node)
		if n.Schedulable != nil && !*n.Schedulable {
			node += ",cordoned"
		}
		t.row(named(n.Cluster), node, name(n.Resource), named(n.Model), count(n.Allocatable), count(n.Requested), count(n.Free), count(n.Stranded), count(n.Fits))
	}
	return t.end()
}

func strandedBy(reasons []consoleapi.StrandedDevices) string {
	var all []string
	for _, r := range reasons {
		all = append(all, fmt.Sprintf("%d %s", r.Devices, name(r.Reason)))
	}
	return cmp.Or(strings.Join(all, ", "), none)
}

func waited(seconds *float64) string {
	if seconds == nil {
		return none
	}
	return (time.Duration(*seconds) * time.Second).String()
}
