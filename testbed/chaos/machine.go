// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/history"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/process"
)

// A machine that has no time for a collector makes it look ill. Two things show it:
// a ticker of our own that comes late, and the time that a collector's threads
// waited for a CPU.
const (
	tick      = 100 * time.Millisecond
	lateTick  = 700 * time.Millisecond
	longWait  = 700 * time.Millisecond // of one thread, within a second
	aftermath = 2 * pace.Interval      // for how long a stall is felt
)

// watchMachine notes in a history when the machine has no time for us or for processes,
// until ctx ends.
func watchMachine(ctx context.Context, processes []*process.Process, h *history.History) {
	last, looked := time.Now(), time.Now()
	waited := map[string]time.Duration{}
	for pace.Pause(ctx, tick) {
		now := time.Now()
		if now.Sub(last) > lateTick {
			h.Stall(last.Add(-pace.Interval), now.Add(aftermath))
		}
		last = now
		if now.Sub(looked) < time.Second {
			continue
		}
		since := looked
		looked = now
		longest := time.Duration(0)
		next := map[string]time.Duration{}
		for _, p := range processes {
			if c, _ := p.Running(); c != nil {
				waits(c.PID(), next)
			}
		}
		for thread, total := range next {
			if before, known := waited[thread]; known {
				longest = max(longest, total-before)
			}
		}
		waited = next
		if longest > longWait {
			h.Stall(since.Add(-pace.Interval), now.Add(aftermath))
		}
	}
}

// waits adds for how long each thread of a process has waited for a CPU.
func waits(pid int, to map[string]time.Duration) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		if fields := bytes.Fields(text); len(fields) > 1 {
			if n, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
				to[file] = time.Duration(n)
			}
		}
	}
}
