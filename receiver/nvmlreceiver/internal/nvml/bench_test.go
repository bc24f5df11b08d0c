// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"fmt"
	"testing"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// node has eight boards of seven instances each. Values differ by step.
func node(step int) (boards []nvmlproto.Board) {
	values := func(instance bool) (all []nvmlproto.Value) {
		for i := range nvmlproto.Readings {
			if r := &nvmlproto.Readings[i]; (r.Instances || !instance) && r.Method != nvmlproto.MethodFans {
				all = append(all, value(r.Name, float64(40+step%3)))
			}
		}
		return all
	}
	for i := range 8 {
		b := board(values(false)...)
		b.Thread = fmt.Sprintf("0000:%02x:00.0", i+16)
		b.PCI, b.UUID = "0000"+b.Thread, fmt.Sprintf("GPU-5b1e8a4c-0000-4000-8000-%012d", i)
		for gi := range 7 {
			b.Instances = append(b.Instances, instance(gi+7, mig0, values(true)...))
		}
		boards = append(boards, b)
	}
	return boards
}

// BenchmarkNode maps a scrape of eight boards with 56 instances.
func BenchmarkNode(b *testing.B) {
	h := newHost(b)
	scrapes := [][]nvmlproto.Board{node(0), node(1), node(2)}
	samples := 0
	for _, board := range scrapes[0] {
		samples += len(board.Values)
		for _, i := range board.Instances {
			samples += len(i.Values)
		}
	}
	for i := range 3 {
		h.scrape(scrapes[i]...)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		h.scrape(scrapes[i%3]...)
		i++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(samples), "ns/sample")
	b.ReportMetric(float64(samples), "samples")
}
