// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package listening

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLocalRequest(t *testing.T) {
	hosts := []string{"console.example"}
	for _, c := range []struct {
		host, origin, site string
		want               bool
	}{
		{host: "localhost:8480", want: true},
		{host: "LOCALHOST.:8480", want: true},
		{host: "127.0.0.1", want: true},
		{host: "[::1]:8480", want: true},
		{host: "[::1]", want: true},
		{host: "Console.example:443", want: true},
		{host: "localhost", origin: "http://localhost:3000", site: "same-site", want: true},
		{host: "console.example", origin: "https://console.example", site: "same-origin", want: true},
		{host: "localhost", site: "none", want: true},
		{host: ""},
		{host: "evil.example"},
		{host: "localhost.evil.example"},
		{host: "10.0.0.1:8480"},
		{host: "localhost", origin: "https://evil.example"},
		{host: "localhost", origin: "null"},
		{host: "localhost", origin: "https://localhost@evil.example"},
		{host: "localhost", site: "cross-site"},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Host = c.host
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		assert.Equal(t, c.want, LocalRequest(r, hosts), c)
	}
}
