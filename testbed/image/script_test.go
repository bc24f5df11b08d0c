// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// make image asks the engine that is there, and fails with the reason where there is none. The
// engines are stand-ins that note what they are asked, and so is Go: what is pushed
// has been checked for known vulnerabilities, which would ask the internet.
func TestScriptOfMakeImage(t *testing.T) {
	manifest := read(t, "builder-config.yaml")
	version := regexp.MustCompile(`(?m)^  version: (\S+)$`).FindStringSubmatch(manifest)[1]
	tags := regexp.MustCompile(`(?m)^  build_tags: "(\S+)"$`).FindStringSubmatch(manifest)[1]
	const working, noDaemon, vulnerable = "exit 0", `[ "$1" != info ]`, `[ "$1" != run ]`
	checked := []string{"go build -trimpath -tags " + tags, "go run golang.org/x/vuln/cmd/govulncheck@"}
	for name, tc := range map[string]struct {
		engines map[string]string // and Go
		env     []string
		asked   []string // parts of what is noted, in order
		not     string
		message string
		fails   bool
	}{
		"docker, for this machine": {
			engines: map[string]string{"docker": working},
			asked:   []string{"docker buildx build", "--build-arg VERSION=0.1.0", "--build-arg REVISION=", "--tag otelcol-gpu:0.1.0", "--load", " .\n"},
			message: "image: otelcol-gpu:0.1.0",
		},
		"docker, with the helper": {
			engines: map[string]string{"docker": working}, env: []string{"FLAVOUR=nvml"},
			asked:   []string{"docker buildx build", "--target nvml", "--tag otelcol-gpu:0.1.0-nvml", "--load", " .\n"},
			message: "image: otelcol-gpu:0.1.0-nvml",
		},
		"a flavour that there is not": {
			engines: map[string]string{"docker": working}, env: []string{"FLAVOUR=alpine"}, message: "FLAVOUR is alpine: leave it out, or set it to nvml", fails: true,
		},
		"docker, two platforms into a file": {
			engines: map[string]string{"docker": working}, env: []string{"PLATFORMS=linux/amd64,linux/arm64"},
			asked: []string{"--platform linux/amd64,linux/arm64", "--output type=oci,dest=bin/otelcol-gpu-0.1.0.oci.tar"}, not: "--load",
			message: "image: bin/otelcol-gpu-0.1.0.oci.tar",
		},
		"docker, pushed under another name": {
			engines: map[string]string{"docker": working, "go": working}, env: []string{"PLATFORMS=linux/amd64,linux/arm64", "PUSH=1", "IMAGE=registry.example.com/x:1"},
			asked: append(slices.Clip(checked), "--tag registry.example.com/x:1", "--push"), not: "--output", message: "image: pushed registry.example.com/x:1",
		},
		"podman, where docker has no daemon": {
			engines: map[string]string{"docker": noDaemon, "podman": working},
			asked:   []string{"podman build", "--build-arg VERSION=0.1.0", "--tag otelcol-gpu:0.1.0"}, not: "docker buildx build",
		},
		"podman, two platforms, pushed": {
			engines: map[string]string{"podman": working, "go": working}, env: []string{"PLATFORMS=linux/amd64,linux/arm64", "PUSH=1"},
			asked: append(slices.Clip(checked), "podman build", "--manifest otelcol-gpu:0.1.0", "podman manifest push --all"),
		},
		"a known vulnerability is not pushed": {
			engines: map[string]string{"podman": working, "go": vulnerable}, env: []string{"PUSH=1"},
			asked: checked, not: "podman", message: "image: not pushed: see vulncheck above", fails: true,
		},
		"no engine":     {message: "no container engine: install podman, or docker", fails: true},
		"build failing": {engines: map[string]string{"podman": `[ "$1" != build ]`}, asked: []string{"podman build"}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			notes := filepath.Join(folder, "notes")
			for _, tool := range []string{"bash", "dirname", "sed", "git", "mkdir"} {
				path, err := exec.LookPath(tool)
				require.NoError(t, err)
				require.NoError(t, os.Symlink(path, filepath.Join(folder, tool)))
			}
			for engine, does := range tc.engines {
				script := "#!/bin/sh\necho " + engine + ` "$@" >>"$NOTES"` + "\n" + does + "\n"
				require.NoError(t, os.WriteFile(filepath.Join(folder, engine), []byte(script), 0o755))
			}
			command := exec.Command(filepath.Join(folder, "bash"), filepath.Join(root, "scripts", "image"))
			command.Env = append([]string{"PATH=" + folder, "NOTES=" + notes}, tc.env...)
			out, err := command.CombinedOutput()
			assert.Equal(t, tc.fails, err != nil, string(out))
			assert.Contains(t, string(out), strings.ReplaceAll(tc.message, "0.1.0", version))
			text, _ := os.ReadFile(notes)
			rest := string(text)
			for _, part := range tc.asked {
				_, after, found := strings.Cut(rest, strings.ReplaceAll(part, "0.1.0", version))
				assert.True(t, found, "%q is not asked, or too early:\n%s", part, text)
				rest = after
			}
			if tc.not != "" {
				assert.NotContains(t, string(text), tc.not)
			}
		})
	}
}
