// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ncclconnector

import (
	"cmp"
	"context"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/holders"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/inspector"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/rank"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// Limits of what gpu.allocation states of a node.
const (
	maxDevices = 4096
	deviceTTL  = 5 * time.Minute
)

// pathAttribute is where file_log writes the path of a file.
const pathAttribute = "log.file.path"

// noPath is a line without it.
const noPath inspector.Cause = "no_path"

// ranks is the scope rank.
type ranks struct {
	state    *rank.State
	holders  *holders.State
	tel      *telemetry
	describe func(pcommon.InstrumentationScope)
	cluster  string
	node     string
}

func newRanks(cfg *Config, set connector.Settings, tel *telemetry) (*ranks, error) {
	paths, err := cfg.paths()
	if err != nil {
		return nil, err
	}
	return &ranks{
		state: rank.New(rank.Config{
			Paths: paths, RankLabel: cfg.RankLabel, Samples: cfg.SamplesPerInterval, TTL: cfg.RankTTL,
			MaxCommunicators: cfg.maxCommunicators(), MaxSeries: cfg.MaxSeries, MaxFiles: cfg.MaxFiles,
		}),
		holders: holders.New(maxDevices, deviceTTL),
		tel:     tel,
		describe: func(scope pcommon.InstrumentationScope) {
			scope.SetName(metadata.ScopeName)
			scope.SetVersion(set.BuildInfo.Version)
		},
		cluster: cfg.ClusterName, node: cmp.Or(cfg.NodeName, machineName()),
	}, nil
}

// machineName is what receivers of the node's GPUs call a node without a name.
func machineName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "localhost"
	}
	return strings.ToLower(name)
}

func (r *ranks) communicators() int {
	n, _ := r.state.Tracked()
	return n
}

// resume does nothing: what a rank writes has times of its own.
func (r *ranks) resume(time.Time, time.Duration) {}

func (r *ranks) metrics(md pmetric.Metrics, now time.Time) { r.holders.Observe(md, now) }

// logs reads the lines of files.
func (r *ranks) logs(ctx context.Context, logs plog.Logs, now time.Time) {
	counts := map[inspector.Cause]int64{}
	examples := map[inspector.Cause]string{}
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				path, cause := points.Str(record.Attributes(), pathAttribute), noPath
				switch {
				case path == "":
				case record.Body().Type() != pcommon.ValueTypeStr:
					cause = inspector.Shape
				default:
					cause = r.state.Line(path, record.Body().Str(), now)
				}
				counts[cause]++
				examples[cause] = path
			}
		}
	}
	r.tel.lines(ctx, now, counts, examples)
}

func (r *ranks) evaluate(_ context.Context, now time.Time) (pmetric.Metrics, plog.Logs) {
	device := func(h holders.Holder) string { return r.holders.Device(h, now) }
	logs := plog.NewLogs()
	for holder, batches := range r.state.Batches() {
		rl := logs.ResourceLogs().AppendEmpty()
		r.place(holder, rl.Resource().Attributes())
		sl := rl.ScopeLogs().AppendEmpty()
		r.describe(sl.Scope())
		sl.LogRecords().EnsureCapacity(len(batches))
		for i := range batches {
			batches[i].Device = device(holder)
			batches[i].Write(sl.LogRecords().AppendEmpty())
		}
	}
	md := r.state.Metrics(now, rank.Writer{Describe: r.describe, Place: r.place, Device: device})
	r.holders.Prune(now)
	return md, logs
}

// place writes where a holder is, and what is known of its job.
func (r *ranks) place(h holders.Holder, attrs pcommon.Map) {
	h.Put(attrs)
	if job, ok := r.holders.Job(h.Job); ok {
		owner.OfJob(job).Put(attrs)
	}
	if r.cluster != "" {
		attrs.PutStr(names.K8sClusterName, r.cluster)
	}
	attrs.PutStr(names.K8sNodeName, r.node)
}
