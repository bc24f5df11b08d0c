// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amdgpureceiver

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs/sysfstest"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/amdgpureceiver/internal/amd"
)

// BenchmarkSysfs is a collection of 8 boards with source: sysfs: their files read, and
// what becomes of them. The files are those of a disk, not of a driver.
func BenchmarkSysfs(b *testing.B) {
	var boards []sysfstest.Board
	for i := range 8 {
		one := board()
		one.PCI, one.UniqueID, one.Serial = fmt.Sprintf("0000:%02x:00.0", 0x19+i), 0xc3ff88426fc31c00+uint64(i), fmt.Sprint(692251000+i)
		boards = append(boards, one)
	}
	host := gpusysfs.New(sysfstest.Write(b, boards...))
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	go host.Run(ctx)
	host.Ask()
	<-host.Changed()
	source := local(host, zap.NewNop(), noop.Int64Counter{})
	vendor := amd.NewVendor(host.Snapshot)
	reader := pagetext.NewReader(vendor, pagetext.Options{})
	target := devicemap.NewTarget(vendor, devicemap.Options{OTel: true})
	var page []byte
	var rows []devicemap.Row
	b.ReportAllocs()
	for b.Loop() {
		var err error
		page, err = source.Page(ctx, page)
		require.NoError(b, err)
		rows, _, err = reader.Read(page, rows[:0])
		require.NoError(b, err)
		got := target.Map(&devicemap.Page{Time: pcommon.NewTimestampFromTime(time.Now()), Up: true, Rows: rows, Samples: len(rows)}, devicemap.Exporter{})
		require.Equal(b, 8, got.Devices)
	}
}
