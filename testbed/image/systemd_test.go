// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var systemdFolder = filepath.Join(root, "docs", "examples", "systemd")

// systemd's own check of the unit with its drop-in. A folder of our own stands in
// for the system's; only the program's path is changed to one that is there.
func TestUnitIsVerified(t *testing.T) {
	verifier, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here")
	}
	unit := read(t, "docs", "examples", "systemd", "otelcol-gpu.service")
	verify := func(unit string) string {
		folder := t.TempDir()
		program := filepath.Join(folder, "otelcol-gpu")
		require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755))
		unit = strings.ReplaceAll(unit, "/usr/local/bin/otelcol-gpu", program)
		path := filepath.Join(folder, "otelcol-gpu.service")
		require.NoError(t, os.WriteFile(path, []byte(unit), 0o644))
		require.NoError(t, os.Mkdir(path+".d", 0o755))
		for _, drop := range []string{"slurm-central.conf", "nvml.conf"} {
			require.NoError(t, os.WriteFile(filepath.Join(path+".d", drop), []byte(read(t, "docs", "examples", "systemd", drop)), 0o644))
		}
		text, err := exec.Command(verifier, "verify", "--man=no", path).CombinedOutput()
		if err != nil {
			return string(text) + err.Error()
		}
		// It also complains about the machine's other units.
		var ours []string
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "otelcol-gpu") {
				ours = append(ours, line)
			}
		}
		return strings.Join(ours, "")
	}
	assert.Empty(t, verify(unit))
	assert.NotEmpty(t, verify(strings.Replace(unit, "NoNewPrivileges=yes", "NoNewPriviledges=perhaps", 1)), "a misspelt directive is found")

	// How much a service that is broken into could do, 0 to 10, as systemd counts.
	text, err := exec.Command(verifier, "security", "--offline=true", "--no-pager", filepath.Join(systemdFolder, "otelcol-gpu.service")).CombinedOutput()
	if err != nil && strings.Contains(string(text), "offline") {
		t.Skip("systemd-analyze security reads no files here")
	}
	require.NoError(t, err, string(text))
	level := regexp.MustCompile(`exposure level for \S+: (\d+\.\d+)`).FindStringSubmatch(string(text))
	require.Len(t, level, 2, string(text))
	exposure, err := strconv.ParseFloat(level[1], 64)
	require.NoError(t, err)
	assert.Less(t, exposure, 2.0)
}

// What the environment file may set is what the configurations read, and every
// file that it names is one of ours.
func TestEnvironmentFile(t *testing.T) {
	configurations := read(t, "config", "standalone.yaml") + read(t, "config", "webhooks.yaml") + read(t, "config", "vendors-standalone.yaml") + read(t, "config", "nvml-standalone.yaml") +
		read(t, "docs", "examples", "systemd", "slurm-node.yaml") + read(t, "docs", "examples", "systemd", "slurm-central.yaml")
	unit := read(t, "docs", "examples", "systemd", "otelcol-gpu.service")
	variables := regexp.MustCompile(`(?m)^#?([A-Z_]+)=(.*)$`).FindAllStringSubmatch(read(t, "docs", "examples", "systemd", "otelcol-gpu.env"), -1)
	require.NotEmpty(t, variables)
	for _, v := range variables {
		if v[1] == "OTELCOL_GPU_CONFIGS" {
			assert.Contains(t, unit, "$OTELCOL_GPU_CONFIGS")
			for _, file := range regexp.MustCompile(`--config \S*/(\S+)`).FindAllStringSubmatch(v[2], -1) {
				_, shipped := os.Stat(filepath.Join(root, "config", file[1]))
				_, example := os.Stat(filepath.Join(systemdFolder, file[1]))
				assert.True(t, shipped == nil || example == nil, file[1])
			}
			continue
		}
		assert.Contains(t, configurations, "${env:"+v[1], "no configuration reads it")
	}
}

// The unit's memory is above what memory_limiter lets the collector use.
func TestMemoryOfTheUnits(t *testing.T) {
	number := func(pattern, text string) int {
		found := regexp.MustCompile(pattern).FindStringSubmatch(text)
		require.Len(t, found, 2, pattern)
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		return n
	}
	memory := `(?m)^MemoryMax=(\d+)M$`
	assert.Greater(t, number(memory, read(t, "docs", "examples", "systemd", "otelcol-gpu.service")), number(`limit_mib: (\d+)`, read(t, "config", "standalone.yaml")))
	assert.Greater(t, number(memory, read(t, "docs", "examples", "systemd", "slurm-central.conf")), number(`MEMORY_LIMIT_MIB:-(\d+)`, read(t, "docs", "examples", "systemd", "slurm-central.yaml")))
	assert.Greater(t, number(`mem_limit: (\d+)m`, read(t, "docs", "examples", "compose", "compose.yaml")), number(`limit_mib: (\d+)`, read(t, "config", "standalone.yaml")))
}

// The configurations of nodes without Kubernetes are complete; testbed/e2e runs them.
func TestSlurmConfigurationsValidate(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	state := "STATE_DIRECTORY=" + t.TempDir()
	text, err := collector(t, []string{state, "NODE_NAME=n", "GATEWAY_ENDPOINT=localhost:4317", "GATEWAY_CA_FILE=" + empty, "GATEWAY_TOKEN=x"},
		"validate", "--config", filepath.Join(systemdFolder, "slurm-node.yaml"))
	require.NoError(t, err, text)
	text, err = collector(t, []string{state, "NODE_NAME=n", "GATEWAY_ENDPOINT=localhost:4317", "GATEWAY_CA_FILE=" + empty, "GATEWAY_TOKEN=x"},
		"validate", "--config", filepath.Join(systemdFolder, "slurm-node.yaml"), "--config", filepath.Join(systemdFolder, "slurm-node-nvml.yaml"))
	require.NoError(t, err, text)
	text, err = collector(t, []string{state, "NODE_NAME=n", "GATEWAY_ENDPOINT=localhost:4317", "GATEWAY_CA_FILE=" + empty, "GATEWAY_TOKEN=x"},
		"validate", "--config", filepath.Join(systemdFolder, "slurm-node.yaml"), "--config", filepath.Join(systemdFolder, "slurm-node-training.yaml"))
	require.NoError(t, err, text)
	text, err = collector(t, []string{state, "CREDENTIALS_DIRECTORY=" + filepath.Dir(empty)},
		"validate", "--config", filepath.Join(root, "config", "standalone.yaml"), "--config", filepath.Join(systemdFolder, "slurm-central.yaml"))
	require.NoError(t, err, text)
	text, err = collector(t, []string{state, "CREDENTIALS_DIRECTORY=" + filepath.Dir(empty)},
		"validate", "--config", filepath.Join(root, "config", "standalone.yaml"), "--config", filepath.Join(systemdFolder, "slurm-central.yaml"), "--config", filepath.Join(systemdFolder, "slurm-central-training.yaml"))
	require.NoError(t, err, text)
}
