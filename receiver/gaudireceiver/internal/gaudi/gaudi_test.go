// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gaudi

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext/pagetexttest"
)

var update = flag.Bool("update", false, "write what the pages of testdata become")

// TestConvert has one row a family: the page and the output, worked out by hand.
func TestConvert(t *testing.T) {
	cases := map[string]struct{ in, out float64 }{
		"habanalabs_utilization":                             {29, 0.29},
		"habanalabs_memory_used_bytes":                       {805306368, 805306368},
		"habanalabs_memory_total_bytes":                      {103079215104, 103079215104},
		"habanalabs_memory_free_bytes":                       {102273908736, 102273908736},
		"habanalabs_power_mW":                                {88125, 88.125},
		"habanalabs_power_default_limit_mW":                  {600000, 600},
		"habanalabs_energy":                                  {123456789, 123456.789},
		"habanalabs_temperature_onchip":                      {64, 64},
		"habanalabs_temperature_onboard":                     {41, 41},
		"habanalabs_temperature_threshold_gpu":               {98, 98},
		"habanalabs_temperature_threshold_memory":            {95, 95},
		"habanalabs_temperature_threshold_slowdown":          {100, 100},
		"habanalabs_temperature_threshold_shutdown":          {105, 105},
		"habanalabs_clock_soc_mhz":                           {1650, 1.65e9},
		"habanalabs_pcie_replay_count":                       {3, 3},
		"habanalabs_pending_rows_with_single_bit_ecc_errors": {2, 2},
		"habanalabs_pending_rows_with_double_bit_ecc_errors": {1, 1},
		"habanalabs_pending_rows_state":                      {1, 1},
		"habanalabs_nic_port_status":                         {1, 1},
	}
	for _, f := range Table.Fields {
		c, ok := cases[f.Name]
		require.True(t, ok, "%s has no case", f.Name)
		assert.InDelta(t, c.out, f.Convert(c.in), 1e-9, f.Name)
		delete(cases, f.Name)
	}
	assert.Empty(t, cases, "cases of no field")
}

// TestFamilies: every family that gaudi-metric-exporter 1.24 prints of a device is a field,
// is dropped, or is known to be passed on without a name of its own.
func TestFamilies(t *testing.T) {
	unmapped := []string{
		"habanalabs_pcie_rx", "habanalabs_pcie_tx", "habanalabs_pci_link_speed", "habanalabs_pci_link_width",
		"habanalabs_ecc_feature_mode", "habanalabs_device_config",
	}
	page, err := os.ReadFile("../../testdata/pages/gaudi2.prom")
	require.NoError(t, err)
	seen := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		family, _, _ := strings.Cut(line, "{")
		if _, field := Table.ByName(family); strings.HasPrefix(family, "habanalabs_") || strings.HasPrefix(family, "accelerator_") {
			assert.True(t, field || Table.Drops(family) || slices.Contains(unmapped, family), family)
			seen[family] = true
		}
	}
	assert.Len(t, seen, len(Table.Fields)+len(Table.Dropped)+len(unmapped))
}

// TestPages: whole pages, invented in the exporter's format, and what they become.
func TestPages(t *testing.T) {
	pages, err := filepath.Glob("../../testdata/pages/*.prom")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			body, err := os.ReadFile(page)
			require.NoError(t, err)
			got := render(t, pagetexttest.New(t, &Vendor, devicemap.Options{}).ScrapePage(body))
			if *update {
				require.NoError(t, os.WriteFile(page+".txt", []byte(got), 0o644))
			}
			want, err := os.ReadFile(page + ".txt")
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}

func render(t *testing.T, r pagetexttest.Result) string {
	var b strings.Builder
	fmt.Fprintln(&b, "refused", r.Refusals(), "outcome", Exporter.Lacking(r.Lack))
	for _, id := range append([]string{""}, r.IDs(t)...) {
		fmt.Fprintln(&b, "resource", r.Resource(id))
		for _, point := range r.Points(id) {
			fmt.Fprintln(&b, " ", point)
		}
	}
	return b.String()
}

const labels = `{Serial="AN1",device="AN1",id="0"}`

// TestReadings: what becomes of readings that failed, and of those that cannot be.
func TestReadings(t *testing.T) {
	size := "habanalabs_memory_total_bytes" + labels + " 1000"
	for name, c := range map[string]struct {
		pages   []string // one after the other
		points  []string // of the last
		refused map[string]int
	}{
		"a zero is data": {[]string{"habanalabs_utilization" + labels + " 0"}, []string{"hw.gpu.utilization{hw.gpu.task=general} 0"}, map[string]int{}},
		"all readings failed": {
			[]string{"habanalabs_memory_total_bytes" + labels + " 0\nhabanalabs_utilization" + labels + " 0\nhabanalabs_pcie_rx" + labels + " 0\nhabanalabs_pcie_tx" + labels + " 5"},
			[]string{"habanalabs.pcie_tx{} 5"}, map[string]int{"no_sensor": 3},
		},
		"one reading failed": {
			[]string{size + "\nhabanalabs_power_mW" + labels + " 0\nhabanalabs_temperature_onchip" + labels + " 0\nhabanalabs_clock_soc_mhz" + labels + " 0"},
			[]string{"hw.gpu.memory.limit{} 1000"}, map[string]int{"no_sensor": 3},
		},
		"implausible": {
			[]string{size + "\nhabanalabs_power_mW" + labels + " 3.69e15\nhabanalabs_memory_used_bytes" + labels + " 1051\nhabanalabs_utilization" + labels + " 106\nhabanalabs_temperature_onboard" + labels + " 255"},
			[]string{"hw.gpu.memory.limit{} 1000"}, map[string]int{"implausible": 4},
		},
		"a counter that failed once": {
			[]string{"habanalabs_pcie_replay_count" + labels + " 7", "habanalabs_pcie_replay_count" + labels + " 0", "habanalabs_pcie_replay_count" + labels + " 7"},
			[]string{"gpu.pcie.replays{} 7"}, map[string]int{"implausible": 1},
		},
		"it fails":        {[]string{"habanalabs_pcie_replay_count" + labels + " 7", "habanalabs_pcie_replay_count" + labels + " 0"}, []string{}, map[string]int{}},
		"a flag":          {[]string{"habanalabs_pending_rows_state" + labels + " 3"}, []string{"gpu.memory.remapped_rows.pending{} 1"}, map[string]int{}},
		"a port":          {[]string{`habanalabs_nic_port_status{Serial="AN1",port="2",port_type="internal"} 5`}, []string{"gpu.link.up{gpu.link.index=2,gpu.link.kind=internal} 1"}, map[string]int{}},
		"a threshold":     {[]string{"habanalabs_temperature_threshold_memory" + labels + " 95"}, []string{"hw.temperature.limit{hw.limit_type=max,hw.sensor_location=memory} 95"}, map[string]int{}},
		"size by its sum": {[]string{"habanalabs_memory_used_bytes" + labels + " 10\nhabanalabs_memory_free_bytes" + labels + " 30"}, []string{"hw.gpu.memory.limit{} 40", "hw.gpu.memory.usage{} 10", "hw.gpu.memory.utilization{} 0.25"}, map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			e := pagetexttest.New(t, &Vendor, devicemap.Options{})
			var r pagetexttest.Result
			for _, page := range c.pages {
				r = e.Scrape(page)
			}
			assert.Equal(t, c.points, r.Points("GAUDI-AN1"))
			assert.Equal(t, c.refused, r.Refusals())
		})
	}
}

// TestIdentity: the serial number is the identity; an index or a uuid is not.
func TestIdentity(t *testing.T) {
	for labels, want := range map[string]struct {
		id    string
		owner any
	}{
		`Serial="AN1",device="AN1",pod_name="p",pod_namespace="n"`: {"GAUDI-AN1", "p"},
		`device="AN1"`:                                {"GAUDI-AN1", nil},
		`Serial="AN2",device="AN1"`:                   {"GAUDI-AN2", nil},
		`Serial="na",device="N/A",id="0",UUID="01P0"`: {"", nil},
		`id="0"`:          {"", nil},
		`Serial="a/b::c"`: {"", nil},
		`Serial="AN1",pod="exporter",namespace="mon",job="j",instance="i"`:                  {"GAUDI-AN1", nil},
		`Serial="AN1",pod="exporter",namespace="mon",pod_name="p",pod_namespace="n",job=""`: {"GAUDI-AN1", "p"},
	} {
		r := pagetexttest.New(t, &Vendor, devicemap.Options{}).Scrape("habanalabs_utilization{" + labels + "} 1")
		if want.id == "" {
			assert.Empty(t, r.IDs(t), labels)
			assert.Equal(t, map[string]int{"no_device": 1}, r.Refusals(), labels)
			continue
		}
		assert.Equal(t, []string{want.id}, r.IDs(t), labels)
		assert.Equal(t, want.owner, r.Resource(want.id)["pod"], labels)
	}
}

// TestRemedies: each outcome and each limit has what to do about it.
func TestRemedies(t *testing.T) {
	for _, lack := range []devicemap.Lack{devicemap.LacksFamilies, devicemap.LacksValues, devicemap.LacksDevices, devicemap.LacksRows, devicemap.LacksPage} {
		assert.NotEmpty(t, Exporter.Remedy(Exporter.Lacking(lack), nil), lack)
	}
	for _, over := range []devicemap.Over{devicemap.OverLines, devicemap.OverOwners, devicemap.OverUnmapped, Vendor.OverDevices()} {
		assert.NotEmpty(t, Exporter.OverRemedy(over), over)
	}
}

// FuzzPages: no page, and no page after another, makes a device twice or a value that no
// device can have.
func FuzzPages(f *testing.F) {
	f.Add("habanalabs_energy"+labels+" 9\n", "habanalabs_energy"+labels+" 1\n")
	f.Add("habanalabs_memory_total_bytes"+labels+" 0\n", "habanalabs_memory_used_bytes{Serial=\"\"} 1e308\n")
	f.Add("habanalabs_nic_port_status{Serial=\"a\",port=\"1,2\",port_type=\",\"} 1\n", "accelerator_x{Serial=\"a\"} -1\n")
	f.Fuzz(func(t *testing.T, first, second string) {
		e := pagetexttest.New(t, &Vendor, devicemap.Options{})
		for _, page := range []string{first, second, first} {
			r := e.ScrapePage([]byte(page))
			for _, id := range r.IDs(t) {
				assert.True(t, strings.HasPrefix(id, "GAUDI-"), id)
				points := r.Points(id)
				assert.Len(t, slices.Compact(slices.Clone(points)), len(points), "a point twice")
			}
		}
	})
}
