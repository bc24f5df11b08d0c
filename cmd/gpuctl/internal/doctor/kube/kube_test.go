// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func FuzzTagOf(f *testing.F) {
	for image, want := range map[string]string{
		"ghcr.io/otelcol-gpu/otelcol-gpu:0.1.0": "0.1.0", "localhost:5000/x": "", "localhost:5000/x:1": "1",
		"x:1@sha256:ab": "1", "x@sha256:ab": "sha256:ab", "x": "",
	} {
		assert.Equal(f, want, TagOf(image), image)
		f.Add(image)
	}
	f.Fuzz(func(t *testing.T, image string) {
		if !strings.HasSuffix(image, TagOf(image)) && !strings.Contains(image, TagOf(image)+"@") {
			t.Fatalf("%q has no tag %q", image, TagOf(image))
		}
	})
}
