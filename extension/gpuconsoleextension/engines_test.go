// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"net"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A store behind a URL gives the same answers, byte for byte, as the one in the
// process: here it is the latter's own Prometheus API.
func TestBothEnginesAnswerTheSame(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	endpoint := free.Addr().String()
	require.NoError(t, free.Close())
	w := newWorld(t)
	w.store = newStoreAt(t, endpoint)
	fleetOfServices(w)
	fleetOfNodes(w)
	now := w.now.Add(remoteDelay)
	inside := serveAPI(t, w.store, now, nil)
	outside := serveAPI(t, remoteStore(t, "http://"+endpoint), now, nil)
	for _, path := range []string{
		"services?trend=true", "nodes", "service?cluster=c1&namespace=ml&service=partial", "pods?cluster=c1&namespace=ml&service=chat",
		"range?cluster=c1&namespace=ml&service=well&window=1h", "range?cluster=c1&namespace=ml&service=chat&window=30m&by=pod",
	} {
		ask := func(c *client) string {
			got := c.do(httptest.NewRequest("GET", "http://localhost/api/v1/"+path, nil))
			require.Equal(t, 200, got.status, "%s: %s", path, got.body)
			return string(got.body)
		}
		assert.JSONEq(t, ask(inside), ask(outside), path)
	}
}
