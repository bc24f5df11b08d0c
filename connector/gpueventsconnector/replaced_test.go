// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// in is a board that is well, at an index without a PCI address, or at an address.
func in(id string, index int64, pci string) gpu {
	g := gpusOf(id)[0]
	g.index, g.pci = index, pci
	return g
}

// A board that was replaced is not lost, whether or not it was before, and through a
// restart. One is not replaced by a board that was there before it was away, which has
// another place after a boot; by one elsewhere; nor by one of another exporter.
func TestAReplacedBoard(t *testing.T) {
	const one, other = "0000:03:00.0", "0000:04:00.0"
	is := func(gpus ...gpu) []page { return []page{{gpus: gpus}} }
	for name, tt := range map[string]struct {
		before, away, after []page
		restart             bool
		want, live          string
	}{
		"at its address":               {is(in(gpuA, 0, one)), is(), is(in(gpuB, 0, one)), false, "raised cleared", gpuB + "=ok n1=ok"},
		"written in another way":       {is(in(gpuA, 0, one)), is(), is(in(gpuB, 0, "00000000:03:00.0")), false, "raised cleared", gpuB + "=ok n1=ok"},
		"at its index":                 {is(in(gpuA, 1, "")), is(), is(in(gpuB, 1, "")), false, "raised cleared", gpuB + "=ok n1=ok"},
		"over a restart":               {is(in(gpuA, 0, one)), is(), is(in(gpuB, 0, one)), true, "raised cleared", gpuB + "=ok n1=ok"},
		"never lost":                   {is(in(gpuA, 0, one)), nil, is(in(gpuB, 0, one)), false, "", gpuB + "=ok n1=ok"},
		"never lost, over a restart":   {is(in(gpuA, 0, one)), nil, is(in(gpuB, 0, one)), true, "", gpuB + "=ok n1=ok"},
		"with an instance":             {is(in(gpuA, 0, one), gpu{id: gpuA + "/7", parent: gpuA}), is(), is(in(gpuB, 0, one)), false, "raised cleared", gpuB + "=ok n1=ok"},
		"not by a neighbor":            {is(in(gpuA, 0, one), in(gpuB, 0, other)), is(in(gpuB, 0, other)), is(in(gpuB, 0, one)), false, "raised", gpuA + "=failed " + gpuB + "=ok n1=failed"},
		"nor by one that moved up":     {is(in(gpuA, 1, ""), in(gpuB, 2, "")), nil, is(in(gpuB, 1, "")), true, "raised", gpuA + "=failed " + gpuB + "=ok n1=failed"},
		"nor at another address":       {is(in(gpuA, 0, one)), is(), is(in(gpuB, 0, other)), false, "raised", gpuA + "=failed " + gpuB + "=ok n1=failed"},
		"nor at another index":         {is(in(gpuA, 1, "")), is(), is(in(gpuB, 2, "")), false, "raised", gpuA + "=failed " + gpuB + "=ok n1=failed"},
		"nor by one of its instances":  {is(in(gpuA, 0, one)), is(), is(gpu{id: gpuA + "/7", parent: gpuA}), false, "raised", gpuA + "=failed n1=failed"},
		"nor by another exporter's":    {is(in(gpuA, 1, "")), is(), []page{{}, {port: 9401, gpus: []gpu{in(gpuB, 1, "")}}}, false, "raised", gpuA + "=failed " + gpuB + "=ok n1=failed"},
		"nor where the exporter is up": {is(in(gpuA, 0, one)), nil, is(in(gpuA, 0, one), in(gpuB, 0, one)), false, "", gpuA + "=ok " + gpuB + "=ok n1=ok"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, w := newDisk(), &ward{}
				begin := func() *bench { return startInto(t, host{diskID: d}, w, deviceSet, withHealth, onDisk) }
				b := begin()
				var lost []string
				see := func(n int, pages []page) {
					for range n {
						for i := range pages {
							// One exporter after the other, as two receivers scrape them.
							pages[i].at, pages[i].node = time.Now(), "n1"
							for _, e := range append(b.feed(scrape(pages[i])), b.wait(7*time.Second)...) {
								name := e.record.EventName()
								if name != names.EventDeviceLost && name != names.EventHealth {
									continue
								}
								if e.state == names.EventCleared {
									assert.Contains(t, e.body, "("+gpuA+") was replaced by "+gpuB+", and what was raised about it is over.")
								}
								if name == names.EventDeviceLost {
									lost = append(lost, e.state)
								}
							}
						}
						b.wait(time.Second)
					}
				}
				see(4, tt.before)
				see(8, tt.away)
				if tt.restart {
					b.stop()
					w.Reset() // a stop ends no series
					b = begin()
					time.Sleep(time.Second)
				}
				defer func() { b.stop() }()
				see(12, tt.after)
				require.Equal(t, tt.want, strings.Join(lost, " "))
				var all []string
				for _, m := range []*names.Metric{&names.HwStatus, &names.GPUNodeStatus} {
					states := live(m, w.AllMetrics())
					for _, id := range []string{gpuA, gpuB, "n1"} {
						if states[id] != "" {
							all = append(all, id+"="+states[id])
						}
					}
				}
				assert.Equal(t, tt.live, strings.Join(all, " "))
			})
		})
	}
}
