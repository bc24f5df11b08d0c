// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package safetext

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestStrip(t *testing.T) {
	tests := []struct {
		name  string
		in    string
		limit int
		want  string
	}{
		{"plain text stays", "pod vllm-0 is missing", 64, "pod vllm-0 is missing"},
		{"empty", "", 8, ""},
		{"other scripts stay", "größe 推論 сервис", 64, "größe 推論 сервис"},
		{"a forged log line becomes one line", "ok\naudit_type=webhook_dispatch_succeeded", 64, "ok audit_type=webhook_dispatch_succeeded"},
		{"tab, return and separators become spaces", "a\tb\r\nc\u2028d\u2029e\u0085f", 64, "a b  c d e f"},
		{"terminal escapes lose their escape", "\x1b[31mred\x1b[0m", 64, "[31mred[0m"},
		{"NUL, DEL and C1", "a\x00b\x7fc\u009bd", 64, "abcd"},
		{"bidirectional marks, embeddings, overrides, isolates", "a\u200eb\u200fc\u202ad\u202be\u202cf\u202dg\u202eh\u2066i\u2067j\u2068k\u2069l\u061cm", 64, "abcdefghijklm"},
		{"zero width", "pay\u200bpal\u200c\u200d\u2060\ufeff", 64, "paypal"},
		{"soft hyphen, Mongolian separator, annotations", "a\u00adb\u180ec\ufff9d\ufffbe", 64, "abcde"},
		{"tag characters and variation selectors", "a\U000e0041\ufe0fb\U000e0101", 64, "ab"},
		{"fillers that take no room", "a\u3164b\u115fc\uffa0d\u034fe", 64, "abcde"},
		{"a visible format character stays", "\u0600١", 64, "\u0600١"},
		{"bytes that are not UTF-8", "a\xffb\xc3", 64, "a\ufffdb\ufffd"},
		{"exactly the limit", "abcd", 4, "abcd"},
		{"one over the limit", "abcde", 4, "abc…"},
		{"runes are counted, not bytes", "äöüß", 4, "äöüß"},
		{"cut between runes", "äöüßä", 4, "äöü…"},
		{"hidden characters do not count", "a\u200bb\u200bc", 3, "abc"},
		{"hidden tail is no reason to cut", "abc\u200b\u200b", 3, "abc"},
		{"limit of one", "ab", 1, "…"},
		{"no room", "ab", 0, ""},
		{"negative limit", "ab", -1, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, Strip(tt.in, tt.limit))
		})
	}
}

func TestStripOfPlainTextDoesNotAllocate(t *testing.T) {
	assert.Zero(t, testing.AllocsPerRun(100, func() { Strip("gpu.service.partial", 64) }))
}

func TestStripOfHugeTextIsBounded(t *testing.T) {
	got := Strip(strings.Repeat("é", 1<<20), 100)
	assert.Equal(t, strings.Repeat("é", 99)+"…", got)
}

func FuzzStrip(f *testing.F) {
	for _, s := range []string{"", "plain", "a\nb", "\x1b[2J", "a\u202eb", "\xff\xfe", "日本語", "\u200b\u200b", "…", "e\u0301"} {
		for _, limit := range []int{-1, 0, 1, 3, 100} {
			f.Add(s, limit)
		}
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = min(limit, 1<<12)
		got := Strip(s, limit)
		if !utf8.ValidString(got) {
			t.Fatalf("not UTF-8: %q", got)
		}
		if n := utf8.RuneCountInString(got); n > max(limit, 0) {
			t.Fatalf("%d runes, limit %d", n, limit)
		}
		for _, r := range got {
			if IsHidden(r) {
				t.Fatalf("%U left in %q", r, got)
			}
		}
		if again := Strip(got, limit); again != got {
			t.Fatalf("not stable: %q then %q", got, again)
		}
	})
}
