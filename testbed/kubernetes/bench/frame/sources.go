// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Module begins the import paths of this repository's packages.
const Module = "github.com/otelcol-gpu/otelcol-gpu/"

// Standalone is config/standalone.yaml with the components that it runs.
var Standalone = []string{
	"config/standalone.yaml", "receiver/dcgmreceiver", "receiver/gpuallocationreceiver",
	"processor/appguardprocessor", "processor/gpupodprocessor", "processor/gpusummaryprocessor",
	"connector/besteffortconnector", "connector/gpueventsconnector", "connector/gpucostconnector",
	"exporter/gpustoreexporter", "extension/gpustoreextension", "extension/gpuconsoleextension",
	"extension/requestlimitextension", "extension/footprintextension",
}

// Tree hashes sources of the repository, and reads each folder once.
type Tree struct {
	root    string
	folders map[string]folder
}

type folder struct {
	sum     []byte
	imports []string // other folders of the repository
}

func NewTree(root string) *Tree { return &Tree{root: root, folders: map[string]folder{}} }

// Hashes has the hash of each source. That of a folder covers the packages of the
// repository that it imports, directly or through others. Tests and comments are no part
// of it: no figure depends on them.
func (t *Tree) Hashes(sources []string) (map[string]string, error) {
	all := map[string]string{}
	for _, source := range sources {
		sum, err := t.hash(source)
		if err != nil {
			return nil, fmt.Errorf("hashing the sources of a measurement: %w", err)
		}
		all[source] = fmt.Sprintf("%x", sum[:8])
	}
	return all, nil
}

func (t *Tree) hash(source string) ([]byte, error) {
	total := sha256.New()
	path := filepath.Join(t.root, filepath.FromSlash(source))
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		settings(total, text)
		return total.Sum(nil), nil
	}
	closure := []string{source}
	for i := 0; i < len(closure); i++ {
		f, err := t.folder(closure[i])
		if err != nil {
			return nil, err
		}
		for _, name := range f.imports {
			if !slices.Contains(closure, name) {
				closure = append(closure, name)
			}
		}
	}
	slices.Sort(closure)
	for _, name := range closure {
		fmt.Fprintf(total, "%s %x\n", name, t.folders[name].sum)
	}
	return total.Sum(nil), nil
}

// folder reads a package, whatever system its files are for, or all files of a folder
// that is none.
func (t *Tree) folder(name string) (folder, error) {
	if f, ok := t.folders[name]; ok {
		return f, nil
	}
	var f folder
	sum, path := sha256.New(), filepath.Join(t.root, filepath.FromSlash(name))
	files, err := filepath.Glob(filepath.Join(path, "*.go"))
	if err != nil {
		return f, err
	}
	files = slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return f, err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ImportsOnly)
		if err != nil {
			return f, err
		}
		for _, spec := range parsed.Imports {
			if imported, err := strconv.Unquote(spec.Path.Value); err != nil {
				return f, err
			} else if own, ok := strings.CutPrefix(imported, Module); ok {
				f.imports = append(f.imports, own)
			}
		}
		fmt.Fprintf(sum, "%s\n", filepath.Base(file))
		code(sum, text)
	}
	if len(files) == 0 {
		err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			fmt.Fprintf(sum, "%s %x\n", strings.TrimPrefix(file, path), sha256.Sum256(text))
			return nil
		})
		if err != nil {
			return f, err
		}
	}
	f.sum = sum.Sum(nil)
	t.folders[name] = f
	return f, nil
}

// code writes the tokens of a Go file, and of its comments those that the compiler reads.
func code(w io.Writer, text []byte) {
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(text)), text, nil, scanner.ScanComments)
	for {
		_, kind, literal := s.Scan()
		switch {
		case kind == token.EOF:
			return
		case kind != token.COMMENT || strings.HasPrefix(literal, "//go:"):
			fmt.Fprintf(w, "%s %q\n", kind, literal)
		}
	}
}

// settings writes the lines of a configuration that are no comments.
func settings(w io.Writer, text []byte) {
	for line := range bytes.Lines(text) {
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 && trimmed[0] != '#' {
			_, _ = w.Write(line) // a hash takes all
		}
	}
}
