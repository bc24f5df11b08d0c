// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

var update = flag.Bool("update", false, "write testdata/*.txt")

// recorded is what otelcol-gpu-nvml -once prints, as far as the mapping needs it.
type recorded struct {
	System nvmlproto.System  `json:"system"`
	Boards []nvmlproto.Board `json:"boards"`
}

// TestGolden: what whole answers of a helper become, in their second scrape. Those of other
// cards are welcome: otelcol-gpu-nvml -once prints such a file.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var of recorded
			require.NoError(t, json.Unmarshal(text, &of))
			h := newHost(t)
			h.do(&Scrape{Up: true, Driver: of.System.Driver, Boards: of.Boards})
			got := h.do(&Scrape{Up: true, Driver: of.System.Driver, Boards: of.Boards}).text(t)
			golden := strings.TrimSuffix(file, ".json") + ".txt"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}

func (s scraped) text(t *testing.T) string {
	var b strings.Builder
	count := map[string]int{}
	for r, n := range s.of.Refusals {
		count[r.Call+" "+r.Reason] = n
	}
	fmt.Fprintf(&b, "refused %v\ndenied %v\n", count, s.of.Denied)
	for _, id := range s.IDs(t) {
		attrs := s.Resource(id)
		delete(attrs, names.HwID)
		fmt.Fprintf(&b, "\n%s {", id)
		for i, key := range slices.Sorted(maps.Keys(attrs)) {
			fmt.Fprintf(&b, "%s%s=%v", []string{"", ", "}[min(i, 1)], key, attrs[key])
		}
		b.WriteString("}\n")
		for _, line := range s.Points(id) {
			b.WriteString("  " + line + "\n")
		}
	}
	return b.String()
}
