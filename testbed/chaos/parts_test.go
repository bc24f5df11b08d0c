// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/breakable"
)

// What is sent to the ports is hostile and, where marked so, well-formed.
func TestHostile(t *testing.T) {
	md := hostileMetrics()
	assert.Equal(t, len(hostileValues), md.ResourceMetrics().Len())
	assert.Greater(t, md.DataPointCount(), 100)
	assert.Equal(t, 2*len(hostileValues), hostileLogs().LogRecordCount())
	assert.Equal(t, 16, timelessMetrics(time.Now()).DataPointCount())
	assert.Equal(t, garbageRequests(1), garbageRequests(1))
	assert.NotEqual(t, garbageRequests(1)[0], garbageRequests(2)[0])
	// Noise that begins with } is a request to some.
	const seed = 700
	require.NoError(t, plogotlp.NewExportRequest().UnmarshalJSON(breakable.Garbage(seed, 5000)), "no such noise")
	found := 0
	for _, body := range garbageRequests(seed) {
		if _, noise, ok := bytes.Cut(body, []byte("/json\r\nContent-Length: 5000\r\nConnection: close\r\n\r\n")); ok {
			found++
			require.Error(t, plogotlp.NewExportRequest().UnmarshalJSON(noise))
		}
	}
	assert.Equal(t, 3, found)
}
