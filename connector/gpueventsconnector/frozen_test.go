// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// A host engine that hangs, with failed scrapes and restarts of the receiver in between,
// is one condition; it ends after a while if the exporter never reports it again.
func TestWhatClearsAFrozenExporter(t *testing.T) {
	up, down := page{undecided: true}, page{down: true}
	for name, tt := range map[string]struct {
		pages []page
		want  []string // after it was raised
		after time.Duration
	}{
		"failed scrapes, and nothing known in between": {[]page{down, up, up, {frozen: true}, down, up, {frozen: true}}, nil, 0},
		"it moves": {[]page{up, down, {}}, []string{"gpu.exporter.down cleared"}, 2 * interval},
		"the next exporter answers at another address, twice": {
			[]page{{undecided: true, address: "10.0.0.2"}, {undecided: true, address: "10.0.0.2"}, {undecided: true, address: "10.0.0.2"}},
			[]string{"gpu.exporter.down cleared"}, interval,
		},
		"not a word": {[]page{up}, []string{"gpu.exporter.down cleared"}, 15 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, deviceSet)
				feed := func(p page) []string {
					p.at, p.node = time.Now(), "n1"
					return append(brief(b.feed(scrape(p))), brief(b.wait(interval))...)
				}
				var got []string
				for range 6 {
					got = append(got, feed(page{frozen: true})...)
				}
				require.Equal(t, []string{"gpu.exporter.down raised frozen"}, got)
				begin := time.Now()
				for i := range 100 {
					if got = feed(tt.pages[min(i, len(tt.pages)-1)]); len(got) > 0 {
						require.Equal(t, tt.after, time.Since(begin)-interval)
						break
					}
				}
				require.Equal(t, tt.want, got)
			})
		})
	}
}

// Pages on which everything stands still are no evidence: a cause that was not seen to be
// over lasts until other pages have shown that it is.
func TestAFrozenExporterClearsNoReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet, withHealth)
		replays := 0.
		see := func(minutes int, frozen bool, by float64) (all []string) {
			for range 4 * minutes {
				replays += by
				happened := b.feed(scrape(page{at: time.Now(), node: "n1", frozen: frozen, gpus: []gpu{{
					id: gpuA, values: map[*names.Metric]float64{&names.GPUPCIeReplays: replays, &names.GPURowRemapFailure: 0},
				}}}))
				all = append(all, healthEvents(append(happened, b.wait(15*time.Second)...))...)
			}
			return all
		}
		require.Equal(t, []string{"raised: degraded [pcie_replays] check_mechanics"}, see(7, false, 100))
		require.Empty(t, see(20, true, 0))
		require.Empty(t, see(8, false, 0))
		require.Equal(t, []string{"cleared: ok <nil> none"}, see(4, false, 0))
	})
}
