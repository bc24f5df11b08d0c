// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package listening checks addresses that a component listens on, and explains
// why it cannot.
package listening // import "github.com/otelcol-gpu/otelcol-gpu/internal/listening"

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Split returns the host of an endpoint with a port that can be listened on. The errors
// name the key, the value and the remedy.
func Split(key, endpoint, example string) (host string, err error) {
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return "", fmt.Errorf("%s: %q is no address and port, as %s", key, endpoint, example)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return "", fmt.Errorf("%s: %q has no port of this protocol; use a number from 1 to 65535, as %s", key, endpoint, example)
	}
	return host, nil
}

// Explain adds the remedy to an error of listening. or is what else the key takes,
// as ", or \"\" for none", and may be empty.
func Explain(key, endpoint, or string, err error) error {
	remedy := "set another" + or
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		remedy = "end what uses it, or set another" + or
	case errors.Is(err, syscall.EACCES):
		remedy = "this user may not: ports below 1024 take a right of their own; set a higher one" + or
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		remedy = "this machine does not have the address; set one that it has, or localhost" + or
	}
	return fmt.Errorf("%s: %s cannot be listened on; %s: %w", key, endpoint, remedy, err)
}
