// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/egress"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/format"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/signing"
)

const (
	goodKey  = "whsec_C+0sZ3Jb9I5PGrXwVz3oD7xkKqMuYt1RZcNa0pQeSgU="
	otherKey = "whsec_v2h1PpRf8cXq4LwT9zKsYdN0eUaJ6gBiOmQ3nV5xW7k="
)

func openGuard(t testing.TB) *egress.Guard {
	g, err := egress.NewGuard([]string{"127.0.0.0/8"}, []int{80, 443}, "")
	require.NoError(t, err)
	return g
}

func TestReceiverFile(t *testing.T) {
	tests := []struct {
		name, file string
		want       endpoint.Config
		badTimeout bool
	}{
		{"plain URL", "https://hooks.example.com/x", endpoint.Config{URL: "https://hooks.example.com/x", Timeout: 0}, false},
		{"white space around", " \r\n\thttps://hooks.example.com/x\n\n", endpoint.Config{URL: "https://hooks.example.com/x"}, false},
		{"byte order mark", "\ufeffhttps://hooks.example.com/x", endpoint.Config{URL: "https://hooks.example.com/x"}, false},
		{"JSON", `{"url": "https://hooks.example.com/x", "timeout": "10s"}`, endpoint.Config{URL: "https://hooks.example.com/x", Timeout: 10 * time.Second}, false},
		{"JSON after a mark and white space", "\ufeff\n {\"url\": \"https://hooks.example.com/x\", \"timeout\": \"1m\"}\n", endpoint.Config{URL: "https://hooks.example.com/x", Timeout: time.Minute}, false},
		{"no timeout", `{"url": "https://hooks.example.com/x"}`, endpoint.Config{URL: "https://hooks.example.com/x", Timeout: endpoint.DefaultTimeout}, false},
		{"zero timeout", `{"url": "https://hooks.example.com/x", "timeout": "0s"}`, endpoint.Config{URL: "https://hooks.example.com/x", Timeout: endpoint.DefaultTimeout}, true},
		{"negative timeout", `{"url": "https://hooks.example.com/x", "timeout": "-10s"}`, endpoint.Config{URL: "https://hooks.example.com/x", Timeout: endpoint.DefaultTimeout}, true},
		{"timeout without unit", `{"url": "https://hooks.example.com/x", "timeout": "10"}`, endpoint.Config{URL: "https://hooks.example.com/x", Timeout: endpoint.DefaultTimeout}, true},
		{"timeout of nanoseconds", `{"url": "https://hooks.example.com/x", "timeout": "10ns"}`, endpoint.Config{URL: "https://hooks.example.com/x", Timeout: endpoint.DefaultTimeout}, true},
		{"timeout as a number", `{"url": "https://hooks.example.com/x", "timeout": 10}`, endpoint.Config{URL: "https://hooks.example.com/x", Timeout: endpoint.DefaultTimeout}, true},
		{"timeout beyond any number", `{"url": "https://hooks.example.com/x", "timeout": "99999999999h"}`, endpoint.Config{URL: "https://hooks.example.com/x", Timeout: endpoint.DefaultTimeout}, true},
		{"all fields", `{"url": "https://hooks.example.com/x", "timeout": "5s", "format": "convox", "events": ["gpu.service.*", "gpu.xid"], "min_severity": "warn",
			"signing": {"standard": ["` + goodKey + `"]}, "queue_size": 50, "workers": 2}`,
			endpoint.Config{
				URL: "https://hooks.example.com/x", Timeout: 5 * time.Second, Config: format.Config{Format: "convox"}, Events: []string{"gpu.service.*", "gpu.xid"}, MinSeverity: "warn",
				Signing: signing.Config{Standard: []configopaque.String{goodKey}}, QueueSize: 50, Workers: 2,
			}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, badTimeout, err := parseReceiverFile([]byte(tt.file), endpoint.Defaults{})
			require.Nil(t, err)
			assert.Equal(t, tt.want, cfg)
			assert.Equal(t, tt.badTimeout, badTimeout)
			target, _, err := fileTarget("ops", []byte(tt.file), openGuard(t), endpoint.Defaults{})
			require.Nil(t, err)
			assert.Positive(t, target.Timeout)
		})
	}
}

func TestUnusableReceiverFile(t *testing.T) {
	tests := []struct {
		name, file string
		want       skipReason
	}{
		{"nothing", "", skipEmptyValue},
		{"white space", " \n\t\r\n", skipEmptyValue},
		{"only a byte order mark", "\ufeff", skipEmptyValue},
		{"half an object", `{"url": "https://SECRET.exam`, skipInvalidJSON},
		{"one brace", "{", skipInvalidJSON},
		{"brace before a URL", "{https://SECRET.example.com", skipInvalidJSON},
		{"two objects", `{"url": "https://SECRET.example.com"} {}`, skipInvalidJSON},
		{"object and text", `{"url": "https://SECRET.example.com"} x`, skipInvalidJSON},
		{"number as URL", `{"url": 5}`, skipInvalidJSON},
		{"no URL", `{"timeout": "10s"}`, skipEmptyURL},
		{"null URL", `{"url": null}`, skipEmptyURL},
		{"empty URL", `{"url": ""}`, skipEmptyURL},
		{"blank URL", `{"url": " \n"}`, skipEmptyURL},
		{"URL in capitals", `{"URL": "https://SECRET.example.com"}`, skipEmptyURL},
		{"no URL at all", "SECRET", skipInvalid},
		{"two lines", "https://SECRET.example.com/\nhttps://SECRET.example.org/", skipInvalid},
		{"JSON list", `["https://SECRET.example.com"]`, skipInvalid},
		{"other scheme", "file:///SECRET", skipInvalid},
		{"metadata", "http://169.254.169.254/SECRET", skipInvalid},
		{"private", "http://10.0.0.1/SECRET", skipInvalid},
		{"port", "http://SECRET-free.example.com:22/SECRET", SkipNone}, // a network is open, so the port may be
		{"unknown field", `{"url": "https://hooks.example.com/SECRET", "singing": {"standard": ["` + goodKey + `"]}}`, skipInvalid},
		{"secret as a field's name", `{"url": "https://hooks.example.com/", "https://SECRET.example.com/": 1}`, skipInvalid},
		{"field of another kind", `{"url": "https://hooks.example.com/", "events": {"SECRET": 1}}`, skipInvalid},
		{"fraction", `{"url": "https://hooks.example.com/SECRET", "workers": 1.5}`, skipInvalid},
		{"joined names", `{"url": "https://hooks.example.com/SECRET", "signing::standard": ["` + goodKey + `"]}`, skipInvalid},
		{"bad key", `{"url": "https://hooks.example.com/", "signing": {"standard": ["whsec_SECRET"]}}`, skipInvalid},
		{"empty key", `{"url": "https://hooks.example.com/SECRET", "signing": {"standard": [""]}}`, skipInvalid},
		{"good key and bad key", `{"url": "https://hooks.example.com/", "signing": {"standard": ["` + goodKey + `", "whsec_SECRET"]}}`, skipInvalid},
		{"signing without a key", `{"url": "https://hooks.example.com/SECRET", "signing": {}}`, skipInvalid},
		{"signing that is null", `{"url": "https://hooks.example.com/SECRET", "signing": null}`, skipInvalid},
		{"keys that are null", `{"url": "https://hooks.example.com/SECRET", "signing": {"standard": null}}`, skipInvalid},
		{"no keys", `{"url": "https://hooks.example.com/SECRET", "signing": {"standard": [], "convox": []}}`, skipInvalid},
		{"unknown kind of key", `{"url": "https://hooks.example.com/SECRET", "signing": {"standard": ["` + goodKey + `"], "convocks": ["x"]}}`, skipInvalid},
		{"unknown format", `{"url": "https://hooks.example.com/SECRET", "format": "teams"}`, skipInvalid},
		{"zero byte", "https://hooks.example.com/SECRET\x00", skipNotText},
		{"not UTF-8", "https://hooks.example.com/\xff\xfe", skipNotText},
		{"UTF-16", "\xff\xfeh\x00t\x00t\x00p\x00", skipNotText},
		{"image", "\x89PNG\r\n\x1a\n\x00\x00", skipNotText},
		{"escape sequence", "https://hooks.example.com/\x1b[31m", skipNotText},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target, _, err := fileTarget("ops", []byte(tt.file), openGuard(t), endpoint.Defaults{})
			if tt.want == SkipNone {
				assert.Nil(t, err)
				return
			}
			require.NotNil(t, err)
			assert.Nil(t, target)
			assert.Equal(t, tt.want, err.reason, err.text)
			assert.NotContains(t, err.Error(), "SECRET")
			assert.NotContains(t, err.Error(), "receivers::", "it is no configuration file")
			assert.LessOrEqual(t, len(err.text), 4*maxSkipExplanation)
		})
	}
}

func FuzzReceiverFile(f *testing.F) {
	for _, s := range []string{
		"https://hooks.example.com/x", `{"url": "https://hooks.example.com/x", "timeout": "10s"}`, `{"url": {"url": 1}}`, `{"url::x": "y", "url": "https://a.example"}`,
		`{"url": "https://a.example", "": 1}`, `{"url": "https://a.example", "events": null, "signing": {"standard": [null]}}`, "{", "\x00",
		`{"url": "https://a.example", "queue_size": 1e999}`, `{"url": "https://a.example", "signing": {"standard": ["` + goodKey + `"]}}`,
	} {
		f.Add([]byte(s))
	}
	g := openGuard(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		target, _, err := fileTarget("ops", raw, g, endpoint.Defaults{})
		if (target == nil) == (err == nil) {
			t.Fatal("a file gives a receiver or a reason")
		}
		if err != nil {
			return
		}
		if target.Timeout <= 0 || target.Workers <= 0 || target.QueueSize <= 0 || target.Host == "" {
			t.Fatalf("unusable receiver: %+v", target)
		}
		text := strings.TrimSpace(strings.TrimPrefix(string(raw), "\ufeff"))
		if !strings.HasPrefix(text, "{") && target.Signer.KeyIDs != nil {
			t.Fatal("a plain URL has no key")
		}
	})
}
