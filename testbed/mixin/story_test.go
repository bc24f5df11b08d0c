// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

type label = labels.Label

// story is what happens to a fleet: a healthy time first.
func (w *world) story(t *testing.T) {
	t.Helper()
	w.run(4 * time.Minute)
}
