// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package logonce

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Causes
		assert.True(t, c.First("full"))
		assert.False(t, c.First("full"))
		assert.True(t, c.First("gone"), "another cause")
		time.Sleep(QuietFor - 1)
		assert.False(t, c.First("full"))
		time.Sleep(QuietFor - 1)
		assert.False(t, c.First("full"), "it was not quiet for long enough")
		time.Sleep(QuietFor)
		assert.True(t, c.First("full"))
		logged := 0
		for i := range 100 {
			if c.First(strconv.Itoa(i)) {
				logged++
			}
		}
		assert.Equal(t, most-1, logged)
	})
}
