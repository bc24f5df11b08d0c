// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNear(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:13133": "localhost:13133", "[::]:1": "localhost:1", ":8888": "localhost:8888",
		"10.1.2.3:4317": "10.1.2.3:4317", "[fd00::1]:1": "[fd00::1]:1", "nonsense": "nonsense",
	} {
		assert.Equal(t, want, Near(address))
	}
}
