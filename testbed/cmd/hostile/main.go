// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command hostile is what `make test-hostile` starts: see package hostile.
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

	"github.com/otelcol-gpu/otelcol-gpu/testbed/hostile"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, hostile.ErrSucceeded): // it has reported them
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(2)
	}
}

// command plays the attacks once. What the processes wrote stays where one
// succeeded, and in a folder that was named.
func command(ctx context.Context, args []string, out, errOut io.Writer) error {
	o := hostile.Options{Out: out}
	fs := flag.NewFlagSet("hostile", flag.ContinueOnError)
	fs.SetOutput(errOut)
	fs.StringVar(&o.Bin, "bin", "bin", "`folder` with otelcol-gpu and gpuctl")
	fs.StringVar(&o.Configs, "config", "config", "`folder` with the shipped configurations")
	fs.StringVar(&o.Dir, "dir", "", "`folder` for what the processes write; a temporary one by default")
	fs.StringVar(&o.Only, "only", "", "regular `expression` of the attacks to play")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("takes no arguments, only flags: %q", fs.Args())
	}
	temporary := o.Dir == ""
	if temporary {
		dir, err := os.MkdirTemp("", "hostile-")
		if err != nil {
			return err
		}
		o.Dir = dir
	}
	for _, path := range []*string{&o.Bin, &o.Configs, &o.Dir} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	if err := hostile.Run(ctx, o); err != nil {
		return err
	}
	if temporary {
		return os.RemoveAll(o.Dir)
	}
	return nil
}
