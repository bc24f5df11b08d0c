// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/otelcol-gpu/otelcol-gpu/internal/releasefile"
)

// Limits of a release.
const (
	maxRelease = 24 * time.Hour
	// helperEnds is how long the helper may take: the receiver looks every five seconds, and
	// gives it 30 to finish its calls.
	helperEnds = 45 * time.Second
)

// helperComm is what the kernel has as the name of the helper: 15 characters of it.
const helperComm = "otelcol-gpu-nvm"

func newNVML() *command {
	return &command{
		name:        "nvml",
		short:       "the nvml receiver of this host",
		subcommands: []*command{newNVMLRelease("/proc")},
	}
}

var releaseLong = `It makes the file that the nvml receiver has as release_file, and waits until the
receiver's helper has ended, so that nothing of it holds the driver: for a reset of a
GPU, another MIG layout or an upgrade of the driver. Nothing is measured meanwhile, and
nothing is reported as lost. When the time is over the receiver goes on by itself, also
where this program or a script was ended.

  gpuctl nvml release --for 10m && nvidia-smi --gpu-reset -i 3 ; gpuctl nvml release --end

Exit code: 0, 1 a helper still runs, 2 wrong arguments or a file that cannot be made.`

// newNVMLRelease has the processes of the host below proc.
func newNVMLRelease(proc string) *command {
	var lasts, wait time.Duration
	var file string
	var end bool
	return &command{
		name: "release", args: "[--for DURATION] [--file FILE] [--end]",
		short: "has the nvml receiver let go of the driver for a while",
		long:  releaseLong,
		flags: func(f *pflag.FlagSet) {
			f.DurationVar(&lasts, "for", 10*time.Minute, "for how long, 1s to 24h")
			f.StringVar(&file, "file", "", "the receiver's release_file; without it that in "+releasefile.Variable+", else "+releasefile.Default)
			f.BoolVar(&end, "end", false, "ends a release now")
			f.DurationVar(&wait, "wait", helperEnds, "how long the helper may take to end; 0: do not wait")
		},
		run: func(ctx context.Context, s streams, args []string) error {
			switch file = cmp.Or(file, os.Getenv(releasefile.Variable), releasefile.Default); {
			case len(args) > 0:
				return errors.New("it takes no arguments")
			case !filepath.IsAbs(file):
				return errors.New("--file is no absolute path")
			case lasts < time.Second || lasts > maxRelease:
				return errors.New("--for is not within 1s and 24h")
			case wait < 0 || wait > time.Hour:
				return errors.New("--wait is not within 0 and 1h")
			}
			if end {
				if err := os.Remove(file); err != nil {
					return err
				}
				fmt.Fprintln(s.out, "the release has ended")
				return nil
			}
			until := time.Now().Add(lasts)
			if err := releasefile.Write(file, until); err != nil {
				return err
			}
			return awaitRelease(ctx, s, proc, until, wait)
		},
	}
}

// awaitRelease waits until no helper runs.
func awaitRelease(ctx context.Context, s streams, proc string, until time.Time, wait time.Duration) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.Now().Add(wait)
	for {
		running := helpers(proc)
		switch {
		case len(running) == 0 || wait == 0:
			fmt.Fprintf(s.out, "released until %s\n", until.UTC().Format(time.RFC3339))
			return nil
		case !time.Now().Before(deadline):
			fmt.Fprintf(s.err, "still running after %v: %s %s; does the receiver have this file as release_file\n", wait, helperComm, strings.Join(running, ", "))
			return errFailed
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// helpers are the process ids of the helpers that run here, and in containers of this host.
func helpers(proc string) (pids []string) {
	all, _ := os.ReadDir(proc)
	for _, e := range all {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		if comm, err := os.ReadFile(filepath.Join(proc, e.Name(), "comm")); err == nil && strings.TrimSpace(string(comm)) == helperComm {
			pids = append(pids, e.Name())
		}
	}
	return pids
}
