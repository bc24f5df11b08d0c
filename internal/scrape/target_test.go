// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

// Pods of exporters come and go: own metrics name a limited number of them.
func TestExporterLabels(t *testing.T) {
	var l exporterLabels
	for i := range maxExporterLabels {
		assert.Equal(t, fmt.Sprint(i), l.of(fmt.Sprint(i)))
	}
	assert.Equal(t, []string{"other", "7"}, []string{l.of("one more"), l.of("7")})
}

// TestOutcomeLog checks what is logged over time.
func TestOutcomeLog(t *testing.T) {
	type step struct {
		after  time.Duration
		o      fetch.Outcome
		logged bool
	}
	for name, steps := range map[string][]step{
		"well from the start": {{0, fetch.OK, false}, {time.Hour, fetch.OK, false}},
		"down for long":       {{0, fetch.Connect, true}, {time.Hour, fetch.Connect, false}, {0, fetch.OK, true}},
		"another cause":       {{0, fetch.Connect, true}, {time.Second, fetch.Timeout, true}, {time.Second, fetch.Connect, false}},
		"flapping": {
			{0, fetch.Connect, true}, {time.Second, fetch.OK, true}, {time.Second, fetch.Connect, false},
			{time.Second, fetch.OK, false}, {time.Second, fetch.Connect, false},
		},
		"flapped, then down for good": {
			{0, fetch.Connect, true}, {time.Second, fetch.OK, true}, {time.Second, fetch.Connect, false},
			{logonce.Every, fetch.Connect, true}, {logonce.Every, fetch.Connect, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s outcomeLog
			now := time.Now()
			for i, step := range steps {
				now = now.Add(step.after)
				assert.Equal(t, step.logged, s.shouldLog(step.o, now), "step %d", i)
			}
		})
	}
}

func TestHostPort(t *testing.T) {
	for name, want := range map[string]struct {
		host string
		port int64
	}{
		"http://node-a:9400/metrics": {"node-a", 9400},
		"http://node-a/metrics":      {"node-a", 80},
		"https://[fd00::1]/metrics":  {"fd00::1", 443},
		"https://[fd00::1]:9400":     {"fd00::1", 9400},
	} {
		u, err := http.NewRequest(http.MethodGet, name, nil)
		require.NoError(t, err)
		host, port := hostPort(u.URL)
		assert.Equal(t, want.host, host, name)
		assert.Equal(t, want.port, port, name)
	}
	_, err := net.LookupPort("tcp", "http")
	require.NoError(t, err)
}
