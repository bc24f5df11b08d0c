// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pagetext

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/stretchr/testify/require"
)

// FuzzRead holds a Reader that has other pages behind it against Prometheus'
// parser, line by line.
func FuzzRead(f *testing.F) {
	f.Add("A 1\n", "A 2\n")
	f.Add("# TYPE A counter\nA{x=\"1\"} 1\nA{x=\"2\"} 2\n", "A{x=\"2\"} 1\n# TYPE A counter\nA{x=\"1\"} 1")
	f.Add("A{x=\"1\",y=\"}\\\"\"} 1 5\nAB 1\n", "A {x=\"1\"} 1\nA{x=\"1\"}1\nA{} 1\nA\t1\n")
	f.Add("# HELP A b\n# HELP A\nA 1e9\n", "#HELP A b\n# TYPE A gauge\n# TYPE A x\nA 0x1p-2\nA NaN\n")
	f.Add("{\"A.b\",\"x y\"=\"1\"} 1\n", "{\"A.b\"} 1\n{x=\"1\"} 1\nA{job=\"a\",instance=\"b\"} 1\n")
	f.Add("A{x=\"say \"hi\"\"} 1\n...\nA 1\r\n", "A\x00 1\nA{x=\"\xff\"} 1\nA{x=\"1\",x=\"1\"} 1\n")
	f.Add("A-0 0\n", "A{x=\"1\"}-0 0\n")
	f.Add("A 1\r\n# TYPE A counter\r\n\tA{x=\"1\"} 2\r\n", "A 1\r\r\n\r\nA{x=\"\r\"} 1\r")
	f.Add("A{x=\"1\"} 7 # {trace_id=\"a\"} 1 1.5\nA 1 # {} 1\n", "A{x=\" # {\"} 1 # {y=\" # {\"} 1\nA # {} 1\nA 1 # x\n")
	f.Fuzz(func(t *testing.T, first, second string) {
		r := NewReader(vendor, target)
		for _, text := range []string{first, second, first, first, second + "\n" + first} {
			rows, result, err := r.Read([]byte(text), nil)
			if err != nil {
				require.True(t, errors.Is(err, ErrNoPage) || errors.Is(err, ErrEmpty), err)
				require.Empty(t, rows)
				continue
			}
			want, samples, bad := oracle(text)
			require.Equal(t, want, texts(rows), "%q", text)
			require.Equal(t, samples, result.Samples, "%q", text)
			require.Equal(t, bad, refused(result)["unparsable"], "%q", text)
			require.Equal(t, samples-len(want), refused(result)["repeated"], "%q", text)
		}
	})
}

// oracle reads a page by Prometheus' parser, a line at a time.
func oracle(text string) (rows []string, samples, bad int) {
	rows = []string{}
	seen := map[string]bool{}
	for _, line := range strings.Split(text, "\n") {
		// What the package's comment names as read beyond Prometheus' parser.
		line = strings.TrimLeft(strings.TrimSuffix(line, "\r"), " \t")
		if _, end, regular := split([]byte(line)); regular && line[0] != '#' {
			line = string(withoutExemplar([]byte(line), end))
		}
		parser := textparse.NewPromParser([]byte(line), labels.NewSymbolTable(), false)
		entry, err := parser.Next()
		switch {
		case strings.HasPrefix(line, "#") && !isMeta([]byte(line)):
			// The parser refuses comments with a byte 0 in them. We do not care.
		case line == "":
		case err != nil:
			bad++
		case entry == textparse.EntrySeries:
			_, _, v := parser.Series()
			var set labels.Labels
			parser.Labels(&set)
			if _, twice := set.HasDuplicateLabelNames(); twice || set.Get("__name__") == "" {
				bad++
				continue
			}
			samples++
			series := write(set)
			if !seen[series] {
				seen[series] = true
				rows = append(rows, fmt.Sprint(series, " ", v))
			}
		}
	}
	return rows, samples, bad
}

// write writes a series as devicemap.Series does.
func write(set labels.Labels) string {
	by := set.Map()
	for _, key := range []string{"instance", "job"} {
		if by[key] != "" {
			renamed := "exported_" + key
			for by[renamed] != "" {
				renamed = "exported_" + renamed
			}
			by[renamed] = by[key]
		}
		delete(by, key)
	}
	var list []string
	for _, key := range slices.Sorted(maps.Keys(by)) {
		if by[key] != "" && !strings.HasPrefix(key, "__") {
			list = append(list, fmt.Sprintf("%s=%q", key, by[key]))
		}
	}
	if len(list) == 0 {
		return by["__name__"]
	}
	return by["__name__"] + "{" + strings.Join(list, ",") + "}"
}
