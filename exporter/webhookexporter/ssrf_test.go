// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// trap is an address that must not be reached. A connection is counted before a
// byte could be sent on it.
type trap struct {
	t        *testing.T
	listener net.Listener
	accepted atomic.Int64
}

func newTrap(t *testing.T, address string) *trap {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("this machine has no %s: %v", address, err)
	}
	tr := &trap{t: t, listener: listener}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			tr.accepted.Add(1)
			conn.Close()
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	return tr
}

func (tr *trap) addr() string { return tr.listener.Addr().String() }

func (tr *trap) port() uint16 { return netip.MustParseAddrPort(tr.addr()).Port() }

// assertUntouched proves that the trap would have seen a connection, and that it
// saw none.
func (tr *trap) assertUntouched() {
	tr.t.Helper()
	seen := tr.accepted.Load()
	conn, err := net.Dial("tcp", tr.addr())
	require.NoError(tr.t, err)
	_, _ = conn.Read(make([]byte, 1)) // until the trap has counted it
	conn.Close()
	assert.EqualValues(tr.t, 1, tr.accepted.Load()-seen, "the trap is awake")
	assert.Zero(tr.t, seen, "connections in the trap")
}

// trapped is a receiver's configuration in which the trap's port is open, so
// that only an address can be the reason to refuse.
func trapped(port uint16, allow ...string) func(*Config, *environment) {
	return func(c *Config, _ *environment) { c.AllowCIDRs, c.AllowPorts = allow, []int{int(port)} }
}

// Each name of a closed address is never dialled: the trap listens on
// IPv4's and IPv6's loopback.
func TestNamesOfClosedAddresses(t *testing.T) {
	trap4 := newTrap(t, "127.0.0.1:0")
	port := trap4.port()
	trap6 := newTrap(t, fmt.Sprintf("[::1]:%d", port))
	names := map[string][]string{
		"loopback":           {"127.0.0.1"},
		"loopback-net":       {"127.255.255.254"},
		"loopback6":          {"::1"},
		"both-loopbacks":     {"127.0.0.1", "::1"},
		"link-local":         {"169.254.1.1"},
		"link-local6":        {"fe80::1"},
		"metadata":           {"169.254.169.254"},
		"metadata-aws6":      {"fd00:ec2::254"},
		"metadata-gcp6":      {"fd20:ce::254"},
		"metadata-alibaba":   {"100.100.100.200"},
		"platform-azure":     {"168.63.129.16"},
		"private-10":         {"10.0.0.1"},
		"private-172":        {"172.16.0.1"},
		"private-192":        {"192.168.0.1"},
		"shared":             {"100.64.0.1"},
		"unique-local":       {"fc00::1"},
		"unique-local-fd":    {"fd12:3456::1"},
		"mapped-loopback":    {"::ffff:127.0.0.1"},
		"mapped-metadata":    {"::ffff:169.254.169.254"},
		"mapped-private":     {"::ffff:10.0.0.1"},
		"compatible":         {"::127.0.0.1"},
		"nat64-loopback":     {"64:ff9b::7f00:1"},
		"nat64-metadata":     {"64:ff9b::a9fe:a9fe"},
		"nat64-local":        {"64:ff9b:1::7f00:1"},
		"6to4":               {"2002:7f00:1::1"},
		"teredo":             {"2001:0:7f00:1::1"},
		"unspecified":        {"0.0.0.0"},
		"unspecified6":       {"::"},
		"broadcast":          {"255.255.255.255"},
		"multicast":          {"224.0.0.1"},
		"many-closed":        {"169.254.169.254", "127.0.0.1", "10.0.0.1", "::1", "fe80::1"},
		"documentation":      {"192.0.2.1"},
		"reserved-ipv6-3fff": {"3fff::1"},
	}
	hosts := map[string]string{}
	zone := map[string][]string{}
	for name, answers := range names {
		zone[name+".example.test"] = answers
		hosts[name] = name + ".example.test"
	}
	// What lenient resolvers make of numbers: decimal, octal, hexadecimal, short.
	for _, number := range []string{"2130706433", "0x7f000001", "0x7f.0.0.1", "017700000001", "0177.0.0.1", "0177.0.0.01", "127.1", "127.0.1", "127.0.0.1.", "0", "0.0", "2852039166"} {
		zone[number] = []string{"127.0.0.1"}
		hosts[number] = number
	}
	for _, literal := range []string{
		"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::a9fe:a9fe]",
		"169.254.169.254", "[fe80::1]", "[fd00:ec2::254]", "0.0.0.0", "[::]", "localhost", "LOCALHOST", "localhost.",
	} {
		hosts[literal] = literal
	}
	resolver := nameServer(t, zone)
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			h := startHarness(t, only(to(fmt.Sprintf("http://%s:%d/latest/meta-data", host, port))), trapped(port), func(_ *Config, env *environment) { env.Resolver = resolver })
			rec := h.one()
			// Go resolves some of the numbers without a lookup: then nothing is dialled.
			assert.Contains(t, []audit.ErrorType{audit.ErrorSSRFBlocked, audit.ErrorDNS}, rec.ErrorType)
			if _, named := names[name]; named {
				assert.Equal(t, audit.ErrorSSRFBlocked, rec.ErrorType)
				assert.Equal(t, audit.Blocked, rec.Outcome)
			}
			assert.Zero(t, rec.Status)
		})
	}
	trap4.assertUntouched()
	trap6.assertUntouched()
}

// A name that answers differently each time is judged by the address dialled:
// there is one lookup, and no other after the check.
func TestNameThatChangesItsMind(t *testing.T) {
	good := newHook(t, nil) // on 127.0.0.1, which is open here
	port := good.port()
	bad := newTrap(t, fmt.Sprintf("127.0.0.2:%d", port))
	answers := &changingZone{}
	h := startHarness(t, only(to(fmt.Sprintf("http://rebind.example.test:%d/", port))), trapped(port, "127.0.0.1/32"), func(_ *Config, env *environment) {
		env.Resolver = answers.serve(t)
	})
	for i := range 10 {
		answers.set([]string{"127.0.0.1"}, []string{"127.0.0.2"}) // the good one once, then the bad one for ever
		rec := h.one()
		assert.Equal(t, audit.Succeeded, rec.Outcome, "delivery %d", i)
		answers.set([]string{"127.0.0.2"}, []string{"127.0.0.1"})
		rec = h.one()
		assert.Equal(t, audit.ErrorSSRFBlocked, rec.ErrorType, "delivery %d", i)
	}
	assert.Len(t, good.received(), 10)
	bad.assertUntouched()
}

// changingZone is a name server that answers the first lookup of a name one way
// and all later ones another.
type changingZone struct {
	first, later atomic.Pointer[[]string]
	lookups      atomic.Int64
}

func (z *changingZone) set(first, later []string) {
	z.first.Store(&first)
	z.later.Store(&later)
	z.lookups.Store(0)
}

func (z *changingZone) serve(t *testing.T) *net.Resolver {
	return answeringServer(t, func(question []byte) ([]byte, bool) {
		// One lookup is two questions: for IPv4 and for IPv6.
		answers := z.first.Load()
		if z.lookups.Add(1) > 2 {
			answers = z.later.Load()
		}
		return answerQuestion(question, map[string][]string{"rebind.example.test": *answers})
	})
}

// Of several answers the bad ones get nothing, wherever they stand.
func TestOneBadAnswerAmongGoodOnes(t *testing.T) {
	good := newHook(t, nil)
	port := good.port()
	bad := newTrap(t, fmt.Sprintf("127.0.0.2:%d", port))
	for name, answers := range map[string][]string{
		"bad first":   {"127.0.0.2", "127.0.0.1"},
		"bad last":    {"127.0.0.1", "127.0.0.2"},
		"bad between": {"169.254.169.254", "127.0.0.2", "127.0.0.1", "127.0.0.2"},
		"bad IPv6":    {"::1", "fe80::1", "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			rec := startHarness(t, only(to(fmt.Sprintf("http://several.example.test:%d/", port))), trapped(port, "127.0.0.1/32"), func(_ *Config, env *environment) {
				env.Resolver = nameServer(t, map[string][]string{"several.example.test": answers})
			}).one()
			assert.Equal(t, audit.Succeeded, rec.Outcome)
			assert.Equal(t, good.Listener.Addr().String(), rec.PeerAddress)
		})
	}
	// With the good one not answering, the bad one is still none to turn to.
	good.Close()
	rec := startHarness(t, only(to(fmt.Sprintf("http://several.example.test:%d/", port))), trapped(port, "127.0.0.1/32"), func(_ *Config, env *environment) {
		env.Resolver = nameServer(t, map[string][]string{"several.example.test": {"127.0.0.1", "127.0.0.2"}})
	}).one()
	assert.NotEqual(t, audit.Succeeded, rec.Outcome)
	bad.assertUntouched()
}

// Redirects lead nowhere, even to where the guard would let them.
func TestRedirectsLeadIntoNoTrap(t *testing.T) {
	snare := newTrap(t, "127.0.0.1:0")
	target := "http://" + snare.addr() + "/latest/meta-data"
	headers := map[string]http.Header{
		"Location":               {"Location": {target}},
		"Location without http":  {"Location": {"//" + snare.addr() + "/"}},
		"two Locations":          {"Location": {"/here", target}},
		"Refresh":                {"Refresh": {"0; url=" + target}},
		"Content-Location":       {"Content-Location": {target}},
		"Link":                   {"Link": {"<" + target + ">; rel=canonical"}},
		"Alt-Svc":                {"Alt-Svc": {fmt.Sprintf(`h2=":%d", http/1.1=":%d"`, snare.port(), snare.port())}},
		"Location and Refresh":   {"Location": {target}, "Refresh": {"0; url=" + target}},
		"Set-Cookie with Domain": {"Location": {target}, "Set-Cookie": {"x=y; Domain=127.0.0.1"}},
	}
	for _, status := range []int{200, 201, 300, 301, 302, 303, 305, 307, 308, 401, 503} {
		for name, header := range headers {
			t.Run(fmt.Sprintf("%d %s", status, name), func(t *testing.T) {
				server := newHook(t, func(w http.ResponseWriter, _ *http.Request) {
					maps.Copy(w.Header(), header)
					w.WriteHeader(status)
				})
				h := startHarness(t, only(to(server.URL)))
				rec := h.one()
				assert.Equal(t, status, rec.Status)
				if status >= 300 && status < 400 {
					assert.Equal(t, audit.ErrorRedirect, rec.ErrorType)
				}
				assert.Len(t, server.received(), 1)
			})
		}
	}
	snare.assertUntouched()
}
