// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	tests := map[string]time.Duration{
		"":                                  0,
		"0":                                 0,
		"7":                                 7 * time.Second,
		" 120 ":                             2 * time.Minute,
		"86400":                             MaxRetryAfter,
		"99999999999999999999999999":        MaxRetryAfter,
		"-5":                                0,
		"1.5":                               0,
		"soon":                              0,
		"Wed, 04 Mar 2026 05:06:37 GMT":     30 * time.Second,
		"Wed, 04 Mar 2026 05:00:00 GMT":     0,
		"Wed, 04 Mar 2099 05:00:00 GMT":     MaxRetryAfter,
		"Wednesday, 04-Mar-26 05:06:37 GMT": 30 * time.Second,
	}
	for text, want := range tests {
		assert.Equal(t, want, retryAfter(http.Header{"Retry-After": {text}}, now), text)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, text := range []string{"7", "Wed, 04 Mar 2026 05:06:37 GMT", "9999999999999999999", "", "\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := retryAfter(http.Header{"Retry-After": {text}}, time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
		if got < 0 || got > MaxRetryAfter {
			t.Errorf("%q: %v", text, got)
		}
	})
}
