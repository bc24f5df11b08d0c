// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package egress // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/egress"

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/listening"
)

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_.])?$`)

// Address is where the requests of an endpoint go.
type Address struct {
	URL  *url.URL // without user info
	User *url.Userinfo
	Host string // in lower case
	Port uint16
}

// ParseAddress reads an endpoint's URL. url.Parse quotes its input in its errors,
// so they are replaced.
func ParseAddress(raw string) (a Address, err error) {
	refuse := func(why string) (Address, error) { return Address{}, errors.New(why) }
	if raw == "" {
		return refuse("is empty; set the address to post to, or the environment variable that it is taken from: WEBHOOK_URL in config/webhooks.yaml")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return refuse("cannot be parsed; write it as https://host/path")
	case !strings.Contains(raw, "://"):
		return refuse("has no scheme; write it as https://host/path")
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse(fmt.Sprintf("its scheme is %q, and only http and https can be posted to; write it as https://host/path", u.Scheme))
	case u.Hostname() == "":
		return refuse("names no host")
	case u.Fragment != "" || strings.Contains(raw, "#"):
		return refuse("has a fragment (#…), which is never sent; remove it")
	}
	a.Host = strings.ToLower(u.Hostname())
	if addr, err := netip.ParseAddr(a.Host); err == nil {
		if addr.Zone() != "" {
			return refuse("has an address with a zone; link-local addresses stay closed")
		}
	} else if !hostName.MatchString(a.Host) {
		return refuse("has a host of other characters than letters, digits, dots and dashes; write international names in their xn-- form")
	}
	switch {
	case u.Port() != "":
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || port == 0 {
			return refuse("has a port that is not within 1 and 65535")
		}
		a.Port = uint16(port)
	case u.Scheme == "https":
		a.Port = 443
	default:
		a.Port = 80
	}
	a.User, u.User = u.User, nil
	a.URL = u
	return a, nil
}

// tokenLike is a part of a path that is no word: the credential of most
// webhook services.
var tokenLike = regexp.MustCompile(`^[A-Za-z0-9_.~-]{16,}$`)

// PlainSecret names the secret that a request carries to another machine without
// encryption, empty if there is none. Bodies carry the secrets of these keys.
func (a *Address) PlainSecret(inBody []string) string {
	switch {
	case a.URL.Scheme != "http" || listening.Loopback(a.Host):
		return ""
	case a.User != nil:
		return "user info"
	case len(inBody) > 0:
		return inBody[0]
	case a.URL.RawQuery != "":
		return "query"
	case slices.ContainsFunc(strings.Split(a.URL.Path, "/"), func(part string) bool {
		return tokenLike.MatchString(part) && strings.ContainsAny(part, "0123456789")
	}):
		return "path"
	}
	return ""
}
