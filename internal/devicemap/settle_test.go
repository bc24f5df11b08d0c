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
	tileLoad devicetable.ID = iota
	tileUsed
	boardSize
	boardWatts
	boardCelsius
	boardJoules
	eccErrors
	replays
	ports
	fans
	nodes
	dies
	firsts
)

// mosaic is an invented vendor of boards that are divided into tiles, with what acme has
// no use for. Its survey takes a tile for a part only on a board with several.
func mosaic() *Vendor {
	return &Vendor{
		Name: "mosaic", HwVendor: "Mosaic", System: "Mosaic", Devices: "boards and tiles", Prefixes: []string{"m_"}, EmptyIsDown: true,
		Family: func(name string) string { return strings.TrimPrefix(strings.ToLower(name), "our_") },
		Table: devicetable.New(devicetable.Table{
			Fields: []devicetable.Field{
				tileLoad:     {Name: "m_load", Unit: "%", Div: 100, Several: devicetable.Mean, Bounds: devicetable.Ratio},
				tileUsed:     {Name: "m_used", Unit: "KiB", Mul: 1024},
				boardSize:    {Name: "m_size", Unit: "By", Computed: true},
				boardWatts:   {Name: "m_watts", Unit: "W", Scope: devicetable.Board, Bounds: devicetable.Watts},
				boardCelsius: {Name: "m_celsius", Unit: "Cel", Scope: devicetable.Board, Bounds: devicetable.Celsius, Signed: true},
				boardJoules:  {Name: "m_joules", Unit: "J", Scope: devicetable.Board, Glitches: true},
				eccErrors:    {Name: "m_errors", Unit: "{error}", Scope: devicetable.Board, Several: devicetable.Sum, Label: "kind"},
				replays:      {Name: "m_replays", Unit: "{replay}", Several: devicetable.First},
				ports:        {Name: "m_port_up", Unit: "flag", Label: "port,side", Scope: devicetable.Board},
				fans:         {Name: "m_fan", Unit: "%", Div: 100, Label: "fan", Scope: devicetable.Board},
				nodes:        {Name: "m_nodes", Unit: "{device}"},
				dies:         {Name: "m_die_load", Unit: "%", Div: 100, Label: "die", Several: devicetable.First, MeanOfRows: true},
				firsts:       {Name: "m_first", Unit: "{error}", Scope: devicetable.Board, Several: devicetable.First},
			},
			Series: []devicetable.Series{
				{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "general", From: []devicetable.ID{tileLoad}},
				{Metric: &names.GPUSMActive, From: []devicetable.ID{dies}},
				{Metric: &names.HwPower, From: []devicetable.ID{boardWatts}},
				{Metric: &names.HwTemperature, From: []devicetable.ID{boardCelsius}},
				{Metric: &names.HwEnergy, From: []devicetable.ID{boardJoules}},
				{Metric: &names.HwErrors, Key: names.ErrorType, Value: "corrected", From: []devicetable.ID{eccErrors}, Row: "soft"},
				{Metric: &names.GPUECCErrors, RowKey: names.GPUECCBlock, From: []devicetable.ID{eccErrors}},
				{Metric: &names.GPUPCIeReplays, From: []devicetable.ID{replays}},
				{Metric: &names.GPUPCIeErrors, From: []devicetable.ID{firsts}},
				{Metric: &names.GPULinkUp, RowKey: names.GPULinkIndex + "," + names.GPULinkKind, From: []devicetable.ID{ports}},
				{Metric: &names.GPUThrottleRatio, RowKey: names.GPUThrottleReason, From: []devicetable.ID{fans}, Unless: []devicetable.ID{replays}},
			},
		}),
		Memory:   Memory{Used: []devicetable.ID{tileUsed}, Total: []devicetable.ID{boardSize}, Bounded: true},
		Moving:   Moving{Energy: []devicetable.ID{boardJoules}, MustMove: true},
		Counted:  []devicetable.ID{nodes},
		Unmapped: func(family string) string { return family },
		Survey: func(_ any, labels iter.Seq[*Labels]) Survey {
			s := tiles{}
			for l := range labels {
				if s[l.Get("serial")] == nil {
					s[l.Get("serial")] = map[string]bool{}
				}
				s[l.Get("serial")][l.Get("tile")] = true
			}
			return s
		},
		PartID: func(board, part string) string { return board + "/" + part },
		Part:   PartAttributes{Number: names.GPUPartitionID, Profile: names.GPUPartitionProfile},
		Lesser: func(l *Labels) bool { return l.Get("src") == "mean" },
		Label:  exporterlabels.Classify,
		Settle: func(board *Device) {
			if n := len(board.Parts()); n > 0 {
				board.SetFact(PartProfile, fmt.Sprint("in ", n))
				used := 0.
				for _, tile := range board.Parts() {
					used += tile.Reading(tileUsed).V
					tile.SetFact(PartProfile, board.Fact(PartProfile))
					tile.Set(boardSize, 100*1024)
				}
				board.Set(tileUsed, used)
			}
			board.Set(boardSize, 200*1024)
			if x := board.Reading(boardWatts); x.Known() && x.V == 0 {
				board.RefuseZeros(NoSensor)
			}
		},
	}
}

// tiles are the tiles of each board.
type tiles map[string]map[string]bool

func (s tiles) Identify(l *Labels) (board, part string) {
	board = l.Get("serial")
	switch {
	case board == "all":
		return DropRows, ""
	case len(s[board]) > 1:
		part = l.Get("tile")
	}
	return board, part
}

// of are the lines of a device, and what the page refused.
func of(r Result, device string, v *Vendor) (out []string, refused string) {
	for _, line := range lines(r.Metrics) {
		if rest, ok := strings.CutPrefix(line, device+" "); ok {
			out = append(out, rest)
		}
	}
	for reason, n := range r.Refused {
		if n > 0 {
			refused += fmt.Sprint(v.Reason(Reason(reason)), " ", n, " ")
		}
	}
	return out, strings.TrimSpace(refused)
}

// TestSeveralRows: what several rows of one device become, and values none can have.
func TestSeveralRows(t *testing.T) {
	const b = "serial=B"
	for name, c := range map[string]struct {
		page    [][]string
		want    []string
		refused string
	}{
		"mean": {[][]string{{"m_load", b, "engine=0", "10"}, {"m_load", b, "engine=1", "20"}, {"m_load", b, "engine=2", "60"}}, []string{"hw.gpu.utilization 0.3"}, ""},
		"sum of equal rows, in base units": {
			[][]string{{"m_errors", b, "kind=soft", "x=0", "1"}, {"m_errors", b, "kind=soft", "x=1", "2"}, {"m_errors", b, "kind=hard", "5"}, {"m_errors", b, "7"}},
			[]string{"hw.errors 3", "gpu.ecc.errors 5", "gpu.ecc.errors 3"}, "",
		},
		"mean of rows, the first of each": {
			[][]string{{"m_die_load", b, "die=0", "10"}, {"m_die_load", b, "die=1", "30"}, {"m_die_load", b, "die=1", "x=1", "90"}}, []string{"gpu.sm.active 0.2"}, "repeated 1",
		},
		"a prefix and another case": {[][]string{{"OUR_M_REPLAYS", b, "3"}}, []string{"gpu.pcie.replays 3"}, ""},
		"the first":                 {[][]string{{"m_replays", b, "x=0", "3"}, {"m_replays", b, "x=1", "9"}}, []string{"gpu.pcie.replays 3"}, "repeated 1"},
		"rows are divided":          {[][]string{{"m_fan", b, "fan=a", "50"}}, []string{"gpu.throttle.ratio 0.5"}, ""},
		"unless":                    {[][]string{{"m_fan", b, "fan=a", "50"}, {"m_replays", b, "1"}}, []string{"gpu.pcie.replays 1"}, ""},
		"cut to 1":                  {[][]string{{"m_load", b, "105"}}, []string{"hw.gpu.utilization 1"}, ""},
		"above":                     {[][]string{{"m_load", b, "106"}}, nil, "implausible 1"},
		"terawatts":                 {[][]string{{"m_watts", b, "3.69e12"}}, nil, "implausible 1"},
		"10 kW":                     {[][]string{{"m_watts", b, "10000"}}, []string{"hw.power 10000"}, ""},
		"hot":                       {[][]string{{"m_celsius", b, "201"}}, nil, "implausible 1"},
		"cold":                      {[][]string{{"m_celsius", b, "-50"}}, []string{"hw.temperature -50"}, ""},
		"more memory in use than there is": {
			[][]string{{"m_used", b, "211"}}, []string{"hw.gpu.memory.limit 204800"}, "implausible 1",
		},
		"a little more": {
			[][]string{{"m_used", b, "210"}}, []string{"hw.gpu.memory.usage 215040", "hw.gpu.memory.limit 204800", "hw.gpu.memory.utilization 1"}, "",
		},
		"means beside what they are of": {[][]string{{"m_replays", b, "src=mean", "9"}, {"m_replays", b, "src=own", "4"}}, []string{"gpu.pcie.replays 4"}, "dropped 1"},
		"sums over devices":             {[][]string{{"m_replays", "serial=all", "9"}, {"m_replays", b, "4"}}, []string{"gpu.pcie.replays 4"}, "dropped 1"},
		"failed readings":               {[][]string{{"m_watts", b, "0"}, {"m_replays", b, "0"}, {"m_port_up", b, "port=1", "0"}, {"m_new", b, "0"}, {"m_celsius", b, "9"}}, []string{"hw.temperature 9"}, "no_sensor 4"},
	} {
		t.Run(name, func(t *testing.T) {
			v := mosaic()
			got, refused := of(newScraper(v).scrape(c.page...), "B", v)
			want := c.want
			if c.want != nil && !strings.Contains(strings.Join(want, ""), "memory.limit") {
				want = append([]string{"hw.gpu.memory.limit 204800"}, want...)
			}
			assert.Equal(t, want, got)
			assert.Equal(t, c.refused, refused)
		})
	}
}

// TestRowsAsAttributes: the texts of a row become one attribute, or two.
func TestRowsAsAttributes(t *testing.T) {
	r := newScraper(mosaic()).scrape(
		[]string{"m_port_up", "serial=B", "port=10", "side=internal", "1"}, []string{"m_port_up", "serial=B", "port=2", "0"},
		[]string{"m_port_up", "serial=B", "1"}, []string{"m_errors", "serial=B", "kind=l2", "4"})
	var got []string
	for _, rm := range r.Metrics.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() == names.GPULinkUp.Name || m.Name() == names.GPUECCErrors.Name {
				for _, p := range m.Sum().DataPoints().All() {
					p.Attributes().Remove(names.HwID)
					got = append(got, fmt.Sprint(m.Name(), p.Attributes().AsRaw(), p.IntValue()))
				}
			}
		}
	}
	assert.Equal(t, []string{
		"gpu.ecc.errorsmap[gpu.ecc.block:l2] 4",
		"gpu.link.upmap[gpu.link.index:10 gpu.link.kind:internal] 1", "gpu.link.upmap[gpu.link.index:2] 0",
	}, got)
}

// TestGlitches: a counter that falls for one page and comes back was not reset.
func TestGlitches(t *testing.T) {
	v := mosaic()
	s := newScraper(v)
	began := pcommon.Timestamp(0)
	for i, c := range []struct {
		value   string
		want    float64 // below 0: no point
		restart bool
		refused string
	}{
		{"100", 100, true, ""},
		{"110", 110, false, ""},
		{"5", -1, false, ""},                 // a glitch
		{"120", 120, false, "implausible 1"}, // or not
		{"6", -1, false, ""},
		{"7", 7, true, ""}, // a reset
		{"8", 8, false, ""},
		{"1", -1, false, ""},
		{"0.5", 0.5, true, ""}, // another one at once
		{"0.5", 0.5, false, ""},
	} {
		r := s.scrape([]string{"m_joules", "serial=B", c.value}, []string{"m_load", "serial=B", "1"})
		_, refused := of(r, "B", v)
		assert.Equal(t, c.refused, refused, i)
		p, found := only(r.Metrics, names.HwEnergy.Name)
		assert.Equal(t, c.want >= 0, found, i)
		if !found {
			continue
		}
		assert.Equal(t, c.want, p.DoubleValue(), i)
		assert.Equal(t, c.restart, p.StartTimestamp() != began, i)
		began = p.StartTimestamp()
	}
}

func only(md pmetric.Metrics, metric string) (pmetric.NumberDataPoint, bool) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() == metric {
				return m.Sum().DataPoints().At(0), true
			}
		}
	}
	return pmetric.NewNumberDataPoint(), false
}

// TestSurvey: what a row is about depends on the whole page, and is found once for it.
func TestSurvey(t *testing.T) {
	v := mosaic()
	surveys, stale := 0, false
	survey := v.Survey
	v.Survey = func(previous any, labels iter.Seq[*Labels]) Survey {
		assert.Equal(t, surveys > 0, previous != nil)
		surveys++
		return &counting{survey(previous, labels), &stale}
	}
	s := newScraper(v)
	first, second := []string{"m_used", "serial=B", "tile=0", "50"}, []string{"m_used", "serial=B", "tile=1", "60"}
	for i, c := range []struct {
		page    [][]string
		stale   bool
		devices string
		surveys int
	}{
		{[][]string{first}, false, "B", 1},
		{[][]string{first}, false, "B", 1},
		{[][]string{second, first}, false, "B B/0 B/1", 2},
		{[][]string{second, first, {"go_goroutines", "x=1", "9"}}, false, "B B/0 B/1", 2},
		{[][]string{second, first}, true, "B B/0 B/1", 3},
		{[][]string{second}, false, "B", 4},
	} {
		stale = c.stale
		r := s.scrape(c.page...)
		var devices []string
		for _, rm := range r.Metrics.ResourceMetrics().All() {
			if id, ok := rm.Resource().Attributes().Get(names.HwID); ok {
				devices = append(devices, id.Str())
			}
		}
		assert.Equal(t, c.devices, strings.Join(devices, " "), i)
		assert.Equal(t, c.surveys, surveys, i)
	}
}

type counting struct {
	Survey
	stale *bool
}

func (c *counting) Stale() bool { return *c.stale }

// TestSettle: a board's values are decided from those of its parts, with facts.
func TestSettle(t *testing.T) {
	v := mosaic()
	s := newScraper(v)
	page := [][]string{{"m_used", "serial=B", "tile=0", "50"}, {"m_used", "serial=B", "tile=1", "60"}, {"m_watts", "serial=B", "tile=0", "300"}, {"m_nodes", "5"}}
	r := s.scrape(page...)
	assert.Equal(t, []string{
		"exporter gpu.exporter.unrecognized 0",
		"map[gpu.partition.profile:in 2 hw.id:B hw.type:gpu hw.vendor:Mosaic]",
		"B hw.gpu.memory.usage 112640", "B hw.gpu.memory.limit 204800", "B hw.gpu.memory.utilization 0.55", "B hw.power 300",
		"map[gpu.partition.id:0 gpu.partition.profile:in 2 hw.id:B/0 hw.parent:B hw.type:gpu hw.vendor:Mosaic]",
		"B/0 hw.gpu.memory.usage 51200", "B/0 hw.gpu.memory.limit 102400", "B/0 hw.gpu.memory.utilization 0.5",
		"map[gpu.partition.id:1 gpu.partition.profile:in 2 hw.id:B/1 hw.parent:B hw.type:gpu hw.vendor:Mosaic]",
		"B/1 hw.gpu.memory.usage 61440", "B/1 hw.gpu.memory.limit 102400", "B/1 hw.gpu.memory.utilization 0.6",
	}, lines(r.Metrics)[3:])
	assert.Equal(t, 3, r.Missing, "of the five that the exporter counts")
	assert.Zero(t, r.Refused)
}

// TestRateLimited: a scrape that the exporter refuses because of others is no proof that
// it is down; two are.
func TestRateLimited(t *testing.T) {
	s := newScraper(mosaic())
	limited := Page{Time: pcommon.NewTimestampFromTime(s.now), Limited: true}
	failed := Page{Time: limited.Time}
	up := func(p *Page) bool {
		r := s.target.Map(p, Exporter{})
		point, _ := only(r.Metrics, names.ExporterUp.Name)
		return point.IntValue() == 1
	}
	assert.False(t, up(&limited), "it was never up")
	s.scrape([]string{"m_load", "serial=B", "1"})
	assert.True(t, up(&limited))
	assert.False(t, up(&limited))
	s.scrape([]string{"m_load", "serial=B", "1"})
	assert.False(t, up(&failed))
	assert.False(t, up(&limited))
}

// TestFrozenOnceMoved: energy that never moved proves nothing on boards that do not
// measure it.
func TestFrozenOnceMoved(t *testing.T) {
	for _, moved := range []bool{false, true} {
		s := newScraper(mosaic())
		s.target.opts.FrozenAfter, s.target.opts.FrozenFor = 2, time.Second
		if moved {
			s.scrape([]string{"m_joules", "serial=B", "1"})
		}
		var r Result
		for range 5 {
			r = s.scrape([]string{"m_joules", "serial=B", "2"})
		}
		_, known := only(r.Metrics, names.ExporterFrozen.Name)
		assert.Equal(t, moved, known)
	}
}

// TestFirstPart: of a field that exists once a board, the first part has the board's value,
// wherever its row is.
func TestFirstPart(t *testing.T) {
	v := mosaic()
	got, refused := of(newScraper(v).scrape([]string{"m_first", "serial=B", "tile=1", "0"}, []string{"m_first", "serial=B", "tile=0", "7"}, []string{"m_first", "serial=B", "tile=2", "9"}), "B", v)
	assert.Contains(t, got, "gpu.pcie.errors 7")
	assert.Empty(t, refused)
}

// TestPodNeedsContainer: what a scraper passes on may have the exporter's own pod.
func TestPodNeedsContainer(t *testing.T) {
	v := mosaic()
	for needs, want := range map[bool]string{true: "", false: "p"} {
		v.PodNeedsContainer = needs
		for _, key := range []string{"job", "exported_instance"} {
			assert.Equal(t, want, v.NewLabels([][2]string{{key, "x"}, {"pod", "p"}}).row.owner.pod, key)
		}
		assert.Equal(t, "p", v.NewLabels([][2]string{{"container", "c"}, {"job", "x"}, {"pod", "p"}}).row.owner.pod)
		assert.Equal(t, "p", v.NewLabels([][2]string{{"pod", "p"}}).row.owner.pod)
	}
}
