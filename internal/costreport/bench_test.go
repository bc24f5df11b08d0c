// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package costreport

import (
	"strconv"
	"testing"

	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// BenchmarkMonth adds up 30 days of 1,000 services.
func BenchmarkMonth(b *testing.B) {
	services := make([]string, 1000)
	for i := range services {
		services[i] = "service-" + strconv.Itoa(i)
	}
	for b.Loop() {
		report := New(Options{By: ByService})
		for hour := range 720 {
			r := row(hour, usage.Held, "team", "", hourMS)
			for _, s := range services {
				r.Service = s
				report.Add(&r)
			}
		}
		report.Report()
	}
}
