// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package listening

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Connections beyond the limit are closed at once, and there is room again when
// others end.
func TestConnectionsAreLimited(t *testing.T) {
	refused := make(chan struct{}, MaxConnections)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	Limit(server.Config, func() { refused <- struct{}{} })
	server.Start()
	defer server.Close()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		return conn
	}
	var open []net.Conn
	for range MaxConnections {
		open = append(open, dial())
	}
	extra := dial()
	<-refused
	require.NoError(t, extra.SetReadDeadline(time.Now().Add(20*time.Second)))
	_, err := extra.Read(make([]byte, 1))
	assert.Error(t, err)
	for _, conn := range append(open, extra) {
		require.NoError(t, conn.Close())
	}
	assert.Eventually(t, func() bool {
		response, err := http.Get(server.URL)
		return err == nil && response.Body.Close() == nil
	}, 20*time.Second, 5*time.Millisecond)
}
