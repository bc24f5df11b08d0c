// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A binary with purego needs the C library's loader, and what crashes in a library that it
// calls ends the process: the helper of the nvml receiver alone has it.
func TestOneProgramCallsSharedLibraries(t *testing.T) {
	const helper = "cmd/otelcol-gpu-nvml"
	importing := 0
	for _, p := range sources(t) {
		inside := p.path == helper || strings.HasPrefix(p.path, helper+"/")
		for _, f := range p.files {
			for _, spec := range f.syntax.Imports {
				if strings.HasPrefix(strings.Trim(spec.Path.Value, `"`), "github.com/ebitengine/purego") {
					importing++
					assert.True(t, inside, "%s imports purego", path.Join(p.path, f.name))
				}
			}
		}
	}
	assert.NotZero(t, importing)
}
