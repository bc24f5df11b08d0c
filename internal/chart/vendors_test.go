// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
)

// vendor is an entry of the chart's vendors.yaml.
type vendor struct {
	Receiver, Values, Exporter, Product, Pods string
	Interval                                  int
	Ports                                     []int
	Resources, Drivers, Classes               []string
	Nodes                                     []struct {
		Key    string
		Values []string
	}
}

// Together the vendors of the chart have the resources and drivers that components know
// without configuration, each at one vendor: none is expected to report for what no
// vendor stands for.
func TestVendorsOfTheChart(t *testing.T) {
	var vendors map[string]vendor
	require.NoError(t, yaml.Unmarshal([]byte(read(t, chart, "vendors.yaml")), &vendors))
	var values map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(read(t, chart, "values.yaml")), &values))
	assert.Equal(t, []any{"nvidia"}, values["vendors"], "a cluster of NVIDIA's GPUs sets nothing")
	var overlay struct {
		Receivers map[string]any
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, root, "config", "vendors.yaml")), &overlay))

	schema, guides := read(t, chart, "values.schema.json"), read(t, chart, "README.md")
	var resources, drivers, classes []string
	for _, name := range slices.Sorted(maps.Keys(vendors)) {
		v := vendors[name]
		assert.Contains(t, schema, `"`+name+`"`)
		assert.Contains(t, values, v.Values, name)
		assert.Contains(t, guides, "| `"+name+"` |", "README.md has a row for each vendor")
		assert.NotEmpty(t, v.Exporter, name)
		assert.NotEmpty(t, v.Product, name)
		assert.NotEmpty(t, v.Pods, name)
		assert.NotEmpty(t, v.Ports, name)
		if name == "nvidia" {
			assert.Empty(t, v.Nodes, "its nodes are the default of agent.nodeSelectorTerms")
		} else {
			assert.NotEmpty(t, v.Nodes, name)
			assert.Contains(t, overlay.Receivers, v.Receiver, "config/vendors.yaml")
		}
		resources, drivers, classes = append(resources, v.Resources...), append(drivers, v.Drivers...), append(classes, v.Classes...)
	}
	assert.ElementsMatch(t, resourcenames.Default(), resources)
	known := gpupods.DefaultKeys().DRA
	allocation := read(t, root, "receiver", "gpuallocationreceiver", "factory.go")
	for _, driver := range drivers {
		assert.Contains(t, known.Drivers, driver)
		assert.Contains(t, allocation, strconv.Quote(driver))
	}
	for _, class := range classes {
		assert.Contains(t, known.DeviceClasses, class)
	}
}
