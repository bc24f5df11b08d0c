// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext/pagetexttest"
)

// The board of most tests: its uuid, its hw.id, and its labels on a page.
const (
	uuid0  = "ccff74a1-0000-1000-80e0-c6d49f5b0d86"
	board0 = "GPU-cce0c6d49f5b0d86"
	mi300x = `card_series="AMD Instinct MI300X OAM"`
)

// row is a row of a board that is not partitioned, or with labels of its own.
func row(family string, v any, more ...string) string {
	return labelled(family, v, append([]string{mi300x, `gpu_compute_partition_type="spx"`, `gpu_id="0"`, `gpu_memory_partition_type="nps1"`,
		`gpu_partition_id="0"`, `gpu_uuid="` + uuid0 + `"`, `serial_number="692409005408"`}, more...)...)
}

// part is a row of a partition of the board, in CPX mode.
func part(number, id any, family string, v any, more ...string) string {
	return labelled(family, v, append([]string{mi300x, `gpu_compute_partition_type="cpx"`, fmt.Sprintf(`gpu_id="%v"`, id), `gpu_memory_partition_type="nps4"`,
		fmt.Sprintf(`gpu_partition_id="%v"`, number), `gpu_uuid="` + uuid0 + `"`}, more...)...)
}

func labelled(family string, v any, labels ...string) string {
	return fmt.Sprintf("%s{%s} %v", family, strings.Join(labels, ","), v)
}

func newExporter(t testing.TB) *pagetexttest.Exporter {
	return pagetexttest.New(t, NewVendor(nil), devicemap.Options{})
}

// scrape maps one page.
func scrape(t testing.TB, lines ...string) pagetexttest.Result {
	t.Helper()
	return newExporter(t).Scrape(lines...)
}
