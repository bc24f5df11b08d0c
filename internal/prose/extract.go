// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// segment is a piece of prose that begins on a line of a file.
type segment struct {
	area string
	line int
	text string
}

// The areas of the report.
const (
	comments     = "comments"      // of Go files, tests included
	messages     = "messages"      // string literals of several words: logs, errors, help, events
	identifiers  = "identifiers"   // declared names, split into words
	descriptions = "descriptions"  // of metadata.yaml and openapi.yaml
	settings     = "configuration" // comments of YAML files
	guides       = "guides"        // Markdown
)

// extract returns the prose of a file, nil for a file without any.
func extract(name string, source []byte) ([]segment, error) {
	switch base := path.Base(name); {
	case path.Ext(name) == ".go":
		return fromGo(name, source)
	case path.Ext(name) == ".md":
		return []segment{{guides, 1, maskMarkdown(string(source))}}, nil
	case base == "metadata.yaml" || base == "openapi.yaml":
		return fromDescriptions(source)
	case path.Ext(name) == ".yaml":
		return yamlComments(string(source)), nil
	}
	return nil, nil
}

var (
	generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	directive = regexp.MustCompile(`^//[a-z]+:`)
	quotation = regexp.MustCompile("\"[^\"\n]*\"|“[^”\n]*”|`[^`\n]*`|https?://\\S+")
)

func fromGo(name string, source []byte) ([]segment, error) {
	if generated.Match(source) {
		return nil, nil
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	line := func(at token.Pos) int { return files.Position(at).Line }
	var found []segment
	for _, group := range file.Comments {
		if text := commentText(group); text != "" {
			found = append(found, segment{comments, line(group.Pos()), text})
		}
	}
	test := strings.HasSuffix(name, "_test.go")
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(node.Value); err == nil && node.Kind == token.STRING && !test && severalWords.MatchString(text) {
				found = append(found, segment{messages, line(node.Pos()), mask(text, quotation)})
			}
		}
		for _, name := range declared(node) {
			found = append(found, segment{identifiers, line(name.Pos()), splitName(name.Name)})
		}
		return true
	})
	return found, nil
}

// declared returns the names that a node declares.
func declared(node ast.Node) []*ast.Ident {
	switch node := node.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{node.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{node.Name}
	case *ast.ValueSpec:
		return node.Names
	case *ast.Field: // of a struct or an interface, parameters and results
		return node.Names
	case *ast.AssignStmt:
		if node.Tok == token.DEFINE {
			return names(node.Lhs...)
		}
	case *ast.RangeStmt:
		if node.Tok == token.DEFINE {
			return names(node.Key, node.Value)
		}
	}
	return nil
}

func names(expressions ...ast.Expr) []*ast.Ident {
	var found []*ast.Ident
	for _, expression := range expressions {
		if name, ok := expression.(*ast.Ident); ok {
			found = append(found, name)
		}
	}
	return found
}

var severalWords = regexp.MustCompile(`[A-Za-z]+,? [a-z]+,? [a-z]+`)

// commentText is a comment group without markers, directives, code and quotations,
// line for line. It is empty for the copyright notice.
func commentText(group *ast.CommentGroup) string {
	if strings.HasPrefix(group.List[0].Text, "// Copyright") {
		return ""
	}
	var text strings.Builder
	for _, comment := range group.List {
		content := strings.TrimSuffix(comment.Text[2:], "*/")
		if directive.MatchString(comment.Text) || strings.HasPrefix(content, "\t") || strings.HasPrefix(content, "    ") {
			content = ""
		}
		text.WriteString(content + "\n")
	}
	return mask(text.String(), quotation)
}

// splitName separates the words of an identifier: lastSeenAt becomes "last Seen At".
func splitName(name string) string {
	var words strings.Builder
	for i, r := range name {
		if r == '_' || i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(rune(name[i-1])) && name[i-1] != '_' {
			words.WriteByte(' ')
		}
		if r != '_' {
			words.WriteRune(r)
		}
	}
	return words.String()
}

// fromDescriptions returns the values of every key "description".
func fromDescriptions(source []byte) ([]segment, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, err
	}
	var found []segment
	var walk func(node *yaml.Node)
	walk = func(node *yaml.Node) {
		if node.Kind == yaml.MappingNode {
			for i := 0; i+1 < len(node.Content); i += 2 {
				if key, value := node.Content[i], node.Content[i+1]; key.Value == "description" && value.Kind == yaml.ScalarNode {
					found = append(found, segment{descriptions, value.Line, mask(value.Value, quotation)})
				}
			}
		}
		for _, child := range node.Content {
			walk(child)
		}
	}
	walk(&document)
	return append(found, yamlComments(string(source))...), nil
}

// yamlComments returns runs of comment lines, and the comments at the ends of lines.
func yamlComments(source string) []segment {
	var found []segment
	last := -1 // the line of the comment that the next one may continue
	for i, text := range strings.Split(source, "\n") {
		before, comment, ok := strings.Cut(text, "#")
		whole := strings.TrimSpace(before) == ""
		if !ok || !whole && !strings.HasSuffix(before, " ") || strings.Count(before, `"`)%2 == 1 || strings.Count(before, "'")%2 == 1 {
			continue
		}
		comment = mask(comment, quotation)
		if whole && last == i-1 && len(found) > 0 {
			found[len(found)-1].text += "\n" + comment
		} else {
			found = append(found, segment{settings, i + 1, comment})
		}
		last = i
	}
	return found
}

var (
	fenced     = regexp.MustCompile("(?ms)^ *(```|~~~).*?^ *(```|~~~)$")
	inMarkdown = regexp.MustCompile("(?s)<!--.*?-->|``[^`]+``|`[^`]*`|\\]\\([^)\\s]*\\)|https?://[^)\\s]+|<[a-z/][^>\n]*>|\"[^\"\n]*\"|“[^”\n]*”")
)

func maskMarkdown(text string) string {
	return mask(mask(text, fenced), inMarkdown)
}

// mask blanks what matches with bytes that are neither words nor white space, line breaks kept.
func mask(text string, what *regexp.Regexp) string {
	return what.ReplaceAllStringFunc(text, func(match string) string {
		return strings.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return 0
		}, match)
	})
}
