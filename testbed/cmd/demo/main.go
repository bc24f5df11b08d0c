// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command demo is what `make run` starts: a simulated fleet, the collector on
// config/standalone.yaml and config/demo.yaml, and a running commentary. With
// --exporter the collector scrapes a real dcgm-exporter instead.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// command runs the demo until ctx ends.
func command(ctx context.Context, args []string, out, errOut io.Writer) error {
	times := gpusim.DemoTimes()
	fs := flag.NewFlagSet("demo", flag.ContinueOnError)
	fs.SetOutput(errOut)
	exporter := fs.String("exporter", "", "`URL` of a real dcgm-exporter's metrics, in place of the simulated fleet")
	free := fs.Bool("free-ports", false, "use free ports in place of the usual ones, and print them")
	root := fs.String("root", defaultRoot(), "`folder` with bin/ and config/")
	fs.DurationVar(&times.NewPod, "new-pod-at", times.NewPod, "when a new pod starts")
	fs.DurationVar(&times.XID, "xid-at", times.XID, "when a GPU reports an XID")
	fs.DurationVar(&times.Down, "down-at", times.Down, "when an exporter dies")
	fs.DurationVar(&times.DownFor, "down-for", times.DownFor, "how long it stays away")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("takes no arguments, only flags: %q", fs.Args())
	}
	d := &demo{root: *root, exporter: *exporter, out: out, ports: usualPorts(), moved: *free}
	if *free {
		var err error
		if d.ports, err = freePorts(); err != nil {
			return err
		}
	} else if err := d.ports.check(d.exporter == ""); err != nil {
		return err
	}
	return d.run(ctx, times)
}

// defaultRoot is the folder above the one that holds this program.
func defaultRoot() string {
	exe, err := os.Executable()
	if err != nil {
		return "."
	}
	return filepath.Dir(filepath.Dir(exe))
}

type demo struct {
	root     string
	exporter string // "": simulated
	out      io.Writer
	ports    ports
	moved    bool // ports are others than config/demo.yaml says
	sink     *gpusim.Sink
	targets  []string // the simulated exporters
	start    time.Time
}

func (d *demo) run(ctx context.Context, times gpusim.Times) error {
	d.start = time.Now()
	if d.exporter == "" {
		stop, err := d.simulate(times)
		if err != nil {
			return err
		}
		defer stop()
	}
	c, err := d.startCollector()
	if err != nil {
		return err
	}
	err = c.waitReady(ctx)
	if err == nil {
		d.introduce(c, times)
		err = d.watch(ctx, c)
	}
	stopped := c.stop()
	if err != nil {
		return errors.Join(err, stopped)
	}
	d.say("stopped")
	return stopped
}

// simulate serves the fleet of gpusim's demo, its control port and its sink.
func (d *demo) simulate(times gpusim.Times) (func(), error) {
	fleet, err := gpusim.New(gpusim.Demo(times), time.Now)
	if err != nil {
		return nil, err
	}
	server, err := gpusim.Serve(fleet, loopback, d.ports.exporters)
	if err != nil {
		return nil, err
	}
	for _, node := range fleet.Nodes() {
		d.targets = append(d.targets, server.URL(node))
	}
	d.sink = gpusim.NewSink(time.Now)
	stopSink, err := serve(d.ports.sink, d.sink)
	if err != nil {
		server.Close()
		return nil, err
	}
	stopControl, err := serve(d.ports.control, gpusim.Control(fleet, server, d.sink))
	if err != nil {
		stopSink()
		server.Close()
		return nil, err
	}
	return func() { stopControl(); stopSink(); server.Close() }, nil
}

func (d *demo) introduce(c *collector, times gpusim.Times) {
	if d.exporter != "" {
		d.print("scraping the real exporter that you named; without pods on its labels, devices have no holder")
	} else {
		d.print("simulated fleet: 4 nodes, 18 GPUs: %s", strings.Join(d.targets, " "))
		d.print("  truth and faults: http://localhost:%d/truth, POST /fault; webhooks that arrived: http://localhost:%d/received", d.ports.control, d.ports.sink)
		d.print("  script: a pod starts at %s, an XID at %s, one exporter dies at %s and returns at %s",
			times.NewPod, times.XID, times.Down, times.Down+times.DownFor)
	}
	d.print("collector is running, its log is %s", c.logPath)
	d.print("  look at: http://localhost:%d/metrics (hw_gpu_utilization_ratio by pod, gpu_service_utilization_ratio, gpu_service_partial)", d.ports.prometheus)
	d.print("  Ctrl-C stops everything")
}

func (d *demo) print(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// say prints a line with the time since the start in front.
func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.out, "%4ds  %s\n", int(time.Since(d.start).Seconds()), fmt.Sprintf(format, args...))
}
