// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
)

// benchPage is a page of 8 GPUs of 60 known fields each, held by pods.
func benchPage() string {
	var b strings.Builder
	families := 0
	for _, f := range Table.Fields {
		if f.Label != "" || families == 60 {
			continue
		}
		families++
		fmt.Fprintf(&b, "# HELP %s x\n# TYPE %s gauge\n", f.Name, f.Name)
		for gpu := range 8 {
			fmt.Fprintf(&b, `%s{gpu="%d",UUID="GPU-00000000-0000-4000-8000-00000000000%d",pci_bus_id="00000000:%d7:00.0",device="nvidia%d",modelName="NVIDIA H100 80GB HBM3",Hostname="node-a",DCGM_FI_DRIVER_VERSION="580.65.06",container="server",namespace="chat",pod="llm-%d"} %d`+"\n",
				f.Name, gpu, gpu, gpu, gpu, gpu, 40+gpu)
		}
	}
	return b.String()
}

// BenchmarkMap is the mapping alone: no scrape, no parser.
func BenchmarkMap(b *testing.B) {
	for name, opts := range map[string]devicemap.Options{"otel": otel, "dcgm": {AsIs: true}, "both": {OTel: true, AsIs: true}} {
		b.Run(name, func(b *testing.B) {
			md, err := scrape(benchPage(), t0)
			require.NoError(b, err)
			target := newTarget(opts)
			samples := 8 * 60
			b.ReportAllocs()
			for b.Loop() {
				target.Map(md, here)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*samples), "ns/sample")
		})
	}
}
