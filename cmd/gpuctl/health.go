// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

func newHealth() *command {
	return &command{
		name:        "health",
		short:       "what a person has done about the health of GPUs",
		subcommands: []*command{newHealthClear(time.Now)},
	}
}

const clearLong = `It prints the kubectl command that acknowledges what was wrong with the GPUs of a node
before a time, and writes nothing itself: the audit log of Kubernetes records who
runs that command. gpu_allocation reads the annotation, and gpu_events then ends the reasons
that only a person, or what they did, can end: an XID, uncorrected errors, repetition.
A flag that still stands, such as a failed row remap, stays. A time that is later than the
clock of the node has no effect, and a new value replaces the one before.

Without Kubernetes the configuration of gpu_events has it, under the host or hw.id:

  health: {cleared: {gpu-node-1: 2026-01-31T15:04:05Z}}

Exit code: 0, 2 wrong arguments.`

// Names that can stand in a command without quotes of their own.
var (
	nodeName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	deviceID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:/._-]{0,199}$`)
)

func newHealthClear(now func() time.Time) *command {
	var devices []string
	var before string
	return &command{
		name: "clear", args: "NODE [--device ID…] [--before TIME]",
		short: "prints the kubectl line that acknowledges what was wrong with a node's GPUs",
		long:  clearLong,
		flags: func(f *pflag.FlagSet) {
			f.StringArrayVar(&devices, "device", nil, "only this GPU, by its hw.id; may be repeated")
			f.StringVar(&before, "before", "", "what was wrong before this time (RFC 3339); without it: now")
		},
		run: func(_ context.Context, s streams, args []string) error {
			if len(args) != 1 {
				return errors.New("the name of one Node is needed")
			}
			at := now()
			if before != "" {
				var err error
				if at, err = time.Parse(time.RFC3339, before); err != nil {
					return fmt.Errorf("--before %s is no time as in 2026-01-31T15:04:05Z", safetext.Strip(before, 50))
				}
			}
			line, err := annotate(args[0], devices, at)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(s.out, line)
			return err
		},
	}
}

// annotate is the command that acknowledges what was before a time.
func annotate(node string, devices []string, before time.Time) (string, error) {
	if !nodeName.MatchString(node) {
		return "", fmt.Errorf("%q is no name of a Node", safetext.Strip(node, 253))
	}
	entries := []string{health.Cleared{Before: before}.String()}
	if len(devices) > 0 {
		entries = nil
	}
	for _, id := range devices {
		if !deviceID.MatchString(id) {
			return "", fmt.Errorf("--device %q is no hw.id as in GPU-6f2c1b9e-…", safetext.Strip(id, 200))
		}
		entries = append(entries, health.Cleared{ID: id, Before: before}.String())
	}
	value := strings.Join(entries, ",")
	if len(value) > health.MaxCleared {
		return "", fmt.Errorf("%d devices do not fit into the annotation, which has at most %d bytes: acknowledge the whole node, or fewer", len(devices), health.MaxCleared)
	}
	return fmt.Sprintf("kubectl annotate node %s --overwrite '%s=%s'", node, health.ClearedAnnotation, value), nil
}
