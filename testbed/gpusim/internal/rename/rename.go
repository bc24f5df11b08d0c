// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package rename gives the fields of a page other names, as a new version of an exporter may.
package rename

import "bytes"

// Prefixes begin the families about devices, by vendor's exporter.
var Prefixes = [][]byte{
	[]byte("DCGM_"), []byte("gpu_"), []byte("pcie_"), []byte("xgmi_"), []byte("habanalabs_"), []byte("accelerator_"), []byte("xpum_"), []byte("hw_"),
}

// Page returns the page with the ending _v2, or _V2, on the names of all families about
// devices, in the samples and in the lines that describe them.
func Page(page []byte) []byte {
	out := make([]byte, 0, len(page)+len(page)/8)
	for line := range bytes.Lines(page) {
		start := 0
		for _, comment := range []string{"# HELP ", "# TYPE "} {
			if bytes.HasPrefix(line, []byte(comment)) {
				start = len(comment)
			}
		}
		end := start + len(line[start:])
		if i := bytes.IndexAny(line[start:], "{ \n"); i >= 0 {
			end = start + i
		}
		out = append(out, line[:end]...)
		out = append(out, ending(line[start:end])...)
		out = append(out, line[end:]...)
	}
	return out
}

// ending is what a family of that name gets.
func ending(family []byte) string {
	for _, p := range Prefixes {
		switch {
		case !bytes.HasPrefix(family, p):
		case bytes.Equal(p, bytes.ToUpper(p)):
			return "_V2"
		default:
			return "_v2"
		}
	}
	return ""
}
