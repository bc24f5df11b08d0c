// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command chaos is what `make chaos` starts: see package chaos.
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
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, chaos.ErrBroken): // already printed
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(2)
	}
}

// command does one run. What the collectors wrote stays where the run failed.
func command(ctx context.Context, args []string, out, errOut io.Writer) error {
	o := chaos.Options{Out: out}
	fs := flag.NewFlagSet("chaos", flag.ContinueOnError)
	fs.SetOutput(errOut)
	fs.DurationVar(&o.Duration, "duration", 10*time.Minute, "how long rounds of faults are played")
	fs.Uint64Var(&o.Seed, "seed", 1, "of faults and their moments")
	fs.StringVar(&o.Only, "only", "", "`kinds` of faults, comma-separated; all by default")
	fs.StringVar(&o.Bin, "bin", defaultBin(), "`folder` with otelcol-gpu and gpuctl")
	fs.StringVar(&o.Config, "config", "config", "`folder` with agent.yaml and gateway.yaml")
	fs.StringVar(&o.Dir, "dir", "", "`folder` for what the collectors write; a temporary one by default")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("takes no arguments, only flags: %q", fs.Args())
	}
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "chaos-")
		if err != nil {
			return err
		}
		o.Dir = dir
	}
	if err := chaos.Run(ctx, o); err != nil {
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
