// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// published is the series of one board, as it was published last.
type published struct {
	live               bool
	minute             int
	namespace, service string
	cause              Cause
}

// Publish writes gpu.straggler of every board that is slow without a reason that explains
// it, once for each comparison, and the end of each series that is no more. Begin appends a
// resource, which identify fills.
func (f *Fleet) Publish(begin func(identify func(pcommon.Map)) pmetric.MetricSlice) {
	if !f.publish {
		return
	}
	f.publish = false
	var due []*Board
	for _, b := range f.boards {
		if live := b.wants(); live && b.published.minute != f.minute || !live && b.published.live {
			due = append(due, b)
		}
	}
	sortByID(due)
	at := pcommon.NewTimestampFromTime(f.wall)
	for _, b := range due {
		now := published{b.wants(), f.minute, b.Facts.Owner.Namespace, b.Facts.Owner.Service, b.Cause}
		metrics := begin(b.Identify)
		if was := b.published; was.live && (!now.live || was.namespace != now.namespace || was.service != now.service || was.cause != now.cause) {
			// In a metric of its own: the stock prometheus exporter stops reading a
			// metric at the first end in it.
			point(metrics, b, &was, at).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		}
		if now.live {
			point(metrics, b, &now, at).SetIntValue(1)
		}
		b.published = now
	}
}

// PublishAgain makes Publish write once more what is live: the next component did not
// take it.
func (f *Fleet) PublishAgain() {
	for _, b := range f.boards {
		if b.published.live {
			b.published.minute, f.publish = -1, true
		}
	}
}

// point appends a metric with a point of the board.
func point(metrics pmetric.MetricSlice, b *Board, as *published, at pcommon.Timestamp) pmetric.NumberDataPoint {
	p := names.GPUStraggler.Init(metrics.AppendEmpty()).AppendEmpty()
	p.SetTimestamp(at)
	event.PutTexts(p.Attributes(), names.HwID, b.ID.ID, names.K8sNamespaceName, as.namespace, names.ServiceName, as.service,
		names.GPUStragglerCause, string(as.cause))
	return p
}
