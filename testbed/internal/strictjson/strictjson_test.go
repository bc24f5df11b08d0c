// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDurationsAreTextOrSeconds(t *testing.T) {
	for in, want := range map[string]time.Duration{`"90s"`: 90 * time.Second, `1.5`: 1500 * time.Millisecond, `"1m30s"`: 90 * time.Second} {
		var d Duration
		require.NoError(t, json.Unmarshal([]byte(in), &d))
		assert.Equal(t, want, time.Duration(d))
	}
	var d Duration
	assert.ErrorContains(t, json.Unmarshal([]byte(`"soon"`), &d), "number of seconds")
	assert.ErrorContains(t, json.Unmarshal([]byte(`true`), &d), "number of seconds")
}
