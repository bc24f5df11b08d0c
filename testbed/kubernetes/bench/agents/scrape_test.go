// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Who does not scrape is not cheap.
func TestScrapedAll(t *testing.T) {
	assert.NoError(t, scrapedAll(400, 400))
	assert.NoError(t, scrapedAll(390, 400))
	assert.ErrorContains(t, scrapedAll(200, 400), "200 pages were scraped, and 400 were due")
	server, targets, samples, err := simulate(2)
	require.NoError(t, err)
	defer server.Close()
	assert.Len(t, targets, 2)
	assert.Greater(t, samples, 60*8)
	assert.Eventually(t, func() bool { return server.Pages() == 1 }, time.Minute, time.Millisecond) // the one that was counted
}
