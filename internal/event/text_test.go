// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestBounded(t *testing.T) {
	require.Empty(t, Bounded(""))
	exact := strings.Repeat("x", maxText)
	require.Equal(t, exact, Bounded(exact))
	require.Len(t, Bounded(exact+"y"), maxText)
	require.NotEqual(t, Bounded(exact+"y"), Bounded(exact+"z"))
	require.Equal(t, "a\uFFFDb", Bounded("a\xffb"))
}

func TestEventKeysAreUnambiguous(t *testing.T) {
	require.Equal(t, "e/c/n/s", Key("e", "c", "n", "s"))
	require.NotEqual(t, Key("e", "a/b", "c"), Key("e", "a", "b/c"))
	require.NotEqual(t, Key("e", "", "a"), Key("e", "a", ""))
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "chat", "größe", "\xff", "\u202e\u200b\n", strings.Repeat("模", 200)} {
		f.Add(s, "x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, s := range []string{Bounded(a), Clean(a), Key("e", a, b)} {
			require.True(t, utf8.ValidString(s))
		}
		require.LessOrEqual(t, len(Bounded(a)), maxText)
		require.LessOrEqual(t, len(Key("e", a, b)), MaxKey)
		require.NotContains(t, Clean(a), "\n")
		if a != b {
			require.NotEqual(t, Key("e", a, b), Key("e", b, a))
		}
	})
}
