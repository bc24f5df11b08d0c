// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext"
)

// FuzzKinds: no page makes the reading of any vendor's exporter panic, or count more
// devices with an owner than there are.
func FuzzKinds(f *testing.F) {
	f.Add("gpu_gfx_activity{gpu_id=\"0\",serial_number=\"S1\",card_model=\"102\",pod=\"a\"} 40\nGPU_NODES_TOTAL 8\n")
	f.Add("habanalabs_utilization{Serial=\"AM1\",id=\"0\"} 12\nhabanalabs_memory_total_bytes{Serial=\"AM1\"} 0\n")
	f.Add("xpum_power_watts{pci_bdf=\"0000:4d:00.0\",sub_dev=\"1\",kube_pod=\"a\"} 44\nhw_status{pci_bdf=\"0000:4d:00.0\"} 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, k := range kinds {
			page, err := k.Read([]byte(text), pagetext.Options{})
			if err != nil {
				continue
			}
			assert.LessOrEqual(t, page.WithOwner, page.Boards+page.Parts)
			assert.LessOrEqual(t, len(page.Lacks(k)), len(k.Cards))
			_, _ = k.Settings(page), k.Version(page)
		}
	})
}
