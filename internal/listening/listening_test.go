// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package listening

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSplit(t *testing.T) {
	for endpoint, want := range map[string]string{"localhost:8480": "localhost", "[::1]:0": "::1", ":8480": "", "0.0.0.0:http": "0.0.0.0"} {
		host, err := Split("endpoint", endpoint, "localhost:8480")
		assert.NoError(t, err, endpoint)
		assert.Equal(t, want, host)
	}
	for endpoint, want := range map[string]string{
		"8480":              `endpoint: "8480" is no address and port, as localhost:8480`,
		"localhost:84800":   `endpoint: "localhost:84800" has no port of this protocol; use a number from 1 to 65535, as localhost:8480`,
		"localhost:-1":      `has no port`,
		"localhost:no-such": `has no port`,
	} {
		_, err := Split("endpoint", endpoint, "localhost:8480")
		assert.ErrorContains(t, err, want)
	}
}

func TestExplain(t *testing.T) {
	for err, want := range map[error]string{
		syscall.EADDRINUSE: "end what uses it", syscall.EACCES: "below 1024", syscall.EADDRNOTAVAIL: "does not have the address", syscall.EINVAL: "set another, or none",
	} {
		got := Explain("endpoint", "a:1", ", or none", err)
		assert.ErrorContains(t, got, want)
		assert.ErrorContains(t, got, ", or none")
		assert.ErrorIs(t, got, err)
	}
}
