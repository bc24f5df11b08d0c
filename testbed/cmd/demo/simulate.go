// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/webhook"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/simkubelet"
)

const demoNodes = 4

// simulatorPorts are what the simulator listens on.
type simulatorPorts struct {
	exporters int // the first of demoNodes in a row; 0: free ports
	engines   []int
	sink      int
	control   int
}

// usualSimulatorPorts are those of config/demo.yaml.
func usualSimulatorPorts() simulatorPorts {
	return simulatorPorts{exporters: gpusim.DemoExporters, engines: gpusim.DemoEngines, sink: 9480, control: 9481}
}

func (d *demo) moveAway() error {
	var err error
	if d.ports, err = collector.FreePorts(); err != nil {
		return err
	}
	free, err := collector.Free(2 + len(gpusim.DemoEngines))
	if err != nil {
		return err
	}
	d.sim = simulatorPorts{sink: free[0], control: free[1], engines: free[2:]}
	return nil
}

func (d *demo) checkPorts() error {
	uses := d.ports.Uses()
	if d.exporter == "" {
		for i := range demoNodes {
			uses = append(uses, collector.Use{Port: d.sim.exporters + i, What: "a simulated exporter"})
		}
		for _, port := range d.sim.engines {
			uses = append(uses, collector.Use{Port: port, What: "a simulated inference engine"})
		}
		uses = append(uses,
			collector.Use{Port: d.sim.sink, What: "the webhook sink"},
			collector.Use{Port: d.sim.control, What: "the simulator's control port"})
	}
	return collector.Check(uses)
}

// simulate serves the fleet of gpusim's demo, its control port and its sink.
func (d *demo) simulate() (stop func(), err error) {
	cfg := gpusim.Demo(d.times)
	if d.version != "" {
		if err := cfg.SetExporter(d.version); err != nil {
			return nil, fmt.Errorf("--dcgm-version: %w", err)
		}
	}
	cfg.SetPorts(d.sim.engines)
	fleet, err := gpusim.New(cfg, time.Now)
	if err != nil {
		return nil, err
	}
	server, err := exporters.Serve(fleet, collector.Loopback, d.sim.exporters)
	if err != nil {
		return nil, err
	}
	for _, node := range fleet.Nodes() {
		d.targets = append(d.targets, server.URL(node))
	}
	var stops []func()
	stop = func() {
		for _, s := range slices.Backward(stops) {
			s()
		}
	}
	stops = append(stops, server.Close)
	started := func(s func(), err error) error {
		if err != nil {
			stop()
			return err
		}
		stops = append(stops, s)
		return nil
	}
	if err := started(d.serveKubelets(fleet)); err != nil {
		return nil, err
	}
	d.sink = webhook.NewSink(time.Now)
	if err := started(serve(d.sim.sink, d.sink)); err != nil {
		return nil, err
	}
	if err := started(serve(d.sim.control, exporters.Control(fleet, server, d.sink))); err != nil {
		return nil, err
	}
	return stop, nil
}

// serveKubelets serves each node's pod-resources API, in a folder with a
// path short enough for a socket.
func (d *demo) serveKubelets(fleet *gpusim.Fleet) (stop func(), err error) {
	if d.kubelets, err = os.MkdirTemp("", "kubelets"); err != nil {
		return nil, err
	}
	k, err := simkubelet.Start(fleet, d.kubelets, time.Now)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(d.kubelets))
	}
	return func() { k.Stop(); _ = os.RemoveAll(d.kubelets) }, nil
}

func serve(port int, h http.Handler) (stop func(), err error) {
	addr := net.JoinHostPort(collector.Loopback, strconv.Itoa(port))
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, exporters.ListenError(addr, err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }()
	return func() { _ = s.Close() }, nil
}
