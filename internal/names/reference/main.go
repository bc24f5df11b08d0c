// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command reference writes the metrics of package names into a Markdown file, between the lines
// "<!-- metrics -->" and "<!-- end of metrics -->". It reads the sources of the package, so that
// no second list has to be kept.
//
//	reference SOURCES FILE
package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const begin, end = "<!-- metrics -->\n", "<!-- end of metrics -->\n"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: reference SOURCES FILE")
		os.Exit(2)
	}
	if err := update(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func update(sources, file string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := rewrite(sources, old)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// rewrite returns the text of the file with the tables of today.
func rewrite(sources string, text []byte) ([]byte, error) {
	before, rest, ok := bytes.Cut(text, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return nil, fmt.Errorf("want the lines %q and %q", begin, end)
	}
	groups, err := read(sources)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Write(before)
	b.WriteString(begin)
	for _, g := range groups {
		fmt.Fprintf(&b, "\n### %s\n\n| metric | kind, unit | in Prometheus | meaning |\n|---|---|---|---|\n", g.title)
		for _, m := range g.metrics {
			fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s |\n", m.Name, strings.TrimSpace(m.Kind.String()+" "+m.Unit), m.Prometheus(), m.Description)
		}
	}
	b.WriteString("\n" + end)
	b.Write(after)
	return b.Bytes(), nil
}

// group is a declaration of several metrics, with its comment as the title.
type group struct {
	title   string
	metrics []names.Metric
}

var kinds = map[string]names.Kind{"Gauge": names.Gauge, "Counter": names.Counter, "UpDownCounter": names.UpDownCounter, "Histogram": names.Histogram}

// read finds the declarations of variables of type Metric in the sources of a package.
func read(folder string) ([]group, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var groups []group
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, declaration := range file.Decls {
			if d, ok := declaration.(*ast.GenDecl); ok && d.Tok == token.VAR {
				g := group{title: strings.TrimSuffix(strings.Join(strings.Fields(d.Doc.Text()), " "), ".")}
				for _, spec := range d.Specs {
					for _, value := range spec.(*ast.ValueSpec).Values {
						if m, ok := metricOf(value); ok {
							g.metrics = append(g.metrics, m)
						}
					}
				}
				if len(g.metrics) > 0 {
					groups = append(groups, g)
				}
			}
		}
	}
	if len(groups) == 0 {
		return nil, errors.New("no metrics in " + folder)
	}
	return groups, nil
}

// metricOf reads Metric{name, unit, kind, description}.
func metricOf(value ast.Expr) (names.Metric, bool) {
	literal, ok := value.(*ast.CompositeLit)
	if !ok || len(literal.Elts) < 4 {
		return names.Metric{}, false
	}
	if name, ok := literal.Type.(*ast.Ident); !ok || name.Name != "Metric" {
		return names.Metric{}, false
	}
	text := func(i int) string {
		if l, ok := literal.Elts[i].(*ast.BasicLit); ok {
			s, _ := strconv.Unquote(l.Value)
			return s
		}
		return ""
	}
	identifier, ok := literal.Elts[2].(*ast.Ident)
	if !ok {
		return names.Metric{}, false
	}
	kind, ok := kinds[identifier.Name]
	return names.Metric{Name: text(0), Unit: text(1), Kind: kind, Description: text(3)}, ok
}
