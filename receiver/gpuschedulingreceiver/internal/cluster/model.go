// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"regexp"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/migprofile"
)

// productLabel is where GPU feature discovery writes the model of a node's boards.
const productLabel = "nvidia.com/gpu.product"

// dashed are the dashes that are NVIDIA's own: A100-SXM4-40GB, A40-48Q. All others stand for
// white space.
var dashed = regexp.MustCompile(`[A-Z0-9]+-(?:SXM[0-9]*|PCIE)-[0-9]+GB|[A-Z]+[0-9]+[A-Z]*-[0-9]+[ABCQ]\b`)

// modelOf is hw.model of the devices of a resource, as their telemetry writes it: NVIDIA's
// alone has a label from which that can be had; "" for others.
func modelOf(labels map[string]string, resource string) string {
	if !strings.HasPrefix(resource, "nvidia.com/") {
		return ""
	}
	product, _ := migprofile.Cut(strings.TrimSuffix(labels[productLabel], "-SHARED"))
	keep := dashed.FindStringIndex(product)
	if keep == nil {
		return strings.ReplaceAll(product, "-", " ")
	}
	return strings.ReplaceAll(product[:keep[0]], "-", " ") + product[keep[0]:keep[1]] + strings.ReplaceAll(product[keep[1]:], "-", " ")
}
