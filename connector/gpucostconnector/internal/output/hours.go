// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// Hours makes rows of hours, and writes them as log records.
type Hours struct {
	Scope, Version, Currency string
	// Carbon returns the kind of the carbon intensity of a region at a time, and whether there
	// is one. nil: no intensity is known.
	Carbon func(region string, at time.Time) (milligrams int64, kind string, ok bool)
}

// Write returns a record for each row.
func (h *Hours) Write(rows []usage.Row, now pcommon.Timestamp) plog.Logs {
	logs := plog.NewLogs()
	scope := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	scope.Scope().SetName(h.Scope)
	scope.Scope().SetVersion(h.Version)
	records := scope.LogRecords()
	records.EnsureCapacity(len(rows))
	for i := range rows {
		record := records.AppendEmpty()
		rows[i].ToRecord(record)
		record.SetObservedTimestamp(now)
	}
	return logs
}

// Rows returns the rows of some hours.
func (h *Hours) Rows(hours []ledger.HourTotal) []usage.Row {
	rows := make([]usage.Row, len(hours))
	for i := range hours {
		rows[i] = h.row(&hours[i])
	}
	return rows
}

func (h *Hours) row(t *ledger.HourTotal) usage.Row {
	k := &t.Key
	row := usage.Row{
		Key: usage.Key{
			Cluster: k.Cluster, Model: k.Model, HostType: k.HostType, Region: k.Region, CapacityType: k.Capacity, NodePool: k.Pool, Labels: k.Labels,
			Profile: k.Profile, State: k.State.String(), Namespace: k.Namespace, Service: k.Service, Tenant: k.Tenant, Pod: k.Pod,
			SlurmCluster: k.SlurmCluster,
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
	known := false
	known, row.Marginal = h.intensity(k.Region, row.Hour)
	if t.Carbon == 0 && !known {
		row.Carbon = -1 // the grid may cause none, or it is not known
	}
	return row
}

// intensity reports whether a carbon intensity is known at the start or the end of an hour,
// and whether one of both is marginal.
func (h *Hours) intensity(region string, hour time.Time) (known, marginal bool) {
	if h.Carbon == nil {
		return false, false
	}
	for _, at := range []time.Time{hour, hour.Add(time.Hour - 1)} {
		_, kind, ok := h.Carbon(region, at)
		known, marginal = known || ok, marginal || ok && kind == prices.Marginal
	}
	return known, marginal
}
