// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package xid

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// samples is where the vendor's catalogue and real kernel logs lie beside a
// checkout; they are not part of it.
const samples = "../../../shared/data/xid"

func TestLookup(t *testing.T) {
	for _, tc := range []struct {
		code     int
		mnemonic string
		fatal    bool
		severity Severity
	}{
		{13, "ROBUST_CHANNEL_GR_EXCEPTION", true, Error},
		{31, "ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT", true, Error},
		{45, "ROBUST_CHANNEL_PREEMPTIVE_REMOVAL", true, Warn},
		{48, "ROBUST_CHANNEL_GPU_ECC_DBE", true, Fatal},
		{63, "INFOROM_DRAM_RETIREMENT_EVENT", false, Info},
		{64, "INFOROM_DRAM_RETIREMENT_FAILURE", false, Error},
		{79, "ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS", true, Fatal},
		{92, "EXCESSIVE_SBE_INTERRUPTS", false, Warn},
		{94, "ROBUST_CHANNEL_CONTAINED_ERROR", true, Error},
		{95, "ROBUST_CHANNEL_UNCONTAINED_ERROR", true, Fatal},
		{119, "GSP_RPC_TIMEOUT", true, Fatal},
		{154, "GPU_RECOVERY_ACTION_CHANGED", false, Warn},
		{172, "UNCORRECTABLE_SRAM_ERROR", true, Fatal},
	} {
		t.Run(strconv.Itoa(tc.code), func(t *testing.T) {
			e, ok := Lookup(tc.code)
			require.True(t, ok)
			assert.Equal(t, tc.code, e.Code)
			assert.Equal(t, tc.mnemonic, e.Mnemonic)
			assert.Equal(t, tc.fatal, e.Fatal)
			assert.Equal(t, tc.severity, e.Severity)
		})
	}
}

// An unknown code is reported as unknown, and can still be shown.
func TestLookupUnknown(t *testing.T) {
	for _, code := range []int{-1, 0, 173, 99999} {
		e, ok := Lookup(code)
		assert.False(t, ok, code)
		assert.Equal(t, code, e.Code)
		assert.Empty(t, e.Mnemonic)
		assert.Contains(t, e.Meaning, strconv.Itoa(code))
		assert.NotEmpty(t, e.Action)
		assert.False(t, e.Fatal)
		assert.Equal(t, Warn, e.Severity)
	}
}

// Every entry is whole, short enough for a message, and does not contradict
// itself.
func TestCatalogue(t *testing.T) {
	mnemonic := regexp.MustCompile(`^[A-Z][A-Z0-9_]+$`)
	severities := []Severity{Info, Warn, Error, Fatal}
	codes := Codes()
	require.True(t, slices.IsSorted(codes))
	require.Len(t, slices.Compact(slices.Clone(codes)), len(codes), "a code twice")
	for _, e := range catalogue {
		assert.Regexp(t, mnemonic, e.Mnemonic, e.Code)
		for what, text := range map[string]string{"meaning": e.Meaning, "action": e.Action} {
			assert.NotEmpty(t, text, "%d %s", e.Code, what)
			assert.LessOrEqual(t, len(text), MaxText, "%d %s", e.Code, what)
			assert.Equal(t, text, safetext.Strip(text, MaxText), "%d %s", e.Code, what)
			assert.True(t, strings.HasSuffix(text, "."), "%d %s is no sentence", e.Code, what)
		}
		assert.Contains(t, severities, e.Severity, e.Code)
		switch e.Severity {
		case Fatal:
			assert.True(t, e.Fatal, "%d: a GPU that cannot be relied on ends its workload", e.Code)
		case Info:
			assert.False(t, e.Fatal, "%d: what ends the workload is more than information", e.Code)
		}
		if strings.Contains(e.Meaning, "do not use this code") {
			assert.False(t, e.Fatal, e.Code)
			assert.Equal(t, Warn, e.Severity, e.Code)
		}
	}
}

// asks are what the codes ask for.
type asks struct {
	Unused      []int `yaml:"unused"`
	RestartApp  []int `yaml:"restart_app"`
	ResetGPU    []int `yaml:"reset_gpu"`
	RestartNode []int `yaml:"restart_node"`
	Ignore      []int `yaml:"ignore"`
	Quiet       []int `yaml:"quiet"`
	Other       []int `yaml:"other"`
	NVLink      map[int]struct {
		Reset   int `yaml:"reset"`
		Nothing int `yaml:"nothing"`
	} `yaml:"nvlink"`
}

func readAsks(t *testing.T) (a asks) {
	t.Helper()
	text, err := os.ReadFile("testdata/asks.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &a))
	return a
}

// The vendor's documentation and the catalogue have the same codes, and agree about
// what each of them asks for.
func TestCatalogueAgreesWithVendor(t *testing.T) {
	a := readAsks(t)
	each := func(codes []int, check func(code int, e Entry)) {
		for _, code := range codes {
			e, ok := Lookup(code)
			require.True(t, ok, "code %d is missing", code)
			check(code, e)
		}
	}
	each(a.RestartApp, func(code int, e Entry) {
		assert.True(t, e.Fatal, code)
		assert.Equal(t, Error, e.Severity, code)
		assert.Contains(t, strings.ToLower(e.Action), "restart the application", code)
	})
	each(a.ResetGPU, func(code int, e Entry) {
		assert.Contains(t, []Severity{Warn, Error, Fatal}, e.Severity, code)
		assert.Regexp(t, `(?i)reset`, e.Action, code)
	})
	each(a.RestartNode, func(code int, e Entry) { assert.Equal(t, Fatal, e.Severity, code) })
	each(slices.Concat(a.Ignore, a.Quiet), func(code int, e Entry) {
		assert.NotEqual(t, Fatal, e.Severity, code)
		assert.True(t, strings.HasPrefix(e.Action, "Nothing"), code)
	})
	each(a.Quiet, func(code int, e Entry) { assert.Equal(t, Info, e.Severity, code) })
	for _, code := range Codes() {
		e, _ := Lookup(code)
		assert.Equal(t, slices.Contains(a.Unused, code), strings.Contains(e.Meaning, "do not use this code"), code)
		assert.Equal(t, slices.Contains(a.RestartApp, code), e.Bucket == RestartApp, code)
		assert.Equal(t, slices.Contains(a.ResetGPU, code), e.Bucket == ResetGPU, code)
		assert.Equal(t, slices.Contains(a.RestartNode, code), e.Bucket == RestartNode || e.Bucket == RestartVM, code)
		if slices.Contains(a.Ignore, code) || slices.Contains(a.Quiet, code) {
			assert.Equal(t, Ignore, e.Bucket, code)
		}
	}
	assert.ElementsMatch(t, slices.Concat(a.Unused, a.RestartApp, a.ResetGPU, a.RestartNode, a.Ignore, a.Quiet, a.Other), Codes())
}

// Where the vendor's catalogue is beside the checkout: its names are ours, and its texts
// are not.
func TestNamesOfTheVendor(t *testing.T) {
	for _, row := range readCSV(t, "xid-catalog.csv") {
		code, err := strconv.Atoi(row["xid"])
		require.NoError(t, err)
		e, ok := Lookup(code)
		require.True(t, ok, code)
		var aliases []string
		for alias := range strings.SplitSeq(row["mnemonic"], "/") {
			aliases = append(aliases, strings.TrimSpace(alias))
		}
		assert.Contains(t, aliases, e.Mnemonic, code)
		assert.Equal(t, Bucket(row["immediate_resolution"]), e.Bucket, code)
		assert.NotContains(t, e.Meaning, row["description"], "%d: a copied text", code)
	}
}

// For the NVLink codes the line in the kernel log decides. A code with lines
// that are all fatal or all harmless must state the one or the other; a code with both
// must send the reader to the line.
func TestCatalogueAgreesWithNVLinkRules(t *testing.T) {
	a := readAsks(t)
	require.Len(t, a.NVLink, 7)
	for code, lines := range a.NVLink {
		e, ok := Lookup(code)
		require.True(t, ok, code)
		switch {
		case lines.Nothing == 0:
			assert.Equal(t, Fatal, e.Severity, code)
		case lines.Reset == 0:
			assert.Equal(t, Warn, e.Severity, code)
		default:
			assert.Contains(t, e.Meaning, "Nonfatal", code)
			assert.Contains(t, e.Action, "Nonfatal:", code)
			assert.Equal(t, lines.Reset > lines.Nothing, e.Fatal, code)
		}
	}
}

// readCSV returns the rows of a sample table by column name, none where it is not beside
// the checkout.
func readCSV(t *testing.T, name string) []map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(samples, name))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	rows := make([]map[string]string, 0, len(records)-1)
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, column := range records[0] {
			row[column] = record[i]
		}
		rows = append(rows, row)
	}
	return rows
}
