// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package listening

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Loopback reports whether host, a name or address without port, is this machine.
func Loopback(host string) bool {
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// Local reports whether authority, the Host or :authority of a request, is this
// machine or one of hosts. A page from elsewhere can make a browser ask loopback
// under a name of its own (DNS rebinding), and would read the answers.
func Local(authority string, hosts []string) bool {
	host := authority
	if name, _, err := net.SplitHostPort(authority); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	return Loopback(host) || slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// LocalRequest reports whether a request is for this machine or one of hosts, and
// not from a page of another: that one cannot read the answer, but what was asked
// for is done.
func LocalRequest(r *http.Request, hosts []string) bool {
	if !Local(r.Host, hosts) || r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return false
	}
	for _, origin := range r.Header.Values("Origin") {
		if u, err := url.Parse(origin); err != nil || !Local(u.Host, hosts) {
			return false
		}
	}
	return true
}
