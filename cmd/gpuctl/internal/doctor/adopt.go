// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	collectorName = "otelcol-gpu"
	maxCmdline    = 1 << 20 // bytes
)

// Collector is a collector that runs on this machine, or in this container.
type Collector struct {
	PID int
	// Configs are its --config, in order.
	Configs []string

	proc string
}

// FindCollectors looks for the collectors that run here. Where there are several,
// which is meant cannot be known.
func FindCollectors() []*Collector { return findCollectors("/proc") }

func findCollectors(proc string) []*Collector {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil // no Linux
	}
	var found []*Collector
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join(proc, e.Name())
		cmdline, err := readSome(filepath.Join(dir, "cmdline"))
		if err != nil {
			continue // it has ended
		}
		configs := configsOf(cmdline)
		if len(configs) == 0 {
			continue
		}
		found = append(found, &Collector{PID: pid, Configs: configs, proc: dir})
	}
	return found
}

// Adopt takes over what the collector's configuration depends on: its working
// directory, and those variables of its environment that are not set here. Who is
// neither its user nor root may read neither, and does without.
func (c *Collector) Adopt() {
	_ = os.Chdir(filepath.Join(c.proc, "cwd"))
	text, err := readSome(filepath.Join(c.proc, "environ"))
	if err != nil {
		return
	}
	for _, variable := range strings.Split(string(text), "\x00") {
		name, value, found := strings.Cut(variable, "=")
		if _, set := os.LookupEnv(name); found && name != "" && !set {
			_ = os.Setenv(name, value)
		}
	}
}

func readSome(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxCmdline))
}

// configsOf are the configurations in the command line of a collector that runs,
// and nothing in any other.
func configsOf(cmdline []byte) []string {
	var args []string
	for _, arg := range bytes.Split(bytes.TrimSuffix(cmdline, []byte{0}), []byte{0}) {
		args = append(args, string(arg))
	}
	if filepath.Base(args[0]) != collectorName || len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		return nil // another program, or validate and its like
	}
	var configs []string
	for i := 1; i < len(args); i++ {
		name, value, inOne := strings.Cut(args[i], "=")
		if name != "--config" && name != "-config" {
			continue
		}
		if !inOne {
			if i++; i == len(args) {
				break
			}
			value = args[i]
		}
		if value != "" {
			configs = append(configs, value)
		}
	}
	return configs
}
