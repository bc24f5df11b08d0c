// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intel

import (
	"flag"
	"testing"

	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext/pagetexttest"
)

var update = flag.Bool("update", false, "write the texts beside testdata/pages: read them")

// TestGolden holds whole pages, written from the exporters' sources, against what they
// become.
func TestGolden(t *testing.T) {
	pagetexttest.Golden(t, NewVendor("", "host-1"), "../../testdata/pages", *update)
}
