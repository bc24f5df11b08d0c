// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap/devicemaptest"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext/pagetexttest"
)

// TestDerivedCounts: what is derived of the last code stops where another receiver counts
// each XID, and goes on where that one has ended.
func TestDerivedCounts(t *testing.T) {
	counted := false
	fields := make([]devicetable.Field, Quantities)
	for id := range fields {
		fields[id].Lacking = devicetable.ID(id) != XIDLast
	}
	fields[XIDLast].Name, fields[XIDLast].Code = "acme_last_xid", true
	vendor := devicemaptest.Acme
	vendor.Table = devicetable.New(devicetable.Table{Fields: fields, Series: Series, Derived: Derived})
	vendor.Moving, vendor.PartID = devicemap.Moving{}, deviceid.MIG
	vendor.Derive = Derive(func(device string, _ time.Time) bool { return counted && device == "GPU-a" })
	e := pagetexttest.New(t, &vendor, devicemap.Options{})
	xids := func(code string) []string {
		return e.Scrape(`acme_last_xid{UUID="GPU-a"} `+code).Only("GPU-a", names.GPUXIDErrors.Name)
	}
	assert.Empty(t, xids("0"))
	assert.Equal(t, []string{"gpu.xid.errors{gpu.xid.code=31,gpu.xid.derived=true} 1"}, xids("31"))
	counted = true
	assert.Empty(t, xids("79"))
	counted = false
	assert.Equal(t, []string{
		"gpu.xid.errors{gpu.xid.code=31,gpu.xid.derived=true} 1", "gpu.xid.errors{gpu.xid.code=79,gpu.xid.derived=true} 1",
	}, xids("79"))
}
