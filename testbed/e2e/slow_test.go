// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// Who begins a request to the health check and never ends it does not keep a
// connection for ever: the extension's own default is to wait without limit, and in
// a cluster every client reaches it.
func TestHealthCheckDoesNotWait(t *testing.T) {
	for _, name := range []string{"standalone.yaml", "gateway.yaml", "raw-gateway.yaml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, m{}, []string{"BACKEND_ENDPOINT=localhost:1", "BACKEND_INSECURE=true", "K8S_AUTH_TYPE=kubeConfig", "KUBECONFIG=" + kubeconfigOf(t, serve(t, kubeapi.New("none")))}, config(name))
			conn, err := net.Dial("tcp", net.JoinHostPort(collector.Loopback, strconv.Itoa(c.Ports.Health)))
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n")
			require.NoError(t, err)
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
			_, err = io.ReadAll(conn)
			assert.NoError(t, err, "the connection is not ended")
		})
	}
}
