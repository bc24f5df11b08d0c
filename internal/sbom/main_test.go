// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/sbom/licenses"
)

const console = "../../extension/gpuconsoleextension/web"

// gpuctl is built for a test: a binary with modules in it.
func gpuctl(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "gpuctl")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/gpuctl")
	build.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return binary
}

// The bill of a binary has every module that Go put into it, and is the same when
// it is made again.
func TestEveryModuleIsListed(t *testing.T) {
	binary := gpuctl(t)
	info, err := buildinfo.ReadFile(binary)
	require.NoError(t, err)
	require.NotEmpty(t, info.Deps)

	var first, again bytes.Buffer
	require.NoError(t, write(&first, binary, "1.2.3", console))
	require.NoError(t, write(&again, binary, "1.2.3", console))
	assert.Equal(t, first.String(), again.String())
	var made cdx.BOM
	require.NoError(t, cdx.NewBOMDecoder(&first, cdx.BOMFileFormatJSON).Decode(&made))
	assert.Equal(t, cdx.SpecVersion1_6, made.SpecVersion)
	assert.Equal(t, "1.2.3", made.Metadata.Component.Version)
	assert.Len(t, (*made.Metadata.Component.Hashes)[0].Value, 64)

	versions := map[string]string{}
	for _, c := range *made.Components {
		assert.NotContains(t, versions, c.Name, "each once")
		versions[c.Name] = c.Version
		assert.Equal(t, c.PackageURL, c.BOMRef)
		assert.NotEmpty(t, *c.Licenses, c.Name)
	}
	for _, m := range info.Deps {
		require.Nil(t, m.Replace)
		assert.Equal(t, m.Version, versions[m.Path], m.Path)
	}
	assert.Contains(t, versions, "stdlib")
	// What is bundled into the page, and what that needs, and no tool of its build.
	for _, name := range []string{"preact", "uplot", "@preact/signals", "@preact/signals-core"} {
		assert.NotEmpty(t, versions[name], name)
	}
	assert.NotContains(t, versions, "vite")
}

func TestPackageURLs(t *testing.T) {
	assert.Equal(t, "pkg:golang/github.com/docker/docker@v28.0.0%2Bincompatible", golang(licenses.Module{Path: "github.com/docker/docker", Version: "v28.0.0+incompatible"}).PackageURL)
	packages, err := page(console)
	require.NoError(t, err)
	assert.Regexp(t, `^pkg:npm/%40preact/signals-core@\d`, packages[0].PackageURL)
}

func TestBadInput(t *testing.T) {
	text := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(text, []byte("no binary"), 0o600))
	assert.ErrorContains(t, write(&bytes.Buffer{}, text, "", ""), "not a Go binary")
	_, err := page(t.TempDir())
	assert.Error(t, err, "a page without package.json")
	locked := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(locked, "package.json"), []byte(`{"dependencies": {"gone": "1"}}`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(locked, "package-lock.json"), []byte(`{"packages": {}}`), 0o600))
	_, err = page(locked)
	assert.ErrorContains(t, err, "does not have gone")
	require.NoError(t, os.WriteFile(filepath.Join(locked, "package-lock.json"), []byte(`{"packages": {"node_modules/gone": {"version": "1"}}}`), 0o600))
	_, err = page(locked)
	assert.ErrorContains(t, err, "no license of gone")
}
