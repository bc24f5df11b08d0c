// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package phase spreads what many hosts do at the same interval over that interval.
package phase

import (
	"hash/fnv"
	"os"
	"time"
)

// Seed names a component of this host.
func Seed(id string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "" // what is scraped spreads the moments still
	}
	return host + "\x00" + id
}

// Offset is the time from now to the next moment of something that is done at an interval.
// The moments depend on who does it: they are the same ones after a restart.
func Offset(now time.Time, interval time.Duration, of string) time.Duration {
	h := fnv.New64a()
	h.Write([]byte(of))
	phase := time.Duration(h.Sum64() % uint64(interval))
	since := time.Duration(now.UnixNano()) % interval
	return (phase - since + interval) % interval
}
