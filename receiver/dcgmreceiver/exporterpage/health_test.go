// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporterpage

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/dcgm"
)

// Every check of the health of a board has fields on a page, and each of them a line.
func TestEveryCheckHasItsFields(t *testing.T) {
	rows := map[string]string{}
	for _, r := range names.HealthReasons() {
		if r.Only&^health.NVIDIA != 0 {
			continue
		}
		for _, set := range r.Needs {
			for _, metric := range set {
				fields := fieldsOf(metric)
				if metric == names.GPURemappedRowsPending.Name || metric == names.GPURetiredFailure.Name {
					continue // of other vendors
				}
				require.NotEmpty(t, fields, "%s of %s", metric, r.Name)
				rows[dcgm.Table.Fields[fields[0]].Name] = "1"
			}
		}
	}
	whole, err := Read(text(rows), pagetext.Options{})
	require.NoError(t, err)
	unjudged, all := whole.Unjudged("")
	assert.Empty(t, unjudged)
	assert.Positive(t, all)

	unjudged, none := (&Page{}).Unjudged("")
	assert.Len(t, unjudged, none)
	for _, u := range unjudged {
		require.NotEmpty(t, u.Lacks, u.Reason)
		for _, l := range u.Lacks {
			if l.Field == "DCGM_FI_DEV_CLOCKS_EVENT_REASONS" {
				continue // of which the name depends on the version
			}
			assert.Regexp(t, "^(# where the exporter knows it, else it does not start: )?"+l.Field+", (gauge|counter), [^,]+[.]$", l.Line)
			assert.Equal(t, u.Optional || u.Reason == "sram_worn", strings.HasPrefix(l.Line, "#"), u.Reason)
		}
	}
}

func TestUnjudged(t *testing.T) {
	for name, test := range map[string]struct {
		rows []string
		want map[string]string // reason: its fields; empty: it is judged
	}{
		"one of two is enough":     {[]string{"DCGM_FI_DEV_ROW_REMAP_PENDING"}, map[string]string{"remap_pending": ""}},
		"the set with least to do": {[]string{"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_PCIE_LINK_GEN"}, map[string]string{"pcie_width": "DCGM_FI_DEV_PCIE_MAX_LINK_GEN"}},
		"corrected errors alone":   {[]string{"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"}, map[string]string{"ecc_uncorrected": "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"}},
	} {
		t.Run(name, func(t *testing.T) {
			rows := map[string]string{"DCGM_FI_DEV_SM_CLOCK": "1"}
			for _, family := range test.rows {
				rows[family] = "1"
			}
			page, err := Read(text(rows), pagetext.Options{})
			require.NoError(t, err)
			found := map[string]string{}
			unjudged, _ := page.Unjudged("")
			for _, u := range unjudged {
				var fields []string
				for _, l := range u.Lacks {
					fields = append(fields, l.Field)
				}
				found[u.Reason] = strings.Join(fields, " ")
			}
			for reason, want := range test.want {
				assert.Equal(t, want, found[reason], reason)
			}
			assert.NotContains(t, found, "pages_worn", "a board of today remaps rows")
		})
	}
	page, err := Read([]byte(strings.ReplaceAll(row("DCGM_FI_DEV_SM_CLOCK", "1", ""), "H100", "Tesla V100-SXM2-32GB")), pagetext.Options{})
	require.NoError(t, err)
	unjudged, _ := page.Unjudged("")
	var reasons []string
	for _, u := range unjudged {
		reasons = append(reasons, u.Reason)
	}
	assert.Contains(t, reasons, "pages_worn")
	assert.NotContains(t, reasons, "remap_worn")
}
