// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuspecs

// Where the figures are from. Vendors print figures with structured sparsity beside or in place of
// those of dense products, which are half of them: these are dense.
const (
	stas  = "github.com/stas00/ml-engineering compute/accelerator/README.md@744d01e18b79"
	titan = "github.com/pytorch/torchtitan torchtitan/tools/utils.py@b5bcd76c"
)

type peaks = map[Precision]float64

// table is the rows by normalized names. Names that stand for several boards, as H100 alone or
// MI250X/MI250, are in none of them; nor are boards with another number of units than the one of
// the source, as A100-SXM-64GB, or of which no source has a rate, as H20-3e: such a rate is
// configured.
var table = []row{
	of("GB300", `GB300`, stas, 2500, peaks{FP32: 80, TF32: 1250, FP8: 5000}),
	of("GB200", `GB200`, stas, 2500, peaks{FP32: 80, TF32: 1250, FP8: 5000}),
	of("B300", `B300(?: SXM6?)?(?: AC)?`, stas, 2250, peaks{FP32: 80, TF32: 1125, FP8: 4500}),
	of("B200", `B200(?: SXM6?)?`, stas, 2250, peaks{FP32: 80, TF32: 1125, FP8: 4500}),
	of("H200 SXM", `H200(?: SXM5?)?(?: 141GB)?(?: HBM3E)?`, stas, 989, peaks{FP32: 67, TF32: 494.5, FP8: 1979}),
	of("GH200", `GH200(?: (?:120|144|480)GB?)?(?: HBM3E?)?`, stas, 989, peaks{FP32: 67, TF32: 494.5, FP8: 1979}),
	of("H100 SXM", `H100 (?:SXM5?(?: 80GB)?(?: HBM3)?|80GB HBM3)`, stas, 989, peaks{FP32: 67, TF32: 494.5, FP8: 1979}),
	of("H100 PCIe", `H100 (?:80GB )?PCIE(?: 80GB)?`, stas, 756, peaks{FP32: 51, TF32: 378, FP8: 1513}),
	of("H100 NVL", `H100 NVL`, titan, 835, nil),
	of("H20", `H20`, titan, 148, nil),
	of("A100", `A100 (?:(?:SXM4?|PCIE) (?:40|80)GB|(?:40|80)GB PCIE)`, stas, 312, peaks{FP32: 19.5, TF32: 156}),
	of("L40S", `L40S`, stas, 362, peaks{FP32: 91.6, TF32: 183, FP8: 733}),
	of("A6000", `RTX A6000`, titan, 154.85, nil),
	of("MI355X", `MI355X(?: OAM)?`, stas, 2500, peaks{FP32: 157.3, FP8: 5000}),
	of("MI325X", `MI325X(?: OAM)?`, stas, 1300, peaks{FP32: 163.4, TF32: 653.7, FP8: 2610}),
	of("MI300X", `MI300X(?: OAM)?`, stas, 1300, peaks{FP32: 163.4, TF32: 653.7, FP8: 2610}),
	// A device is one of the two dies of a board.
	of("MI250X, a die", `MI250X(?: OAM)?`, titan, 191.5, nil),
	of("Gaudi3", `GAUDI ?3`, stas, 1677, peaks{FP16: 459, FP32: 229, TF32: 459}),
	of("Gaudi2", `GAUDI ?2`, stas, 432, peaks{FP16: 0, FP8: 865}),
}
