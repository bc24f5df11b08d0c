// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configopaque"
)

// keyBytes returns n bytes that look random and are the same every time.
func keyBytes(n int, seed byte) []byte {
	key := make([]byte, n)
	for i := range key {
		seed = seed*167 + 13 // visits every byte value before it repeats one
		key[i] = seed
	}
	return key
}

func hmacKey(seed byte) configopaque.String {
	return configopaque.String(prefixHMAC + base64.StdEncoding.EncodeToString(keyBytes(32, seed)))
}

// ed25519Key returns a private key as it is configured.
func ed25519Key(seed byte) configopaque.String {
	return configopaque.String(prefixEd25519 + base64.StdEncoding.EncodeToString(keyBytes(32, seed)))
}

func TestEd25519KeyWithItsPublicKey(t *testing.T) {
	private := ed25519.NewKeyFromSeed(keyBytes(32, 9))
	s, err := New("receivers::x", Config{Standard: []configopaque.String{configopaque.String(prefixEd25519 + base64.StdEncoding.EncodeToString(private))}})
	require.NoError(t, err)
	h := http.Header{}
	s.Sign(h, "id", time.Unix(1, 0), []byte("{}"))
	assert.Equal(t, "v1a,"+base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte("id.1.{}"))), h.Get(HeaderSignature))
}

func TestConvoxSignature(t *testing.T) {
	keys := []configopaque.String{configopaque.String(hex.EncodeToString(keyBytes(32, 1))), configopaque.String(hex.EncodeToString(keyBytes(40, 2)))}
	s, err := New("receivers::x", Config{Convox: keys})
	require.NoError(t, err)
	h := http.Header{}
	s.Sign(h, "id", time.Unix(1700000000, 0), []byte("{}"))
	assert.Equal(t, fmt.Sprintf("t=1700000000,v1=%x,v1=%x",
		hmacSHA256(keyBytes(32, 1), []byte("1700000000.{}")),
		hmacSHA256(keyBytes(40, 2), []byte("1700000000.{}"))), h.Get(HeaderConvoxSignature))
	assert.Empty(t, h.Get(HeaderSignature))
}

// The bodies and signatures of Convox's own tests (convox/convox, pkg/hmac/testdata,
// Apache-2.0).
func TestConvoxVectors(t *testing.T) {
	s, err := New("receivers::x", Config{Convox: []configopaque.String{"5257a869e7ecebeda32affa62cdca3fa37e8c0a98c3f2db5a8f5da3b2a3e9c4e"}})
	require.NoError(t, err)
	for body, signature := range map[string]string{
		`{"action":"app:create","data":{"app":"demo","rack":"rack1"},"status":"success","timestamp":"2026-04-24T12:00:00Z"}`:                                      "cf7567fd98676a9bca994a0e27b627fbc7caf99434994eb4a1184d1bcc2cb931",
		`{"action":"app:budget:cap","data":{"app":"demo","cap":"100","rack":"smoke-1021","spend":"12.34"},"status":"success","timestamp":"2026-04-24T12:00:00Z"}`: "539873005b7a07a2f0dade81cdb14ab6a1a3a39ac4d6f5be567ef676522e5956",
		`{"action":"rack:update","data":{"name":"rack1","rack":"rack1","version":"3.24.6"},"status":"success","timestamp":"2026-04-24T12:00:00Z"}`:                "1531a8a38a62d163bd63bacc1a43d884c6cd8c53f2a606dfdb4a1c11f0312b5c",
	} {
		h := http.Header{}
		s.Sign(h, "id", time.Unix(1745497200, 0), []byte(body))
		assert.Equal(t, "t=1745497200,v1="+signature, h.Get(HeaderConvoxSignature))
	}
}

func TestBadKeys(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	mismatched := append(keyBytes(32, 1), keyBytes(32, 2)...)
	tests := []struct {
		name     string
		standard string
		convox   string
		want     string
	}{
		{"empty", "", "", "signing::standard[0]: must start with whsec_"},
		{"no prefix", b64(keyBytes(32, 1)), "", "must start with whsec_"},
		{"public key", "whpk_" + b64(keyBytes(32, 1)), "", "must start with whsec_"},
		{"not base64", "whsec_???", "", "is not base64"},
		{"base64 with a tail", "whsec_" + b64(keyBytes(32, 1)) + "!", "", "is not base64"},
		{"too short", "whsec_" + b64(keyBytes(23, 1)), "", "holds 23 bytes"},
		{"too long", "whsec_" + b64(keyBytes(65, 1)), "", "holds 65 bytes"},
		{"placeholder", "whsec_" + b64(bytes.Repeat([]byte("changeme"), 4)), "", "not random enough"},
		{"ed25519 not base64", "whsk_???", "", "is not base64"},
		{"ed25519 of wrong size", "whsk_" + b64(keyBytes(33, 1)), "", "holds 33 bytes"},
		{"ed25519 with another's public key", "whsk_" + b64(mismatched), "", "does not belong"},
		{"ed25519 of zeros", "whsk_" + b64(make([]byte, 32)), "", "not random enough"},
		{"convox too short", "", hex.EncodeToString(keyBytes(31, 1)), "signing::convox[0]: must be at least 64"},
		{"convox in capitals", "", strings.ToUpper(hex.EncodeToString(keyBytes(32, 1))), "lower-case"},
		{"convox with an odd digit", "", hex.EncodeToString(keyBytes(32, 1)) + "a", "even number"},
		{"convox not hexadecimal", "", strings.Repeat("xyz0", 16), "hexadecimal"},
		{"convox placeholder", "", strings.Repeat("deadbeef", 8), "not random enough"},
		{"convox counter", "", strings.Repeat("0123456789abcdef", 4), "not random enough"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := Config{Standard: []configopaque.String{configopaque.String(tt.standard)}}
			if tt.convox != "" {
				cfg = Config{Convox: []configopaque.String{configopaque.String(tt.convox)}}
			}
			_, err := New("receivers::ops", cfg)
			require.ErrorContains(t, err, tt.want)
			assert.ErrorContains(t, err, "receivers::ops::signing::")
			for _, secret := range []string{tt.standard, tt.convox} {
				if len(secret) > 12 {
					assert.NotContains(t, err.Error(), secret[6:])
				}
			}
		})
	}
}

func TestTooManyKeys(t *testing.T) {
	many := make([]configopaque.String, maxKeys+1)
	for i := range many {
		many[i] = hmacKey(byte(i))
	}
	_, err := New("receivers::ops", Config{Standard: many})
	assert.ErrorContains(t, err, "at most 4 keys")
}

func TestKeyFromAFileMayEndInALineFeed(t *testing.T) {
	_, err := New("receivers::ops", Config{
		Standard: []configopaque.String{hmacKey(1) + "\n"},
		Convox:   []configopaque.String{configopaque.String(hex.EncodeToString(keyBytes(32, 1)) + "\n")},
	})
	assert.NoError(t, err)
}
