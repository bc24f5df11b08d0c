// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
)

// minFingerprintKey is the least length of a fingerprint key, in bytes: that of
// the digest.
const minFingerprintKey = sha256.Size

// Fingerprint is the HMAC-SHA256 of a URL, in hexadecimal: who has the key and
// the URL can verify that a record is about it; with the record alone that is not possible,
// try URLs out.
func Fingerprint(key []byte, url string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(url))
	return hex.EncodeToString(mac.Sum(nil))
}

// GenerateFingerprintKey makes a key in the text form that ParseFingerprintKey
// reads.
func GenerateFingerprintKey() (string, error) {
	key := make([]byte, minFingerprintKey)
	if _, err := rand.Read(key); err != nil {
		return "", err
	}
	return hex.EncodeToString(key), nil
}

// ParseFingerprintKey reads a key: 64 hexadecimal digits or more. Its errors do
// not show the key.
func ParseFingerprintKey(text string) ([]byte, error) {
	key, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) < minFingerprintKey {
		return nil, errors.New("is not a fingerprint key (64 hexadecimal digits or more); make one with gpuctl audit keygen")
	}
	return key, nil
}
