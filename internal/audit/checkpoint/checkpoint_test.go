// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKeys(t *testing.T) {
	private, public, err := GenerateKey("prod/gateway")
	require.NoError(t, err)
	_, err = ParseKey(private + "\n")
	assert.NoError(t, err, "a file ends in a line feed")
	for _, bad := range []string{"", public, private[:len(private)-4], "PRIVATE+KEY+x+00000000+AAAA"} {
		_, err := ParseKey(bad)
		require.Error(t, err, bad)
		if bad != "" {
			assert.NotContains(t, err.Error(), bad)
		}
	}
	for _, bad := range []string{"", "# nothing", private, "x"} {
		_, err := ParsePublicKeys(bad)
		assert.Error(t, err, bad)
	}
	for _, bad := range []string{"", "with space", "plus+plus", "ünï", strings.Repeat("x", 128)} {
		_, _, err := GenerateKey(bad)
		assert.Error(t, err, bad)
	}
}
