// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package logfile

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNamesOfFullFiles(t *testing.T) {
	assert.Equal(t, "/var/a.b/audit-000007.jsonl", RotatedName("/var/a.b/audit.jsonl", 7))
	assert.Equal(t, "/var/audit-1234567", RotatedName("/var/audit", 1234567))
}
