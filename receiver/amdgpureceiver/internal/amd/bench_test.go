// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext/pagetexttest"
)

// node is a page of eight boards in CPX mode: 64 partitions. Values differ by step.
func node(step int) []byte {
	var lines []string
	for b := range 8 {
		for n := range 8 {
			labels := []string{mi300x, `card_vendor="AMD"`, `driver_version="6.12.12"`, `gpu_compute_partition_type="cpx"`, fmt.Sprintf(`gpu_id="%d"`, 8*b+n), `gpu_memory_partition_type="nps4"`,
				fmt.Sprintf(`gpu_partition_id="%d"`, n), fmt.Sprintf(`gpu_uuid="%02xff74a1-0000-1000-80ee-0000000000aa"`, b+1), `pod="llm-0"`, `namespace="prod"`, `container="engine"`}
			for id := range Table.Fields {
				f := &Table.Fields[id]
				switch {
				case f.Computed || strings.HasPrefix(f.Name, "sysfs_"):
				case f.Label == "":
					lines = append(lines, labelled(f.Name, 40+step%3, labels...))
				default:
					for i := range 2 {
						lines = append(lines, labelled(f.Name, 40+step%3, append(labels, fmt.Sprintf(`%s="%d"`, strings.Split(f.Label, ",")[0], i))...))
					}
				}
			}
			for i := range 20 {
				lines = append(lines, labelled(fmt.Sprintf("gpu_prof_other_%d", i), step, labels...))
			}
		}
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

// BenchmarkNode maps the page of a node with 64 partitions.
func BenchmarkNode(b *testing.B) {
	e := pagetexttest.New(b, NewVendor(nil), devicemap.Options{})
	pages := [][]byte{node(0), node(1), node(2)}
	samples := bytes.Count(pages[0], []byte("\n"))
	for i := range 3 {
		e.ScrapePage(pages[i])
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		e.ScrapePage(pages[i%3])
		i++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(samples), "ns/sample")
	b.ReportMetric(float64(samples), "samples")
}
