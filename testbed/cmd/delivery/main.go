// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command delivery is what `make test-delivery` starts: see package delivery.
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
	"syscall"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/delivery"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, delivery.ErrBroken): // already printed
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "delivery:", err)
		os.Exit(2)
	}
}

// command does one run. What the collector wrote stays where the run failed.
func command(ctx context.Context, args []string, out, errOut io.Writer) error {
	o := delivery.Options{Out: out}
	fs := flag.NewFlagSet("delivery", flag.ContinueOnError)
	fs.SetOutput(errOut)
	fs.IntVar(&o.Events, "events", 10_000, "how many events are sent")
	fs.IntVar(&o.Receivers, "receivers", 20, "to how many receivers")
	fs.IntVar(&o.Kills, "kills", 3, "how often the collector is killed")
	fs.Uint64Var(&o.Seed, "seed", 1, "of events, faults and moments of the kills")
	fs.StringVar(&o.Bin, "bin", defaultBin(), "`folder` with otelcol-gpu and gpuctl")
	fs.StringVar(&o.Dir, "dir", "", "`folder` for what the collector writes; a temporary one by default")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("takes no arguments, only flags: %q", fs.Args())
	}
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "delivery-")
		if err != nil {
			return err
		}
		o.Dir = dir
	}
	if err := delivery.Run(ctx, o); err != nil {
		return err
	}
	return os.RemoveAll(o.Dir)
}

// defaultBin is the folder that holds this program.
func defaultBin() string {
	exe, err := os.Executable()
	if err != nil {
		return "."
	}
	return filepath.Dir(exe)
}
