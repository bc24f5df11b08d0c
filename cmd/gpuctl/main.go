// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command gpuctl is the companion of otelcol-gpu.
package main

import (
	"context"
	"os"
	"os/signal"
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
			newDoctor(),
			newEvents(),
			newHealth(),
			newNodes(),
			newPS(),
			newServices(),
			newTop(),
			newVersion(),
			newWebhook(),
		},
	}
}
