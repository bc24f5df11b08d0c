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
		"two fields":              func(t *Table) { t.Fields[temperature].Aliases = []string{"acme_load_percent"} },
		"no name":                 func(t *Table) { t.Fields[load].Name = "" },
		"a field that is dropped": func(t *Table) { t.Dropped = []string{"acme_load"} },
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

func TestMarkdown(t *testing.T) {
	text := New(table()).Markdown(Words{Intro: "# Acme\n\n", System: "Acme", Part: "tile"})
	for _, line := range []string{
		"# Acme\n",
		"| Metric | Kind, unit | Attributes | Acme fields |\n",
		"| `hw.gpu.utilization` | gauge 1 | `hw.gpu.task`=general | `acme_load`; not beside `acme_temperature` |\n",
		"| `hw.temperature` | gauge Cel | `hw.sensor_location` | `acme_temperature` | The warmest. |\n",
		"| `acme_load` | 7 | `acme_load_percent` | % | tile |  |\n",
		"| `acme_temperature` | exporter |  | mCel | board | a row for each `sensor`; may be negative; 0 is a board without the sensor |\n",
	} {
		assert.Contains(t, text, line)
	}
}
