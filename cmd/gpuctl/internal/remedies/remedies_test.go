// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package remedies

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// Every way not to be delivered has its remedy.
func TestEveryErrorHasARemedy(t *testing.T) {
	source, err := os.ReadFile("../../../../internal/audit/record.go")
	require.NoError(t, err)
	all := regexp.MustCompile(`\bError\w+ +ErrorType = "(\w+)"`).FindAllSubmatch(source, -1)
	require.Len(t, all, len(byError))
	for _, m := range all {
		assert.NotEmpty(t, Of(audit.ErrorType(m[1])), string(m[1]))
	}
	assert.Empty(t, Of(audit.ErrorNone))
}
