// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package listening // import "github.com/otelcol-gpu/otelcol-gpu/internal/listening"

import (
	"net"
	"net/http"
	"sync/atomic"
)

// MaxConnections is how many connections a server of ours keeps: each holds a
// goroutine, buffers and perhaps an answer that its reader does not take.
const MaxConnections = 256

// Limit closes connections of the server beyond MaxConnections as they come.
// refused is called for each.
func Limit(server *http.Server, refused func()) {
	var open atomic.Int64
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			if open.Add(1) > MaxConnections {
				_ = conn.Close() // the server sees that, and counts it as closed
				refused()
			}
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
}
