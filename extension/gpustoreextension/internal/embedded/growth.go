// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package embedded // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/embedded"

import (
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// What label_replace and label_join may make of the labels of one series. PromQL's limit of
// samples does not count texts, and nested calls multiply them: five levels of ten references
// make 100,000 copies of a label.
const (
	maxCopies  = 16      // of labels that are stored
	maxLetters = 4 << 10 // of the query's own text, in bytes
)

// growth is the most that the functions in an expression add to the labels of a series: copies
// of stored labels, and bytes of the query's own text. value bounds the longest label, and all
// bounds the sum of those that were made.
type growth struct{ value, all size }

type size struct{ copies, letters int }

func (s size) plus(o size) size { return size{s.copies + o.copies, s.letters + o.letters}.bounded() }

func (s size) times(n int) size { return size{s.copies * n, s.letters * n}.bounded() }

// bounded keeps sums and products small enough for an int.
func (s size) bounded() size {
	return size{min(s.copies, maxCopies+1), min(s.letters, maxLetters+1)}
}

func (s size) longest(o size) size { return size{max(s.copies, o.copies), max(s.letters, o.letters)} }

// checkGrowth refuses a query in which label_replace and label_join may make much more text
// than there is.
func checkGrowth(expr parser.Expr) error {
	if all := growthOf(expr).all; all.copies > maxCopies || all.letters > maxLetters {
		return store.Errorf(store.BadQuery, "label_replace and label_join in the query may make labels of more than %d others and %d bytes: "+
			"nest fewer of them, with fewer references", maxCopies, maxLetters)
	}
	return nil
}

func growthOf(node parser.Node) growth {
	g := growth{value: size{copies: 1}}
	for child := range parser.ChildrenIter(node) {
		of := growthOf(child)
		g.value, g.all = g.value.longest(of.value), g.all.plus(of.all)
	}
	call, ok := node.(*parser.Call)
	if !ok {
		return g
	}
	var made size
	switch call.Func.Name {
	case "label_replace":
		text := textOf(call.Args[2])
		made = g.value.times(strings.Count(text, "$")).plus(size{letters: len(text)})
	case "label_join":
		sources := len(call.Args) - 3
		made = g.value.times(sources).plus(size{letters: sources * len(textOf(call.Args[2]))})
	default:
		return g
	}
	return growth{g.value.longest(made), g.all.plus(made)}
}

// textOf returns the text of an argument that is one.
func textOf(arg parser.Expr) string {
	for {
		switch a := arg.(type) {
		case *parser.ParenExpr:
			arg = a.Expr
		case *parser.StepInvariantExpr:
			arg = a.Expr
		case *parser.StringLiteral:
			return a.Val
		default:
			return ""
		}
	}
}
