// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"runtime/debug"
)

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
