// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Exporter is the identity of the series about an exporter.
type Exporter struct {
	Address string // server.address
	Port    int64  // server.port
	Node    string // k8s.node.name, where discovery knows it
	Pod     string // the exporter's own pod, where discovery knows it
}

// writeExporter writes what is known about the exporter itself.
func (t *Target) writeExporter(md pmetric.Metrics, scrape *Page, e Exporter, node string) {
	now := scrape.Time
	metrics := t.scope(t.exporterResource(md, e, node)).Metrics()
	write := func(m *names.Metric, v float64) {
		p := m.Init(metrics.AppendEmpty()).AppendEmpty()
		p.SetTimestamp(now)
		setValue(p, m, v)
		e.put(p.Attributes(), node)
	}
	write(&names.ExporterUp, flag(scrape.Up && (len(t.page.order) > 0 || !t.vendor.EmptyIsDown)))
	write(&names.ExporterScrapeDuration, scrape.Duration)
	write(&names.ExporterScrapeSamples, float64(scrape.Samples))
	// A scrape that failed has no page: the count goes on.
	if sum, measured := t.page.movement(&t.vendor.Moving); scrape.Up && measured {
		if frozen, known := t.still.observe(sum, now.AsTime(), &t.opts); known {
			write(&names.ExporterFrozen, flag(frozen))
			t.judged = true
		}
	}
	w := Writer{target: t, time: now, metrics: metrics}
	w.writeRaw(t.page.loose, "")
}

// End ends the series about an exporter that is no target any more; false where
// there are none. Those of its devices may go on: gpu_pod knows.
func (t *Target) End(e Exporter, now pcommon.Timestamp) (pmetric.Metrics, bool) {
	md := pmetric.NewMetrics()
	if t.page.number == 0 {
		return md, false
	}
	node := t.node(e)
	metrics := t.scope(t.exporterResource(md, e, node)).Metrics()
	for _, m := range []*names.Metric{&names.ExporterUp, &names.ExporterScrapeDuration, &names.ExporterScrapeSamples, &names.ExporterFrozen} {
		if m == &names.ExporterFrozen && !t.judged {
			continue
		}
		p := m.Init(metrics.AppendEmpty()).AppendEmpty()
		p.SetTimestamp(now)
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		e.put(p.Attributes(), node)
	}
	return md, true
}

func (t *Target) node(e Exporter) string {
	if e.Node != "" {
		return e.Node
	}
	return t.opts.NodeName
}

func (t *Target) exporterResource(md pmetric.Metrics, e Exporter, node string) pmetric.ResourceMetrics {
	rm := md.ResourceMetrics().AppendEmpty()
	e.put(rm.Resource().Attributes(), node)
	if t.opts.ClusterName != "" {
		rm.Resource().Attributes().PutStr(names.K8sClusterName, t.opts.ClusterName)
	}
	return rm
}

func (e Exporter) put(attrs pcommon.Map, node string) {
	attrs.PutStr(names.ServerAddress, e.Address)
	attrs.PutInt(names.ServerPort, e.Port)
	if node != "" {
		attrs.PutStr(names.K8sNodeName, node)
	}
}

func (t *Target) scope(rm pmetric.ResourceMetrics) pmetric.ScopeMetrics {
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(t.opts.ScopeName)
	sm.Scope().SetVersion(t.opts.ScopeVersion)
	return sm
}
