// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The limits keep every part of the repository small enough to read at once. Tests
// count for the lines of a file alone, generated code for nothing.
const (
	maxFileLines    = 400
	maxPackageFiles = 15
	maxTypeFiles    = 3 // that declare methods of one type
	maxModules      = 6
)

func TestWalls(t *testing.T) {
	files := 0
	for _, p := range sources(t) {
		files += len(p.files)
		for _, over := range p.overLimits() {
			t.Error(over)
		}
	}
	require.Greater(t, files, 600, "a part of the repository was not read")
	if modules := modules(t); len(modules) > maxModules {
		t.Errorf("%d go.mod files (%s), at most %d", len(modules), strings.Join(modules, ", "), maxModules)
	}
}

// goPackage is a folder of Go files, by the path from the root of the repository.
type goPackage struct {
	path  string
	files []goFile
}

// goFile is a file written by hand.
type goFile struct {
	name    string
	lines   int
	syntax  *ast.File
	imports []string // from this repository, without the path of the module
}

func (f goFile) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

// overLimits returns what of the package is over a limit, and by how much.
func (p goPackage) overLimits() (over []string) {
	files := 0
	declaring := map[string][]string{} // the files of each type's methods
	for _, f := range p.files {
		if f.lines > maxFileLines {
			over = append(over, fmt.Sprintf("file %s: %d lines, at most %d", path.Join(p.path, f.name), f.lines, maxFileLines))
		}
		if f.isTest() {
			continue
		}
		files++
		for _, receiver := range receivers(f.syntax) {
			if name := path.Join(p.path, f.syntax.Name.Name) + "." + receiver; !slices.Contains(declaring[name], f.name) {
				declaring[name] = append(declaring[name], f.name)
			}
		}
	}
	if files > maxPackageFiles {
		over = append(over, fmt.Sprintf("package %s: %d files, at most %d", p.path, files, maxPackageFiles))
	}
	for _, name := range slices.Sorted(maps.Keys(declaring)) {
		if files := declaring[name]; len(files) > maxTypeFiles {
			over = append(over, fmt.Sprintf("type %s: methods in %d files (%s), at most %d", name, len(files), strings.Join(files, ", "), maxTypeFiles))
		}
	}
	return over
}

// receivers are the types of the methods that the file declares.
func receivers(file *ast.File) []string {
	var all []string
	for _, declaration := range file.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok || f.Recv == nil {
			continue
		}
		expression := f.Recv.List[0].Type
		for {
			switch e := expression.(type) {
			case *ast.StarExpr:
				expression = e.X
				continue
			case *ast.IndexExpr:
				expression = e.X
				continue
			case *ast.IndexListExpr:
				expression = e.X
				continue
			case *ast.Ident:
				all = append(all, e.Name)
			}
			break
		}
	}
	return all
}

// sources are the packages of all modules.
func sources(t *testing.T) []goPackage {
	t.Helper()
	packages := map[string]*goPackage{}
	walk(t, func(name string) {
		if !strings.HasSuffix(name, ".go") {
			return
		}
		text := read(t, name)
		syntax, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution|parser.ParseComments)
		require.NoError(t, err)
		if ast.IsGenerated(syntax) {
			return
		}
		f := goFile{name: path.Base(name), lines: bytes.Count(text, []byte("\n")), syntax: syntax}
		for _, spec := range syntax.Imports {
			if imported, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/"); ours {
				f.imports = append(f.imports, imported)
			}
		}
		folder := path.Dir(name)
		if packages[folder] == nil {
			packages[folder] = &goPackage{path: folder}
		}
		packages[folder].files = append(packages[folder].files, f)
	})
	var all []goPackage
	for _, folder := range slices.Sorted(maps.Keys(packages)) {
		all = append(all, *packages[folder])
	}
	return all
}

// modules are the folders that hold a go.mod.
func modules(t *testing.T) []string {
	t.Helper()
	var all []string
	walk(t, func(name string) {
		if path.Base(name) == "go.mod" {
			all = append(all, path.Dir(name))
		}
	})
	return all
}

// walk calls do with every file of the repository, by its path from the root, but for
// files that Go ignores and for what is built or fetched.
func walk(t *testing.T, do func(name string)) {
	t.Helper()
	repository := os.DirFS(root)
	require.NoError(t, fs.WalkDir(repository, ".", func(name string, entry fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") ||
			base == "node_modules" || base == "testdata" || name == "bin"):
			return fs.SkipDir
		case !entry.IsDir():
			do(filepath.ToSlash(name))
		}
		return nil
	}))
}
