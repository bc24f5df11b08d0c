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
	assert.Equal(t, 7, RotatedNumber("/var/audit.jsonl", "/var/audit-000007.jsonl"))
	for _, other := range []string{"/var/audit.jsonl", "/var/audit-7.jsonl", "/var/audit-0000007.jsonl", "/var/audit-000000.jsonl", "/var/audit-00000x.jsonl", "/var/audit-000007.json", "/var/xaudit-000007.jsonl"} {
		assert.Zero(t, RotatedNumber("/var/audit.jsonl", other), other)
	}
}
