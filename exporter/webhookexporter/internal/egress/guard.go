// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package egress // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/egress"

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"
)

// ErrBlocked is returned for an address that may not be dialled.
var ErrBlocked = errors.New("address may not be dialled")

// closed are the addresses that allow_cidrs cannot open: nothing that an
// operator would run a receiver on, and everything that hands out credentials.
var closed = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),             // this host
	netip.MustParsePrefix("169.254.0.0/16"),        // link-local; metadata of most clouds
	netip.MustParsePrefix("224.0.0.0/4"),           // multicast
	netip.MustParsePrefix("240.0.0.0/4"),           // reserved, broadcast
	netip.MustParsePrefix("100.100.100.200/32"),    // metadata, Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),      // platform address, Azure
	netip.MustParsePrefix("192.0.0.192/32"),        // metadata, Oracle Cloud
	netip.MustParsePrefix("::/128"),                // unspecified
	netip.MustParsePrefix("fe80::/10"),             // link-local
	netip.MustParsePrefix("fec0::/10"),             // site-local, deprecated
	netip.MustParsePrefix("ff00::/8"),              // multicast
	netip.MustParsePrefix("fd00:ec2::/32"),         // metadata and pod identity, AWS
	netip.MustParsePrefix("fd20:ce::/32"),          // metadata, Google Cloud
	netip.MustParsePrefix("fd00:c1::/32"),          // metadata, Oracle Cloud
	netip.MustParsePrefix("fd00:42::42/128"),       // metadata, Scaleway
	netip.MustParsePrefix("fd00:a9fe:a9fe::1/128"), // metadata, Akamai
	netip.MustParsePrefix("fd00:100::100:200/128"), // metadata, Alibaba Cloud
	netip.MustParsePrefix("64:ff9b:1::/48"),        // local NAT64: where the IPv4 address lies is not known
	netip.MustParsePrefix("2001::/32"),             // Teredo: carries an IPv4 address
	netip.MustParsePrefix("2002::/16"),             // 6to4: carries an IPv4 address
}

// loopback6 is carved out of ::/96, the deprecated form that carries an IPv4
// address in its last four bytes.
var (
	loopback6    = netip.IPv6Loopback()
	ipv4Compat   = netip.MustParsePrefix("::/96")
	nat64        = ssrf.IPv6NAT64Prefix
	anyTCPFamily = []string{"tcp4", "tcp6"}
)

// Guard decides which addresses may be dialled. It judges the address itself,
// after name lookup, so a name that changes its mind gains nothing.
type Guard struct {
	// proxy is what is dialled instead of every endpoint; nil: no proxy.
	proxy    *url.URL
	allowed  []netip.Prefix
	ports    []uint16
	guardian *ssrf.Guardian
}

func newGuard(cidrs []string, ports []int) (*Guard, error) {
	g := &Guard{ports: make([]uint16, 0, len(ports))} // never nil: nil would mean any port
	var errs []error
	for i, s := range cidrs {
		p, err := netip.ParsePrefix(s)
		if err != nil || p != p.Masked() {
			errs = append(errs, fmt.Errorf("allow_cidrs[%d]: %q is not a network; write it as 10.0.0.0/8 or fd00::/8", i, s))
			continue
		}
		if p.Addr().Is4In6() {
			errs = append(errs, fmt.Errorf("allow_cidrs[%d]: %q is an IPv4 network written as IPv6; write the IPv4 form", i, s))
			continue
		}
		if j := slices.IndexFunc(closed, func(c netip.Prefix) bool { return c.Bits() <= p.Bits() && c.Contains(p.Addr()) }); j >= 0 {
			errs = append(errs, fmt.Errorf("allow_cidrs[%d]: %q lies in %v, which stays closed (link-local, metadata, multicast or an address inside an address); remove it", i, s, closed[j]))
			continue
		}
		g.allowed = append(g.allowed, p)
	}
	for i, port := range ports {
		if port < 1 || port > 65535 {
			errs = append(errs, fmt.Errorf("allow_ports[%d]: %d is not within 1 and 65535", i, port))
			continue
		}
		g.ports = append(g.ports, uint16(port))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	g.guardian = ssrf.New(ssrf.WithNetworks(anyTCPFamily...), ssrf.WithPorts(g.ports...))
	return g, nil
}

// Proxied reports whether a proxy dials the endpoints.
func (g *Guard) Proxied() bool { return g.proxy != nil }

// control is a net.Dialer's Control function: it runs after name lookup and
// before the first packet, once for every address that is tried.
func (g *Guard) control(network, address string, _ syscall.RawConn) error {
	if !slices.Contains(anyTCPFamily, network) {
		return fmt.Errorf("%w: network %s", ErrBlocked, network)
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: not an address", ErrBlocked)
	}
	return g.check(ap)
}

// check returns nil, or an error that is errBlocked.
func (g *Guard) check(ap netip.AddrPort) error {
	// A zone would keep Prefix.Contains from matching; an IPv4 address inside
	// an IPv6 one is dialled as IPv4.
	addr := ap.Addr().WithZone("").Unmap()
	if staysClosed(addr) {
		return ErrBlocked
	}
	if slices.ContainsFunc(g.allowed, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		if nat64.Contains(addr) {
			// What a NAT64 gateway reaches is the IPv4 address inside: that
			// one has to be allowed too.
			return g.check(netip.AddrPortFrom(lastFour(addr), ap.Port()))
		}
		return nil
	}
	if err := g.guardian.SafeAddrPort(netip.AddrPortFrom(addr, ap.Port())); err != nil {
		return fmt.Errorf("%w: %w", ErrBlocked, err)
	}
	return nil
}

// refusal returns why a host and port will be blocked every time, and what would
// open them; empty where that is not certain without a name server.
func (g *Guard) refusal(host string, port uint16) string {
	addrs, what := certain(host)
	if len(addrs) == 0 {
		if len(g.allowed) > 0 || slices.Contains(g.ports, port) {
			return ""
		}
		return fmt.Sprintf("port %d is not in allow_ports: add it there if the host has a public address; if it has a private one, add its range to allow_cidrs, which opens every port there", port)
	}
	var open []string
	for _, addr := range addrs {
		if g.check(netip.AddrPortFrom(addr, port)) == nil {
			return ""
		}
		if !staysClosed(addr.Unmap()) {
			open = append(open, netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()).String())
		}
	}
	switch anyPort, err := newGuard(nil, []int{int(port)}); {
	case len(open) == 0:
		return what + " is link-local, a metadata service or reserved, and stays closed whatever is configured: use another address"
	case err == nil && anyPort.check(netip.AddrPortFrom(addrs[0], port)) == nil:
		return fmt.Sprintf("port %d is not in allow_ports: add it there", port)
	default:
		return fmt.Sprintf("%s is private or loopback, which is closed by default: if it is yours, add its range to allow_cidrs, as in [%s], which opens every port there", what, strings.Join(open, ", "))
	}
}

// CheckAddress refuses an address that is blocked every time.
func (g *Guard) CheckAddress(a *Address) error {
	if g.proxy != nil {
		return checkThroughProxy(a)
	}
	if why := g.refusal(a.Host, a.Port); why != "" {
		return errors.New(why)
	}
	return nil
}

// certain are the addresses that a host has whatever a name server answers.
func certain(host string) (addrs []netip.Addr, what string) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, "its address"
	}
	switch {
	case host == "localhost", strings.HasSuffix(host, ".localhost"): // RFC 6761
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, "localhost"
	case host == "metadata.google.internal":
		return []netip.Addr{netip.AddrFrom4([4]byte{169, 254, 169, 254})}, "its host"
	}
	return nil, ""
}

// staysClosed reports whether no configuration opens the address. It has no zone
// and is no mapped one.
func staysClosed(addr netip.Addr) bool {
	switch {
	case slices.ContainsFunc(closed, func(p netip.Prefix) bool { return p.Contains(addr) }):
		return true
	case nat64.Contains(addr):
		return staysClosed(lastFour(addr))
	default:
		return ipv4Compat.Contains(addr) && addr != loopback6
	}
}

// lastFour is the IPv4 address in the last bytes of an IPv6 one.
func lastFour(addr netip.Addr) netip.Addr {
	b := addr.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}
