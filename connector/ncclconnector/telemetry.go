// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ncclconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/inspector"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/rank"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/straggler"
	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// telemetry is what the connector reports about itself. It is safe for concurrent use.
type telemetry struct {
	builder *metadata.TelemetryBuilder
	logger  *zap.Logger
	logged  logonce.Causes
}

func newTelemetry(set component.TelemetrySettings, communicators func() int) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	err = builder.RegisterNcclCommunicatorsTrackedCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(int64(communicators()))
		return nil
	})
	if err != nil {
		builder.Shutdown()
		return nil, err
	}
	return &telemetry{builder: builder, logger: set.Logger, logged: logonce.Causes{Most: 32}}, nil
}

func (t *telemetry) shutdown() { t.builder.Shutdown() }

// used is the state of a line without a cause.
const used = "used"

// remedies are what to do about lines that are left out. What is not here passes by itself: a torn
// line is the end of a file, and a batch without its header the beginning after a restart.
var remedies = map[inspector.Cause]string{
	noPath:                  "set include_file_path of file_log to true",
	inspector.NUL:           "the file was truncated while it was written: let nothing but its process write to it",
	inspector.Joined:        "let each process write to a file of its own",
	inspector.Version:       "the format is not known: look for a newer release of this collector",
	inspector.Shape:         "they are not those of Inspector: let file_log read its folder alone",
	inspector.Size:          "NCCL states a size that cannot be",
	inspector.Duration:      "NCCL states a time that cannot be",
	inspector.BadRank:       "NCCL states a rank that cannot be",
	inspector.Text:          "a name is too long, or no text",
	rank.Future:             "the clock of the node was set",
	rank.TwoFiles:           "two processes write as one rank: remove copies of files",
	rank.Ranks:              "the number of ranks of a communicator changes: let each process write to a file of its own",
	rank.LimitCommunicators: "raise max_communicators",
	rank.LimitSeries:        "raise max_series, or set rank_label to false",
	rank.LimitFiles:         "raise max_files, and remove files with their jobs",
}

// lines counts lines by what became of them, and logs what someone can do something about.
func (t *telemetry) lines(ctx context.Context, now time.Time, counts map[inspector.Cause]int64, examples map[inspector.Cause]string) {
	for cause, n := range counts {
		state := string(cause)
		if odd := cause == rank.Contradiction || cause == inspector.Incomplete; cause == inspector.Fine || odd {
			t.builder.NcclRecords.Add(ctx, n, attributed("state", used))
			if !odd {
				continue
			}
		}
		t.builder.NcclRecords.Add(ctx, n, attributed("state", state))
		if remedy := remedies[cause]; remedy != "" {
			t.warn(now, state, "lines of Inspector are left out: "+remedy, zap.String("state", state), zap.String("file", safetext.Strip(examples[cause], longestPath)))
		}
	}
}

// Reasons for which samples are left out, beside those of straggler.
const (
	invalid          = "invalid"
	maxDevicesReason = "max_devices"
)

// limits are what to do about samples that are left out because of a limit.
var limits = map[string]string{
	string(straggler.LimitCommunicators): "raise max_communicators",
	string(straggler.LimitRanks):         "raise max_ranks",
	string(straggler.LimitWaiting):       "raise max_waiting_bytes, or lower samples_per_interval on the nodes",
	string(straggler.BadRank):            "they are not those of nccl on a node",
	invalid:                              "they are not those of nccl on a node",
	maxDevicesReason:                     "there are too many devices to know who has each",
}

// refused counts samples that are left out.
func (t *telemetry) refused(ctx context.Context, now time.Time, reason string, n int) {
	if n == 0 {
		return
	}
	t.builder.NcclSamplesRefused.Add(ctx, int64(n), attributed("reason", reason))
	t.warn(now, "refused_"+reason, "samples of ranks are left out: "+limits[reason], zap.String("reason", reason))
}

// collectives counts those that were evaluated, and those of which ranks were missing.
func (t *telemetry) collectives(ctx context.Context, evaluated, incomplete int) {
	for state, n := range map[string]int{"evaluated": evaluated, "incomplete": incomplete} {
		if n > 0 {
			t.builder.NcclCollectives.Add(ctx, int64(n), attributed("state", state))
		}
	}
}

// longestPath bounds a path in the log, in runes.
const longestPath = 256

func (t *telemetry) failed(ctx context.Context, now time.Time, err error) {
	t.builder.NcclEvaluationsFailed.Add(ctx, 1)
	t.warn(now, "evaluation_failed", "the next component refused an evaluation", zap.Error(err))
}

func attributed(key, value string) metric.AddOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}

// warn logs a cause that lasts once in logonce.Every.
func (t *telemetry) warn(now time.Time, cause, message string, fields ...zap.Field) {
	if t.logged.Due(cause, now) {
		t.logger.Warn(message, fields...)
	}
}
