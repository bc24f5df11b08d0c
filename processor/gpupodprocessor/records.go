// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/holders"
)

// records attributes logs and spans: whatever names a device, the resource or
// the record, gets the names of its holder beside it.
type records struct {
	cfg  *Config
	know *holders.Knowledge // from Start to Shutdown
}

func newRecords(cfg *Config) records { return records{cfg: cfg} }

// Start takes hold of what the metrics of the same component ID tell.
func (r *records) Start(context.Context, component.Host) error {
	r.know = shared.take(r.cfg)
	return nil
}

// Shutdown lets go of it.
func (r *records) Shutdown(context.Context) error {
	if r.know != nil {
		shared.release(r.cfg)
		r.know = nil
	}
	return nil
}

// Capabilities says that batches are changed in place.
func (*records) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// attribute puts the holder of the device that attrs name into attrs. A holder
// that is there is kept.
func (r *records) attribute(attrs pcommon.Map, now time.Time) {
	id := namedDevice(attrs)
	if id == "" || str(attrs, names.K8sPodName) != "" {
		return
	}
	if f := r.know.Lookup(id, now); f.State == holders.Held {
		holderOf(f.Holder).put(attrs, "", "")
	}
}

// namedDevice is the id of the GPU that attrs name, or "".
func namedDevice(attrs pcommon.Map) string {
	var id, uuid, instance string
	for key, value := range attrs.All() {
		if value.Type() != pcommon.ValueTypeStr || value.Str() == "" {
			continue
		}
		switch key {
		case names.HwID:
			id = value.Str()
			continue
		case names.HwType:
			if value.Str() != names.HwTypeGPU {
				return ""
			}
			continue
		}
		switch exporterlabels.Classify(key) {
		case exporterlabels.UUID:
			if uuid == "" && isUUID(value.Str()) {
				uuid = value.Str()
			}
		case exporterlabels.MIGInstance:
			instance = value.Str()
		}
	}
	switch {
	case id != "":
		return id
	case uuid != "" && instance != "":
		return deviceid.MIG(uuid, instance)
	}
	return uuid
}

type logsProcessor struct {
	records
	next consumer.Logs
}

// ConsumeLogs attributes the records that name a device, and passes ld on.
func (p *logsProcessor) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	now := time.Now()
	for _, rl := range ld.ResourceLogs().All() {
		p.attribute(rl.Resource().Attributes(), now)
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				p.attribute(record.Attributes(), now)
			}
		}
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
		p.attribute(rs.Resource().Attributes(), now)
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				p.attribute(span.Attributes(), now)
			}
		}
	}
	return p.next.ConsumeTraces(ctx, td)
}
