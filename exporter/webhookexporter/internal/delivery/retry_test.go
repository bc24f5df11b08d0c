// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestChanceSpreadsRetries(t *testing.T) {
	c := DefaultRetry()
	seen := map[time.Duration]bool{}
	for range 100 {
		seen[c.backoff(1)] = true
	}
	assert.Greater(t, len(seen), 50)
}
