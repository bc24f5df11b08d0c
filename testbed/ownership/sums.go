// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Summed are the metrics of which the sums over physical devices are compared.
var Summed = []string{names.GPUUtilization.Name, names.GPUMemoryUsage.Name, names.HwPower.Name}

// Sums is the outcome of CompareSums.
type Sums struct {
	Batches  int // pages of an exporter
	Sums     int
	Wrong    int
	Findings []string
}

func (s Sums) String() string {
	return fmt.Sprintf("sums: %d over physical devices in %d batches, wrong %d", s.Sums, s.Batches, s.Wrong)
}

// CompareSums sums over physical devices (those without hw.parent) at every time
// of a node's telemetry and compares with what was true at one moment of the
// second before or the second after, or until the telemetry arrived: its time is that
// of the request, and a busy exporter prints the page later.
func CompareSums(points []Point, truth *Chronicle) Sums {
	type batch struct {
		node string
		at   time.Time
	}
	batches, arrived := map[batch]map[string]Reading{}, map[batch]time.Time{}
	var order []batch
	var s Sums
	for i := range points {
		p := &points[i]
		if p.Device == "" || p.Parent != "" || p.Ended || !slices.Contains(Summed, p.Metric) {
			continue
		}
		if task := p.Attribute(names.HwGPUTask); task != "" && task != "general" {
			continue
		}
		b := batch{p.Node, p.Time}
		if batches[b] == nil {
			batches[b], arrived[b] = map[string]Reading{}, p.Arrived
			order = append(order, b)
		}
		if batches[b][p.Metric] == nil {
			batches[b][p.Metric] = Reading{}
		}
		batches[b][p.Metric][p.Device] += p.Value // twice is twice
	}
	s.Batches = len(order)
	for _, b := range order {
		until := b.at.Add(time.Second)
		if arrived[b].After(until) {
			until = arrived[b]
		}
		moments := truth.Between(b.node, b.at.Add(-time.Second), until)
		for _, metric := range Summed {
			if len(batches[b][metric]) == 0 && !slices.ContainsFunc(moments, func(m map[string]Reading) bool { return len(m[metric]) > 0 }) {
				continue
			}
			s.Sums++
			reported, ok := "nothing is known of that time", false
			for i := range moments {
				if reported = compare(batches[b][metric], moments[i][metric]); reported == "" {
					ok = true
					break
				}
			}
			if ok {
				continue
			}
			if s.Wrong++; s.Wrong <= maxFindings {
				s.Findings = append(s.Findings, fmt.Sprintf("%s %s of %s: %s", b.at.UTC().Format("15:04:05.000"), metric, b.node, reported))
			}
		}
	}
	return s
}

// compare returns the difference between two readings, device by device and
// in sum; "" is none.
func compare(got, want Reading) string {
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if _, ok := got[id]; !ok {
			return id + " is missing"
		}
	}
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[id]; !ok {
			return id + " is too much"
		}
	}
	var sum, wantSum float64
	for _, id := range slices.Sorted(maps.Keys(got)) {
		v := got[id]
		if !near(v, want[id]) {
			return fmt.Sprintf("%s has %v, in truth %v", id, v, want[id])
		}
		sum, wantSum = sum+v, wantSum+want[id]
	}
	if !near(sum, wantSum) {
		return fmt.Sprintf("the sum is %v, in truth %v", sum, wantSum)
	}
	return ""
}

// near: a page has six digits behind the point.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-5*max(1, math.Abs(a), math.Abs(b)) }
