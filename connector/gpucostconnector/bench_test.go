// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/metadata"
)

// One flush of 10,000 devices of 1,000 services, an hour after the start: accounts, state,
// metrics, and the rows of the hours that have changed.
func BenchmarkFlush(b *testing.B) {
	const devices, services = 10_000, 1_000
	cfg := createDefaultConfig().(*Config)
	priced(cfg)
	c, err := newConnector(cfg, connectortest.NewNopSettings(metadata.Type))
	require.NoError(b, err)
	now := time.Unix(1e9, 0)
	require.NoError(b, c.open(b.Context(), nil, now))
	c.store = &store{}
	fleet := make([]device, devices)
	for i := range fleet {
		fleet[i] = device{fmt.Sprintf("GPU-%08x-%04x-%04x-%04x-%012x", i*2654435761%(1<<32), i%9973, i%9967, i%9949, i*40503), fmt.Sprint("service-", i%services)}
	}
	nodes := func(at time.Time) {
		for i := 0; i < devices; i += 8 {
			md := snapshot(at, fleet[i:i+8]...)
			for _, rm := range md.ResourceMetrics().All() {
				rm.Resource().Attributes().PutStr("k8s.node.name", fmt.Sprint("node-", i/8))
			}
			c.intake.Read(md, at)
		}
	}
	for range 20 {
		nodes(now)
		now = now.Add(3 * time.Minute)
	}
	var state, metrics, rows int
	for b.Loop() {
		b.StopTimer()
		now = now.Add(15 * time.Second)
		nodes(now)
		b.StartTimer()
		books := c.settle(now)
		at := pcommon.NewTimestampFromTime(now)
		md := c.written.Write(&books.Books, at, false)
		c.hours.Write(books.rows, at)
		c.written.Accepted()
		c.ledger.HoursEmitted()
		state, metrics, rows = len(books.state), md.DataPointCount(), len(books.rows)
	}
	b.ReportMetric(float64(state)/1024, "KiB/write")
	b.ReportMetric(float64(metrics), "points")
	b.ReportMetric(float64(rows), "rows")
}
