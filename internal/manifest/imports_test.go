// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A program that imports one component gets no other with it: what two of them share
// is in internal/, and tests of several are in testbed/.
func TestImportsRunOneWay(t *testing.T) {
	for _, p := range sources(t) {
		for _, f := range p.files {
			for _, imported := range f.imports {
				assert.True(t, mayImport(p.path, imported), "%s imports %s", path.Join(p.path, f.name), imported)
				// Go refuses circles alone. What a component keeps in its internal/ must be
				// usable without the component; its tests may use both.
				assert.False(t, !f.isTest() && isInternalOf(p.path, imported), "%s imports its component %s", path.Join(p.path, f.name), imported)
			}
		}
	}
}

func TestMayImport(t *testing.T) {
	for _, allowed := range [][2]string{
		{"receiver/a", "internal/x"}, {"receiver/a/internal/b", "receiver/a/c"}, {"internal/x", "internal/y/z"},
		{"cmd/a", "exporter/b"}, {"cmd/a", "cmd/a/internal/b"}, {"mixin/cmd/a", "mixin"}, {"testbed/a", "cmd/b"}, {"testbed/a", "testbed/b"}, {"testbed/gpusim", "testbed/b"},
	} {
		assert.True(t, mayImport(allowed[0], allowed[1]), allowed)
	}
	for _, refused := range [][2]string{
		{"receiver/a", "receiver/b"}, {"receiver/a", "cmd/a"}, {"internal/x", "receiver/a"}, {"cmd/a", "cmd/b"}, {"cmd/a", "testbed/b"},
		{"mixin", "receiver/a"}, {"receiver/a", "mixin"}, {"testbed/gpusim", "internal/x"}, {"testbed/delivery", "exporter/b"},
	} {
		assert.False(t, mayImport(refused[0], refused[1]), refused)
	}
	assert.True(t, isInternalOf("receiver/a/internal/b/internal/c", "receiver/a"))
	assert.True(t, isInternalOf("receiver/a/internal/b/internal/c", "receiver/a/internal/b"))
	assert.False(t, isInternalOf("receiver/a/internal/b", "receiver/a/c"))
	assert.False(t, isInternalOf("receiver/ab/internal/b", "receiver/a"))
}

// independent are the folders of testbed/ that simulate the world or judge the
// binaries from outside. They share no code with the product: a mistake in it would
// be right on both sides.
var independent = []string{"cmd", "delivery", "e2e", "fakes", "gpusim", "hostile", "image", "internal", "kubelet", "mixin", "simkubelet", "webhooks"}

// mayImport: commands import components, components and the mixin import internal/,
// and only testbed/ imports testbed/.
func mayImport(from, imported string) bool {
	components := []string{"receiver", "processor", "connector", "exporter", "extension"}
	class, target := first(from, 1), first(imported, 1)
	switch {
	case class == "testbed":
		return target == "testbed" || !slices.Contains(independent, strings.TrimPrefix(first(from, 2), "testbed/"))
	case target == "internal":
		return true
	case class == "mixin", class == "internal":
		return class == target
	case class == "cmd" && slices.Contains(components, target):
		return true
	default:
		return first(from, 2) == first(imported, 2)
	}
}

// isInternalOf is whether from lies in a folder internal/ of the imported package.
func isInternalOf(from, imported string) bool {
	return strings.HasPrefix(from, imported+"/internal/")
}

// first returns the first n elements of a path.
func first(path string, n int) string {
	parts := strings.Split(path, "/")
	return strings.Join(parts[:min(n, len(parts))], "/")
}
