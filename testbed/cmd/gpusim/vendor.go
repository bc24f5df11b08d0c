// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/webhook"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/vendors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/simkubelet"
)

// options are the flags of run that a fleet of other vendors has too.
type options struct {
	vendor, file, host, control, sink, kubelets, sysfs string
	base                                               int
	seed                                               uint64
	faults                                             bool
	times                                              gpusim.Times
}

// runVendor serves a fleet of AMD, Gaudi or Intel boards until ctx ends.
func runVendor(ctx context.Context, o *options, out io.Writer) error {
	cfg, err := o.config()
	if err != nil {
		return err
	}
	fleet, err := vendors.New(cfg, time.Now)
	if err != nil {
		return err
	}
	server, err := exporters.ServeVendors(fleet, o.host, o.base)
	if err != nil {
		return fmt.Errorf("%w (--base-port)", err)
	}
	defer server.Close()
	var also []string
	var sink *webhook.Sink
	if o.sink != "" {
		sink = webhook.NewSink(time.Now)
		addr, stop, err := serve(o.sink, sink)
		if err != nil {
			return fmt.Errorf("webhook sink: %w (--sink)", err)
		}
		defer stop()
		also = append(also, "webhook sink http://"+addr+" (GET /received)")
	}
	if o.control != "" {
		addr, stop, err := serve(o.control, exporters.ControlVendors(fleet, sink))
		if err != nil {
			return fmt.Errorf("control port: %w (--control)", err)
		}
		defer stop()
		also = append(also, "control http://"+addr+" (GET /truth, POST /fault)")
	}
	if o.kubelets != "" {
		k, err := simkubelet.StartVendors(fleet, o.kubelets, time.Now)
		if err != nil {
			return fmt.Errorf("%w (--kubelets)", err)
		}
		defer k.Stop()
		also = append(also, "kubelets "+k.Socket("NODE"))
	}
	if o.sysfs != "" {
		for _, node := range fleet.Nodes() {
			if err := fleet.WriteSysfs(node, filepath.Join(o.sysfs, node), time.Now()); err != nil {
				return fmt.Errorf("%w (--sysfs)", err)
			}
		}
		also = append(also, "sysfs "+filepath.Join(o.sysfs, "NODE"))
	}
	urls := make([]string, 0, len(cfg.Nodes))
	for _, n := range fleet.Nodes() {
		urls = append(urls, server.URL(n))
	}
	fmt.Fprintf(out, "gpusim: %d nodes: %s\n", len(urls), strings.Join(urls, " "))
	if len(also) > 0 {
		fmt.Fprintln(out, "gpusim: "+strings.Join(also, ", "))
	}
	<-ctx.Done()
	return nil
}

func (o *options) config() (cfg vendors.Config, err error) {
	if o.file == "" {
		cfg, err = vendors.Demo(o.vendor, o.times.XID, o.times.Down, o.times.DownFor)
	} else {
		cfg, err = readVendors(o.file)
	}
	if err != nil {
		return cfg, err
	}
	if o.seed != 0 {
		cfg.Seed = o.seed
	}
	if !o.faults {
		cfg.Faults = nil
	}
	return cfg, nil
}

func readVendors(file string) (cfg vendors.Config, err error) {
	f, err := os.Open(file)
	if err != nil {
		return cfg, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if cfg, err = vendors.ReadConfig(f); err != nil {
		return cfg, fmt.Errorf("%s: %w", file, err)
	}
	return cfg, nil
}
