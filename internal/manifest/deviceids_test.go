// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"go/ast"
	"go/token"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// idForms are the texts by which code would judge a device's id, or a metric's origin,
// by itself, and the packages that may: the next vendor's have other forms.
var idForms = map[string][]string{
	"GPU-":   {"internal/deviceid"},
	"MIG-":   {"internal/deviceid"},
	"GAUDI-": {"internal/deviceid"},
	"PCI-":   {"internal/deviceid"},
	"dcgm.":  {"internal/names"},
}

// TestOneJudgeOfIDs: what an id is of is decided in internal/deviceid.
func TestOneJudgeOfIDs(t *testing.T) {
	found := map[string]bool{}
	for _, p := range sources(t) {
		if p.path == "testbed" || strings.HasPrefix(p.path, "testbed/") {
			continue
		}
		for _, f := range p.files {
			if f.isTest() {
				continue
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				literal, ok := n.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(literal.Value)
				assert.NoError(t, err)
				if allowed, form := idForms[text]; form {
					found[text] = true
					assert.Contains(t, allowed, p.path, "%s has %q: ask internal/deviceid or internal/names", path.Join(p.path, f.name), text)
				}
				return true
			})
		}
	}
	for _, text := range []string{"GPU-", "MIG-", "dcgm."} {
		assert.True(t, found[text], "%q is nowhere: the test looks for the wrong text", text)
	}
}
