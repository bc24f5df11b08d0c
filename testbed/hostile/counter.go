// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"net/http"
	"sync/atomic"
)

// counter counts requests, and answers them as then does.
type counter struct {
	n    atomic.Int64
	then http.Handler
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.n.Add(1)
	if c.then != nil {
		c.then.ServeHTTP(w, r)
	}
}
