// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// run is a command that reads from a console.
func (c *consoleClient) run(do func(context.Context, streams) error) func(context.Context, streams, []string) error {
	return func(ctx context.Context, s streams, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("%q is an argument, and there are flags alone, as --service NAME or -q TEXT; see --help", safetext.Strip(args[0], 100))
		}
		if err := c.prepare(s); err != nil {
			return err
		}
		return do(ctx, s)
	}
}

func newServices() *command {
	c := &consoleClient{more: []string{outputWide}}
	var q string
	return &command{
		name: "services", args: "[-q TEXT] [--check] [--endpoint URL] [--token-file FILE] [-o wide|json]",
		short: "services and their averages, those that need attention first",
		long:  "-o wide adds what inference servers report of the last five minutes: time to first token (95th\npercentile), generated tokens per second, requests that wait and run, and how full the fullest KV cache is.\n--check is about whatever is not well: stale and missing data, missing, degraded and pending\npods, what is wrong with devices and nodes, and, without -q, about the rest of the fleet and webhook\nendpoints that do not get their deliveries. Idle GPUs and pods that start or end are well.\n" + checkedLong,
		flags: func(f *pflag.FlagSet) {
			c.flags(f)
			c.checkFlag(f)
			f.StringVarP(&q, "query", "q", "", "only services with this in their name, namespace or cluster")
		},
		run: c.run(func(ctx context.Context, s streams) error {
			ctx, cancel := context.WithTimeout(ctx, c.timeout)
			defer cancel()
			all, err := c.services(ctx, q, c.output != outputTable)
			if err != nil {
				return err
			}
			unstored := notes(ctx, c, s.err, all.Freshness)
			if c.output == "json" {
				err = writeIndented(s.out, all)
			} else {
				err = servicesTable(s.out, all.Services, c.output == outputWide)
				if q == "" {
					err = cmp.Or(err, elsewhere(s.out, &all.Summary))
				}
			}
			attention := unstored || slices.ContainsFunc(all.Services, pressingService) || q == "" && all.Summary.ReasonsTotal > 0
			return cmp.Or(err, c.finish(all.Freshness, attention))
		}),
	}
}

func servicesTable(w io.Writer, services []consoleapi.Service, wide bool) error {
	columns := []string{"CLUSTER", "NAMESPACE", "SERVICE", "STATE", "UTIL", "MEMORY/POD", "POWER", "PODS", "DEVICES", "BUSY", "IDLE", "AGE"}
	if wide {
		columns = append(columns, inferenceColumns...)
	}
	t := newTable(w, append(columns, "ATTENTION")...)
	for i := range services {
		s := &services[i]
		cells := []string{
			named(cmp.Or(s.SlurmCluster, s.Cluster)), name(s.Namespace), name(s.Service), state(s), over(percent(s.Values.Utilization), s.Coverage.Utilization),
			over(memory(s.Values.MemoryUsed, s.Values.MemoryTotal), s.Coverage.MemoryUsed), over(watts(s.Totals.Power), s.Coverage.Power), inMean(s.Pods),
			held(&s.Devices), count(s.Devices.Busy), count(s.Devices.Idle), age(s.Told),
		}
		if wide {
			cells = append(cells, inferenceCells(s.Inference)...)
		}
		t.row(append(cells, labels(s.Reasons))...)
	}
	return t.end()
}

// servicePods are the pods of a service, for -o json.
type servicePods struct {
	Cluster   *string          `json:"cluster"`
	Namespace string           `json:"namespace"`
	Service   string           `json:"service"`
	Slurm     *string          `json:"slurm_cluster,omitempty"`
	Pods      []consoleapi.Pod `json:"pods"`
}

func newPS() *command {
	c := &consoleClient{}
	var cluster, namespace, service string
	return &command{
		name: "ps", args: "[--namespace NS] [--service NAME] [--cluster NAME] [--check] [--endpoint URL] [--token-file FILE] [-o json]",
		short: "pods, their devices and what those do",
		long:  "Without flags, of all services. --check is about missing and degraded pods, and whatever is wrong\nwith their devices and services: XID, throttling, ECC errors, lost devices.\n" + checkedLong,
		flags: func(f *pflag.FlagSet) {
			c.flags(f)
			c.checkFlag(f)
			f.StringVar(&cluster, "cluster", "", "only of this cluster")
			f.StringVar(&namespace, "namespace", "", "only of this namespace")
			f.StringVar(&service, "service", "", "only of this service")
		},
		run: c.run(func(ctx context.Context, s streams) error {
			ctx, cancel := context.WithTimeout(ctx, c.timeout)
			defer cancel()
			all, err := c.services(ctx, cmp.Or(service, namespace, cluster), false)
			if err != nil {
				return err
			}
			found, attention := []servicePods{}, false
			for _, one := range all.Services {
				is := func(flag string, s string) bool { return flag == "" || flag == s }
				if !is(service, one.Service) || !is(namespace, one.Namespace) || cluster != "" && named(one.Cluster) != cluster && named(one.SlurmCluster) != cluster {
					continue
				}
				pods, err := c.pods(ctx, &one)
				if err != nil {
					return err
				}
				found = append(found, servicePods{one.Cluster, one.Namespace, one.Service, one.SlurmCluster, pods.Pods})
				attention = attention || pressingService(one) || slices.ContainsFunc(pods.Pods, pressingPod)
			}
			if service != "" && len(found) == 0 {
				return errors.New("nothing is known of such a service")
			}
			attention = notes(ctx, c, s.err, all.Freshness) || attention
			if c.output == "json" {
				err = writeIndented(s.out, struct {
					Freshness consoleapi.Freshness `json:"freshness"`
					Services  []servicePods        `json:"services"`
				}{all.Freshness, found})
			} else {
				err = podsTable(s.out, found)
			}
			return cmp.Or(err, c.finish(all.Freshness, attention))
		}),
	}
}

func podsTable(w io.Writer, services []servicePods) error {
	jobs := slices.ContainsFunc(services, func(s servicePods) bool {
		return slices.ContainsFunc(s.Pods, func(p consoleapi.Pod) bool { return p.Job != nil })
	})
	unit, user := "POD", []string{}
	if jobs {
		unit, user = "POD/JOB", []string{"USER"}
	}
	t := newTable(w, append(append([]string{"NAMESPACE", "SERVICE", unit}, user...), "STATE", "NODE", "GPUS", "UTIL", "MEMORY", "POWER", "AGE", "ATTENTION")...)
	for _, s := range services {
		for _, p := range s.Pods {
			cells := []string{name(s.Namespace), name(s.Service), unitOf(&p)}
			if jobs {
				cells = append(cells, userOf(p.Job))
			}
			t.row(append(cells, name(string(p.State)), named(p.Node), ids(p.Devices),
				over(percent(p.Values.Utilization), p.Coverage.Utilization), over(memory(p.Values.MemoryUsed, p.Values.MemoryTotal), p.Coverage.MemoryUsed),
				over(watts(p.Values.Power), p.Coverage.Power), age(p.Told), deviceLabels(p.Devices))...)
		}
	}
	return t.end()
}

func newNodes() *command {
	c := &consoleClient{}
	var q string
	var devices bool
	var least string
	return &command{
		name: "nodes", args: "[-q TEXT] [--devices] [--check[=STATE]] [--endpoint URL] [--token-file FILE] [-o json]",
		short: "nodes and their devices: free, held, idle, lost, and their health",
		long:  "--check is about nodes and devices that are lost, what is wrong with them (XID, throttling, ECC errors, …),\nexporters that are down or frozen, and GPUs of which the health is failed. --check=predicted_failure and\n--check=degraded are about GPUs in these states too. A health that is unknown is printed as unknown, and\nis no failure in itself: what makes it so often is, such as an exporter that is down. Where it must be\nknown, --check=unknown is about that too.\n" + checkedLong,
		flags: func(f *pflag.FlagSet) {
			c.flags(f)
			f.StringVar(&least, "check", "", "exit with 1 where something needs attention: health from this state on")
			f.Lookup("check").NoOptDefVal = string(consoleapi.HealthFailed)
			f.StringVarP(&q, "query", "q", "", "only nodes with this in their name or cluster")
			f.BoolVar(&devices, "devices", false, "one line a device")
		},
		run: c.run(func(ctx context.Context, s streams) error {
			if c.check = least != ""; c.check && !slices.Contains(unwell, consoleapi.HealthState(least)) {
				return fmt.Errorf("--check=%s is not failed, predicted_failure, degraded or unknown", safetext.Strip(least, 30))
			}
			ctx, cancel := context.WithTimeout(ctx, c.timeout)
			defer cancel()
			all, err := c.nodes(ctx, q)
			if err != nil {
				return err
			}
			unstored := notes(ctx, c, s.err, all.Freshness)
			switch {
			case c.output == "json":
				err = writeIndented(s.out, all)
			case devices:
				err = devicesTable(s.out, all.Nodes)
			default:
				err = nodesTable(s.out, all)
			}
			attention := unstored || slices.ContainsFunc(all.Nodes, func(n consoleapi.Node) bool { return pressingNode(n, consoleapi.HealthState(least)) }) ||
				slices.ContainsFunc(all.Exporters, func(e consoleapi.Exporter) bool { return e.State != consoleapi.ExporterUp })
			return cmp.Or(err, c.finish(all.Freshness, attention))
		}),
	}
}

func nodesTable(w io.Writer, all *consoleapi.NodesAnswer) error {
	t := newTable(w, "CLUSTER", "NODE", "STATE", "HEALTH", "EXPORTER", "DEVICES", "FREE", "HELD", "IDLE", "LOST", "UNKNOWN", "AGE", "ATTENTION")
	for _, n := range all.Nodes {
		shown := name(string(n.State))
		if n.Schedulable != nil && !*n.Schedulable {
			shown += ",cordoned"
		}
		k := n.Counts
		t.row(named(n.Cluster), name(n.Node), shown, wellbeing(&n.Health), name(string(n.Exporter)), fmt.Sprint(k.Devices), fmt.Sprint(k.Free),
			fmt.Sprint(k.Held), fmt.Sprint(k.Idle), fmt.Sprint(k.Lost), fmt.Sprint(k.Unknown), age(n.Told), labels(n.Reasons))
	}
	if err := t.end(); err != nil {
		return err
	}
	if len(all.Exporters) > 0 {
		fmt.Fprint(w, "\nExporters scraped by address; which node each is on is not known.\n")
		t = newTable(w, "CLUSTER", "ADDRESS", "EXPORTER", "AGE")
		for _, e := range all.Exporters {
			t.row(named(e.Cluster), name(e.Address), name(string(e.State)), (time.Duration(e.DataAge) * time.Second).String())
		}
		if err := t.end(); err != nil {
			return err
		}
	}
	if p := all.Pending.Pods; p != nil && *p > 0 {
		_, err := fmt.Fprintf(w, "\n%d GPU pods wait for a node.\n", *p)
		return err
	}
	return nil
}

func devicesTable(w io.Writer, nodes []consoleapi.Node) error {
	t := newTable(w, "NODE", "GPU", "ID", "MODEL", "STATE", "HEALTH", "HOLDERS", "UTIL", "MEMORY", "POWER", "TEMP", "XID", "AGE", "ATTENTION")
	for _, n := range nodes {
		for i := range n.Devices {
			d := &n.Devices[i]
			var owners []string
			for _, h := range d.Holders {
				owners = append(owners, ownerOf(&h))
			}
			temperature := none
			if d.Temperature != nil {
				temperature = fmt.Sprintf("%.0f C", *d.Temperature)
			}
			t.row(name(n.Node), ids(n.Devices[i:i+1]), name(d.ID), named(d.Model), name(string(d.State)), wellbeing(d.Health), cmp.Or(strings.Join(owners, ","), none),
				percent(d.Values.Utilization), memory(d.Values.MemoryUsed, d.Values.MemoryTotal), watts(d.Values.Power), temperature, count(d.XID), age(d.Told), labels(d.Reasons))
		}
	}
	return t.end()
}

func newTop() *command {
	c := &consoleClient{}
	var every time.Duration
	var times int
	return &command{
		name: "top", args: "[--interval 15s] [--count N] [--endpoint URL] [--token-file FILE] [-o json]",
		short: "the busiest services, again and again",
		long:  watchedLong,
		flags: func(f *pflag.FlagSet) {
			c.flags(f)
			f.DurationVar(&every, "interval", 15*time.Second, "time between two looks")
			f.IntVar(&times, "count", 0, "how many looks; 0 is until it is interrupted, and one if the output is no terminal")
		},
		run: c.run(func(ctx context.Context, s streams) error {
			if every < time.Second || times < 0 {
				return errors.New("--interval is at least 1s, and --count 0 or more")
			}
			terminal := isTerminal(s.out)
			if times == 0 && (!terminal || c.output == "json") {
				times = 1
			}
			for look := 1; ; look++ {
				if err := c.top(ctx, s, terminal && c.output == "table"); err != nil {
					return err
				}
				if look == times {
					return nil
				}
				select {
				case <-ctx.Done():
					return nil
				case <-time.After(every):
				}
			}
		}),
	}
}

// top looks once.
func (c *consoleClient) top(ctx context.Context, s streams, clear bool) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	all, err := c.services(ctx, "", false)
	if err != nil {
		return err
	}
	utilization := func(s consoleapi.Service) float64 {
		if s.Values.Utilization == nil {
			return -1
		}
		return *s.Values.Utilization
	}
	slices.SortStableFunc(all.Services, func(a, b consoleapi.Service) int { return cmp.Compare(utilization(b), utilization(a)) })
	if c.output == "json" {
		return writeIndented(s.out, all)
	}
	if clear {
		fmt.Fprint(s.out, "\x1b[H\x1b[2J")
	}
	f := all.Summary
	fmt.Fprintf(s.out, "%s  devices %s: held %s, busy %s, idle %s, free %s, lost %s, unknown %s; utilization %s, memory %s, power %s; %s services, %s need attention\n\n",
		all.Freshness.EvaluatedAt.Local().Format(time.TimeOnly), count(f.Devices), count(f.DevicesHeld), count(f.DevicesBusy), count(f.DevicesIdle), count(f.DevicesFree),
		count(f.DevicesLost), count(f.DevicesUnknown), over(percent(f.Utilization), f.Coverage.Utilization),
		over(memory(f.MemoryUsed, f.MemoryTotal), f.Coverage.MemoryUsed), over(watts(f.Power), f.Coverage.Power), count(f.Services), count(f.Attention))
	notes(ctx, c, s.out, all.Freshness)
	return cmp.Or(servicesTable(s.out, all.Services, false), elsewhere(s.out, &all.Summary))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
