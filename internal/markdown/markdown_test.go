// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package markdown

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWrap(t *testing.T) {
	var b strings.Builder
	Wrap(&b, "1. ", strings.Repeat("a", 90)+" `b c d e f` ü.")
	assert.Equal(t, "1. "+strings.Repeat("a", 90)+"\n   `b c d e f` ü.\n", b.String(), "a code span is not broken")
}
