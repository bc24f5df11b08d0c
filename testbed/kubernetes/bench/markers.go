// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

// A guide has a figure between two comments, and the first has its origin:
//
//	<!-- bench: agent-15s; agent.yaml; rss -->45.2<!-- /bench -->
//
// That is the median. What follows the column is done with it, from left to right:
// "* 8", "/ 1024", and how many decimals it is written with: ".1". In a table no |
// would do between the parts, which is the end of a cell.
var marker = regexp.MustCompile(`(?s)<!-- bench: (.*?) -->(.*?)<!-- /bench -->`)

// unmeasured is what stands for a figure that there is none of yet.
const unmeasured = "…"

// fill puts figures into a text.
func fill(text string, results map[string]frame.Result) (string, error) {
	var failed []error
	out := marker.ReplaceAllStringFunc(text, func(found string) string {
		parts := marker.FindStringSubmatch(found)
		value, err := evaluate(parts[1], results)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", parts[1], err))
			return found
		}
		return "<!-- bench: " + parts[1] + " -->" + value + "<!-- /bench -->"
	})
	if opened, whole := strings.Count(text, "<!-- bench:"), len(marker.FindAllString(text, -1)); opened != whole {
		failed = append(failed, fmt.Errorf("%d figures begin, and %d end", opened, whole))
	}
	return out, errors.Join(failed...)
}

// evaluate is the text of a figure.
func evaluate(expression string, results map[string]frame.Result) (string, error) {
	parts := strings.Split(expression, ";")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	if len(parts) < 3 {
		return "", errors.New("an entry, a row and a column are needed, with ; between them")
	}
	at := place{parts[0], parts[1], parts[2]}
	all, err := at.values(results)
	if err != nil && !errors.Is(err, errUnmeasured) {
		return "", err
	}
	value, decimals := frame.Median(known(all)), at.decimals(results)
	for _, step := range parts[3:] {
		if step == "" {
			return "", errors.New("nothing stands between two ;")
		}
		n, failed := strconv.ParseFloat(strings.TrimSpace(step[1:]), 64)
		switch {
		case failed != nil:
			return "", fmt.Errorf("%q: %w", step, failed)
		case step[0] == '*':
			value *= n
		case step[0] == '/' && n != 0:
			value /= n
		case step[0] == '.':
			decimals = int(n)
		default:
			return "", fmt.Errorf("%q is no step", step)
		}
	}
	if err != nil {
		return unmeasured, nil
	}
	return number(value, decimals), nil
}

// guides are the Markdown files of the repository but those that the report
// writes.
func guides(root string) (all []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata" || name == "bin") {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".md") && path != reportPath(root) {
			all = append(all, path)
		}
		return nil
	})
	return all, err
}

// sizing.md here is the source of docs/sizing.md, which has its figures without the comments.
func sizingSource(root string) string {
	return filepath.Join(root, "testbed", "kubernetes", "bench", "sizing.md")
}
func sizingPath(root string) string { return filepath.Join(root, "docs", "sizing.md") }

// sizing is docs/sizing.md, from its source with figures filled in.
func sizing(source string) string {
	return "<!-- Written by make bench from testbed/kubernetes/bench/sizing.md. Do not edit. -->\n" + marker.ReplaceAllString(source, "$2")
}

// fillGuides writes the figures of all guides.
func fillGuides(root string, results map[string]frame.Result) error {
	paths, err := guides(root)
	if err != nil {
		return err
	}
	var failed []error
	for _, path := range paths {
		before, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		after, err := fill(string(before), results)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", path, err))
		}
		if after == string(before) {
			continue
		}
		if err := os.WriteFile(path, []byte(after), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}
