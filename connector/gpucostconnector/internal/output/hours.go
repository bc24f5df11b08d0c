// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// Hours writes rows of hours as log records.
type Hours struct {
	Scope, Version, Currency string
	// Carbon reports whether carbon dioxide is known of a class at a time: of a row without
	// any it is 0, or not known. nil: it is not known.
	Carbon func(c *ledger.Class, at int64) (milligrams int64, ok bool)
}

// Write returns a record for each row.
func (h *Hours) Write(hours []ledger.HourTotal, now pcommon.Timestamp) plog.Logs {
	logs := plog.NewLogs()
	if len(hours) == 0 {
		return logs
	}
	scope := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	scope.Scope().SetName(h.Scope)
	scope.Scope().SetVersion(h.Version)
	records := scope.LogRecords()
	records.EnsureCapacity(len(hours))
	for i := range hours {
		row := h.row(&hours[i])
		record := records.AppendEmpty()
		row.ToRecord(record)
		record.SetObservedTimestamp(now)
	}
	return logs
}

func (h *Hours) row(t *ledger.HourTotal) usage.Row {
	k := &t.Key
	row := usage.Row{
		Key: usage.Key{
			Cluster: k.Cluster, Model: k.Model, HostType: k.HostType, Region: k.Region, CapacityType: k.Capacity, NodePool: k.Pool, Labels: k.Labels,
			Profile: k.Profile, State: k.State.String(), Namespace: k.Namespace, Service: k.Service, Tenant: k.Tenant, Pod: k.Pod,
		},
		Hour: time.UnixMilli(t.Start).UTC(), Open: t.Revision == 0, Revision: t.Revision,
		Amounts: usage.Amounts{
			Time: t.Time, Used: t.Used, Idle: t.Idle, Unmeasured: t.Unmeasured, Unplaced: t.Unplaced,
			Energy: [3]int64{t.Energy[ledger.OfBoard], t.Energy[ledger.OfShare], t.Energy[ledger.Integrated]}, Carbon: t.Carbon,
		},
		Contested: t.Flags&ledger.Contested != 0, BoardMetered: t.Flags&ledger.BoardMetered != 0, Estimated: t.Flags&ledger.Estimated != 0,
	}
	if k.Rate.Known() {
		row.Currency, row.RateNano, row.RatePer, row.Kind = h.Currency, k.Rate.Nano, k.Rate.Per, k.Kind
	}
	if t.Carbon == 0 && !h.knowsCarbon(&k.Class, t.Start) {
		row.Carbon = -1
	}
	return row
}

func (h *Hours) knowsCarbon(c *ledger.Class, at int64) bool {
	if h.Carbon == nil {
		return false
	}
	_, known := h.Carbon(c, at)
	return known
}
