// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// Nothing that points at a closed address gets a byte, however it is written.
// The port is allowed, so only the address can be the reason.
func TestForgedRequestsAreBlocked(t *testing.T) {
	server := newHook(t, nil)
	port := server.port()
	hosts := map[string][]string{
		"loopback.example.test":  {"127.0.0.1"},
		"loopback2.example.test": {"127.1.2.3"},
		"loopback6.example.test": {"::1"},
		"mapped.example.test":    {"::ffff:127.0.0.1"},
		"compat.example.test":    {"::127.0.0.1"},
		"metadata.example.test":  {"169.254.169.254"},
		"linklocal.example.test": {"fe80::1"},
		"private.example.test":   {"10.0.0.1"},
		"private2.example.test":  {"192.168.0.1"},
		"ula.example.test":       {"fd12::1"},
		"aws6.example.test":      {"fd00:ec2::254"},
		"nat64.example.test":     {"64:ff9b::7f00:1"},
		"sixtofour.example.test": {"2002:7f00:1::1"},
		"zero.example.test":      {"0.0.0.0"},
		"many.example.test":      {"127.0.0.1", "169.254.169.254", "::1"},
		// What lenient resolvers make of numbers.
		"2130706433": {"127.0.0.1"},
		"0x7f000001": {"127.0.0.1"},
		"0177.0.0.1": {"127.0.0.1"},
		"127.1":      {"127.0.0.1"},
	}
	// Go makes no lookup for a name without a letter.
	neverAsked := map[string]bool{"2130706433": true, "0177.0.0.1": true, "127.1": true}
	resolver := nameServer(t, hosts)
	for _, literal := range []string{"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "169.254.169.254", "[fe80::1]", "0.0.0.0", "[::]", "localhost"} {
		hosts[literal] = nil
	}
	for host := range hosts {
		t.Run(host, func(t *testing.T) {
			h := startHarness(t, only(to(fmt.Sprintf("http://%s:%d/latest/meta-data", host, port))), func(c *Config, env *environment) {
				c.AllowCIDRs, c.AllowPorts = nil, []int{int(port)}
				env.Resolver = resolver
			})
			rec := h.one()
			if neverAsked[host] {
				assert.Equal(t, audit.ErrorDNS, rec.ErrorType)
			} else {
				assert.Equal(t, audit.Blocked, rec.Outcome)
				assert.Equal(t, audit.ErrorSSRFBlocked, rec.ErrorType)
			}
			assert.Zero(t, rec.Status)
		})
	}
	assert.Zero(t, server.connections())
}

func TestNameWithASafeAddressIsReached(t *testing.T) {
	server := newHook(t, nil)
	h := startHarness(t, only(to(fmt.Sprintf("http://both.example.test:%d/", server.port()))), func(_ *Config, env *environment) {
		env.Resolver = nameServer(t, map[string][]string{"both.example.test": {"169.254.169.254", "127.0.0.1"}})
	})
	rec := h.one()
	assert.Equal(t, audit.Succeeded, rec.Outcome)
	assert.Equal(t, server.Listener.Addr().String(), rec.PeerAddress)
	assert.Equal(t, "both.example.test", rec.URLHost)
	assert.Positive(t, rec.Durations.DNS)
}

// A proxy from the environment would dial in our place, past the guard. Go
// reads that environment once a process, so the test runs in one of its own.
func TestEnvironmentProxyIsIgnored(t *testing.T) {
	const proxy = "http://proxy.example.test:3128" // a name that no one knows
	if os.Getenv("HTTP_PROXY") != proxy {
		child := exec.Command(os.Args[0], "-test.run=^TestEnvironmentProxyIsIgnored$")
		child.Env = append(os.Environ(), "HTTP_PROXY="+proxy, "HTTPS_PROXY="+proxy, "ALL_PROXY="+proxy, "NO_PROXY=")
		out, err := child.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	server := newHook(t, nil)
	h := startHarness(t, only(to(fmt.Sprintf("http://hook.example.test:%d/", server.port()))), func(_ *Config, env *environment) {
		env.Resolver = nameServer(t, map[string][]string{"hook.example.test": {"127.0.0.1"}})
	})
	assert.Equal(t, audit.Succeeded, h.one().Outcome)
	assert.Len(t, server.received(), 1)
}
