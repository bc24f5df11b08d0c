// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/webhook"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/nvml"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/simkubelet"
)

// run serves a fleet, its control port and a webhook sink.
func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	times := gpusim.DemoTimes()
	fs := flag.NewFlagSet("gpusim run", flag.ContinueOnError)
	fs.SetOutput(errOut)
	demo := fs.Bool("demo", false, "serve the built-in demo fleet (what happens without --config)")
	file := fs.String("config", "", "serve the fleet of this JSON `file` instead of the demo")
	host := fs.String("host", "127.0.0.1", "`address` that the exporters listen on")
	base := fs.Int("base-port", gpusim.DemoExporters, "`port` of the first node, the others follow; 0: free ports, of the demo's engines too")
	control := fs.String("control", "127.0.0.1:9481", "`address` of the control port; empty: none")
	sinkAddr := fs.String("sink", "127.0.0.1:9480", "`address` of the webhook sink; empty: none")
	kubelets := fs.String("kubelets", "", "`folder` for the kubelets' pod-resources sockets, NODE.sock each; empty: no kubelets")
	driver := fs.String("nvml", "", "`folder` for what a fake libnvidia-ml.so.1 reads (see testbed/nvml): NODE/lib, and NODE/root with sysfs and /proc; empty: none")
	seed := fs.Uint64("seed", 0, "seed in place of the configuration's; 0: leave it")
	refresh := fs.Duration("refresh", 0, "how often the exporters read the boards, in place of the configuration's; 0: leave it")
	faults := fs.Bool("faults", true, "play the scripted faults")
	version := fs.String("dcgm-version", "", "`version` of the exporters that are of 4.x, in place of the configuration's; empty: leave them")
	vendor := fs.String("vendor", "", "`vendor` of the boards in place of NVIDIA: amd, gaudi or intel")
	sysfs := fs.String("sysfs", "", "with --vendor: `folder` for a tree of each node's sysfs, named like the node")
	fs.DurationVar(&times.NewPod, "new-pod-at", times.NewPod, "demo: when a new pod starts")
	fs.DurationVar(&times.XID, "xid-at", times.XID, "demo: when a GPU reports an XID")
	fs.DurationVar(&times.Down, "down-at", times.Down, "demo: when an exporter dies")
	fs.DurationVar(&times.DownFor, "down-for", times.DownFor, "demo: how long it stays away")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("run takes no arguments, only flags: %q", fs.Args())
	}
	if *demo && *file != "" {
		return errors.New("--demo and --config exclude each other")
	}
	if *vendor != "" && *refresh != 0 {
		return errors.New("--refresh is not for --vendor: these exporters read their boards for each request")
	}
	if *vendor != "" && *version != "" {
		return errors.New("--dcgm-version is of NVIDIA's fleet: leave --vendor out")
	}
	if *vendor != "" {
		return runVendor(ctx, &options{
			vendor: *vendor, file: *file, host: *host, control: *control, sink: *sinkAddr, kubelets: *kubelets, sysfs: *sysfs,
			base: *base, seed: *seed, faults: *faults, times: times,
		}, out)
	}
	if *sysfs != "" {
		return errors.New("--sysfs needs --vendor: NVIDIA's boards are joined without it")
	}
	cfg := gpusim.Demo(times)
	if *base != 0 {
		cfg.SetPorts(gpusim.DemoEngines)
	}
	if *file != "" {
		var err error
		if cfg, err = readConfig(*file); err != nil {
			return err
		}
	}
	if *version != "" {
		if err := cfg.SetExporter(*version); err != nil {
			return fmt.Errorf("--dcgm-version: %w", err)
		}
	}
	if *seed != 0 {
		cfg.Seed = *seed
	}
	if *refresh != 0 {
		for i := range cfg.Nodes {
			cfg.Nodes[i].Refresh = gpusim.Duration(*refresh)
		}
	}
	if !*faults {
		cfg.Faults = nil
	}
	fleet, err := gpusim.New(cfg, time.Now)
	if err != nil {
		return err
	}
	server, err := exporters.Serve(fleet, *host, *base)
	if err != nil {
		return fmt.Errorf("%w (--base-port)", err)
	}
	defer server.Close()
	urls := make([]string, 0, len(cfg.Nodes))
	for _, n := range fleet.Nodes() {
		urls = append(urls, server.URL(n))
	}
	var also []string
	var sink *webhook.Sink
	if *sinkAddr != "" {
		sink = webhook.NewSink(time.Now)
		addr, stop, err := serve(*sinkAddr, sink)
		if err != nil {
			return fmt.Errorf("webhook sink: %w (--sink)", err)
		}
		defer stop()
		also = append(also, "webhook sink http://"+addr+" (GET /received)")
	}
	if *control != "" {
		addr, stop, err := serve(*control, exporters.Control(fleet, server, sink))
		if err != nil {
			return fmt.Errorf("control port: %w (--control)", err)
		}
		defer stop()
		also = append(also, "control http://"+addr+" (GET /truth, POST /fault)")
	}
	if *driver != "" {
		if err := nvml.Follow(ctx, fleet, *driver); err != nil {
			return fmt.Errorf("%w (--nvml)", err)
		}
		also = append(also, "NVML "+*driver)
	}
	if *kubelets != "" {
		k, err := simkubelet.Start(fleet, *kubelets, time.Now)
		if err != nil {
			return fmt.Errorf("%w (--kubelets)", err)
		}
		defer k.Stop()
		also = append(also, "kubelets "+k.Socket("NODE"))
	}
	fmt.Fprintf(out, "gpusim: %d nodes: %s\n", len(urls), strings.Join(urls, " "))
	if len(also) > 0 {
		fmt.Fprintln(out, "gpusim: "+strings.Join(also, ", "))
	}
	fmt.Fprintln(out, "gpusim: "+script(fleet))
	for _, e := range fleet.Engines() {
		if url := server.EngineURL(e.Namespace, e.Pod, e.Path); url != "" {
			fmt.Fprintf(out, "gpusim: %s of %s/%s: %s\n", e.Engine, e.Namespace, e.Pod, url)
		}
	}
	<-ctx.Done()
	return nil
}

// script describes in one line what is going to happen.
func script(fleet *gpusim.Fleet) string {
	list := fleet.Faults()
	if len(list) == 0 {
		return "no scripted faults"
	}
	parts := make([]string, 0, len(list))
	for _, f := range list {
		p := fmt.Sprintf("%s at %s", f.Kind, time.Duration(f.After))
		if f.For > 0 {
			p += fmt.Sprintf(" for %s", time.Duration(f.For))
		}
		parts = append(parts, p+" ("+f.Node+")")
	}
	return "script: " + strings.Join(parts, ", ")
}

func readConfig(file string) (gpusim.Config, error) {
	f, err := os.Open(file)
	if err != nil {
		return gpusim.Config{}, err
	}
	defer f.Close()
	cfg, err := gpusim.ReadConfig(f)
	if err != nil {
		return cfg, fmt.Errorf("%s: %w", file, err)
	}
	return cfg, nil
}

func printConfig(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(gpusim.Demo(gpusim.DemoTimes()))
}

// replay serves captured pages.
func replay(ctx context.Context, args []string, out, errOut io.Writer) error {
	fs := flag.NewFlagSet("gpusim replay", flag.ContinueOnError)
	fs.SetOutput(errOut)
	listen := fs.String("listen", "127.0.0.1:9400", "`address` to listen on")
	if err := fs.Parse(args); err != nil {
		return err
	}
	r, err := exporters.NewReplay(fs.Args())
	if err != nil {
		return err
	}
	addr, stop, err := serve(*listen, r)
	if err != nil {
		return fmt.Errorf("%w (--listen)", err)
	}
	defer stop()
	fmt.Fprintf(out, "gpusim: replaying %d files on http://%s\n", fs.NArg(), addr)
	for i, p := range r.Paths()[1:] {
		if i == 0 {
			p += " (and /metrics)"
		}
		fmt.Fprintln(out, "gpusim:   "+p)
	}
	<-ctx.Done()
	return nil
}

// serve listens on an address and gives back the one it got.
func serve(addr string, h http.Handler) (string, func(), error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", nil, exporters.ListenError(addr, err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }()
	return l.Addr().String(), func() { _ = s.Close() }, nil
}
