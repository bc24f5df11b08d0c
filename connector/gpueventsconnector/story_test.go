// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

var update = flag.Bool("update", false, "write the stories' golden files")

// page is one scrape of an exporter, as the dcgm receiver and gpu_pod hand it on.
type page struct {
	at        time.Time
	node      string // "": a host without Kubernetes
	address   string
	port      int64
	down      bool
	frozen    bool
	undecided bool // nothing is known of frozen
	// unrecognized: the fields of the page are not known.
	unrecognized bool
	gpus         []gpu
}

// gpu is one device on a page. Only what is set is emitted.
type gpu struct {
	id, parent   string
	index        int64  // 3 where it is 0; with another one there is no PCI address but pci
	pci          string // 0000:03:00.0 where it is empty
	pod          string
	values       map[*names.Metric]float64
	hot, hbm     float64
	throttle     []string // active ones; all reasons are emitted where it is not nil
	ecc          *int64
	xids         map[int64]int64
	derivedSince time.Time // the counters are made of changes of the last code
	since        time.Time // when the exporter's own counters began
	marker       bool      // nothing but the end of a series
	blank        bool      // but for values, nothing that the exporter reads from the device
	points       []reading
}

// reading is a point with attributes.
type reading struct {
	of    *names.Metric
	value float64
	attrs []string // key and value in turn
}

func (p page) add(md pmetric.Metrics) {
	at := pcommon.NewTimestampFromTime(p.at)
	if p.address == "" {
		p.address = "10.0.0.1"
	}
	if p.port == 0 {
		p.port = 9400
	}
	rm := md.ResourceMetrics().AppendEmpty()
	event.PutTexts(rm.Resource().Attributes(), names.K8sClusterName, "c1", names.K8sNodeName, p.node, names.ServerAddress, p.address)
	if p.port > 0 { // else it has none
		rm.Resource().Attributes().PutInt(names.ServerPort, p.port)
	}
	ms := rm.ScopeMetrics().AppendEmpty().Metrics()
	point := func(m *names.Metric, v float64) pmetric.NumberDataPoint {
		dp := m.Init(ms.AppendEmpty()).AppendEmpty()
		dp.SetTimestamp(at)
		if m.Int() {
			dp.SetIntValue(int64(v))
		} else {
			dp.SetDoubleValue(v)
		}
		return dp
	}
	flag := map[bool]float64{true: 1}
	point(&names.ExporterUp, flag[!p.down])
	if p.down {
		return
	}
	if !p.undecided {
		point(&names.ExporterFrozen, flag[p.frozen])
	}
	if len(p.gpus) > 0 || p.unrecognized {
		point(&names.ExporterUnrecognized, flag[p.unrecognized])
	}
	for _, g := range p.gpus {
		rm := md.ResourceMetrics().AppendEmpty()
		attrs := rm.Resource().Attributes()
		if g.index == 0 {
			g.index, g.pci = 3, cmp.Or(g.pci, "0000:03:00.0")
		}
		event.PutTexts(attrs, names.HwID, g.id, names.HwType, names.HwTypeGPU, names.HwParent, g.parent, names.HwModel, "H100",
			names.K8sClusterName, "c1", names.K8sNodeName, p.node, names.HostName, "host-1", names.GPUPCIAddress, g.pci)
		attrs.PutInt(names.GPUIndex, g.index)
		if g.pod != "" {
			event.PutTexts(attrs, names.K8sNamespaceName, "ml", names.K8sPodName, g.pod, names.K8sContainerName, "server", names.ServiceName, "chat")
		}
		ms = rm.ScopeMetrics().AppendEmpty().Metrics()
		if g.marker {
			point(&names.GPUUtilization, 0).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
			continue
		}
		if g.blank {
			point(&names.GPUHealthStatus, 1)
		} else {
			point(&names.GPUUtilization, 0.5).Attributes().PutStr(names.HwID, g.id)
		}
		for _, m := range slices.SortedFunc(maps.Keys(g.values), func(a, b *names.Metric) int { return strings.Compare(a.Name, b.Name) }) {
			point(m, g.values[m])
		}
		for _, r := range g.points {
			event.PutTexts(point(r.of, r.value).Attributes(), r.attrs...)
		}
		for sensor, v := range map[string]float64{names.SensorGPU: g.hot, names.SensorMemory: g.hbm} {
			if v != 0 {
				point(&names.HwTemperature, v).Attributes().PutStr(names.HwSensorLocation, sensor)
			}
		}
		if g.throttle != nil {
			for _, reason := range []string{"gpu_idle", "power_cap", "hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake"} {
				point(&names.GPUThrottleActive, flag[slices.Contains(g.throttle, reason)]).Attributes().PutStr(names.GPUThrottleReason, reason)
			}
		}
		if g.ecc != nil {
			point(&names.HwErrors, 17).Attributes().PutStr(names.ErrorType, "corrected")
			point(&names.HwErrors, float64(*g.ecc)).Attributes().PutStr(names.ErrorType, "uncorrected")
		}
		for _, code := range slices.Sorted(maps.Keys(g.xids)) {
			dp := point(&names.GPUXIDErrors, float64(g.xids[code]))
			dp.Attributes().PutInt(names.GPUXIDCode, code)
			if !g.since.IsZero() {
				dp.SetStartTimestamp(pcommon.NewTimestampFromTime(g.since))
			}
			if !g.derivedSince.IsZero() {
				dp.Attributes().PutBool(names.GPUXIDDerived, true)
				dp.SetStartTimestamp(pcommon.NewTimestampFromTime(g.derivedSince))
			}
		}
	}
}

func scrape(pages ...page) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for _, p := range pages {
		p.add(md)
	}
	return md
}

func deviceSet(cfg *Config) { cfg.Rules = []RuleSet{RuleSetDevice} }

// story feeds pages and records what is reported, with the time since its start.
type story struct {
	*bench
	begin time.Time
	text  strings.Builder
}

func newStory(b *bench) *story { return &story{bench: b, begin: time.Now()} }

// every feeds what make gives every interval, n times, and lets the time go by.
func (s *story) every(interval time.Duration, n int, make func(at time.Time) pmetric.Metrics) {
	s.t.Helper()
	for range n {
		s.note(s.feed(make(time.Now())))
		s.note(s.wait(interval))
	}
}

// narrate adds a line of the teller.
func (s *story) narrate(format string, args ...any) { fmt.Fprintf(&s.text, "# "+format+"\n", args...) }

func (s *story) note(events []occurred) {
	for _, e := range events {
		e.write(&s.text, s.begin)
	}
}

// write writes an event down, without what is never the same.
func (e occurred) write(w *strings.Builder, begin time.Time) {
	r := e.record
	fmt.Fprintf(w, "%s reported, %s: %s %s %s %s\n", r.ObservedTimestamp().AsTime().Sub(begin).Truncate(time.Millisecond),
		r.Timestamp().AsTime().Sub(begin), r.EventName(), e.state, r.SeverityText(), e.attrs[names.GPUEventKey])
	fmt.Fprintf(w, "  %s\n", e.body)
	for _, m := range []struct {
		title string
		attrs map[string]any
	}{{"resource", e.resource}, {"attributes", e.attrs}} {
		fmt.Fprintf(w, "  %s:", m.title)
		for _, k := range slices.Sorted(maps.Keys(m.attrs)) {
			switch k {
			case names.GPUEventID, names.GPUEventKey, names.GPUEventState:
			default:
				fmt.Fprintf(w, " %s=%v", k, m.attrs[k])
			}
		}
		w.WriteByte('\n')
	}
}

// golden compares the story with the one in testdata.
func (s *story) golden(name string) {
	s.t.Helper()
	file := filepath.Join("testdata", "stories", name+".txt")
	if *update {
		require.NoError(s.t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(s.t, os.WriteFile(file, []byte(s.text.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(s.t, err)
	require.Equal(s.t, string(want), s.text.String())
}

// brief are the events as "event state level-or-code".
func brief(events []occurred) (all []string) {
	for _, e := range events {
		line := e.record.EventName() + " " + e.state
		for _, k := range []string{names.GPUEventLevel, names.GPUXIDCode, names.GPUExporterReason} {
			if v, ok := e.attrs[k]; ok {
				line += fmt.Sprint(" ", v)
			}
		}
		all = append(all, line)
	}
	return all
}

const gpuA, gpuB = "GPU-aaaaaaaa-0000-0000-0000-000000000000", "GPU-bbbbbbbb-0000-0000-0000-000000000000"

// one feeds a page with one GPU.
func one(g gpu) func(time.Time) pmetric.Metrics {
	if g.id == "" {
		g.id = gpuA
	}
	return func(at time.Time) pmetric.Metrics { return scrape(page{at: at, node: "n1", gpus: []gpu{g}}) }
}
