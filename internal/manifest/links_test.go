// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// guides are the Markdown files that people read: those of the root, docs/, and
// every README. Names are relative to the root, with slashes.
func guides(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (name == "node_modules" || name == "testdata" || name == "bin" || strings.HasPrefix(name, ".") && file != root) {
			return fs.SkipDir
		}
		own, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		own = filepath.ToSlash(own)
		if strings.HasSuffix(own, ".md") && (!strings.Contains(own, "/") || strings.HasPrefix(own, "docs/") || name == "README.md") {
			found = append(found, own)
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(found), 30)
	return found
}

var (
	fence = regexp.MustCompile("(?ms)^(```|~~~).*?^(```|~~~)$")
	link  = regexp.MustCompile(`(?:\]\(|(?:src|srcset|href)=")([^)"\s]+)`)
	code  = regexp.MustCompile("`([^`\n]+)`")
	// A path of ours as guides name it: from the root, into one of these folders.
	mentioned = regexp.MustCompile(`^(?:charts|cmd|config|connector|docs|exporter|extension|internal|mixin|processor|receiver|scripts|testbed)/[A-Za-z0-9_./-]+$`)
	heading   = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	markup    = regexp.MustCompile("`|\\*|\\[([^]]*)\\]\\([^)]*\\)")
)

// anchors are the fragments by which a page's headings are reached, as GitHub
// makes them: lower case, spaces to hyphens, punctuation gone, -1 for the second.
func anchors(text string) map[string]bool {
	found, seen := map[string]bool{}, map[string]int{}
	for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		id := strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, markup.ReplaceAllString(h[1], "$1"))
		if n := seen[id]; n > 0 {
			found[id+"-"+string(rune('0'+n))] = true
		}
		seen[id]++
		found[id] = true
	}
	return found
}

// TestLinksLeadSomewhere: every relative link of the guides is to a file that is
// there, and its fragment to a heading of that file.
func TestLinksLeadSomewhere(t *testing.T) {
	checked := 0
	for _, guide := range guides(t) {
		text := string(read(t, guide))
		for _, found := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			target, fragment, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			checked++
			other := guide
			if target != "" {
				other = path.Join(path.Dir(guide), target)
			}
			if _, err := os.Stat(filepath.Join(root, other)); err != nil {
				t.Errorf("%s links to %s, which is not there", guide, other)
				continue
			}
			if fragment != "" && strings.HasSuffix(other, ".md") {
				assert.True(t, anchors(string(read(t, other)))[fragment], "%s links to #%s, and %s has no such heading", guide, fragment, other)
			}
		}
	}
	assert.Greater(t, checked, 100)
}

// TestMentionedFilesExist: a path in `code` or in a command that begins with one of
// our folders is there: below the root, a folder above the guide, or, for what is
// internal to a component, below that. A path with a variable part is not looked at.
func TestMentionedFilesExist(t *testing.T) {
	checked := 0
	exists := func(guide, name string) {
		name = strings.TrimRight(name, "./")
		if !mentioned.MatchString(name) || strings.Contains(name, "...") {
			return
		}
		checked++
		for base := path.Dir(guide); ; base = path.Dir(base) {
			if _, err := os.Stat(filepath.Join(root, base, name)); err == nil {
				return
			}
			if base == "." {
				break
			}
		}
		if inside, _ := filepath.Glob(filepath.Join(root, "*", "*", name)); strings.HasPrefix(name, "internal/") && len(inside) > 0 {
			return
		}
		t.Errorf("%s names %s, which is not there", guide, name)
	}
	for _, guide := range guides(t) {
		if strings.HasPrefix(guide, "CHANGELOG") {
			continue // what was, was
		}
		text := string(read(t, guide))
		for _, block := range fence.FindAllString(text, -1) {
			for _, word := range strings.FieldsFunc(block, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"'();,`, r) }) {
				exists(guide, strings.TrimPrefix(word, "./"))
			}
		}
		for _, found := range code.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			for _, word := range strings.Fields(found[1]) {
				exists(guide, word)
			}
		}
	}
	assert.Greater(t, checked, 50)
}

func TestAnchors(t *testing.T) {
	assert.Equal(t, map[string]bool{
		"what-a-pods-servicename-is": true, "kubernetes-with-helm": true, "the-gpu_pod-processor": true, "see-also": true, "see-also-1": true,
	}, anchors("# What a pod's service.name is\n## Kubernetes, with Helm\n## The `gpu_pod` processor\n```\n# no heading\n```\n### See [also](x.md)\n### See also\n"))
}
