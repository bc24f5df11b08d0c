// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pagetext

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
)

// BenchmarkRead reads a page of 8 GPUs with 60 families that is laid out as the
// one before, has its lines in another order, or is the first one; textparse is
// Prometheus' parser alone, without labels.
func BenchmarkRead(b *testing.B) {
	var lines []string
	for family := range 60 {
		for gpu := range 8 {
			lines = append(lines, fmt.Sprintf(`DCGM_FI_DEV_FIELD_%d{gpu="%d",UUID="GPU-00000000-0000-4000-8000-00000000000%d",pci_bus_id="00000000:%d7:00.0",device="nvidia%d",modelName="NVIDIA H100 80GB HBM3",Hostname="node-a",DCGM_FI_DRIVER_VERSION="580.65.06",container="server",namespace="chat",pod="llm-%d"} %d`,
				family, gpu, gpu, gpu, gpu, gpu, 40+gpu))
		}
	}
	page := func(lines []string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }
	same := page(lines)
	other := append([]string{}, lines...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
	pages := [][]byte{same, page(other)}
	perSample := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(lines)), "ns/sample")
	}
	read := func(name string, next func(i int) (*Reader, []byte)) {
		b.Run(name, func(b *testing.B) {
			var rows []devicemap.Row
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r, body := next(i)
				var err error
				rows, _, err = r.Read(body, rows[:0])
				require.NoError(b, err)
				require.Len(b, rows, len(lines))
			}
			perSample(b)
		})
	}
	r := NewReader(vendor, target)
	read("same layout", func(int) (*Reader, []byte) { return r, same })
	read("other order", func(i int) (*Reader, []byte) { return r, pages[i%2] })
	read("first page", func(int) (*Reader, []byte) { return NewReader(vendor, target), same })
	b.Run("textparse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			parser := textparse.NewPromParser(same, labels.NewSymbolTable(), false)
			for {
				if _, err := parser.Next(); err == io.EOF {
					break
				}
			}
		}
		perSample(b)
	})
}
