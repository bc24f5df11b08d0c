// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package egress // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/egress"

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// proxyPorts are the default ports of proxies, by scheme.
var proxyPorts = map[string]uint16{"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}

// NewGuard makes the guard of these addresses, ports and proxy; an empty proxy is
// none. With a proxy the guard judges the proxy's address alone: which addresses
// the proxy dials, only the proxy can decide.
func NewGuard(cidrs []string, ports []int, proxy string) (*Guard, error) {
	g, err := newGuard(cidrs, ports)
	if proxy == "" {
		return g, err
	}
	u, proxyErr := parseProxy(proxy, g)
	if err := errors.Join(err, proxyErr); err != nil {
		return nil, err
	}
	g.proxy = u
	return g, nil
}

// parseProxy reads proxy_url. Its errors never show it. Without a guard, which
// could not be made, the address is not judged.
func parseProxy(raw string, g *Guard) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return nil, errors.New("proxy_url: cannot be parsed; write it as http://host:port")
	}
	port, known := proxyPorts[u.Scheme]
	switch {
	case !known:
		return nil, errors.New("proxy_url: must start with http://, https://, socks5:// or socks5h://")
	case u.Hostname() == "":
		return nil, errors.New("proxy_url: names no host")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("proxy_url: has a path, query or fragment; write only http://host:port, with user:password@ where needed")
	}
	if u.Port() != "" {
		n, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || n == 0 {
			return nil, errors.New("proxy_url: has a port that is not within 1 and 65535")
		}
		port = uint16(n)
	}
	u.Path = ""
	if _, err := netip.ParseAddr(u.Hostname()); err != nil && !hostName.MatchString(u.Hostname()) {
		return nil, errors.New("proxy_url: has a host of other characters than letters, digits, dots and dashes")
	}
	if g != nil {
		if why := g.refusal(u.Hostname(), port); why != "" {
			return nil, errors.New("proxy_url: " + why)
		}
	}
	return u, nil
}

// numericHost is a host with a number as its last label, decimal, octal or
// hexadecimal: no name, but to many resolvers another way to write an address.
var numericHost = regexp.MustCompile(`(^|\.)([0-9]+|0[xX][0-9a-fA-F]*)\.?$`)

// checkThroughProxy refuses what no proxy may be asked for. More cannot be
// known here: names, and private addresses, are those of the proxy's network.
func checkThroughProxy(a *Address) error {
	addr, err := netip.ParseAddr(strings.TrimSuffix(a.Host, "."))
	if err != nil && numericHost.MatchString(a.Host) {
		return errors.New("its host is a number in a form that resolvers read differently; write the address as 192.0.2.1")
	}
	if err == nil && staysClosed(addr.Unmap()) {
		return errors.New("its address may not be asked for, of a proxy neither; link-local and metadata addresses stay closed")
	}
	return nil
}
