// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/control"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/format"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/signing"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/trail"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func TestConfigFromYAML(t *testing.T) {
	conf, err := confmaptest.LoadConf("testdata/config.yaml")
	require.NoError(t, err)
	sub, err := conf.Sub("webhook")
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, sub.Unmarshal(cfg))
	require.NoError(t, cfg.Validate())

	assert.Equal(t, &Config{
		Receivers: map[string]endpoint.Config{
			"ops": {
				URL: "https://hooks.example.com/services/T000", Timeout: 5 * time.Second,
				Events: []string{"gpu.service.*", "gpu.xid"}, MinSeverity: "warn", QueueSize: 50, Workers: 2,
			},
			"billing": {
				URL: "http://billing.internal.example:8080/hook", Config: format.Config{Format: "convox"},
				Signing: signing.Config{
					Standard: []configopaque.String{"whsec_C+0sZ3Jb9I5PGrXwVz3oD7xkKqMuYt1RZcNa0pQeSgU="},
					Convox:   []configopaque.String{"5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8"},
				},
			},
		},
		AllowCIDRs: []string{"10.0.0.0/8"},
		AllowPorts: []int{443},
		Retry: delivery.RetryConfig{
			Enabled: true, InitialInterval: 10 * time.Second, MaxInterval: time.Hour, MaxElapsedTime: 24 * time.Hour, MaxAttempts: 5,
		},
		GroupWait:    2 * time.Second,
		Storage:      &diskID,
		ReplayEvents: 1000,
	}, cfg)

	target, err := endpoint.New("billing", cfg.Receivers["billing"], endpoint.Defaults{})
	require.NoError(t, err)
	assert.Equal(t, 30*time.Second, target.Timeout)
	assert.Equal(t, 1000, target.QueueSize)
	assert.Equal(t, 4, target.Workers)
	assert.EqualValues(t, 8080, target.Port)
}

// What a later version will understand must not be taken and ignored now.
func TestKeysThatMeanNothingYetAreRefused(t *testing.T) {
	for _, key := range []string{"audit", "endpoint", "sending_queue"} {
		t.Run(key, func(t *testing.T) {
			conf := confmap.NewFromStringMap(map[string]any{key: "x"})
			assert.ErrorContains(t, conf.Unmarshal(createDefaultConfig()), key)
		})
	}
	conf := confmap.NewFromStringMap(map[string]any{"receivers": map[string]any{"ops": map[string]any{"url": "https://x.example", "headers": "x"}}})
	assert.ErrorContains(t, conf.Unmarshal(createDefaultConfig()), "headers")
}

func TestValidate(t *testing.T) {
	ok := func(change func(*endpoint.Config)) *Config {
		r := to("https://hooks.example.com/x")
		change(&r)
		c := createDefaultConfig().(*Config)
		c.Receivers = only(r)
		return c
	}
	withURL := func(url string) *Config {
		return ok(func(r *endpoint.Config) { r.URL = configopaque.String(url) })
	}
	tests := []struct {
		name string
		cfg  *Config
		want string
	}{
		{"no receiver", createDefaultConfig().(*Config), "receivers: none is configured"},
		{"name with a slash", &Config{Receivers: map[string]endpoint.Config{"a/b": to("https://x.example/")}, AllowPorts: []int{443}}, `receivers: a text of 3 characters is not a name`},
		{"name with a space", &Config{Receivers: map[string]endpoint.Config{"ops team": to("https://x.example/")}, AllowPorts: []int{443}}, `receivers: "ops team" is not a name: use`},
		{"empty name", &Config{Receivers: map[string]endpoint.Config{"": to("https://x.example/")}, AllowPorts: []int{443}}, `receivers: "" is not a name`},
		{"URL as name", &Config{Receivers: map[string]endpoint.Config{"https://hooks.example.com/SECRET": {}}, AllowPorts: []int{443}}, `receivers: the URL that begins with https: is not a name`},
		{"no url", withURL(""), "receivers::ops::url: is empty"},
		{"blank url", withURL(" \n"), "receivers::ops::url: is empty"},
		{"unparsable", withURL("https://hooks.example.com/SECRET%zz"), "receivers::ops::url: cannot be parsed"},
		{"line feed inside", withURL("https://hooks.example.com/SECRET\nx"), "receivers::ops::url: cannot be parsed"},
		{"no scheme", withURL("hooks.example.com/SECRET"), "receivers::ops::url: has no scheme; write it as https://host/path"},
		{"other scheme", withURL("ftp://hooks.example.com/SECRET"), `receivers::ops::url: its scheme is "ftp", and only http and https`},
		{"no host", withURL("https:///SECRET"), "receivers::ops::url: names no host"},
		{"only a port", withURL("https://:443/SECRET"), "receivers::ops::url: names no host"},
		{"fragment", withURL("https://hooks.example.com/SECRET#x"), "receivers::ops::url: has a fragment"},
		{"empty fragment", withURL("https://hooks.example.com/SECRET#"), "receivers::ops::url: has a fragment"},
		{"port 0", withURL("https://hooks.example.com:0/SECRET"), "receivers::ops::url: has a port"},
		{"port too high", withURL("https://hooks.example.com:65536/SECRET"), "receivers::ops::url: has a port"},
		{"port not allowed", withURL("https://hooks.example.com:8443/SECRET"), "receivers::ops::url: port 8443 is not in allow_ports: add it there if the host has a public address; if it has a private one, add its range to allow_cidrs"},
		{"space in host", withURL("https://hooks%20status=200/SECRET"), "receivers::ops::url: "},
		{"bidirectional mark in host", withURL("https://hooks\u202e.example.com/SECRET"), "receivers::ops::url: has a host"},
		{"zone", withURL("https://[fe80::1%25eth0]/SECRET"), "receivers::ops::url: has an address with a zone"},
		{"loopback", withURL("http://127.0.0.1/SECRET"), "receivers::ops::url: its address is private or loopback, which is closed by default: if it is yours, add its range to allow_cidrs, as in [127.0.0.1/32]"},
		{"private, another port", withURL("http://10.1.2.3:9480/SECRET"), "as in [10.1.2.3/32], which opens every port there"},
		{"public, another port", withURL("http://8.8.8.8:9480/SECRET"), "port 9480 is not in allow_ports: add it there"},
		{"localhost", withURL("http://localhost/SECRET"), "receivers::ops::url: localhost is private or loopback, which is closed by default: if it is yours, add its range to allow_cidrs, as in [127.0.0.1/32, ::1/128]"},
		{"localhost, another port", withURL("http://Hooks.Localhost.:9480/SECRET"), "as in [127.0.0.1/32, ::1/128], which opens every port there"},
		{"metadata by name", withURL("http://metadata.google.internal/SECRET"), "its host is link-local, a metadata service or reserved"},
		{"metadata", withURL("http://169.254.169.254/SECRET"), "receivers::ops::url: its address is link-local, a metadata service or reserved, and stays closed"},
		{"unknown format", ok(func(r *endpoint.Config) { r.Format = "teams" }), `receivers::ops::format: "teams" is not supported; use one of alertmanager, `},
		{"format in capitals", ok(func(r *endpoint.Config) { r.Format = "Convox" }), "receivers::ops::format"},
		{"negative timeout", ok(func(r *endpoint.Config) { r.Timeout = -1 }), "receivers::ops::timeout"},
		{"timeout without unit", ok(func(r *endpoint.Config) { r.Timeout = 5 }), "receivers::ops::timeout: 5ns is shorter than 1ms; write it with its unit"},
		{"negative queue", ok(func(r *endpoint.Config) { r.QueueSize = -1 }), "receivers::ops::queue_size"},
		{"huge queue", ok(func(r *endpoint.Config) { r.QueueSize = 1 << 30 }), "receivers::ops::queue_size"},
		{"negative workers", ok(func(r *endpoint.Config) { r.Workers = -1 }), "receivers::ops::workers"},
		{"too many workers", ok(func(r *endpoint.Config) { r.Workers = 65 }), "receivers::ops::workers"},
		{"bad pattern", ok(func(r *endpoint.Config) { r.Events = []string{"gpu.*", "gpu.[a"} }), "receivers::ops::events[1]"},
		{"misspelled event", ok(func(r *endpoint.Config) { r.Events = []string{"gpu.xid", "gpu.xidd"} }), `receivers::ops::events[1]: "gpu.xidd" matches no event: did you mean gpu.xid?`},
		{"capitals", ok(func(r *endpoint.Config) { r.Events = []string{"GPU.XID"} }), `"GPU.XID" matches no event: write gpu.xid`},
		{"colons", ok(func(r *endpoint.Config) { r.Events = []string{"gpu:service:*"} }), `"gpu:service:*" matches no event: write gpu.service.*`},
		{"misspelled pattern", ok(func(r *endpoint.Config) { r.Events = []string{"gpu.servcie.*"} }), "did you mean gpu.service.*?"},
		{"a name cut short", ok(func(r *endpoint.Config) { r.Events = []string{"gpu.temp"} }), "did you mean gpu.temperature?"},
		{"a part left out", ok(func(r *endpoint.Config) { r.Events = []string{"gpu.no_data"} }), "did you mean gpu.service.no_data?"},
		{"no such event", ok(func(r *endpoint.Config) { r.Events = []string{"gpu.something.else.altogether"} }), "matches no event: there are gpu."},
		{"empty pattern", ok(func(r *endpoint.Config) { r.Events = []string{""} }), "receivers::ops::events[0]"},
		{"severity", ok(func(r *endpoint.Config) { r.MinSeverity = "critical" }), "receivers::ops::min_severity"},
		{"cidr", &Config{Receivers: only(to("https://x.example/")), AllowPorts: []int{443}, AllowCIDRs: []string{"10.0.0.0/8", "10.0.0.1"}}, "allow_cidrs[1]"},
		{"cidr with host bits", &Config{Receivers: only(to("https://x.example/")), AllowPorts: []int{443}, AllowCIDRs: []string{"10.0.0.1/8"}}, "allow_cidrs[0]"},
		{"mapped cidr", &Config{Receivers: only(to("https://x.example/")), AllowPorts: []int{443}, AllowCIDRs: []string{"::ffff:10.0.0.0/104"}}, "allow_cidrs[0]"},
		{"link-local cidr", &Config{Receivers: only(to("https://x.example/")), AllowPorts: []int{443}, AllowCIDRs: []string{"169.254.169.254/32"}}, "stays closed"},
		{"port", &Config{Receivers: only(to("https://x.example/")), AllowPorts: []int{443, 70000}}, "allow_ports[1]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.cfg.Validate()
			require.ErrorContains(t, err, tt.want)
			assert.NotContains(t, err.Error(), "SECRET")
		})
	}
	for _, url := range []string{
		"https://hooks.example.com", "HTTPS://Hooks.Example.COM/x", "http://user:pw@example.com/?q=1", "https://xn--bcher-kva.example/", "https://8.8.8.8/",
		"https://[2606:4700::1111]/x", "https://hooks.example.com./x", "https://my_service/x", " https://hooks.example.com/x\n",
	} {
		assert.NoError(t, withURL(url).Validate(), url)
	}
	inCluster := withURL("http://receiver.monitoring.svc:9093/x")
	inCluster.AllowCIDRs = []string{"10.0.0.0/8"}
	assert.NoError(t, inCluster.Validate(), "any port within allow_cidrs")
	here := withURL("http://localhost:9480/x")
	here.AllowCIDRs = []string{"127.0.0.0/8"}
	assert.NoError(t, here.Validate())
}

func TestABadKeyStopsTheStart(t *testing.T) {
	receiver := to("https://hooks.example.test/x")
	for _, bad := range []signing.Config{{Standard: []configopaque.String{""}}, {Convox: []configopaque.String{"deadbeef"}}} {
		receiver.Signing = bad
		assert.ErrorContains(t, (&Config{Receivers: only(receiver), AllowPorts: []int{443}}).Validate(), "receivers::ops::signing::")
	}
}

func TestAllProblemsAreReported(t *testing.T) {
	c := &Config{
		Receivers:  map[string]endpoint.Config{"a": {Config: format.Config{Format: "teams"}, Timeout: -1}, "b": to("nonsense")},
		AllowPorts: []int{0},
		Control:    control.Config{Token: "0123456789abcdef"},
		Audit:      trail.Config{MaxFiles: 3},
	}
	err := c.Validate()
	for _, want := range []string{"allow_ports[0]", "control_token: means nothing", "audit::max_files: means nothing", "receivers::a::url", "receivers::a::format", "receivers::a::timeout", "receivers::b::url"} {
		assert.ErrorContains(t, err, want)
	}
}

func TestFiltersSelectReceivers(t *testing.T) {
	server := newHook(t, nil)
	all, services, serious := to(server.URL+"/all"), to(server.URL+"/services"), to(server.URL+"/serious")
	services.Events = []string{"gpu.service.*"}
	serious.MinSeverity = "error"
	h := startHarness(t, map[string]endpoint.Config{"all": all, "services": services, "serious": serious})
	logs := plog.NewLogs()
	addPartial(logs, "1", names.EventRaised, plog.SeverityNumberWarn)
	addPartial(logs, "2", names.EventRaised, plog.SeverityNumberError).SetEventName("gpu.xid")
	h.send(logs)
	got := map[string][]string{}
	for range 4 {
		rec := h.record()
		got[rec.Receiver] = append(got[rec.Receiver], rec.Events[0].ID)
	}
	assert.ElementsMatch(t, []string{"1", "2"}, got["all"])
	assert.Equal(t, []string{"1"}, got["services"])
	assert.Equal(t, []string{"2"}, got["serious"])
	require.NoError(t, h.Shutdown(t.Context()))
	assert.Empty(t, h.records, "what a filter does not select is no delivery and has no record")
}
