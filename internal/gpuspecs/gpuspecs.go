// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package gpuspecs has the peak rates of accelerators that training is measured against: of dense
// matrix products, by precision. A model is known by its whole name: one that is close to a known
// one may be half as fast.
package gpuspecs

import (
	"regexp"
	"strings"
)

// A Precision is what the operands of matrix products are.
type Precision string

// The precisions, as training.precision has them.
const (
	BF16 Precision = "bf16"
	FP16 Precision = "fp16"
	TF32 Precision = "tf32"
	FP32 Precision = "fp32"
	FP8  Precision = "fp8"
)

// A Spec is what a model of device can do at most: TFLOP/s of dense products by precision. A
// precision that is missing is not known, or the device does not have it.
type Spec struct {
	Name   string // of the row
	TFLOPS map[Precision]float64
	Source string
}

// Peak is the rate in operations a second; false where it is not known.
func (s Spec) Peak(p Precision) (flops float64, ok bool) {
	t, ok := s.TFLOPS[p]
	return t * 1e12, ok
}

// Lookup returns the row of a device by its hw.model, as an exporter or the driver writes it; false
// where there is none.
func Lookup(model string) (Spec, bool) {
	name := normalize(model)
	for i := range table {
		if table[i].match.MatchString(name) {
			return table[i].Spec, true
		}
	}
	return Spec{}, false
}

// normalize returns the name of a device without its vendor, in capitals, its words separated by one
// space: names that differ in nothing else are of one model.
func normalize(model string) string {
	words := strings.FieldsFunc(strings.ToUpper(model), func(r rune) bool {
		return r == ' ' || r == '-' || r == '_' || r == '\t'
	})
	for len(words) > 0 && vendors[words[0]] {
		words = words[1:]
	}
	return strings.Join(words, " ")
}

var vendors = map[string]bool{"NVIDIA": true, "TESLA": true, "AMD": true, "INSTINCT": true, "INTEL": true, "INTEL(R)": true, "HABANA": true}

type row struct {
	match *regexp.Regexp
	Spec
}

// of makes a row. bf16 is a peak that fp16 has too.
func of(name, match, source string, bf16 float64, others map[Precision]float64) row {
	peaks := map[Precision]float64{BF16: bf16, FP16: bf16}
	for p, t := range others {
		if t == 0 {
			delete(peaks, p)
			continue
		}
		peaks[p] = t
	}
	return row{regexp.MustCompile("^(?:" + match + ")$"), Spec{name, peaks, source}}
}
