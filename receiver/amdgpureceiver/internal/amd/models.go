// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/partition"
)

// model is what is known of a product.
type model struct {
	name   string   // that is in the product's name
	ids    []uint16 // PCI device ids, those of virtual functions included
	memory float64  // bytes that the driver reports for the whole board
	shared bool     // with the processor: the driver may report less, as the host is set up
}

// models are the products of which the page may lack partitions.
var models = []model{
	{"MI210", []uint16{0x740f, 0x7410}, 65520 * mib, false},
	{"MI250", []uint16{0x7408, 0x740c}, 65520 * mib, false}, // one of the two dies of a board
	{"MI300A", []uint16{0x74a0}, 131072 * mib, true},
	{"MI300X", []uint16{0x74a1, 0x74a9, 0x74b5, 0x74bd}, 196592 * mib, false},
	{"MI308X", []uint16{0x74a2, 0x74a8, 0x74b6}, 196592 * mib, false},
	{"MI325X", []uint16{0x74a5, 0x74b9}, 262128 * mib, false},
	{"MI350X", []uint16{0x75a0, 0x75b0}, 294896 * mib, false},
	{"MI355X", []uint16{0x75a3, 0x75b3}, 294896 * mib, false},
}

// findModel finds a product by its PCI device id, or else by its name. It is the zero model
// for an unknown one.
func findModel(id uint16, series string) model {
	for _, m := range models {
		if slices.Contains(m.ids, id) {
			return m
		}
	}
	series = strings.ToUpper(series)
	for _, m := range models {
		if strings.Contains(series, m.name) {
			return m
		}
	}
	return model{}
}

// partitions is the number of partitions of a board in a mode, 0 where it is not known.
func (m *model) partitions(mode string) int {
	if mode == "spx" {
		return 0
	}
	return partition.Count(mode, m.name)
}
