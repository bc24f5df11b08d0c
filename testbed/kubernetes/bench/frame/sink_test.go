// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/fleet"
)

// The fleet's requests arrive at a sink, and are counted there.
func TestFleetReachesSink(t *testing.T) {
	for _, protocol := range []string{"grpc", "http"} {
		t.Run(protocol, func(t *testing.T) { testFleetReachesSink(t, protocol == "http") })
	}
}

func testFleetReachesSink(t *testing.T, http bool) {
	s, err := NewSink()
	require.NoError(t, err)
	defer s.Close()
	assert.Error(t, s.Reached())
	endpoint := s.OTLP
	if http {
		endpoint = "http://" + s.Write + "/v1/metrics"
	}
	template, err := fleet.New(false)
	require.NoError(t, err)
	sender, err := fleet.Start(endpoint, template, 3, 50*time.Millisecond)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return sender.Counts().Sent >= 6 }, time.Minute, 10*time.Millisecond)
	sender.Stop()
	counts := sender.Counts()
	assert.Zero(t, counts.Failed, sender.LastError())
	require.NoError(t, s.Reached())
	assert.GreaterOrEqual(t, s.calls.Load(), counts.Sent)
	assert.Greater(t, s.Bytes.Load(), 1000*counts.Sent)
	_, err = fleet.Start(endpoint, template, 0, time.Second)
	assert.ErrorContains(t, err, "0 nodes")
}

// A fleet without a gateway reports that.
func TestFleetWithoutGateway(t *testing.T) {
	template, err := fleet.New(false)
	require.NoError(t, err)
	sender, err := fleet.Start("127.0.0.1:1", template, 1, 10*time.Millisecond)
	require.NoError(t, err)
	defer sender.Stop()
	require.Eventually(t, func() bool { return sender.Counts().Failed > 0 }, time.Minute, 10*time.Millisecond)
	assert.NotEmpty(t, sender.LastError())
}
