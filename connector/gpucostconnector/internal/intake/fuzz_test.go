// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/pricing"
	"github.com/otelcol-gpu/otelcol-gpu/internal/otlpseeds"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// Whatever comes, the states of each board add up to its time, nothing is used that was not
// held, no limit is exceeded, and what is kept can be stored.
func FuzzRead(f *testing.F) {
	marshal := func(md pmetric.Metrics) []byte {
		text, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
		if err != nil {
			f.Fatal(err)
		}
		return text
	}
	allocations, telemetry, _ := sent(8)
	f.Add(marshal(allocations), marshal(telemetry), uint16(15))
	f.Add(marshal(telemetry), marshal(telemetry), uint16(70))
	f.Add(marshal(allocations), marshal(telemetry), uint16(65535))
	f.Add(marshal(allocations), marshal(telemetry), uint16(3000))
	f.Add(marshal(allocations), marshal(telemetry), uint16(0))
	unnamed := newBatch().holds("n", t0, pod("a"), "n/MIG-x", 1, attrs{"gpu.allocation.resolved": false}).
		free("n", t0, "n/MIG-y", attrs{"gpu.allocation.resolved": false, "k8s.resource.name": "nvidia.com/mig-1g.10gb"}).
		holds("n", t0, pod("b"), gpu(1)+"::0", .5, attrs{"gpu.allocation.share": .5, "gpu.allocation.share.cores": .2})
	shown := newBatch().busy(device("n", gpu(0)+"/1", h100, instanceOf(gpu(0), "3g.40gb"), pod("a")), t0, .5).
		busy(device("n", gpu(0)+"/2", h100, instanceOf(gpu(0), "1g.10gb")), t0, .5).burnt(device("n", gpu(1), h100), t0, 5)
	f.Add(marshal(unnamed.md), marshal(shown.md), uint16(20))
	for _, odd := range otlpseeds.Metrics(time.UnixMilli(t0)) {
		f.Add(odd, odd, uint16(1))
	}
	book, err := prices.New("USD", []prices.RuleConfig{{Match: map[string]string{"hw.model": "*"}, GPUHour: "1"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, a, b []byte, seconds uint16) {
		p := pricing.New(book, nil)
		cfg, lc := config(), ledgerConfig(p)
		cfg.MaxDevices, lc.MaxBoards = 4, 8
		x := New(cfg, ledger.New(lc, t0), time.UnixMilli(t0))
		now := t0
		for i := range 8 {
			md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics([][]byte{a, b}[i%2])
			if err != nil {
				return
			}
			later(md, now-t0)
			x.Read(md, time.UnixMilli(now))
			if i%2 == 1 {
				now += int64(seconds) * second
			}
		}
		require.LessOrEqual(t, len(x.boards), 4)
		require.LessOrEqual(t, len(x.nodes), 4)
		require.LessOrEqual(t, x.owners.count, 16)
		x.ledger.Accounts(func(account ledger.Account) {
			sum := int64(0)
			for _, ms := range account.States {
				require.GreaterOrEqual(t, ms, int64(0))
				sum += ms
			}
			if account.Until != 0 {
				require.Equal(t, account.Until-account.First, sum)
			}
		})
		for _, r := range x.ledger.Totals() {
			require.LessOrEqual(t, r.Used, r.Time)
			require.LessOrEqual(t, r.Idle, r.Time)
			require.LessOrEqual(t, r.Unmeasured, r.Time)
			for _, s := range []string{r.Key.Cluster, r.Key.Pool, r.Key.Labels, r.Key.Namespace, r.Key.Service, r.Key.Tenant, r.Key.Pod, r.Key.Model, r.Key.HostType, r.Key.Profile, r.Key.Region} {
				require.Equal(t, safetext.Strip(s, maxID), s)
			}
		}
		_, err := ledger.Restore(lc, x.ledger.Encode())
		require.NoError(t, err)
		x.newest = now + 3*day
		x.Expire(time.UnixMilli(x.newest))
		require.Empty(t, x.boards)
		require.Empty(t, x.nodes)
	})
}

// later moves all points by some ms.
func later(md pmetric.Metrics, ms int64) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				dps, ok := points.Numbers(m)
				for i := 0; ok && i < dps.Len(); i++ {
					dps.At(i).SetTimestamp(dps.At(i).Timestamp() + pcommon.Timestamp(ms*1e6))
				}
			}
		}
	}
}
