// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGuardClosesByDefault(t *testing.T) {
	g, err := newGuard(nil, []int{80, 443})
	require.NoError(t, err)
	for _, addr := range []string{
		"127.0.0.1", "127.8.8.8", "::1", // loopback
		"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", // private, shared
		"fc00::1", "fd12:3456::1", // unique local
		"169.254.1.1", "169.254.169.254", "fe80::1", // link-local
		"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "100.100.100.200", "192.0.0.192", "168.63.129.16", // metadata
		"0.0.0.0", "0.1.2.3", "::", "255.255.255.255", "240.0.0.1", "224.0.0.1", "ff02::1",
		"192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1", "2001:db8::1", // documentation, benchmarks
		"::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1", // IPv4 inside IPv6
		"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::808:808", "64:ff9b:1::7f00:1", // NAT64
		"2002:7f00:1::1", "2001:0:7f00:1::1", "3fff::1", "fec0::1",
	} {
		assert.ErrorIs(t, g.check(netip.AddrPortFrom(netip.MustParseAddr(addr), 443)), ErrBlocked, addr)
	}
	for _, addr := range []string{"8.8.8.8", "1.1.1.1", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8"} {
		assert.NoError(t, g.check(netip.AddrPortFrom(netip.MustParseAddr(addr), 443)), addr)
		assert.NoError(t, g.check(netip.AddrPortFrom(netip.MustParseAddr(addr), 80)), addr)
		assert.ErrorIs(t, g.check(netip.AddrPortFrom(netip.MustParseAddr(addr), 8080)), ErrBlocked, addr)
	}
}

func TestAllowCIDRs(t *testing.T) {
	g, err := newGuard([]string{"0.0.0.0/0", "::/0"}, nil)
	require.NoError(t, err)
	for _, addr := range []string{"127.0.0.1", "10.0.0.1", "::1", "fd12::1", "8.8.8.8", "100.64.0.1", "64:ff9b::808:808", "64:ff9b::a00:1"} {
		assert.NoError(t, g.check(netip.AddrPortFrom(netip.MustParseAddr(addr), 12345)), addr)
	}
	for _, addr := range []string{
		"169.254.169.254", "169.254.0.1", "fe80::1", "fe80::1%eth0", "::ffff:169.254.169.254", "::169.254.169.254", "64:ff9b::a9fe:a9fe",
		"100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd00:42::42", "fd00:a9fe:a9fe::1", "fd00:100::100:200", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255",
		"2002:a9fe:a9fe::1", "2001:0:1::1", "64:ff9b:1::a9fe:a9fe",
	} {
		assert.ErrorIs(t, g.check(netip.AddrPortFrom(netip.MustParseAddr(addr), 80)), ErrBlocked, addr)
	}

	g, err = newGuard([]string{"10.1.0.0/16", "fd12::/16", "64:ff9b::/96"}, []int{443})
	require.NoError(t, err)
	for addr, open := range map[string]bool{
		"10.1.2.3:8080": true, "[::ffff:10.1.2.3]:8080": true, "[fd12::1]:1": true,
		"10.2.0.1:443": false, "127.0.0.1:443": false, "[fd13::1]:443": false,
		"8.8.8.8:443": true, "8.8.8.8:80": false,
		// The address inside has to be allowed as well.
		"[64:ff9b::808:808]:443": true, "[64:ff9b::808:808]:80": false,
		"[64:ff9b::a01:203]:8080": true, "[64:ff9b::7f00:1]:443": false,
	} {
		assert.Equal(t, open, g.check(netip.MustParseAddrPort(addr)) == nil, addr)
	}
}

func TestNoAllowedPortsIsNoPort(t *testing.T) {
	for _, ports := range [][]int{nil, {}} {
		g, err := newGuard(nil, ports)
		require.NoError(t, err)
		assert.ErrorIs(t, g.check(netip.MustParseAddrPort("8.8.8.8:443")), ErrBlocked)
	}
}

func TestGuardRefusesOtherNetworks(t *testing.T) {
	g, err := newGuard([]string{"127.0.0.0/8"}, []int{80})
	require.NoError(t, err)
	assert.NoError(t, g.control("tcp4", "127.0.0.1:80", nil))
	assert.ErrorIs(t, g.control("unix", "/run/docker.sock", nil), ErrBlocked)
	assert.ErrorIs(t, g.control("udp4", "127.0.0.1:80", nil), ErrBlocked)
	assert.ErrorIs(t, g.control("tcp4", "localhost:80", nil), ErrBlocked)
}

func FuzzGuard(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "::1", "169.254.169.254", "64:ff9b::a9fe:a9fe", "::ffff:169.254.1.1", "2002::", "8.8.8.8"} {
		f.Add(netip.MustParseAddr(s).AsSlice(), uint16(443))
	}
	wide, err := newGuard([]string{"0.0.0.0/0", "::/0"}, []int{443})
	require.NoError(f, err)
	narrow, err := newGuard(nil, []int{443})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, raw []byte, port uint16) {
		addr, ok := netip.AddrFromSlice(raw)
		if !ok {
			return
		}
		ap := netip.AddrPortFrom(addr, port)
		ip := net.IP(addr.AsSlice())
		if wide.check(ap) == nil && (ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast()) {
			t.Fatalf("%v is open with every network allowed", addr)
		}
		if narrow.check(ap) == nil && (port != 443 || !ip.IsGlobalUnicast() || ip.IsPrivate() || wide.check(ap) != nil) {
			t.Fatalf("%v is open by default", ap)
		}
	})
}
