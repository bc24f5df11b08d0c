// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	load devicetable.ID = iota
	power
	used
	total
)

// acme is an invented vendor: a second one is data. Its boards are divided into tiles:
// each has a load of its own, and the power is the board's.
var acme = Vendor{
	Name: "acme", HwVendor: "Acme", System: "Acme", Devices: "boards and tiles", Prefixes: []string{"acme_"}, EmptyIsDown: true,
	Table: devicetable.New(devicetable.Table{
		Fields: []devicetable.Field{
			load:  {Name: "acme_load", Aliases: []string{"acme_load_percent"}, Unit: "%", Div: 100},
			power: {Name: "acme_power", Unit: "mW", Div: 1000, Scope: devicetable.Board, ZeroIsAbsent: true},
			used:  {Name: "acme_memory_used", Unit: "By"},
			total: {Name: "acme_memory_total", Unit: "By"},
		},
		Series: []devicetable.Series{
			{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "general", From: []devicetable.ID{load}},
			{Metric: &names.HwPower, From: []devicetable.ID{power}},
		},
		Dropped: []string{"acme_power_threshold"}, Passed: []string{"acme_power_instant"},
	}),
	Memory:   Memory{Used: []devicetable.ID{used}, Total: []devicetable.ID{total}},
	Absent:   func(_ *devicetable.Field, v float64) bool { return v == 65535 },
	Unmapped: func(family string) string { return strings.Replace(family, "acme_", "acme.", 1) },
	Identify: func(labels iter.Seq2[string, string]) (board, part string) {
		for key, text := range labels {
			switch key {
			case "serial":
				board = "ACME-" + text
			case "tile":
				part = text
			}
		}
		return board, part
	},
	PartID: func(board, part string) string { return board + "/" + part },
	Part:   PartAttributes{Number: "acme.tile"},
	Label: func(key string) exporterlabels.Label {
		switch key {
		case "serial", "tile":
			return exporterlabels.UUID // identity is Identify's alone
		case "owner":
			return exporterlabels.Pod
		case "acme_driver":
			return exporterlabels.Field
		}
		return exporterlabels.Other
	},
	Facts:  map[string]Fact{"acme_driver": Driver},
	Derive: func() Derivation { return &busy{} },
}

// busy derives a state of a device from this page and the one before.
type busy struct{ before float64 }

func (b *busy) Write(d *Device, w *Writer) {
	if x := d.Reading(load); x.Known() {
		w.State(&names.GPUThrottleActive, b.before > 0.9 && x.V > 0.9, names.GPUThrottleReason, "busy")
		b.before = x.V
	}
}

// scraper feeds pages of a vendor to one target.
type scraper struct {
	v      *Vendor
	target *Target
	now    time.Time
	labels map[string]*Labels
}

func newScraper(v *Vendor) *scraper {
	return &scraper{
		v: v, target: NewTarget(v, Options{OTel: true}), labels: map[string]*Labels{},
		now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

// scrape maps rows: family, labels and value, each label key=value.
func (s *scraper) scrape(rows ...[]string) Result {
	s.now = s.now.Add(15 * time.Second)
	p := &Page{Time: pcommon.NewTimestampFromTime(s.now), Up: true, Samples: len(rows)}
	for _, r := range rows {
		var pairs [][2]string
		for _, l := range r[1 : len(r)-1] {
			key, text, _ := strings.Cut(l, "=")
			pairs = append(pairs, [2]string{key, text})
		}
		id := fmt.Sprint(pairs)
		if s.labels[id] == nil {
			s.labels[id] = s.v.NewLabels(pairs)
		}
		var v float64
		_, _ = fmt.Sscan(r[len(r)-1], &v)
		p.Rows = append(p.Rows, Row{NewSeries(s.v.NewFamily(r[0]), s.labels[id], nil), v, strings.Contains(r[len(r)-1], ".")})
	}
	return s.target.Map(p, Exporter{Address: "a", Port: 1})
}

// lines renders resources and points.
func lines(md pmetric.Metrics) (all []string) {
	for _, rm := range md.ResourceMetrics().All() {
		id := "exporter"
		if v, device := rm.Resource().Attributes().Get(names.HwID); device {
			id = v.Str()
			all = append(all, fmt.Sprint(rm.Resource().Attributes().AsRaw()))
		}
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			points := pmetric.NewNumberDataPointSlice()
			switch m.Type() {
			case pmetric.MetricTypeGauge:
				points = m.Gauge().DataPoints()
			case pmetric.MetricTypeSum:
				points = m.Sum().DataPoints()
			}
			for _, p := range points.All() {
				all = append(all, fmt.Sprintf("%s %s %v", id, m.Name(), p.DoubleValue()+float64(p.IntValue())))
			}
		}
	}
	return all
}

// TestASecondVendor: nothing of the first one is in what a vendor's page becomes.
func TestASecondVendor(t *testing.T) {
	s := newScraper(&acme)
	page := [][]string{
		{"acme_load", "acme_driver=7.1", "serial=1", "tile=0", "95"},
		{"acme_load_percent", "owner=llm", "serial=1", "tile=1", "20"},
		{"acme_power", "serial=1", "tile=0", "300000"},
		{"acme_power", "serial=1", "tile=1", "300000"},
		{"acme_memory_used", "serial=1", "tile=0", "10"}, {"acme_memory_total", "serial=1", "tile=0", "40"},
		{"acme_memory_used", "serial=1", "tile=1", "20"}, {"acme_memory_total", "serial=1", "tile=1", "40"},
		{"acme_fan", "serial=1", "tile=0", "3"},
		{"acme_power_threshold", "serial=1", "tile=0", "700"},
		{"acme_power", "serial=2", "65535"},
		{"acme_load", "5"},
		{"DCGM_FI_DEV_GPU_UTIL", "UUID=GPU-0", "50"},
	}
	s.scrape(page...)
	r := s.scrape(page...)
	assert.Equal(t, []string{
		"exporter gpu.exporter.up 1", "exporter gpu.exporter.scrape.duration 0", "exporter gpu.exporter.scrape.samples 13", "exporter gpu.exporter.unrecognized 0",
		"map[hw.driver_version:7.1 hw.id:ACME-1 hw.type:gpu hw.vendor:Acme]",
		"ACME-1 hw.gpu.memory.usage 30", "ACME-1 hw.gpu.memory.limit 80", "ACME-1 hw.gpu.memory.utilization 0.375", "ACME-1 hw.power 300",
		"map[acme.tile:0 hw.driver_version:7.1 hw.id:ACME-1/0 hw.parent:ACME-1 hw.type:gpu hw.vendor:Acme]",
		"ACME-1/0 hw.gpu.memory.usage 10", "ACME-1/0 hw.gpu.memory.limit 40", "ACME-1/0 hw.gpu.memory.utilization 0.25",
		"ACME-1/0 hw.gpu.utilization 0.95", "ACME-1/0 gpu.throttle.active 1", "ACME-1/0 acme.fan 3",
		"map[acme.tile:1 hw.id:ACME-1/1 hw.parent:ACME-1 hw.type:gpu hw.vendor:Acme pod:llm]",
		"ACME-1/1 hw.gpu.memory.usage 20", "ACME-1/1 hw.gpu.memory.limit 40", "ACME-1/1 hw.gpu.memory.utilization 0.5",
		"ACME-1/1 hw.gpu.utilization 0.2", "ACME-1/1 gpu.throttle.active 0",
	}, lines(r.Metrics))
	refused := map[string]int{}
	for reason, n := range r.Refused {
		if n > 0 {
			refused[acme.Reason(Reason(reason))] = n
		}
	}
	assert.Equal(t, map[string]int{"dropped": 1, "sentinel": 1, "no_device": 1, "not_acme": 1}, refused)
}

// TestEmptyIsDown: an exporter that answers without devices is not up, for vendors with
// that rule. What else is on the page is not that exporter's.
func TestEmptyIsDown(t *testing.T) {
	load := []string{"acme_load", "5"}
	for _, c := range []struct {
		down bool
		page [][]string
		up   int
		lack Lack
		why  string
	}{
		{false, [][]string{{"acme_build_info", "1"}}, 1, LacksDevices, "samples of Acme: 1, of a GPU: 0"},
		{true, [][]string{{"acme_build_info", "1"}}, 0, LacksPage, "samples: 1, of a device: 0, first: acme_build_info"},
		{true, [][]string{{"promhttp_metric_handler_requests_total", "1"}, {"go_goroutines", "1"}}, 0, LacksPage, "samples: 2, of a device: 0, first: promhttp_metric_handler_requests_total"},
		{true, [][]string{{"go_goroutines", "1"}, {"node_load1", "1"}}, 0, LacksFamilies, "samples: 2, of Acme: 0, first: go_goroutines"},
		{true, [][]string{{"acme_build_info", "1"}, load}, 0, LacksDevices, "samples of Acme: 2, of a GPU: 0"},
	} {
		v := acme
		v.EmptyIsDown = c.down
		r := newScraper(&v).scrape(c.page...)
		assert.Contains(t, lines(r.Metrics), fmt.Sprint("exporter gpu.exporter.up ", c.up))
		assert.Equal(t, c.lack, r.Lack)
		assert.Equal(t, c.why, r.Why)
	}
}

// TestBlank: a known device that is on the page without a value is named as such, until it has one. One
// that is not on the page is not, and where no device has a value the exporter has none.
func TestBlank(t *testing.T) {
	s := newScraper(&acme)
	load := func(serial, value string) []string { return []string{"acme_load", "serial=" + serial, value} }
	blank := func(pages ...[]string) (all []string) {
		for _, line := range lines(s.scrape(pages...).Metrics) {
			if strings.Contains(line, names.GPUDeviceBlank.Name) {
				all = append(all, line)
			}
		}
		return all
	}
	assert.Empty(t, blank(load("1", "1"), load("2", "NaN")), "it never had a value")
	assert.Empty(t, blank(load("1", "1"), load("2", "1")))
	assert.Equal(t, []string{"ACME-2 gpu.device.blank 1"}, blank(load("1", "1"), load("2", "NaN")))
	assert.Equal(t, []string{"ACME-2 gpu.device.blank 1"}, blank(load("1", "1"), load("2", "NaN")))
	assert.Empty(t, blank(load("1", "1")))
	assert.Empty(t, blank(load("1", "NaN"), load("2", "NaN")))
	assert.Equal(t, []string{"ACME-2 gpu.device.blank 0"}, blank(load("1", "1"), load("2", "1")))
	assert.Empty(t, blank(load("1", "1"), load("2", "1")), "once")
}

// TestForgotten: devices, parts and series that left do not stay for ever.
func TestForgotten(t *testing.T) {
	s := newScraper(&acme)
	first := []string{"acme_load", "serial=1", "tile=7", "1"}
	s.scrape(first, []string{"acme_load", "serial=2", "1"}, []string{"acme_fan", "serial=1", "1"})
	assert.Equal(t, 3, s.target.devices.count)
	assert.Len(t, s.target.unmapped.series, 1)
	s.now = s.now.Add(forgetAfter + time.Minute)
	for range 200 {
		s.scrape([]string{"acme_load", "serial=1", "1"})
	}
	assert.Equal(t, 1, s.target.devices.count)
	assert.Len(t, s.target.devices.boards, 1)
	assert.Empty(t, s.target.devices.boards["ACME-1"].parts)
	assert.Empty(t, s.target.unmapped.series)
	s.scrape(first)
	assert.Equal(t, 2, s.target.devices.count, "labels of a forgotten device are about a new one")
}
