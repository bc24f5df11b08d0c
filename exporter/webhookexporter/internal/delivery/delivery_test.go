// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWebhookID(t *testing.T) {
	assert.Equal(t, "0195d4a2-7c1e-7abc-8def-0123456789ab", webhookID("0195d4a2-7c1e-7abc-8def-0123456789ab"))
	for _, id := range []string{"a.b", "a b", "a\r\nX-Evil: 1", "é"} {
		got := webhookID(id)
		assert.Regexp(t, `^evt_[0-9a-f]{32}$`, got)
		assert.Equal(t, got, webhookID(id), "stable")
	}
	assert.NotEqual(t, webhookID("a.b"), webhookID("a.c"))
}

func FuzzWebhookID(f *testing.F) {
	f.Add("0195d4a2-7c1e-7abc-8def-0123456789ab")
	f.Add("a.b\r\n\u202e")
	f.Fuzz(func(t *testing.T, id string) {
		for _, r := range webhookID(id) {
			if r == '.' || r <= ' ' || r >= 0x7f {
				t.Fatalf("id %q cannot be a header", webhookID(id))
			}
		}
	})
}
