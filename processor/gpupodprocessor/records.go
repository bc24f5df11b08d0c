// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"context"
	"iter"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

// records attributes logs and spans: whatever names a device, the resource or
// the record, gets the names beside it of who owned it at the time of the record.
type records struct {
	cfg       *Config
	telemetry *metadata.TelemetryBuilder
	memory    *ownership.Memory // from Start to Shutdown
}

// maxAhead is how far the clock of a record's node may be ahead.
const maxAhead = time.Minute

func newRecords(cfg *Config, set processor.Settings) (records, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	return records{cfg: cfg, telemetry: telemetry}, err
}

// Start takes the memory that the metrics of the same component ID fill.
func (r *records) Start(context.Context, component.Host) error {
	r.memory = shared.take(r.cfg)
	return nil
}

// Shutdown lets go of it.
func (r *records) Shutdown(context.Context) error {
	r.telemetry.Shutdown()
	if r.memory != nil {
		shared.release(r.cfg)
		r.memory = nil
	}
	return nil
}

// Capabilities states that batches are changed in place.
func (*records) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// record is a log record or a span.
type record struct {
	attrs pcommon.Map
	// The time that it is about; 0 where it has none.
	from, to pcommon.Timestamp
}

// attribute puts the owner of the device that a resource or a record of it names
// beside that name. An owner that is there is kept. With pod_devices a resource that
// names a pod and no device gets the pod's devices. A record of a time of which it
// is not known who owned the device gets none; where it shares its resource with
// others that get one, they have it themselves and the resource does not.
func (r *records) attribute(ctx context.Context, resource pcommon.Map, all iter.Seq[record], now time.Time) {
	unknown := 0
	for rec := range all {
		f := r.ownerOf(identity.NamedDevice(rec.attrs), rec.attrs, now)
		switch {
		case f == nil:
		case rec.covered(f.Since, now):
			f.Owner.Put(rec.attrs)
		default:
			unknown++
		}
	}
	if id := identity.NamedDevice(resource); id == "" {
		if d := r.devices(resource, now); d != nil {
			unknown += spread(d, d.Since, resource, all, now)
		}
	} else if f := r.ownerOf(id, resource, now); f != nil {
		unknown += spread(&f.Owner, f.Since, resource, all, now)
	}
	if unknown > 0 {
		r.telemetry.GpuPodRecordsUnattributed.Add(ctx, int64(unknown))
	}
}

// spread puts what is known of a resource since a time on it, or on those of its
// records that are of that time, and counts the others.
func spread(known interface{ Put(pcommon.Map) }, since pcommon.Timestamp, resource pcommon.Map, all iter.Seq[record], now time.Time) (unknown int) {
	whole := true
	for rec := range all {
		whole = whole && rec.covered(since, now)
	}
	if whole {
		known.Put(resource)
		return 0
	}
	for rec := range all {
		switch {
		case identity.NamedDevice(rec.attrs) != "", namesOwner(rec.attrs):
		case rec.covered(since, now):
			known.Put(rec.attrs)
		default:
			unknown++
		}
	}
	return unknown
}

// ownerOf is who owns the device id that attrs name, nil if they name none or its owner
// too, or if it has none.
func (r *records) ownerOf(id string, attrs pcommon.Map, now time.Time) *ownership.Fact {
	if id == "" || namesOwner(attrs) {
		return nil
	}
	if f := r.memory.Lookup(id, now); f.State == ownership.Owned {
		return f
	}
	return nil
}

func namesOwner(attrs pcommon.Map) bool {
	return points.Str(attrs, names.K8sPodName) != "" || points.Str(attrs, names.SlurmJobID) != ""
}

// devices are those of the pod that a resource names; nil without pod_devices, if it
// names no pod, or if they are not known.
func (r *records) devices(resource pcommon.Map, now time.Time) *ownership.Devices {
	if !r.cfg.PodDevices {
		return nil
	}
	p := podOf(resource)
	if p.Name == "" || p.Namespace == "" {
		return nil
	}
	return r.memory.DevicesOf(&p, now)
}

// podOf is the pod that a resource names, in one walk over its attributes.
func podOf(resource pcommon.Map) (p ownership.Pod) {
	for key, value := range resource.All() {
		if value.Type() != pcommon.ValueTypeStr {
			continue
		}
		switch key {
		case names.K8sNamespaceName:
			p.Namespace = value.Str()
		case names.K8sPodName:
			p.Name = value.Str()
		case names.K8sNodeName:
			p.Node.Name = value.Str()
		case names.K8sClusterName:
			p.Node.Cluster = value.Str()
		case names.K8sPodStartTime:
			if t, err := time.Parse(time.RFC3339, value.Str()); err == nil {
				p.Started = pcommon.NewTimestampFromTime(t)
			}
		}
	}
	return p
}

// covered reports whether what is known since a snapshot speaks of the time of a record:
// it began after the snapshot, and not in a future of which no snapshot is. Both times
// are those of the device's node.
func (rec record) covered(since pcommon.Timestamp, now time.Time) bool {
	return rec.from >= since && rec.to <= pcommon.NewTimestampFromTime(now.Add(maxAhead))
}

type logsProcessor struct {
	records
	next consumer.Logs
}

// ConsumeLogs attributes the records that name a device, and passes ld on.
func (p *logsProcessor) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	now := time.Now()
	for _, rl := range ld.ResourceLogs().All() {
		p.attribute(ctx, rl.Resource().Attributes(), func(yield func(record) bool) {
			for _, sl := range rl.ScopeLogs().All() {
				for _, r := range sl.LogRecords().All() {
					at := r.Timestamp()
					if at == 0 {
						at = r.ObservedTimestamp()
					}
					if !yield(record{r.Attributes(), at, at}) {
						return
					}
				}
			}
		}, now)
	}
	return p.next.ConsumeLogs(ctx, ld)
}

type tracesProcessor struct {
	records
	next consumer.Traces
}

// ConsumeTraces attributes the spans that name a device, and passes td on.
func (p *tracesProcessor) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	now := time.Now()
	for _, rs := range td.ResourceSpans().All() {
		p.attribute(ctx, rs.Resource().Attributes(), func(yield func(record) bool) {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					if !yield(record{span.Attributes(), span.StartTimestamp(), span.EndTimestamp()}) {
						return
					}
				}
			}
		}, now)
	}
	return p.next.ConsumeTraces(ctx, td)
}
