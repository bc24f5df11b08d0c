// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command gpuctl is the companion of otelcol-gpu.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := newRoot().execute(ctx, streams{os.Stdin, os.Stdout, os.Stderr}, os.Args[1:])
	stop()
	os.Exit(code)
}

// newRoot has every group of commands; each is in a file of its own.
func newRoot() *command {
	return &command{
		name:  "gpuctl",
		short: "companion of otelcol-gpu",
		subcommands: []*command{
			newAudit(),
			newCapacity(),
			newCost(),
			newDoctor(),
			newEvents(),
			newHealth(),
			newNVML(),
			newNodes(),
			newPrices(),
			newPS(),
			newServices(),
			newTop(),
			newVersion(),
			newWebhook(),
		},
	}
}

// version is set by the build to the manifest's.
var version string

func newVersion() *command {
	return &command{
		name:  "version",
		short: "prints the version",
		run: func(_ context.Context, s streams, _ []string) error {
			_, err := fmt.Fprintln(s.out, "gpuctl", versionText())
			return err
		},
	}
}

// versionText is the version that the build set, or that go install knows.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
