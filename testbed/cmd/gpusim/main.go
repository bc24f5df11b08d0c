// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command gpusim simulates a fleet of GPU nodes, or replays captured pages of
// dcgm-exporter. See ../../gpusim/README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

const usage = `gpusim simulates GPU nodes as dcgm-exporter shows them.

  gpusim run [flags]            serve a simulated fleet (the demo, or --config FILE)
  gpusim run --vendor amd       the same of another vendor: amd, gaudi or intel
  gpusim replay [flags] FILE…   serve captured pages byte for byte
  gpusim config                 print the demo's configuration, to start one's own from
  gpusim COMMAND --help         the flags of a command
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpusim:", err)
		os.Exit(1)
	}
}

// command runs one command line until ctx ends.
func command(ctx context.Context, args []string, out, errOut io.Writer) error {
	name := "--help"
	if len(args) > 0 && strings.HasPrefix(strings.TrimLeft(args[0], "-"), "vendor") {
		args = append([]string{"run"}, args...)
	}
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	var err error
	switch name {
	case "run":
		err = run(ctx, args, out, errOut)
	case "replay":
		err = replay(ctx, args, out, errOut)
	case "config":
		err = printConfig(out)
	case "--help", "-help", "-h", "help":
		_, err = io.WriteString(out, usage)
	default:
		return fmt.Errorf("unknown command %q: use run, replay or config", name)
	}
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	return err
}
