// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/signing"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// testKey returns n bytes that look random and are the same every time.
func testKey(n int, seed byte) []byte {
	key := make([]byte, n)
	for i := range key {
		seed = seed*167 + 13 // visits every byte value before it repeats one
		key[i] = seed
	}
	return key
}

func whsec(seed byte) configopaque.String {
	return configopaque.String("whsec_" + base64.StdEncoding.EncodeToString(testKey(32, seed)))
}

func TestStandardSignatureIsAcceptedByTheReferenceLibrary(t *testing.T) {
	server := newHook(t, nil)
	seed := testKey(32, 7)
	cfg := to(server.URL)
	cfg.Signing.Standard = []configopaque.String{whsec(1), whsec(2), configopaque.String("whsk_" + base64.StdEncoding.EncodeToString(seed))}
	rec := startHarness(t, only(cfg)).one()
	require.Equal(t, audit.Succeeded, rec.Outcome)
	got := server.received()[0]

	for _, key := range []configopaque.String{whsec(1), whsec(2)} {
		wh, err := standardwebhooks.NewWebhook(string(key))
		require.NoError(t, err)
		assert.NoError(t, wh.Verify(got.body, got.header))
		assert.Error(t, wh.Verify(append(got.body, ' '), got.header))
	}
	stranger, err := standardwebhooks.NewWebhook(string(whsec(3)))
	require.NoError(t, err)
	assert.Error(t, stranger.Verify(got.body, got.header))

	entries := strings.Split(got.header.Get(signing.HeaderSignature), " ")
	require.Len(t, entries, 3)
	encoded, ok := strings.CutPrefix(entries[2], "v1a,")
	require.True(t, ok)
	signature, err := base64.StdEncoding.DecodeString(encoded)
	require.NoError(t, err)
	message := got.header.Get(signing.HeaderID) + "." + got.header.Get(signing.HeaderTimestamp) + "." + string(got.body)
	assert.True(t, ed25519.Verify(ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey), []byte(message), signature))

	require.Len(t, rec.SignatureKeyIDs, 3)
	assert.Regexp(t, `^v1:[0-9a-f]{8}$`, rec.SignatureKeyIDs[0])
	assert.NotEqual(t, rec.SignatureKeyIDs[0], rec.SignatureKeyIDs[1])
	assert.Regexp(t, `^v1a:[0-9a-f]{8}$`, rec.SignatureKeyIDs[2])
}
