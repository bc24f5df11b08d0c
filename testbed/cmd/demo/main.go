// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command demo is what `make run` starts: a simulated fleet, the collector on
// config/standalone.yaml, inference-standalone.yaml and demo.yaml, and a running commentary. With
// --exporter the collector scrapes a real dcgm-exporter instead, and with --vendor the
// fleet has boards of AMD or Intel.
package main

import (
	"context"
	"encoding/json"
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

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/webhook"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
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
	d := &demo{out: out, times: gpusim.DemoTimes(), ports: collector.UsualPorts(), sim: usualSimulatorPorts()}
	fs := flag.NewFlagSet("demo", flag.ContinueOnError)
	fs.SetOutput(errOut)
	fs.StringVar(&d.exporter, "exporter", "", "`URL` of a real dcgm-exporter's metrics, in place of the simulated fleet")
	fs.StringVar(&d.vendor, "vendor", "", "`vendor` of the simulated boards in place of NVIDIA: amd, gaudi or intel")
	fs.StringVar(&d.version, "dcgm-version", "", "`version` of the simulated dcgm-exporters that are of 4.x: 4.5, 4.6 or 4.9; empty: as the fleet has them")
	fs.StringVar(&d.root, "root", defaultRoot(), "`folder` with bin/ and config/")
	fs.BoolVar(&d.moved, "free-ports", false, "use free ports in place of the usual ones")
	fs.DurationVar(&d.times.NewPod, "new-pod-at", d.times.NewPod, "when a new pod starts")
	fs.DurationVar(&d.times.XID, "xid-at", d.times.XID, "when a GPU reports an XID")
	fs.DurationVar(&d.times.Down, "down-at", d.times.Down, "when an exporter dies")
	fs.DurationVar(&d.times.DownFor, "down-for", d.times.DownFor, "how long it stays away")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("takes no arguments, only flags: %q", fs.Args())
	}
	if d.exporter != "" && d.vendor != "" {
		return errors.New("--exporter and --vendor exclude each other")
	}
	if d.version != "" && (d.exporter != "" || d.vendor != "") {
		return errors.New("--dcgm-version is of the simulated NVIDIA fleet: leave --exporter and --vendor out")
	}
	if d.moved {
		if err := d.moveAway(); err != nil {
			return err
		}
	} else if err := d.checkPorts(); err != nil {
		return err
	}
	return d.run(ctx)
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
	vendor   string // of the simulated fleet; "": NVIDIA
	version  string // of its exporters; "": those of the demo's fleet
	out      io.Writer
	times    gpusim.Times
	ports    collector.Ports
	sim      simulatorPorts
	moved    bool // ports are others than those of the configuration
	sink     *webhook.Sink
	nodes    []string // of a vendor's fleet
	targets  []string // the simulated exporters
	kubelets string   // folder of the simulated kubelets' sockets
	start    time.Time
}

func (d *demo) run(ctx context.Context) error {
	d.start = time.Now()
	if d.exporter == "" {
		simulate := d.simulate
		if d.vendor != "" {
			simulate = func() (func(), error) { return simulateVendor(d) }
		}
		stop, err := simulate()
		if err != nil {
			return err
		}
		defer stop()
	}
	c, err := d.startCollector()
	if err != nil {
		return err
	}
	if err = c.WaitReady(ctx); err == nil {
		d.introduce(c)
		err = d.watch(ctx, c)
	} else if ctx.Err() != nil {
		err = nil // Ctrl-C while it was starting
	}
	stopped := c.Stop()
	if d.moved && err == nil && stopped == nil { // a test's: the files are not needed
		stopped = errors.Join(os.RemoveAll(collector.StateOf(c.LogPath)), os.Remove(c.LogPath))
	}
	if err != nil {
		return errors.Join(err, stopped)
	}
	d.logf("stopped")
	return stopped
}

func (d *demo) startCollector() (*collector.Collector, error) {
	o := collector.Options{
		Binary:  filepath.Join(d.root, "bin", "otelcol-gpu"),
		Configs: []string{filepath.Join(d.root, "config", "standalone.yaml")},
		LogPath: filepath.Join(d.root, "bin", "collector.log"),
		Ports:   d.ports,
	}
	overlays := []map[string]any{}
	switch {
	case d.vendor != "":
		overlays = append(overlays, vendorOverlay(d))
	case d.exporter == "":
		o.Configs = append(o.Configs, filepath.Join(d.root, "config", "inference-standalone.yaml"), filepath.Join(d.root, "config", "demo.yaml"))
		o.Env = append(o.Env, "KUBELETS="+d.kubelets)
		for i, port := range d.sim.engines {
			o.Env = append(o.Env, fmt.Sprintf("ENGINE_%d=%d", i, port))
		}
	default:
		o.Env = append(o.Env, "DCGM_EXPORTER_ENDPOINT="+d.exporter)
	}
	if d.moved {
		o.LogPath = filepath.Join(d.root, "bin", fmt.Sprintf("collector-%d.log", d.ports.Prometheus))
		overlays = append(overlays, d.overlay())
	}
	for _, one := range overlays {
		overlay, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		o.Configs = append(o.Configs, "yaml:"+string(overlay)) // JSON is YAML
	}
	// Each demo is the first: nothing is raised yet, nothing waits.
	if err := os.RemoveAll(collector.StateOf(o.LogPath)); err != nil {
		return nil, err
	}
	return collector.Start(o)
}

// overlay moves the demo's configuration to the ports that are free.
func (d *demo) overlay() map[string]any {
	type m = map[string]any
	overlay := d.ports.Overlay()
	if d.exporter == "" && d.vendor == "" {
		overlay["receivers"].(m)["dcgm"] = m{"endpoints": d.targets}
		sink := fmt.Sprintf("http://%s:%d", collector.Loopback, d.sim.sink)
		overlay["exporters"].(m)["webhook"] = m{"receivers": m{
			"sink":   m{"url": sink + "/ops"},
			"convox": m{"url": sink + "/convox"},
			"slack":  m{"url": sink + "/slack"},
		}}
	}
	return overlay
}

func (d *demo) introduce(c *collector.Collector) {
	d.print("the console: http://localhost:%d", d.ports.Console)
	switch {
	case d.exporter != "":
		d.print("scraping the exporter that you named; a device without pod labels has no owner")
	case d.vendor != "":
		introduceVendor(d)
	default:
		d.print("simulated fleet: 4 nodes with exporter and kubelet, 18 GPUs: %s", strings.Join(d.targets, " "))
		d.print("  inference engines: vLLM in the pods of llama, TGI in whisper's, and a picker before llama: the second row of cards of a service, and gpuctl services -o wide")
		d.print("  made-up prices and budgets: the console's page Cost, and bin/gpuctl cost")
		d.print("  truth and faults: http://localhost:%d/truth, POST /fault; webhooks that arrived: http://localhost:%d/received", d.sim.control, d.sim.sink)
		d.print("  script: a pod starts at %s, an XID at %s, one exporter dies at %s and returns at %s",
			d.times.NewPod, d.times.XID, d.times.Down, d.times.Down+d.times.DownFor)
	}
	d.print("collector is running, its log is %s", c.LogPath)
	if d.exporter == "" {
		d.print("  every attempt to deliver is in its audit log: bin/gpuctl audit verify %s", filepath.Join(collector.StateOf(c.LogPath), "audit.jsonl"))
	}
	d.print("  metrics as Prometheus scrapes them: http://localhost:%d/metrics; a Prometheus API for Grafana: http://localhost:%d", d.ports.Prometheus, d.ports.Store)
	d.print("  Ctrl-C stops everything")
}

func (d *demo) print(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// logf prints a line with the time since the start in front.
func (d *demo) logf(format string, args ...any) {
	fmt.Fprintf(d.out, "%4ds  %s\n", int(time.Since(d.start).Seconds()), fmt.Sprintf(format, args...))
}
