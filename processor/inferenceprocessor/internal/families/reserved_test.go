// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/reserved"
)

// A name with a colon is that of a recording rule, which no page may write, unless an
// engine's is known to begin so.
func TestEnginesMayWriteTheirPrefixes(t *testing.T) {
	for _, e := range Engines() {
		for _, prefix := range e.Prefixes {
			if strings.Contains(prefix, ":") {
				assert.Equal(t, reserved.Free, reserved.Of(prefix+"x"), prefix)
			}
		}
	}
}
