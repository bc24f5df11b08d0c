// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// The example of docs/custom-distribution.md, built by the builder that it names,
// has its components and takes its configuration. Only where our module is, and
// where the result goes, is changed.
func TestCustomDistributionIsBuilt(t *testing.T) {
	builder, err := filepath.Abs(filepath.Join(root, ".tools", "builder"))
	require.NoError(t, err)
	require.FileExists(t, builder, "run make tools")
	checkout, err := filepath.Abs(root)
	require.NoError(t, err)

	example := read(t, "docs", "examples", "custom-distribution", "builder-config.yaml")
	var config map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(example), &config))
	out := filepath.Join(t.TempDir(), "my-collector")
	config["dist"].(map[string]any)["output_path"] = out
	config["replaces"] = []string{"github.com/otelcol-gpu/otelcol-gpu => " + checkout}
	text, err := yaml.Marshal(config)
	require.NoError(t, err)
	manifest := filepath.Join(t.TempDir(), "builder-config.yaml")
	require.NoError(t, os.WriteFile(manifest, text, 0o600))

	build := exec.Command(builder, "--config", manifest)
	// As `make build` does it, so that what that compiled is used.
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	log, err := build.CombinedOutput()
	require.NoError(t, err, string(log))

	binary := filepath.Join(out, "my-collector")
	listed, err := exec.Command(binary, "components").CombinedOutput()
	require.NoError(t, err, string(listed))
	names := regexp.MustCompile(`(?m)^\s*- name: (\S+)$`).FindAllStringSubmatch(string(listed), -1)
	var have []string
	for _, n := range names {
		have = append(have, n[1])
	}
	assert.Subset(t, have, []string{"dcgm", "gpu_pod", "gpu_summary", "gpu_events", "webhook", "otlp", "otlp_grpc", "memory_limiter"})

	validated, err := exec.Command(binary, "validate", "--config", filepath.Join(root, "docs", "examples", "custom-distribution", "config.yaml")).CombinedOutput()
	assert.NoError(t, err, string(validated))
	refused, err := exec.Command(binary, "validate", "--config", filepath.Join(root, "config", "gateway.yaml")).CombinedOutput()
	assert.Error(t, err, "gateway.yaml has components that this distribution has not")
	assert.Contains(t, string(refused), "unknown type")
}

// The example's versions are those that we are built with.
func TestCustomDistributionIsOfOneTrain(t *testing.T) {
	ours := read(t, "builder-config.yaml")
	modules := regexp.MustCompile(`(?m)^  - gomod: (\S+ \S+)$`).FindAllStringSubmatch(read(t, "docs", "examples", "custom-distribution", "builder-config.yaml"), -1)
	require.Greater(t, len(modules), 5)
	for _, m := range modules {
		assert.Contains(t, ours, "- gomod: "+m[1]+"\n")
	}
	tool := regexp.MustCompile(`go\.opentelemetry\.io/collector/cmd/builder v(\S+)`).FindStringSubmatch(read(t, "tools", "go.mod"))
	require.Len(t, tool, 2)
	for _, file := range []string{"docs/examples/custom-distribution/builder-config.yaml", "docs/custom-distribution.md"} {
		assert.Contains(t, read(t, strings.Split(file, "/")...), "cmd/builder@v"+tool[1], file)
	}
}
