// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// Every fuzz test of the sources is in the guide to security and in the report of the
// last runs, and no other.
func TestFuzzTestsAreListed(t *testing.T) {
	var have []string
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "node_modules" || strings.HasPrefix(entry.Name(), ".") && file != root) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		own, err := filepath.Rel(root, filepath.Dir(file))
		for _, found := range regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`).FindAllSubmatch(text, -1) {
			have = append(have, "`"+filepath.ToSlash(own)+"` "+string(found[1]))
		}
		return err
	})
	require.NoError(t, err)
	var listed []string
	for _, row := range rows(section(t, string(read(t, "docs", "security.md")), "Fuzz tests"), "| `") {
		listed = append(listed, row[0])
		assert.NotEmpty(t, row[1])
	}
	require.NotEmpty(t, have)
	assert.ElementsMatch(t, have, listed, "docs/security.md, Fuzz tests: one row for each, with what it reads")
	var ran []string
	for _, row := range rows(string(read(t, "docs", "fuzzing.md")), "| `") {
		ran = append(ran, row[0])
	}
	assert.ElementsMatch(t, have, ran, "docs/fuzzing.md: make fuzz ONLY=Name FUZZTIME=45s")
}

// Every port on which a shipped configuration listens is in the guide.
func TestPortsAreListed(t *testing.T) {
	listed := section(t, string(read(t, "docs", "security.md")), "What listens")
	files, err := filepath.Glob(filepath.Join(root, "config", "*.yaml"))
	require.NoError(t, err)
	checked := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		// What listens: an endpoint on localhost or the pod's address, and the port of
		// the Collector's own metrics.
		listening := regexp.MustCompile(`(?:\$\{env:K8S_POD_IP:-localhost\}|endpoint: "?(?:localhost|0\.0\.0\.0)):(\d+)|\{host: [^}]*\}?[^}]*, port: (\d+)\}`)
		for _, found := range listening.FindAllStringSubmatch(string(text), -1) {
			checked++
			assert.Regexp(t, `\b`+found[1]+found[2]+`\b`, listed, "%s listens there", filepath.Base(file))
		}
	}
	assert.Greater(t, checked, 15)
}

// Every right of the shipped roles is in the guide, with its verbs.
func TestRightsAreListed(t *testing.T) {
	listed := section(t, string(read(t, "docs", "security.md")), "Rights in Kubernetes")
	want := 0
	for _, who := range []string{"agent", "gateway"} {
		decoder := yaml.NewDecoder(strings.NewReader(string(read(t, "config", "kubernetes", who+"-rbac.yaml"))))
		for {
			var object struct {
				Kind  string `yaml:"kind"`
				Rules []struct {
					Resources []string `yaml:"resources"`
					Verbs     []string `yaml:"verbs"`
				} `yaml:"rules"`
			}
			if decoder.Decode(&object) != nil {
				break
			}
			for _, rule := range object.Rules {
				for _, resource := range rule.Resources {
					want++
					assert.Contains(t, listed, "| "+who+" | "+strings.Join(rule.Verbs, ", ")+" | "+resource+" |")
				}
			}
		}
	}
	assert.Equal(t, want, len(rows(listed, "| agent |"))+len(rows(listed, "| gateway |")), "no right is listed that nobody has")
	assert.GreaterOrEqual(t, want, 6)
}
