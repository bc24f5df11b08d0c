// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporterpage

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/dcgm"
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
			rows[dcgm.Table.Fields[group[0]].Name] = "7"
		}
	}
	return rows
}

func noThrottle(rows map[string]string) { delete(rows, "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS") }

func text(rows map[string]string) []byte {
	var b strings.Builder
	for family, value := range rows {
		b.WriteString(row(family, value, ""))
	}
	return []byte(b.String())
}

func TestLacks(t *testing.T) {
	newest := []string{
		"DCGM_FI_DEV_GPU_UTIL_RATIO: card utilization", "DCGM_FI_DEV_FB_CAPACITY_BYTES: card memory total, event gpu.memory.pressure",
		"DCGM_FI_PROF_SM_UTIL_RATIO: card SM", "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL: event gpu.exporter.down (frozen)",
	}
	tests := []struct {
		name   string
		change func(map[string]string)
		want   []string // field: what for
		tag    string   // of the exporter's image
	}{
		{"all is there", func(map[string]string) {}, nil, ""},
		{"no profiling", func(rows map[string]string) {
			for family := range rows {
				if strings.Contains(family, "_PROF_") {
					delete(rows, family)
				}
			}
		}, []string{
			"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE: card tensor", "DCGM_FI_PROF_SM_ACTIVE: card SM", "DCGM_FI_PROF_DRAM_ACTIVE: card DRAM",
			"DCGM_FI_PROF_PIPE_FP16_ACTIVE: card FP16", "DCGM_FI_PROF_PIPE_FP32_ACTIVE: card FP32",
		}, ""},
		{"one field for several", func(rows map[string]string) { delete(rows, "DCGM_FI_DEV_FB_USED") },
			[]string{"DCGM_FI_DEV_FB_USED: card memory used, event gpu.memory.pressure"}, ""},
		{"memory by used and free", func(rows map[string]string) {
			delete(rows, "DCGM_FI_DEV_FB_TOTAL")
			rows["DCGM_FI_DEV_FB_FREE"] = "1"
		}, nil, ""},
		{"another field will do", func(rows map[string]string) {
			delete(rows, "DCGM_FI_DEV_GPU_UTIL")
			rows["DCGM_FI_PROF_GR_ENGINE_ACTIVE"] = "0.5"
		}, nil, ""},
		{"blank", func(rows map[string]string) { rows["DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"] = "9223372036854775794" },
			[]string{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL (blank): event gpu.ecc.uncorrected"}, ""},
		{"the names of DCGM 4.6", func(rows map[string]string) {
			delete(rows, "DCGM_FI_PROF_SM_ACTIVE")
			rows["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"] = "0.1"
			rows["DCGM_FI_PROF_DRAM_UTIL_RATIO"] = "0.1"
		}, []string{"DCGM_FI_PROF_SM_UTIL_RATIO: card SM"}, ""},
		{"a field of DCGM 4.7", func(rows map[string]string) {
			delete(rows, "DCGM_FI_DEV_FB_TOTAL")
			delete(rows, "DCGM_FI_DEV_GPU_UTIL")
			delete(rows, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")
			delete(rows, "DCGM_FI_PROF_SM_ACTIVE")
			rows["DCGM_FI_DEV_MEMORY_UTIL_RATIO"] = "0.500000"
		}, newest, ""},
		{"an image with DCGM 4.7", func(rows map[string]string) {
			delete(rows, "DCGM_FI_DEV_FB_TOTAL")
			delete(rows, "DCGM_FI_DEV_GPU_UTIL")
			delete(rows, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")
			delete(rows, "DCGM_FI_PROF_SM_ACTIVE")
		}, newest, "4.7.0-4.9.0-distroless"},
		{"all is there, in base units", func(rows map[string]string) {
			for old, name := range map[string]string{"DCGM_FI_DEV_FB_TOTAL": "DCGM_FI_DEV_FB_CAPACITY_BYTES", "DCGM_FI_DEV_FB_USED": "DCGM_FI_DEV_FB_USED_BYTES"} {
				delete(rows, old)
				rows[name] = "1048576"
			}
			delete(rows, "DCGM_FI_DEV_GPU_UTIL")
			rows["DCGM_FI_DEV_GPU_UTIL_RATIO"] = "0.500000"
			delete(rows, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")
			rows["DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL"] = "7"
		}, nil, ""},
		// An exporter ends over a name that it does not know: of 4.x the new one,
		// before it the old one.
		{"throttle, version unknown", noThrottle, []string{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS: event gpu.throttle"}, ""},
		{"throttle, image without a version", noThrottle, []string{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS: event gpu.throttle"}, "latest"},
		{"throttle, 4.x", noThrottle, []string{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS: event gpu.throttle"}, "4.5.3-4.8.2-ubi9"},
		{"throttle, 3.x", noThrottle, []string{"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS: event gpu.throttle"}, "3.3.9-3.6.1-ubuntu22.04"},
		{"throttle of 4.x beside a field that is not there", func(rows map[string]string) {
			noThrottle(rows)
			delete(rows, "DCGM_FI_PROF_SM_ACTIVE")
			rows["DCGM_FI_DEV_CLOCKS_EVENT_REASONS"] = "0"
		}, []string{"DCGM_FI_PROF_SM_ACTIVE: card SM"}, ""},
		{"throttle, blank", func(rows map[string]string) {
			noThrottle(rows)
			rows["DCGM_FI_DEV_CLOCKS_EVENT_REASONS"] = "9223372036854775794"
		}, []string{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS (blank): event gpu.throttle"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rows := whole()
			tt.change(rows)
			page, err := Read(text(rows), pagetext.Options{})
			require.NoError(t, err)
			var got []string
			for _, l := range page.Lacks(tt.tag) {
				name := l.Field
				if l.Blank {
					name += " (blank)"
					assert.Empty(t, l.Line)
				} else {
					for line := range strings.SplitSeq(l.Line, "\n") {
						assert.Regexp(t, "^(# dcgm-exporter [^:]+: )?DCGM_[A-Z0-9_]+, (gauge|counter), [^,]+$", line, "a line of a counters file")
						assert.Equal(t, strings.HasPrefix(tt.name, "throttle, ") && !strings.Contains(tt.name, ".x"), strings.HasPrefix(line, "#"), "a comment harms no version")
					}
					assert.Contains(t, l.Line, l.Field+", ")
					assert.Equal(t, strings.HasSuffix(l.Field, "_BYTES"), strings.Contains(l.Line, "(in bytes)"), l.Line)
				}
				got = append(got, fmt.Sprintf("%s: %s", name, strings.Join(l.For, ", ")))
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestEveryNeedHasALine(t *testing.T) {
	all := (&Page{}).Lacks("")
	for _, l := range all {
		assert.Contains(t, l.Line, l.Field+", ")
		_, known := dcgm.Table.ByName(l.Field)
		assert.True(t, known, l.Field)
	}
	for id, line := range lines {
		assert.True(t, slices.ContainsFunc(all, func(l Lack) bool { return strings.Contains(l.Line, line) }), "%s is needed for nothing", dcgm.Table.Fields[id].Name)
	}
}

func TestWhatAPageContains(t *testing.T) {
	for rows, want := range map[string]string{
		row("DCGM_FI_DEV_GPU_UTIL", "1", ""):                                            "2.x or 3.0",
		row("DCGM_FI_DEV_GPU_UTIL", "1", `,Hostname="h",pci_bus_id="00000000:53:00.0"`): "3.3 to 4.5",
		row("DCGM_FI_DEV_GPU_UTIL", "1", `,hostname="h",pci_bus_id="00000000:53:00.0"`): "4.6 or newer",
		row("DCGM_FI_PROF_SM_UTIL_RATIO", "1", ""):                                      "4.6 or newer",
		row("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "0", `,pci_bus_id="00000000:53:00.0"`):  "4.0 to 4.5",
		row("dcgm_gpu_utilization", "1", ""):                                            "1.x",
		row("DCGM_FI_DEV_GPU_UTIL_RATIO", "1", ""):                                      "4.6 or newer",
		row("DCGM_FI_DEV_FB_USED_BYTES", "1", ""):                                       "4.9 or newer, with DCGM 4.7",
	} {
		page, err := Read([]byte(rows), pagetext.Options{})
		require.NoError(t, err)
		assert.Equal(t, want, page.Version(), rows)
	}
	quiet, err := Read([]byte(row("DCGM_FI_DEV_GPU_UTIL", "1", `,pci_bus_id="00000000:53:00.0"`)), pagetext.Options{})
	require.NoError(t, err)
	assert.True(t, quiet.QuietXID(), "a newer exporter prints no XID before the first")
	assert.NotContains(t, fmt.Sprint(quiet.Lacks("")), "XID")
	old, err := Read([]byte(row("DCGM_FI_DEV_GPU_UTIL", "1", "")), pagetext.Options{})
	require.NoError(t, err)
	assert.False(t, old.QuietXID())
	assert.Contains(t, fmt.Sprint(old.Lacks("")), "XID")

	labelled, err := Read([]byte(strings.ReplaceAll(row("DCGM_FI_DEV_GPU_UTIL", "1", ""), "DCGM_FI_DRIVER", "DCGM_FI_SYSTEM_DRIVER")), pagetext.Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"580.1"}, labelled.Drivers)

	raw, err := os.ReadFile("../testdata/pages/shared-4.6.prom")
	require.NoError(t, err)
	page, err := Read(raw, pagetext.Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"580.126.09"}, page.Drivers)
	assert.Equal(t, []string{"NVIDIA H100 80GB HBM3"}, page.Models)
	assert.True(t, page.AsksKubelet)
	assert.Positive(t, page.WithOwner)
	assert.Positive(t, page.Devices)

	page, err = Read([]byte(row("DCGM_FI_DEV_GPU_UTIL", "1", `,pod="",namespace=""`)), pagetext.Options{})
	require.NoError(t, err)
	assert.True(t, page.AsksKubelet, "it asks, and nobody holds the device")
	assert.Zero(t, page.WithOwner)
}

// Pages of which the receiver makes no metrics are the same to it and to a reader
// of one page.
func TestOutcomes(t *testing.T) {
	const sentinel = "9223372036854775794"
	for name, tt := range map[string]struct {
		text string
		want fetch.Outcome
		why  string // or a part of the error
	}{
		"good":             {row("DCGM_FI_DEV_GPU_UTIL", "1", ""), fetch.OK, ""},
		"CRLF":             {strings.ReplaceAll(row("DCGM_FI_DEV_GPU_UTIL", "1", ""), "\n", "\r\n"), fetch.OK, ""},
		"leading blanks":   {"  " + row("DCGM_FI_DEV_GPU_UTIL", "1", ""), fetch.OK, ""},
		"an exemplar":      {row("DCGM_FI_DEV_GPU_UTIL", `1 # {trace_id="a"} 1 1.5`, ""), fetch.OK, ""},
		"empty":            {"", fetch.Empty, "no samples"},
		"comments":         {"# TYPE A gauge\n", fetch.Empty, "no samples"},
		"another program":  {"vllm:num_requests_running 1\n", dcgm.Exporter.Other(), "samples: 1, of DCGM: 0, first: vllm:num_requests_running"},
		"sentinels":        {row("DCGM_FI_DEV_GPU_TEMP", sentinel, ""), fetch.NoValue, "GPUs: 1, rows: 1, values: 0"},
		"no GPU":           {"DCGM_FI_DEV_NVSWITCH_POWER{nvswitch=\"0\"} 1\n", fetch.NoDevice, "of a GPU: 0"},
		"cut off":          {`DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GP`, fetch.Parse, "no page of the text format"},
		"a text as value":  {row("DCGM_FI_DEV_BRAND", "Tesla", ""), fetch.Parse, "Tesla"},
		"HTML":             {"<html><body>login</body></html>\n", fetch.Parse, "it begins with"},
		"too many samples": {row("DCGM_FI_DEV_GPU_UTIL", "1", "") + row("DCGM_FI_DEV_GPU_TEMP", "1", "") + row("DCGM_FI_DEV_SM_CLOCK", "1", ""), fetch.TooLarge, "sample_limit"},
	} {
		t.Run(name, func(t *testing.T) {
			page, err := Read([]byte(tt.text), pagetext.Options{Samples: 2})
			outcome, why := fetch.Failed(err), ""
			if err == nil {
				outcome, why = page.Outcome, page.Why
			} else {
				why = err.Error()
			}
			assert.Equal(t, tt.want, outcome)
			assert.Contains(t, why, tt.why)
			assert.Equal(t, tt.want != fetch.OK, Remedy(outcome, err) != "")
		})
	}
}

func TestRemedies(t *testing.T) {
	for want, err := range map[string]error{
		"scrape::basic_auth":  &fetch.StatusError{Code: 401, Text: "401 Unauthorized"},
		"usually /metrics":    &fetch.StatusError{Code: 404, Text: "404 Not Found"},
		"may speak TLS":       &fetch.StatusError{Code: 400, Text: "400 Bad Request"},
		"one entity fails":    &fetch.StatusError{Code: 500, Text: "500 Internal Server Error"},
		"path and auth":       &fetch.StatusError{Code: 418, Text: "418 I'm a teapot"},
		"that it redirects":   &fetch.StatusError{Code: 302, Text: "302 Found"},
		"redirects to into":   &fetch.RedirectError{To: "http://b", Within: "a"},
		"speaks no TLS":       errors.New("http: server gave HTTP response to HTTPS client"),
		"the port speaks TLS": errors.New(`net/http: HTTP/1.x transport connection broken: malformed HTTP response "\x15\x03\x01\x00\x02\x02"`),
		"renew":               &url.Error{Op: "Get", Err: &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}},
		"tls_config":          &url.Error{Op: "Get", Err: x509.UnknownAuthorityError{}},
		"name":                fmt.Errorf("x: %w", fetch.ErrTooLarge),
	} {
		assert.Contains(t, Remedy(fetch.Failed(err), err), want)
	}
}

// A line that is no sample costs itself, and so does one that is too long; of a
// series that is repeated the first counts.
func TestRefusedLines(t *testing.T) {
	good := row("DCGM_FI_DEV_GPU_UTIL", "7", "")
	text := row("DCGM_FI_DEV_BRAND", "Tesla", "") + good + "...\n" + good + row("DCGM_FI_DEV_NEW", "1", `,x="`+strings.Repeat("x", 200)+`"`) +
		`DCGM_FI_DEV_GPU_TEMP{UUID="GPU-2"} 9223372036854775794` + "\n"
	p, err := Read([]byte(text), pagetext.Options{MaxLabelBytes: 100})
	require.NoError(t, err)
	assert.Equal(t, []int{4, 2, 1, 1}, []int{p.Rows, p.Unparsable, p.Repeated, p.TooLong})
	assert.Contains(t, p.Cause, "Tesla")
	assert.Contains(t, p.LongCause, "label x of DCGM_FI_DEV_NEW has 200 bytes")
	assert.Equal(t, []int{2, 1}, []int{p.Devices, p.Silent})
}

// A page of more devices than a target may have is read as the receiver reads it.
func TestOverLimit(t *testing.T) {
	text := row("DCGM_FI_DEV_GPU_UTIL", "7", "")
	for i := range devicemap.MaxDevices {
		text += fmt.Sprintf("DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-of-%d\"} 40\n", i)
	}
	p, err := Read([]byte(text), pagetext.Options{})
	require.NoError(t, err)
	assert.Equal(t, fetch.OK, p.Outcome)
	assert.Equal(t, []int{devicemap.MaxDevices, 1}, []int{p.Devices, p.Beyond})
	assert.Contains(t, p.OverLimit, "more than 1024 GPUs")
	assert.Contains(t, p.OverRemedy, "of each node by itself")
}

func TestStoodStill(t *testing.T) {
	read := func(energy, clock string) *Page {
		rows := map[string]string{"DCGM_FI_DEV_SM_CLOCK": clock}
		if energy != "" {
			rows["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"] = energy
		}
		page, err := Read(text(rows), pagetext.Options{})
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
		page, err := Read(raw, pagetext.Options{})
		if err != nil {
			assert.NotEqual(t, fetch.OK, fetch.Failed(err))
			return
		}
		if page.Known > page.Rows || page.WithOwner > page.Rows || page.Devices > devicemap.MaxDevices || len(page.Drivers) > maxNames {
			t.Fatalf("%+v", page)
		}
		still, known := page.StoodStill(page)
		assert.Equal(t, known, still, "a page beside itself")
		page.Lacks("")
		page.Unjudged("")
	})
}
