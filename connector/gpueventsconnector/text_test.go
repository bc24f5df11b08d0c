// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestBounded(t *testing.T) {
	require.Empty(t, bounded(""))
	exact := strings.Repeat("x", maxText)
	require.Equal(t, exact, bounded(exact))
	require.Len(t, bounded(exact+"y"), maxText)
	require.NotEqual(t, bounded(exact+"y"), bounded(exact+"z"))
	require.Equal(t, "a\uFFFDb", bounded("a\xffb"))
}

func TestEventKeysAreUnambiguous(t *testing.T) {
	require.Equal(t, "e/c/n/s", eventKey("e", "c", "n", "s"))
	require.NotEqual(t, eventKey("e", "a/b", "c"), eventKey("e", "a", "b/c"))
	require.NotEqual(t, eventKey("e", "", "a"), eventKey("e", "a", ""))
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "chat", "größe", "\xff", "\u202e\u200b\n", strings.Repeat("模", 200)} {
		f.Add(s, "x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, s := range []string{bounded(a), clean(a), eventKey("e", a, b)} {
			require.True(t, utf8.ValidString(s))
		}
		require.LessOrEqual(t, len(bounded(a)), maxText)
		require.LessOrEqual(t, len(eventKey("e", a, b)), maxKey)
		require.NotContains(t, clean(a), "\n")
		if a != b {
			require.NotEqual(t, eventKey("e", a, b), eventKey("e", b, a))
		}
	})
}

func TestDevicesByName(t *testing.T) {
	for want, d := range map[string]device{
		"GPU 3 on gpu-b (GPU-a)":  {id: deviceID{"c1", "GPU-a"}, facts: facts{index: 3, node: "gpu-b", host: "host-b"}},
		"GPU 0 on host-b (GPU-a)": {id: deviceID{"", "GPU-a"}, facts: facts{index: 0, host: "host-b"}},
		"GPU 0 (GPU-a)":           {id: deviceID{"", "GPU-a"}, facts: facts{index: 0}},
		"GPU-a on gpu-b":          {id: deviceID{"", "GPU-a"}, facts: facts{index: -1, node: "gpu-b"}},
		"GPU odd":                 {id: deviceID{"", "odd"}, facts: facts{index: -1}},
		"MIG instance 9 of GPU 3 on gpu-b (GPU-a/9)": {id: deviceID{"", "GPU-a/9"}, facts: facts{index: 3, node: "gpu-b", parent: "GPU-a"}},
		"MIG instance GPU-a/9 on gpu-b":              {id: deviceID{"", "GPU-a/9"}, facts: facts{index: -1, node: "gpu-b", parent: "GPU-a"}},
	} {
		require.Equal(t, want, d.String())
	}
}
