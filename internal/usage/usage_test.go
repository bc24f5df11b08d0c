// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func full() Row {
	return Row{
		Key: Key{
			Cluster: "prod", Model: "NVIDIA H100 80GB HBM3", HostType: "p5.48xlarge", Region: "eu-north1", CapacityType: names.CapacitySpot, NodePool: "pool-a",
			Labels: "pool=own,tier=2", Profile: "3g.40gb", State: Held, Namespace: "ml", Service: "vllm", Tenant: "team-a", Pod: "vllm-0",
			Currency: "USD", RateNano: 23_600_000_000, RatePer: 8, Kind: "list",
		},
		Hour: time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC), Revision: 3,
		Amounts:   Amounts{Time: 2_057_143, Used: 1_000_000, Idle: 7, Unmeasured: 8, Unplaced: 9, Energy: [3]int64{1, 2, 3}, Carbon: 4},
		Contested: true, BoardMetered: true, Estimated: true, Marginal: true,
	}
}

func recordOf(r Row) plog.LogRecord {
	record := plog.NewLogRecord()
	r.ToRecord(record)
	return record
}

func TestRecordsAreReadAsTheyWereWritten(t *testing.T) {
	r := full()
	unpriced := Row{Key: Key{State: Free}, Hour: r.Hour, Revision: 1, Amounts: Amounts{Time: 5, Carbon: -1}}
	open := full()
	open.Open = true
	job := full()
	job.SlurmCluster = "hpc"
	for _, want := range []Row{r, unpriced, open, job} {
		record := recordOf(want)
		got, err := FromRecord(record)
		require.NoError(t, err)
		assert.Equal(t, want, got)
		assert.True(t, names.UsageRecord(record.EventName()))
		id, _ := record.Attributes().Get(names.GPUEventID)
		assert.Equal(t, want.ID(), id.Str())
	}
	assert.False(t, names.UsageRecord(names.EventXID))
	_, found := recordOf(job).Attributes().Get(names.K8sNamespaceName)
	assert.False(t, found, "an account is no namespace")
	assert.NotEqual(t, r.ID(), job.ID())
}

// The id depends on every field of the key and on the hour, and on nothing else: senders
// of other versions make the same.
func TestID(t *testing.T) {
	r := full()
	assert.Equal(t, "e2cb4dda", r.ID()[:8])
	same := r
	same.Revision, same.Open, same.Amounts, same.Contested = 9, true, Amounts{}, false
	assert.Equal(t, r.ID(), same.ID())
	seen := map[string]bool{r.ID(): true}
	for i := range r.texts() {
		other := r
		*other.texts()[i].value += "x"
		assert.False(t, seen[other.ID()], other.texts()[i].name)
		seen[other.ID()] = true
	}
	for _, change := range []func(*Row){
		func(r *Row) { r.RateNano++ }, func(r *Row) { r.RatePer++ }, func(r *Row) { r.Hour = r.Hour.Add(time.Hour) },
		func(r *Row) { r.Namespace, r.Service = "mlv", "llm" },
	} {
		other := r
		change(&other)
		assert.False(t, seen[other.ID()])
		seen[other.ID()] = true
	}
}

func TestWhatCannotBeTrueIsRefused(t *testing.T) {
	for want, spoil := range map[string]func(plog.LogRecord, pcommon.Map){
		"gpu.usage.time_ms: -1 is not within":         func(_ plog.LogRecord, m pcommon.Map) { m.PutInt(names.GPUUsageTime, -1) },
		"gpu.usage.time_ms: is no whole number":       func(_ plog.LogRecord, m pcommon.Map) { m.PutDouble(names.GPUUsageTime, math.NaN()) },
		"gpu.usage.used_ms: is no whole number":       func(_ plog.LogRecord, m pcommon.Map) { m.Remove(names.GPUUsageUsed) },
		"gpu.usage.used_ms: 2057144 is not":           func(_ plog.LogRecord, m pcommon.Map) { m.PutInt(names.GPUUsageUsed, 2_057_144) },
		"gpu.usage.idle_ms: 2057144 is not":           func(_ plog.LogRecord, m pcommon.Map) { m.PutInt(names.GPUUsageIdle, 2_057_144) },
		"gpu.usage.unmeasured_ms: 2057144 is not":     func(_ plog.LogRecord, m pcommon.Map) { m.PutInt(names.GPUUsageUnmeasured, 2_057_144) },
		"gpu.usage.unplaced_ms: 3600000000001 is not": func(_ plog.LogRecord, m pcommon.Map) { m.PutInt(names.GPUUsageUnplaced, 3_600_000_000_001) },
		"gpu.usage.energy_mj.share: -5 is not":        func(_ plog.LogRecord, m pcommon.Map) { m.PutInt(names.GPUUsageEnergyShare, -5) },
		"gpu.usage.carbon_ug: -2 is not":              func(_ plog.LogRecord, m pcommon.Map) { m.PutInt(names.GPUUsageCarbon, -2) },
		"gpu.usage.revision: is missing":              func(_ plog.LogRecord, m pcommon.Map) { m.Remove(names.GPUUsageRevision) },
		"gpu.usage.revision: 4294967296 is not":       func(_ plog.LogRecord, m pcommon.Map) { m.PutInt(names.GPUUsageRevision, 1<<32) },
		"gpu.capacity.state: \"\" is not known":       func(_ plog.LogRecord, m pcommon.Map) { m.Remove(names.GPUCapacityState) },
		"gpu.tenant: is Int and no text":              func(_ plog.LogRecord, m pcommon.Map) { m.PutInt(names.GPUTenant, 1) },
		"gpu.tenant: longer than 256":                 func(_ plog.LogRecord, m pcommon.Map) { m.PutStr(names.GPUTenant, strings.Repeat("x", 257)) },
		"service.name: longer than 256":               func(_ plog.LogRecord, m pcommon.Map) { m.PutStr(names.ServiceName, "a\x1b[2J") },
		"gpu.usage.contested: is Str and no boolean":  func(_ plog.LogRecord, m pcommon.Map) { m.PutStr(names.GPUUsageContested, "yes") },
		"gpu.price.per: is missing":                   func(_ plog.LogRecord, m pcommon.Map) { m.Remove(names.GPUPricePer) },
		"gpu.price.per: -1 is not within":             func(_ plog.LogRecord, m pcommon.Map) { m.PutInt(names.GPUPricePer, -1) },
		"gpu.price.nano: -1 is below 0":               func(_ plog.LogRecord, m pcommon.Map) { m.PutInt(names.GPUPriceNano, -1) },
		"gpu.price.kind: \"free\" is not known":       func(_ plog.LogRecord, m pcommon.Map) { m.PutStr(names.GPUPriceKind, "free") },
		"gpu.cost.currency: is missing":               func(_ plog.LogRecord, m pcommon.Map) { m.Remove(names.GPUCostCurrency) },
		"more money than there can be": func(_ plog.LogRecord, m pcommon.Map) {
			m.PutInt(names.GPUPriceNano, math.MaxInt64)
			m.PutInt(names.GPUPricePer, 1)
			m.PutInt(names.GPUUsageTime, 3_600_000_000)
		},
		"is not the start of an hour": func(r plog.LogRecord, _ pcommon.Map) { r.SetTimestamp(r.Timestamp() + 1) },
		"the time 1970":               func(r plog.LogRecord, _ pcommon.Map) { r.SetTimestamp(0) },
		"the time 2262":               func(r plog.LogRecord, _ pcommon.Map) { r.SetTimestamp(math.MaxInt64) },
	} {
		record := recordOf(full())
		spoil(record, record.Attributes())
		got, err := FromRecord(record)
		assert.ErrorContains(t, err, want)
		assert.Zero(t, got)
	}
}

func FuzzFromRecord(f *testing.F) {
	marshal := func(r Row) []byte {
		logs := plog.NewLogs()
		r.ToRecord(logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
		text, err := (&plog.ProtoMarshaler{}).MarshalLogs(logs)
		require.NoError(f, err)
		return text
	}
	f.Add(marshal(full()))
	f.Add(marshal(Row{Key: Key{State: Unknown}, Hour: earliest, Open: true}))
	f.Fuzz(func(t *testing.T, text []byte) {
		logs, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(text)
		if err != nil {
			return
		}
		for _, rl := range logs.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, record := range sl.LogRecords().All() {
					r, err := FromRecord(record)
					if err != nil {
						continue
					}
					if r.Rate().Known() {
						cost, idle := r.Rate().Money(r.Time), r.Rate().Money(r.Idle)
						assert.True(t, cost.Valid() && idle.Valid() && cost.Compare(idle) >= 0)
					}
					again, err := FromRecord(recordOf(r))
					require.NoError(t, err)
					assert.Equal(t, r, again)
				}
			}
		}
	})
}
