// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"flag"
	"testing"

	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext/pagetexttest"
)

var update = flag.Bool("update", false, "write testdata/pages/*.txt")

// TestGolden: what whole pages become, with the exporter's sources as the model.
func TestGolden(t *testing.T) {
	pagetexttest.Golden(t, NewVendor(nil), "../../testdata/pages", *update)
}
