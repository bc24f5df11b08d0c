// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
)

// patience is how long a poll waits for sysfs, once after each change of what the kubelet
// lists: longer than the time between two readings.
const patience = 6 * time.Second

// host has the snapshots of sysfs that a poll resolves ids with. On a node without such ids,
// sysfs is never read.
type host struct {
	reader *gpusysfs.Reader
	logger *zap.Logger

	names  []string  // that the last poll had to resolve
	since  time.Time // when they were others
	gaveUp bool      // waiting for a snapshot that is newer
	causes logonce.Causes
}

// snapshot is what was read since the kubelet has listed these names: an address means another
// device in another partition mode. It is nil where that is not known.
func (h *host) snapshot(ctx context.Context, names []string) *gpusysfs.Snapshot {
	if len(names) == 0 {
		h.names = nil
		return nil
	}
	now := time.Now()
	if !slices.Equal(names, h.names) {
		h.names, h.since, h.gaveUp = names, now, false
	}
	s := h.reader.Snapshot()
	if s == nil || s.At.Before(h.since) {
		if s = nil; !h.gaveUp {
			waiting, cancel := context.WithTimeout(ctx, patience)
			s = h.reader.Since(waiting, h.since)
			cancel()
			h.gaveUp = s == nil && ctx.Err() == nil
		}
	}
	h.report(now, s)
	if s != nil && slices.ContainsFunc(names, func(name string) bool { return !s.Has(name) }) {
		h.reader.Ask()
	}
	return s
}

// report logs why devices are not resolved, each cause once.
func (h *host) report(now time.Time, s *gpusysfs.Snapshot) {
	if s == nil {
		if h.gaveUp && h.causes.Due("none", now) {
			h.logger.Warn("devices of AMD and Intel cannot be resolved: sysfs was not read in time",
				zap.Duration("patience", patience), zap.String("remedy", "find out which file of sysfs_root does not answer: a board may hang"))
		}
		return
	}
	for _, p := range s.Problems {
		if !h.causes.Due(string(p.Of)+string(p.Cause), now) {
			continue
		}
		fields := []zap.Field{zap.String("cause", string(p.Cause)), zap.String("file", p.Path), zap.Int("count", p.Count)}
		if p.Of == gpusysfs.OfPartitions && p.Cause == gpusysfs.Denied {
			h.logger.Info("the kernel does not show this container which partition of which board a device is: owners of partitions other than a board's first are those of the exporter's labels",
				append(fields, zap.String("remedy", "run the container privileged (chart: agent.amd.partitionAccess), or leave it as it is if the exporter prints pods"))...)
			continue
		}
		h.logger.Warn("sysfs cannot be read completely: devices that depend on it are not resolved", fields...)
	}
}
