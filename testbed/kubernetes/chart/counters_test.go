// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An exporter ends over a field that it does not know: the tag of its image, which begins
// with the version of DCGM, decides about the names.
func TestCountersOfTheTag(t *testing.T) {
	t.Parallel()
	for tag, name := range map[string]string{
		"": "DCGM_FI_DEV_FB_TOTAL", "latest": "DCGM_FI_DEV_FB_TOTAL", "3.3.9-3.6.1-ubuntu22.04": "DCGM_FI_DEV_FB_TOTAL",
		"4.6.1-4.8.4-distroless": "DCGM_FI_DEV_FB_TOTAL", "4.7.0-4.9.0-distroless": "DCGM_FI_DEV_FB_CAPACITY_BYTES", "v4.10.0-5.0.0": "DCGM_FI_DEV_FB_CAPACITY_BYTES",
	} {
		for _, h := range helms(t) {
			text, err := h.template(t, "{clusterName: c, image: {repository: r/o}, dcgm-exporter: {enabled: true, image: {tag: '"+tag+"'}}}")
			require.NoError(t, err)
			for _, one := range []string{"DCGM_FI_DEV_FB_TOTAL", "DCGM_FI_DEV_FB_CAPACITY_BYTES"} {
				assert.Equal(t, one == name, strings.Contains(text, " "+one+", gauge"), "%s: %s with tag %q", h.name, one, tag)
			}
		}
	}
}
