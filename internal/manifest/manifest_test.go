// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package manifest holds the test that keeps the distribution's manifest, the
// code that ocb generated from it, and the root go.mod in step.
package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"golang.org/x/mod/modfile"
)

const (
	root   = "../.."
	module = "github.com/otelcol-gpu/otelcol-gpu"
)

type component struct {
	GoMod  string `yaml:"gomod"`
	Import string `yaml:"import"`
}

type manifest struct {
	Dist struct {
		Version   string `yaml:"version"`
		BuildTags string `yaml:"build_tags"`
	} `yaml:"dist"`
	Receivers  []component `yaml:"receivers"`
	Processors []component `yaml:"processors"`
	Exporters  []component `yaml:"exporters"`
	Connectors []component `yaml:"connectors"`
	Extensions []component `yaml:"extensions"`
	Providers  []component `yaml:"providers"`
}

func (m *manifest) components() []component {
	var all []component
	for _, list := range [][]component{m.Receivers, m.Processors, m.Exporters, m.Connectors, m.Extensions, m.Providers} {
		all = append(all, list...)
	}
	return all
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	require.NoError(t, err)
	return text
}

func requires(t *testing.T, path ...string) (map[string]string, *modfile.File) {
	t.Helper()
	f, err := modfile.Parse("go.mod", read(t, path...), nil)
	require.NoError(t, err)
	versions := map[string]string{}
	for _, r := range f.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	return versions, f
}

func TestManifestGeneratedCodeAndGoModAgree(t *testing.T) {
	var m manifest
	require.NoError(t, yaml.Unmarshal(read(t, "builder-config.yaml"), &m))
	_, rootMod := requires(t, "go.mod")
	distVersions, _ := requires(t, "cmd", "otelcol-gpu", "go.mod")
	testbedVersions, _ := requires(t, "testbed", "go.mod")
	generated := string(read(t, "cmd", "otelcol-gpu", "components.go"))
	main := string(read(t, "cmd", "otelcol-gpu", "main.go"))

	assert.Contains(t, string(read(t, "docs", "custom-distribution.md")), "**Go.** "+rootMod.Go.Version+" or newer")
	assert.Empty(t, rootMod.Replace, "importers ignore our replaces: the root go.mod has none")
	assert.Contains(t, main, `"`+m.Dist.Version+`"`, "main.go is generated from another version: run make generate")
	assert.Contains(t, string(read(t, "CHANGELOG.md")), "## "+m.Dist.Version)
	chart := string(read(t, "charts", "otelcol-gpu", "Chart.yaml"))
	assert.Contains(t, chart, "\nversion: "+m.Dist.Version+"\nappVersion: "+m.Dist.Version+"\n", "charts/otelcol-gpu/Chart.yaml")

	require.NotEmpty(t, m.components())
	for _, c := range m.components() {
		path, version, ok := strings.Cut(c.GoMod, " ")
		require.True(t, ok, c.GoMod)
		if path == module {
			assert.Equal(t, "v"+m.Dist.Version, version, "our own modules carry the distribution's version")
		}
		assert.Equal(t, version, distVersions[path], "cmd/otelcol-gpu/go.mod: %s: run make generate", path)
		imported := c.Import
		if imported == "" {
			imported = path
		}
		// Providers are written to main.go, components to components.go.
		assert.True(t, strings.Contains(generated, `"`+imported+`"`) || strings.Contains(main, `"`+imported+`"`),
			"%s is in the manifest and not in the generated code: run make generate", imported)
	}
	for _, r := range rootMod.Require {
		path, version := r.Mod.Path, r.Mod.Version
		if r.Indirect {
			continue // the distribution has more components, so more minimum versions
		}
		if other, both := distVersions[path]; both {
			assert.Equal(t, version, other, "%s: the root go.mod and cmd/otelcol-gpu/go.mod differ", path)
		}
		if other, both := testbedVersions[path]; both && strings.HasPrefix(path, "github.com/prometheus/prometheus") {
			assert.Equal(t, version, other, "%s: the root go.mod and testbed/go.mod differ", path)
		}
	}
}

// TestEveryComponentIsInTheManifest finds components that were written and then
// forgotten.
func TestEveryComponentIsInTheManifest(t *testing.T) {
	text := string(read(t, "builder-config.yaml"))
	distribution, overview := string(read(t, "docs", "custom-distribution.md")), string(read(t, "README.md"))
	found := 0
	for _, class := range []string{"receiver", "processor", "exporter", "connector", "extension"} {
		folders, err := filepath.Glob(filepath.Join(root, class, "*", "factory.go"))
		require.NoError(t, err)
		for _, f := range folders {
			found++
			folder := filepath.Base(filepath.Dir(f))
			assert.Contains(t, text, "import: "+module+"/"+class+"/"+folder+"\n")
			assert.Contains(t, distribution, "| `"+module+"/"+class+"/"+folder+"` |", "docs/custom-distribution.md lists every component")
			assert.Contains(t, overview, "]("+class+"/"+folder+"/README.md)", "README.md lists every component")
			assert.Contains(t, string(read(t, class, folder, "config.go")), "configkeys.Unmarshal(conf, c)",
				"%s reads its configuration strictly", folder)
		}
	}
	assert.GreaterOrEqual(t, found, 5)
}
