// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuspecs

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The figures as the sources have them, written once more: fp32, tf32, fp16, bf16, fp8; 0 is none.
var facts = map[string][5]float64{
	"NVIDIA GB300":                   {80, 1250, 2500, 2500, 5000},
	"NVIDIA GB200":                   {80, 1250, 2500, 2500, 5000},
	"NVIDIA B300 SXM6 AC":            {80, 1125, 2250, 2250, 4500},
	"NVIDIA B200":                    {80, 1125, 2250, 2250, 4500},
	"NVIDIA H200":                    {67, 494.5, 989, 989, 1979},
	"NVIDIA GH200 480GB":             {67, 494.5, 989, 989, 1979},
	"NVIDIA GH200 144G HBM3e":        {67, 494.5, 989, 989, 1979},
	"NVIDIA H100 80GB HBM3":          {67, 494.5, 989, 989, 1979},
	"NVIDIA H100-SXM5-80GB":          {67, 494.5, 989, 989, 1979},
	"NVIDIA H100 PCIe":               {51, 378, 756, 756, 1513},
	"NVIDIA H100 NVL":                {0, 0, 835, 835, 0},
	"NVIDIA H20":                     {0, 0, 148, 148, 0},
	"NVIDIA A100-SXM4-80GB":          {19.5, 156, 312, 312, 0},
	"NVIDIA A100-SXM4-40GB":          {19.5, 156, 312, 312, 0},
	"A100-SXM4-40GB":                 {19.5, 156, 312, 312, 0},
	"NVIDIA A100-PCIE-40GB":          {19.5, 156, 312, 312, 0},
	"NVIDIA A100 80GB PCIe":          {19.5, 156, 312, 312, 0},
	"NVIDIA L40S":                    {91.6, 183, 362, 362, 733},
	"nvidia l40s":                    {91.6, 183, 362, 362, 733},
	"NVIDIA RTX A6000":               {0, 0, 154.85, 154.85, 0},
	"AMD Instinct MI355X":            {157.3, 0, 2500, 2500, 5000},
	"AMD Instinct MI325X":            {163.4, 653.7, 1300, 1300, 2610},
	"AMD Instinct MI300X OAM":        {163.4, 653.7, 1300, 1300, 2610},
	"AMD Instinct MI250X":            {0, 0, 191.5, 191.5, 0},
	"Gaudi3":                         {229, 459, 459, 1677, 0},
	"Gaudi2":                         {0, 0, 0, 432, 865},
	"  NVIDIA   H100  80GB   HBM3  ": {67, 494.5, 989, 989, 1979},
}

func TestFacts(t *testing.T) {
	for model, want := range facts {
		spec, ok := Lookup(model)
		require.True(t, ok, model)
		for i, p := range []Precision{FP32, TF32, FP16, BF16, FP8} {
			peak, ok := spec.Peak(p)
			assert.Equal(t, want[i] > 0, ok, "%s %s", model, p)
			assert.InDelta(t, want[i]*1e12, peak, 1, "%s %s", model, p)
		}
		assert.NotEmpty(t, spec.Source, model)
	}
}

// What resembles a known model is none.
func TestUnknown(t *testing.T) {
	for _, model := range []string{
		"", "NVIDIA", "H100", "NVIDIA H100", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA H100 64GB HBM2", "NVIDIA H100 80GB HBM2e", "NVIDIA H800",
		"NVIDIA H200 NVL", "NVIDIA H20-3e", "NVIDIA GH100", "NVIDIA A100-SXM-64GB", "NVIDIA A100", "NVIDIA A100X", "GRID A100-10C", "NVIDIA A1000", "NVIDIA A30",
		"NVIDIA L40", "NVIDIA L4", "NVIDIA RTX 6000 Ada Generation", "NVIDIA A40-48Q", "Tesla T4", "Tesla V100-SXM2-32GB", "NVIDIA GeForce RTX 4090",
		"NVIDIA GB10", "NVIDIA GB2000", "AMD Instinct MI300A", "AMD Instinct MI300X HF", "AMD Instinct MI250X/MI250", "AMD Instinct MI308X", "Gaudi", "Gaudi30",
		"my NVIDIA H200", "NVIDIA H200\nx",
	} {
		spec, ok := Lookup(model)
		assert.False(t, ok, "%q is %s", model, spec.Name)
	}
}

// A sparse figure in place of a dense one, or a figure in the wrong column, breaks a ratio that all
// tensor cores have: fp16 is bf16, tf32 a half, fp8 the double of it.
func TestRatios(t *testing.T) {
	exceptions := map[string]bool{"Gaudi3": true} // its matrix engine has other rates for fp16 and tf32
	for _, r := range table {
		bf16 := r.TFLOPS[BF16]
		require.Positive(t, bf16, r.Name)
		odd := false
		for p, ratio := range map[Precision]float64{FP16: 1, TF32: 0.5, FP8: 2} {
			if got, ok := r.TFLOPS[p]; ok {
				odd = odd || math.Abs(got/(bf16*ratio)-1) > 0.02
			}
		}
		assert.Equal(t, exceptions[r.Name], odd, r.Name)
		if fp32, ok := r.TFLOPS[FP32]; ok {
			assert.Less(t, fp32, bf16, r.Name)
		}
	}
}

// A name has one row.
func TestRowsAreApart(t *testing.T) {
	for model := range facts {
		matches := 0
		for _, r := range table {
			if r.match.MatchString(normalize(model)) {
				matches++
			}
		}
		assert.Equal(t, 1, matches, model)
	}
}
