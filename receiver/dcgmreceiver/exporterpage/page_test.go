// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporterpage

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/fields"
)

// row is a row of the GPU that all rows here are of.
func row(family, value, more string) string {
	return family + `{gpu="0",UUID="GPU-1",modelName="H100",DCGM_FI_DRIVER_VERSION="580.1"` + more + `} ` + value + "\n"
}

// whole has all that is needed.
func whole() map[string]string {
	rows := map[string]string{}
	for _, n := range needs {
		for _, group := range n.of {
			rows[fields.All[group[0]].Name] = "7"
		}
	}
	return rows
}

func text(rows map[string]string) []byte {
	var b strings.Builder
	for family, value := range rows {
		b.WriteString(row(family, value, ""))
	}
	return []byte(b.String())
}

func TestLacks(t *testing.T) {
	tests := []struct {
		name   string
		change func(map[string]string)
		want   []string // field: what for
	}{
		{"all is there", func(map[string]string) {}, nil},
		{"no profiling", func(rows map[string]string) {
			for family := range rows {
				if strings.Contains(family, "_PROF_") {
					delete(rows, family)
				}
			}
		}, []string{
			"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE: card tensor", "DCGM_FI_PROF_SM_ACTIVE: card SM", "DCGM_FI_PROF_DRAM_ACTIVE: card DRAM",
			"DCGM_FI_PROF_PIPE_FP16_ACTIVE: card FP16", "DCGM_FI_PROF_PIPE_FP32_ACTIVE: card FP32",
		}},
		{"one field for several", func(rows map[string]string) { delete(rows, "DCGM_FI_DEV_FB_USED") },
			[]string{"DCGM_FI_DEV_FB_USED: card memory used, event gpu.memory.pressure"}},
		{"memory by used and free", func(rows map[string]string) {
			delete(rows, "DCGM_FI_DEV_FB_TOTAL")
			rows["DCGM_FI_DEV_FB_FREE"] = "1"
		}, nil},
		{"another field will do", func(rows map[string]string) {
			delete(rows, "DCGM_FI_DEV_GPU_UTIL")
			rows["DCGM_FI_PROF_GR_ENGINE_ACTIVE"] = "0.5"
		}, nil},
		{"blank", func(rows map[string]string) { rows["DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"] = "9223372036854775794" },
			[]string{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL (blank): event gpu.ecc.uncorrected"}},
		{"the names of DCGM 4.6", func(rows map[string]string) {
			delete(rows, "DCGM_FI_PROF_SM_ACTIVE")
			rows["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"] = "0.1"
			rows["DCGM_FI_PROF_DRAM_UTIL_RATIO"] = "0.1"
		}, []string{"DCGM_FI_PROF_SM_UTIL_RATIO: card SM"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rows := whole()
			tt.change(rows)
			page, err := Read(text(rows))
			require.NoError(t, err)
			var got []string
			for _, l := range page.Lacks() {
				name := l.Field
				if l.Blank {
					name += " (blank)"
					assert.Empty(t, l.Line)
				} else {
					assert.Regexp(t, "^"+l.Field+", (gauge|counter), [^,]+$", l.Line, "a line of a counters file")
				}
				got = append(got, fmt.Sprintf("%s: %s", name, strings.Join(l.For, ", ")))
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestEveryNeedHasALine(t *testing.T) {
	page, err := Read(nil)
	require.NoError(t, err)
	for _, l := range page.Lacks() {
		assert.Contains(t, l.Line, l.Field+", ")
		_, known := fields.ByName(l.Field)
		assert.True(t, known, l.Field)
	}
	assert.Len(t, lines, len(page.Lacks()), "no line is for nothing")
}

func TestWhatAPageSays(t *testing.T) {
	for rows, want := range map[string]string{
		row("DCGM_FI_DEV_GPU_UTIL", "1", ""):                                            "2.x or 3.0",
		row("DCGM_FI_DEV_GPU_UTIL", "1", `,Hostname="h",pci_bus_id="00000000:53:00.0"`): "3.3 to 4.5",
		row("DCGM_FI_DEV_GPU_UTIL", "1", `,hostname="h",pci_bus_id="00000000:53:00.0"`): "4.6 or newer",
		row("DCGM_FI_PROF_SM_UTIL_RATIO", "1", ""):                                      "4.6 or newer",
		row("dcgm_gpu_utilization", "1", ""):                                            "1.x",
	} {
		page, err := Read([]byte(rows))
		require.NoError(t, err)
		assert.Equal(t, want, page.Version(), rows)
	}
	quiet, err := Read([]byte(row("DCGM_FI_DEV_GPU_UTIL", "1", `,pci_bus_id="00000000:53:00.0"`)))
	require.NoError(t, err)
	assert.True(t, quiet.QuietXID(), "a newer exporter prints no XID before the first")
	assert.NotContains(t, fmt.Sprint(quiet.Lacks()), "XID")
	old, err := Read([]byte(row("DCGM_FI_DEV_GPU_UTIL", "1", "")))
	require.NoError(t, err)
	assert.False(t, old.QuietXID())
	assert.Contains(t, fmt.Sprint(old.Lacks()), "XID")

	raw, err := os.ReadFile("../internal/mapping/testdata/shared-4.6.prom")
	require.NoError(t, err)
	page, err := Read(raw)
	require.NoError(t, err)
	assert.Equal(t, []string{"580.126.09"}, page.Drivers)
	assert.Equal(t, []string{"NVIDIA H100 80GB HBM3"}, page.Models)
	assert.True(t, page.AsksKubelet)
	assert.Positive(t, page.Holders)
	assert.Positive(t, page.Devices)

	page, err = Read([]byte(row("DCGM_FI_DEV_GPU_UTIL", "1", `,pod="",namespace=""`)))
	require.NoError(t, err)
	assert.True(t, page.AsksKubelet, "it asks, and nobody holds the device")
	assert.Zero(t, page.Holders)
}

func TestPagesThatAreRefused(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"cut off":         {`DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GP`, "no line of the page"},
		"a text as value": {row("DCGM_FI_DEV_BRAND", "Tesla", ""), "Tesla"},
		"HTML":            {"<html><body>login</body></html>\n", "no line of the page"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read([]byte(tt.text))
			require.Error(t, err)
			assert.Contains(t, err.Error(), tt.want)
			assert.Less(t, len(err.Error()), 400)
		})
	}
}

// A line that is none costs itself.
func TestRefusedLines(t *testing.T) {
	p, err := Read([]byte(row("DCGM_FI_DEV_BRAND", "Tesla", "") + row("DCGM_FI_DEV_GPU_UTIL", "7", "") + "...\n"))
	require.NoError(t, err)
	assert.Equal(t, 1, p.Rows)
	assert.Equal(t, 2, p.Refused)
	assert.Contains(t, p.Cause, "Tesla")
}

func TestStoodStill(t *testing.T) {
	read := func(energy, clock string) *Page {
		rows := map[string]string{"DCGM_FI_DEV_SM_CLOCK": clock}
		if energy != "" {
			rows["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"] = energy
		}
		page, err := Read(text(rows))
		require.NoError(t, err)
		return page
	}
	for _, tt := range []struct {
		name         string
		before, now  *Page
		still, known bool
	}{
		{"energy rises", read("1", "900"), read("2", "900"), false, true},
		{"nothing moves", read("1", "900"), read("1", "900"), true, true},
		{"a clock moves", read("1", "900"), read("1", "901"), false, true},
		{"no energy", read("", "900"), read("", "900"), false, false},
	} {
		still, known := tt.now.StoodStill(tt.before)
		assert.Equal(t, tt.still, still, tt.name)
		assert.Equal(t, tt.known, known, tt.name)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(text(whole()))
	f.Add([]byte(`DCGM_FI_DEV_GPU_UTIL{gpu="0"UUID="GPU-1"} 1`))
	f.Add([]byte("# TYPE a gauge\na 1\n# EOF\r\n...\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		page, err := Read(raw)
		if err != nil {
			assert.LessOrEqual(t, len(err.Error()), maxCause+100)
			return
		}
		if page.Known > page.Rows || page.Holders > page.Rows || page.Devices > maxDevices || len(page.Drivers) > maxNames {
			t.Fatalf("%+v", page)
		}
		still, known := page.StoodStill(page)
		assert.Equal(t, known, still, "a page beside itself")
		page.Lacks()
	})
}
