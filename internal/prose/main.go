// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command prose holds the project's English to a list of words: comments, identifiers and
// messages of Go files, descriptions, comments of configurations, and guides. It prints
//
//	file:line: word: suggestion
//
// then the hits per 1,000 words, and fails above a limit. Of guides it checks the layout too.
//
//	prose [-rate 0.5] [-layout 0] [path ...]
//
// With paths it looks at these files and folders alone.
package main

import (
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	rate := flag.Float64("rate", 0.5, "most hits per 1,000 words")
	layouts := flag.Int("layout", 0, "most findings about the layout of guides")
	flag.Parse()
	paths := flag.Args()
	if len(paths) == 0 {
		paths = []string{"."}
	}
	report, err := examine(paths)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	if !report.write(os.Stdout, *rate, *layouts, flag.NArg() > 0) {
		os.Exit(1)
	}
}

// finding is a place to change.
type finding struct {
	file string
	line int
	area string // empty for layout
	text string
}

type report struct {
	hits    []finding
	layouts []finding
	words   map[string]int // by area
}

// skipped are folders without prose of ours, by name, and the chart's copies.
var skipped = []string{"node_modules", "testdata", "bin", "dist", "charts/otelcol-gpu/files"}

func examine(paths []string) (*report, error) {
	found := &report{words: map[string]int{}}
	for _, start := range paths {
		err := filepath.WalkDir(start, func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			slashed := filepath.ToSlash(name)
			if entry.IsDir() {
				if slices.ContainsFunc(skipped, func(folder string) bool { return slashed == folder || strings.HasSuffix(slashed, "/"+folder) }) ||
					name != start && strings.HasPrefix(entry.Name(), ".") {
					return fs.SkipDir
				}
				return nil
			}
			if !entry.Type().IsRegular() || !wanted(slashed) {
				return nil
			}
			source, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			return found.add(slashed, source)
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// wanted leaves out what generators write, and Markdown that is not a guide.
func wanted(name string) bool {
	base := filepath.Base(name)
	if strings.HasSuffix(base, ".md") {
		return base == "README.md" || strings.HasPrefix(name, "docs/") || strings.Contains(name, "/docs/") || !strings.Contains(name, "/")
	}
	return true
}

var word = regexp.MustCompile(`[A-Za-z][A-Za-z'’-]*`)

func (r *report) add(name string, source []byte) error {
	segments, err := extract(name, source)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, s := range segments {
		r.words[s.area] += len(word.FindAllStringIndex(s.text, -1))
		for _, rule := range rules {
			for _, at := range rule.phrase.FindAllStringIndex(s.text, -1) {
				r.hits = append(r.hits, finding{
					file: name, line: s.line + strings.Count(s.text[:at[0]], "\n"), area: s.area,
					text: strings.Join(strings.Fields(s.text[at[0]:at[1]]), " ") + ": " + rule.suggestion,
				})
			}
		}
	}
	if strings.HasSuffix(name, ".md") {
		r.layouts = append(r.layouts, layout(name, string(source))...)
	}
	return nil
}

// write prints the report and returns whether it is within the limits. It lists the places
// where asked to, and where there are too many.
func (r *report) write(out io.Writer, rate float64, layouts int, list bool) bool {
	words, hits := map[string]int{}, map[string]int{}
	for area, n := range r.words {
		words[area] += n
		words["total"] += n
	}
	for _, hit := range r.hits {
		hits[hit.area]++
		hits["total"]++
	}
	perThousand := func(area string) float64 { return 1000 * float64(hits[area]) / float64(max(1, words[area])) }
	good := perThousand("total") <= rate
	if list || !good {
		print(out, r.hits)
	}
	for _, area := range []string{comments, messages, identifiers, descriptions, settings, guides, "total"} {
		fmt.Fprintf(out, "%-14s %7d words %5d hits %6.2f per 1,000\n", area, words[area], hits[area], perThousand(area))
	}
	if !good {
		fmt.Fprintf(out, "more than %g hits per 1,000 words\n", rate)
	}
	if list || len(r.layouts) > layouts {
		print(out, r.layouts)
	}
	if len(r.layouts) > layouts {
		fmt.Fprintf(out, "layout of guides: %d findings, more than %d\n", len(r.layouts), layouts)
		good = false
	}
	return good
}

func print(out io.Writer, findings []finding) {
	slices.SortStableFunc(findings, func(a, b finding) int {
		if c := strings.Compare(a.file, b.file); c != 0 {
			return c
		}
		return a.line - b.line
	})
	for _, f := range findings {
		fmt.Fprintf(out, "%s:%d: %s\n", f.file, f.line, f.text)
	}
}
