// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
)

func TestWhatIsShownIsClean(t *testing.T) {
	results := clean([]Result{{Subject: "a\nb", Seen: "\x1b[31mred", Remedy: "one\ntwo\x1b"}})
	assert.Equal(t, Result{Subject: "a b", Seen: "[31mred", Remedy: "one\ntwo"}, results[0])
}

// The chart's folder: the base, then its values, then the user's own.
func TestConfigurationsInTheUsualFolder(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"custom", "values", "agent", "agent-raw"} {
		text := "extensions: {last: {name: " + name + "}}\nservice: {extensions: [last]}\n"
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(text), 0o600))
	}
	files, err := config.UsualFiles(folder)
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		names = append(names, filepath.Base(f))
	}
	assert.Equal(t, []string{"agent.yaml", "agent-raw.yaml", "values.yaml", "custom.yaml"}, names)
	c, err := config.Load(t.Context(), files)
	require.NoError(t, err)
	assert.Equal(t, "custom", c.Of("extensions", "last")[0].Conf.Get("name"))

	// An image has all of them: which is meant cannot be known.
	require.NoError(t, os.WriteFile(filepath.Join(folder, "gateway.yaml"), []byte("{}"), 0o600))
	env, found := examine(t.Context(), Options{folder: folder})
	assert.Equal(t, Warn, found.Status)
	assert.Equal(t, config.RoleStandalone, env.Config.Role())
}

// Which of several collectors is meant cannot be known, and that is reported.
func TestSeveralCollectorsAndNoConfiguration(t *testing.T) {
	for running, want := range map[int]Status{0: Skipped, 1: Skipped, 3: Warn} {
		env, found := examine(t.Context(), Options{Running: running, folder: t.TempDir()})
		assert.Equal(t, want, found.Status, running)
		assert.Contains(t, found.Seen, "is assumed")
		assert.Equal(t, want == Warn, strings.HasPrefix(found.Seen, "3 collectors run here"), found.Seen)
		assert.Equal(t, want == Warn, strings.Contains(found.Remedy, "--config"), found.Remedy)
		assert.Equal(t, config.RoleStandalone, env.Config.Role())
	}
}

// The shipped configurations are understood: what each is, and what it names.
func TestShippedConfigurations(t *testing.T) {
	t.Setenv("K8S_NODE_NAME", "n1")
	t.Setenv("GATEWAY_ENDPOINT", "gateway.example:4317")
	t.Setenv("STATE_DIRECTORY", "/state")
	for role, kube := range map[string]bool{config.RoleAgent: true, config.RoleGateway: true, config.RoleStandalone: false} {
		env, found := examine(t.Context(), Options{Configs: []string{"../../../../config/" + role + ".yaml"}, Timeout: time.Second})
		assert.Equal(t, OK, found.Status, found)
		assert.Equal(t, role, env.Config.Role())
		assert.Equal(t, kube, env.Kube.Unused == "", role)
		assert.Equal(t, "localhost:8888", env.Config.OwnAddress(), role)
		assert.Equal(t, "n1", env.Config.NodeName())
	}
}

func TestBadConfigurations(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	require.NoError(t, os.WriteFile(broken, []byte("receivers: [\n"), 0o600))
	for name, tt := range map[string]struct {
		config string
		want   Status
	}{
		"not there":    {broken + "-not", Fail},
		"no YAML":      {broken, Fail},
		"no pipelines": {"yaml:receivers: {dcgm: {}}", Fail},
		"with a value": {"yaml:{a: !!int hush}", Fail},
		"no scheme":    {"hush:x", Fail},
	} {
		t.Run(name, func(t *testing.T) {
			results, err := Run(t.Context(), Options{Configs: []string{tt.config}, Timeout: time.Second, Version: "1"})
			require.NoError(t, err)
			assert.Equal(t, "configuration", results[0].Check)
			assert.Equal(t, tt.want, results[0].Status)
			assert.NotEmpty(t, results[0].Remedy)
			assert.NotContains(t, results[0].Seen, "hush", "it may be a secret")
			assert.NotContains(t, results[0].Seen, "\n")
		})
	}
	for _, o := range []Options{{Only: []string{"everything"}}, {Role: "boss"}, {Exporters: []string{"localhost:9400"}}} {
		_, err := Run(t.Context(), o)
		assert.Error(t, err)
	}
}
