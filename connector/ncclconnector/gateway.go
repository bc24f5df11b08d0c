// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ncclconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/communicator"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/straggler"
)

const (
	// leastCollectives are judged together at least.
	leastCollectives = 20
	// communicatorTTL is since the last sample of a communicator until it is forgotten, at least:
	// one that stalls is silent for longer than stall_after.
	communicatorTTL = 15 * time.Minute
	// maxFleet is of how many devices it is known who has them.
	maxFleet = 100_000
)

// gateway is the scope communicator.
type gateway struct {
	state    *communicator.State
	tel      *telemetry
	describe func(pcommon.InstrumentationScope)
	version  string
	counted  communicator.Counts
}

func newGateway(cfg *Config, set connector.Settings, tel *telemetry) *gateway {
	return &gateway{
		state: communicator.New(communicator.Config{
			Straggler: straggler.Config{
				Window: cfg.Window, Least: leastCollectives, Share: cfg.Straggler.Share, Cost: cfg.Straggler.Cost, Windows: cfg.Straggler.Windows,
				TTL: max(communicatorTTL, 3*cfg.StallAfter), MaxCommunicators: cfg.maxCommunicators(), MaxRanks: cfg.MaxRanks, MaxWaiting: cfg.MaxWaitingBytes,
			},
			StallAfter: cfg.StallAfter, MaxDevices: maxFleet,
		}),
		tel: tel, version: set.BuildInfo.Version,
		describe: func(scope pcommon.InstrumentationScope) {
			scope.SetName(metadata.ScopeName)
			scope.SetVersion(set.BuildInfo.Version)
		},
	}
}

func (g *gateway) communicators() int {
	n, _ := g.state.Tracked()
	return n
}

func (g *gateway) resume(now time.Time, away time.Duration) { g.state.Resume(now, away) }

func (g *gateway) metrics(md pmetric.Metrics, now time.Time) { g.state.Metrics(md, now) }

func (g *gateway) logs(ctx context.Context, logs plog.Logs, now time.Time) {
	g.state.Logs(logs, now)
	g.count(ctx, now)
}

func (g *gateway) evaluate(ctx context.Context, now time.Time) (pmetric.Metrics, plog.Logs) {
	md, events := g.state.Evaluate(now, g.describe)
	logs := plog.NewLogs()
	for i := range events {
		if err := events[i].Write(logs, pcommon.NewTimestampFromTime(now), metadata.ScopeName, g.version); err != nil {
			g.tel.failed(ctx, now, err)
		}
	}
	g.count(ctx, now)
	return md, logs
}

// count reports what was done since the last time.
func (g *gateway) count(ctx context.Context, now time.Time) {
	is, was := g.state.Counts(), &g.counted
	g.tel.collectives(ctx, is.Evaluated-was.Evaluated, is.Incomplete-was.Incomplete)
	for reason, n := range is.Refused {
		g.tel.refused(ctx, now, string(reason), n-was.Refused[reason])
	}
	g.tel.refused(ctx, now, invalid, is.Malformed-was.Malformed)
	g.tel.refused(ctx, now, maxDevicesReason, is.LimitDevices-was.LimitDevices)
	g.counted = is
}
