// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFingerprint(t *testing.T) {
	key, err := GenerateFingerprintKey()
	require.NoError(t, err)
	raw, err := ParseFingerprintKey(key + "\n")
	require.NoError(t, err)
	assert.Len(t, raw, 32)
	for _, bad := range []string{"", key[:62], "zz" + key, key + "0"} {
		_, err := ParseFingerprintKey(bad)
		require.Error(t, err)
		if bad != "" {
			assert.NotContains(t, err.Error(), bad)
		}
	}
	// RFC 4231, test case 2.
	assert.Equal(t, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", Fingerprint([]byte("Jefe"), "what do ya want for nothing?"))
}
