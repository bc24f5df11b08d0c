// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicetable

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	load ID = iota
	temperature
)

func table() Table {
	return Table{
		Fields: []Field{
			load:        {Name: "acme_load", Aliases: []string{"acme_load_percent"}, Number: 7, Unit: "%", Div: 100},
			temperature: {Name: "acme_temperature", Unit: "mCel", Div: 1000, Scope: Board, Signed: true, ZeroIsAbsent: true, Label: "sensor"},
		},
		Series:  []Series{{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "general", From: []ID{load}, Unless: []ID{temperature}}},
		Derived: []Derived{{Metric: &names.HwTemperature, From: []ID{temperature}, Keys: []string{names.HwSensorLocation}, Rule: "The warmest."}},
		Dropped: []string{"acme_temperature_threshold"},
	}
}

func TestNames(t *testing.T) {
	table := New(table())
	for name, want := range map[string]ID{"acme_load": load, "acme_load_percent": load, "acme_temperature": temperature} {
		id, known := table.ByName(name)
		assert.True(t, known, name)
		assert.Equal(t, want, id, name)
		assert.False(t, table.Drops(name), name)
	}
	_, known := table.ByName("acme_temperature_threshold")
	assert.False(t, known)
	assert.True(t, table.Drops("acme_temperature_threshold"))
}

// TestMistakes: a name with two meanings would make the series of one of them wrong.
func TestMistakes(t *testing.T) {
	for mistake, change := range map[string]func(*Table){
		"two fields":                    func(t *Table) { t.Fields[temperature].Aliases = []string{"acme_load_percent"} },
		"no name":                       func(t *Table) { t.Fields[load].Name = "" },
		"a field that is dropped":       func(t *Table) { t.Dropped = []string{"acme_load"} },
		"a row of a field without rows": func(t *Table) { t.Series[0].Row = "x" },
		"rows of a field without rows":  func(t *Table) { t.Series[0].RowKey = "x" },
		"a field with rows as one":      func(t *Table) { t.Series[0].From = []ID{temperature} },
		"a counter below 0":             func(t *Table) { t.Fields[temperature].Glitches = true },
		"one row and all": func(t *Table) {
			t.Series[0].From, t.Series[0].Row, t.Series[0].RowKey = []ID{temperature}, "x", "y"
		},
		"two attributes of one label": func(t *Table) {
			t.Series[0].From, t.Series[0].RowKey = []ID{temperature}, "x,y"
		},
	} {
		table := table()
		change(&table)
		assert.Panics(t, func() { New(table) }, mistake)
	}
}

func TestConvert(t *testing.T) {
	for want, f := range map[float64]Field{0.29: {Div: 100}, 29e6: {Mul: 1e6}, 29: {}, 29e6 / 3: {Mul: 1e6, Div: 3}} {
		assert.Equal(t, want, f.Convert(29))
	}
}

// TestVariants: a name has its own unit, and its place among the names of the field.
func TestVariants(t *testing.T) {
	raw := Table{Fields: []Field{
		{Name: "v_load", Aliases: []string{"v_busy"}, Number: 3, Unit: "%", Div: 100, Bounds: Percent, Variants: []Variant{
			{Name: "v_load_ratio", Number: 9, Type: Double, Unit: "1"},
			{Name: "v_used", Unit: "1", Ambiguous: true},
		}},
		{Name: "v_lane_%d", Numbered: 3, Label: "lane", Unit: "KiB/s", Mul: 1024, Scope: Board, Variants: []Variant{
			{Name: "v_lane_%d_bytes", Unit: "By/s", Finer: true, Bounds: Memory},
		}},
		{Name: "v_energy", Unit: "mJ", Div: 1000, Variants: []Variant{{Name: "v_joules", Unit: "J", Step: 1}}},
	}}
	table := New(raw)
	for name, want := range map[string]struct {
		id     ID
		base   float64 // of 50 on the page
		prefer uint8
		row    string
		or     bool
	}{
		"v_load": {0, .5, ownName, "", false}, "v_busy": {0, .5, ownName, "", false}, "v_load_ratio": {0, 50, coarser, "", false}, "v_used": {0, .5, coarser, "", true},
		"v_lane_0": {1, 51200, ownName, "0", false}, "v_lane_2": {1, 51200, ownName, "2", false}, "v_lane_1_bytes": {1, 50, finer, "1", false},
		"v_energy": {2, .05, ownName, "", false}, "v_joules": {2, 50, coarser, "", false},
	} {
		n, known := table.Named(name)
		assert.True(t, known, name)
		assert.Equal(t, want.id, n.ID, name)
		assert.Equal(t, want.base, n.Field.Convert(50), name)
		assert.Equal(t, want.prefer, n.Prefer, name)
		assert.Equal(t, want.row, n.Row, name)
		assert.Equal(t, want.or, n.Or != nil, name)
	}
	for _, name := range []string{"v_lane_%d", "v_lane_3", "v_lane_"} {
		_, known := table.Named(name)
		assert.False(t, known, name)
	}
	assert.Equal(t, []float64{0, 0, 1}, []float64{table.Fields[0].Step(), table.Fields[1].Step(), table.Fields[2].Step()})
	text := table.Markdown(Words{Part: "tile"})
	for _, line := range []string{
		"| `v_load_ratio` | 9 |  | 1 | tile | as `v_load`; above 1.05 implausible |\n",
		"| `v_used` | exporter |  | 1 | tile | as `v_load`, or in its unit: the rest of the page decides; above 1.05 implausible |\n",
		"| `v_lane_0` | exporter |  | KiB/s | board | and so on to `v_lane_2` |\n",
		"| `v_lane_0_bytes` | exporter |  | By/s | board | as `v_lane_0`; and so on to `v_lane_2_bytes`; 1 PiB and more implausible |\n",
	} {
		assert.Contains(t, text, line)
	}
	raw.Fields[2].Variants[0].Name = "v_busy"
	assert.Panics(t, func() { New(raw) }, "one name of two fields")
}

// TestComputed: no family has the name of a field that is computed.
func TestComputed(t *testing.T) {
	table := table()
	table.Fields[load].Computed = true
	_, known := New(table).ByName("acme_load")
	assert.False(t, known)
}

// TestLacking: of a list that several sources share, one has what it can read.
func TestLacking(t *testing.T) {
	shared := table()
	shared.Fields = append(shared.Fields, Field{Lacking: true, Label: "row"}, Field{Name: "acme_watts"})
	shared.Series = append(shared.Series,
		Series{Metric: &names.HwPower, From: []ID{2, 3}, Unless: []ID{2}},
		Series{Metric: &names.HwEnergy, From: []ID{2}})
	shared.Derived = append(shared.Derived, Derived{Metric: &names.GPUXIDErrors, From: []ID{2}})
	got := New(shared)
	first := shared.Series[0]
	first.From, first.Unless = []ID{load}, []ID{temperature}
	assert.Equal(t, []Series{first, {Metric: &names.HwPower, From: []ID{3}, Unless: []ID{}}}, got.Series)
	assert.Equal(t, shared.Derived[:1], got.Derived)
	assert.Equal(t, []ID{2, 3}, shared.Series[1].From, "the list is that of others as well")
	text := got.Markdown(Words{Source: "`server.address`=acme"})
	assert.NotContains(t, text, "``")
	assert.Contains(t, text, "## About the source\n\nResource and points have `server.address`=acme.\n")
	assert.NotContains(t, text, "Unit on the page")
}

func TestRowText(t *testing.T) {
	labels := map[string]string{"a": "1", "b": "2"}
	for label, want := range map[string]string{"a": "1", "c": "", "a,b": "1,2", "a,c": "1,", "c,b": ",2", "c,d": "", "a,b,c": "1,2,"} {
		f := Field{Label: label}
		assert.Equal(t, want, f.RowText(func(label string) string { return labels[label] }), label)
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		bounds  Bounds
		v, want float64
		ok      bool
	}{
		{NoBounds, 1e300, 1e300, true},
		{Percent, 1, 1, true}, {Percent, 1.005, 1, true}, {Percent, 1.006, 1, false},
		{Ratio, 0.5, 0.5, true}, {Ratio, 1.05, 1, true}, {Ratio, 1.051, 1, false},
		{Watts, 10_000, 10_000, true}, {Watts, 10_000.1, 10_000.1, false},
		{Fan, 1.1, 1.1, true}, {Fan, 2.01, 2.01, false}, {Hertz, 1e11, 1e11, true}, {Hertz, 1.1e11, 1.1e11, false},
		{Word, 1<<31 - 1, 1<<31 - 1, true}, {Word, 1 << 31, 1 << 31, false},
		{Memory, 1<<50 - 1, 1<<50 - 1, true}, {Memory, 1 << 50, 1 << 50, false},
		{Celsius, -50, -50, true}, {Celsius, 200, 200, true}, {Celsius, -51, -51, false}, {Celsius, 201, 201, false},
	} {
		v, ok := c.bounds.Within(c.v)
		assert.Equal(t, c.want, v, c)
		assert.Equal(t, c.ok, ok, c)
	}
}

// TestMarkdownOfRows: what only some vendors have is in the documentation of theirs.
func TestMarkdownOfRows(t *testing.T) {
	text := New(Table{
		Fields: []Field{
			{Name: "v_ports", Label: "port,side", Unit: "flag", Several: First},
			{Name: "v_errors", Label: "kind", Several: Sum, Glitches: true},
			{Name: "v_mean", Several: Mean, Bounds: Ratio}, {Name: "v_watts", Bounds: Watts}, {Name: "v_hot", Bounds: Celsius},
			{Name: "limit", Computed: true},
		},
		Series: []Series{
			{Metric: &names.GPULinkUp, RowKey: "a,b", From: []ID{0}},
			{Metric: &names.HwErrors, Key: names.ErrorType, Value: "corrected", From: []ID{1}, Row: "soft"},
		},
		Dropped: []string{"v_copy"},
	}).Markdown(Words{Part: "tile"})
	for _, line := range []string{
		"| `gpu.link.up` | updowncounter 1 | `a`, `b` | `v_ports` |\n",
		"| `hw.errors` | counter {error} | `error.type`=corrected | `v_errors` with `soft` |\n",
		"| Field | Other names | Unit on the page | Scope | Notes |\n",
		"| `v_ports` |  | flag | tile | a row for each `port` and `side`; the first of several rows; 2^31 and more implausible |\n",
		"| `v_errors` |  |  | tile | a row for each `kind`; the sum of several rows; a value that falls for one page is implausible |\n",
		"| `v_mean` |  |  | tile | the mean of several rows; above 1.05 implausible |\n",
		"above 10 kW implausible |\n", "outside of -50 to 200 °C implausible |\n",
		"| `limit` |  |  | tile | computed: no family has this name |\n",
		"## Dropped\n", "- `v_copy`\n",
	} {
		assert.Contains(t, text, line)
	}
}

func TestMarkdown(t *testing.T) {
	text := New(table()).Markdown(Words{Intro: "# Acme\n\n", System: "Acme", Part: "tile"})
	for _, line := range []string{
		"# Acme\n",
		"| Metric | Kind, unit | Attributes | Acme fields |\n",
		"| `hw.gpu.utilization` | gauge 1 | `hw.gpu.task`=general | `acme_load`; not beside `acme_temperature` |\n",
		"| `hw.temperature` | gauge Cel | `hw.sensor_location` | `acme_temperature` | The warmest. |\n",
		"| `acme_load` | 7 | `acme_load_percent` | % | tile | above 1.05 implausible |\n",
		"| `acme_temperature` | exporter |  | mCel | board | a row for each `sensor`; may be negative; 0 is a board without the sensor |\n",
	} {
		assert.Contains(t, text, line)
	}
}
