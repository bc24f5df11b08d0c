// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

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
	md := Metrics()
	assert.Equal(t, len(values), md.ResourceMetrics().Len())
	assert.Greater(t, md.DataPointCount(), 100)
	assert.Equal(t, 2*len(values), Logs().LogRecordCount())
	assert.Equal(t, 16, Timeless(time.Now()).DataPointCount())
	assert.Equal(t, Requests(1), Requests(1))
	assert.NotEqual(t, Requests(1)[0], Requests(2)[0])
	// Noise that begins with } is a request to some.
	const seed = 700
	require.NoError(t, plogotlp.NewExportRequest().UnmarshalJSON(breakable.Garbage(seed, 5000)), "no such noise")
	found := 0
	for _, body := range Requests(seed) {
		if _, noise, ok := bytes.Cut(body, []byte("/json\r\nContent-Length: 5000\r\nConnection: close\r\n\r\n")); ok {
			found++
			require.Error(t, plogotlp.NewExportRequest().UnmarshalJSON(noise))
		}
	}
	assert.Equal(t, 3, found)
}
