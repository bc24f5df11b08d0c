// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	h100 = "GPU-3f2504e0-4f89-41d3-9a0c-0305e82c3301"
	t4   = "GPU-9a8b7c6d-1111-4222-8333-444455556666"
)

func testdata(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(text)
}

// programs writes stand-ins of nvidia-smi, which prints one text and then the other, and
// of the helper.
func programs(t *testing.T, before, after, once string) options {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"before": before, "after": after, "once": once} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	o := options{smi: filepath.Join(folder, "smi"), helper: filepath.Join(folder, "helper")}
	require.NoError(t, os.WriteFile(o.smi, fmt.Appendf(nil, "#!/bin/sh\ncd %q\nif [ -e ran ]; then cat after; rm ran; else cat before; : >ran; fi\n", folder), 0o700))
	require.NoError(t, os.WriteFile(o.helper, fmt.Appendf(nil, "#!/bin/sh\ncat %q\n", filepath.Join(folder, "once")), 0o700))
	return o
}

// What differs is found, and nothing else: each case changes one text of a pair that agrees.
func TestComparing(t *testing.T) {
	type change struct{ from, to string }
	for name, tt := range map[string]struct {
		before, after, once []change
		lines               []string
		last                string
	}{
		"all agree": {last: "90 compared, 0 differ, 0 absent here, 0 absent there"},
		"a reading between the two": {
			after: []change{{"<gpu_temp>34 C", "<gpu_temp>44 C"}, {"<replay_counter>5<", "<replay_counter>9<"}},
			once:  []change{{`"temperature.gpu",` + "\n     \"v\": 34", `"temperature.gpu",` + "\n     \"v\": 45"}, {`"pcie.replays",` + "\n     \"v\": 5", `"pcie.replays",` + "\n     \"v\": 7"}},
			last:  "90 compared, 0 differ, 0 absent here, 0 absent there",
		},
		"mW read as W, and a counter that is ahead": {
			once: []change{{`"v": 71249`, `"v": 71.249`}, {`"pcie.replays",` + "\n     \"v\": 5", `"pcie.replays",` + "\n     \"v\": 6"}},
			lines: []string{
				"differs: " + h100 + " power.usage = 71.249, nvidia-smi 71250, then 71250",
				"differs: " + h100 + " pcie.replays = 6, nvidia-smi 5, then 5",
			},
			last: "90 compared, 2 differ, 0 absent here, 0 absent there",
		},
		"another serial number, minor, layout, reason and driver": {
			once: []change{
				{"1320000000002", "1320000000003"}, {`"minor": 2`, `"minor": 0`}, {`"gi": 9`, `"gi": 7`}, {`"clock.reasons",` + "\n     \"v\": 1", `"clock.reasons",` + "\n     \"v\": 4"},
				{`"driver": "570.124.06"`, `"driver": "570.124.07"`},
			},
			lines: []string{
				`differs: driver = "570.124.07", nvidia-smi "570.124.06", then "570.124.06"`,
				`differs: ` + h100 + ` layout = "1/0 1/1 7/0", nvidia-smi "1/0 1/1 9/0", then "1/0 1/1 9/0"`,
				`differs: ` + h100 + ` minor = 0, nvidia-smi 2, then 2`,
				`differs: ` + h100 + ` clock.reasons.gpu_idle = 0, nvidia-smi 1, then 1`,
				`differs: ` + h100 + ` clock.reasons.sw_power_cap = 1, nvidia-smi 0, then 0`,
				`absent there: ` + h100 + `/7 memory.total = 10334765056`,
				`absent here: ` + h100 + `/9 memory.total = 10334765056`,
				`differs: ` + t4 + ` serial = "1320000000003", nvidia-smi "1320000000002", then "1320000000002"`,
			},
			last: "86 compared, 6 differ, 4 absent here, 4 absent there",
		},
		"a board that does not answer, and values that one side lacks": {
			before: []change{{"<memory_temp>45 C", "<memory_temp>N/A"}}, after: []change{{"<memory_temp>45 C", "<memory_temp>N/A"}},
			once: []change{{`"thread": "0000:d8:00.0",` + "\n   \"r\": 0", `"thread": "0000:d8:00.0",` + "\n   \"r\": 15"}},
			lines: []string{
				"absent there: " + h100 + " temperature.memory = 45",
				"absent here: " + t4 + ` uuid = "` + t4 + `"`,
			},
			last: "49 compared, 0 differ, 40 absent here, 1 absent there",
		},
		"what came meanwhile": {
			after: []change{{"<memory_temp>N/A", "<memory_temp>45 C"}},
			last:  "90 compared, 0 differ, 0 absent here, 0 absent there",
		},
	} {
		// Not in parallel: a program cannot be started while a process that is forked meanwhile has it open.
		t.Run(name, func(t *testing.T) {
			changed := func(file string, changes []change) string {
				text := testdata(t, file)
				for _, c := range changes {
					require.Contains(t, text, c.from)
					text = strings.Replace(text, c.from, c.to, 1)
				}
				return text
			}
			var out bytes.Buffer
			ok, err := run(t.Context(), programs(t, changed("smi.xml", tt.before), changed("smi.xml", tt.after), changed("once.json", tt.once)), &out)
			require.NoError(t, err)
			assert.Equal(t, strings.Contains(tt.last, " 0 differ"), ok)
			for _, line := range tt.lines {
				assert.Contains(t, out.String(), line+"\n")
			}
			if len(tt.lines) == 0 {
				assert.Equal(t, tt.last+"\n", out.String())
			}
			assert.True(t, strings.HasSuffix(out.String(), "\n"+tt.last+"\n") || out.String() == tt.last+"\n", out.String())
		})
	}
}

// A collector's page is compared in the units of its metrics.
func TestComparingAPage(t *testing.T) {
	page := fmt.Sprintf(`# TYPE hw_power_watts gauge
hw_power_watts{hw_id="%[1]s"} 71.249
hw_power_watts{hw_id="%[2]s"} 99
# TYPE hw_temperature_celsius gauge
hw_temperature_celsius{hw_id="%[1]s",hw_sensor_location="gpu"} 34
# TYPE gpu_clock_frequency_hertz gauge
gpu_clock_frequency_hertz{hw_id="%[1]s",gpu_clock_domain="sm"} 3.45e+08
# TYPE hw_gpu_memory_usage_bytes gauge
hw_gpu_memory_usage_bytes{hw_id="%[1]s/9",hw_parent="%[1]s"} 12582912
`, h100, t4)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, page) }))
	t.Cleanup(server.Close)
	o := programs(t, testdata(t, "smi.xml"), testdata(t, "smi.xml"), "")
	o.page = server.URL
	var out bytes.Buffer
	ok, err := run(t.Context(), o, &out)
	require.NoError(t, err)
	assert.False(t, ok)
	assert.Contains(t, out.String(), "differs: "+t4+" power.usage = 99000, nvidia-smi 9870, then 9870\n")
	assert.Contains(t, out.String(), "7 compared, 1 differ, ")
}

// Under load the comparison is made a second time, and the load ends with it.
func TestUnderLoad(t *testing.T) {
	o := programs(t, testdata(t, "smi.xml"), testdata(t, "smi.xml"), testdata(t, "once.json"))
	o.load, o.warm = "sleep 60", 1
	var out bytes.Buffer
	ok, err := run(t.Context(), o, &out)
	require.NoError(t, err)
	assert.True(t, ok)
	const last = "90 compared, 0 differ, 0 absent here, 0 absent there\n"
	assert.Equal(t, "idle:\n"+last+"under load:\n"+last, out.String())
}

func TestCostOfCalls(t *testing.T) {
	o := programs(t, "", "", testdata(t, "once.json"))
	o.runs = 3
	var out bytes.Buffer
	ok, err := run(t.Context(), o, &out)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Regexp(t, `nvmlDeviceGetPowerUsage +2\.0 +310\.0 +310\.0 +310\.0`, out.String())
	assert.Regexp(t, `nvmlDeviceGetMarginTemperature = 13 +1\.0`, out.String())
}

// What is no reading stops with the reason.
func TestWhatCannotBeRead(t *testing.T) {
	smi, once := testdata(t, "smi.xml"), testdata(t, "once.json")
	for want, o := range map[string]options{
		"nvidia-smi -q -x: ":                               programs(t, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver", smi, once),
		"<html> and not <nvidia_smi_log>":                  programs(t, "<html></html>", smi, once),
		"a GPU has no UUID":                                programs(t, strings.ReplaceAll(smi, h100, "N/A"), smi, once),
		"otelcol-gpu-nvml -once: ":                         programs(t, smi, smi, "segmentation fault"),
		"nvmlInit returned 9 (Driver Not Loaded)":          programs(t, smi, smi, `{"system": {"r": 9, "error": "Driver Not Loaded"}}`),
		"no library: libnvidia-ml.so.1: cannot open it; /": programs(t, smi, smi, `{"system": {"missing": ["libnvidia-ml.so.1: cannot open it", "/x"]}}`),
		"executable file not found":                        {smi: "no-nvidia-smi-here"},
	} {
		_, err := run(t.Context(), o, &bytes.Buffer{})
		assert.ErrorContains(t, err, want)
	}
}

// Real files beside the checkout, where they are: each has a board.
func TestRealFiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "shared", "data", "nvidia_smi", "*.xml"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("no real samples beside this checkout")
	}
	for _, path := range files {
		text, err := os.Open(path)
		require.NoError(t, err)
		s, err := readSMI(text)
		require.NoError(t, text.Close())
		require.NoError(t, err, path)
		assert.NotEmpty(t, s, path)
	}
}
