// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command thirdparty writes the folder that goes with binaries wherever they are
// distributed: the license texts and notices of every module that was linked in,
// and README.md, a table of them.
//
//	thirdparty -page extension/gpuconsoleextension/web/dist/third-party-licenses.md -out bin/third-party bin/otelcol-gpu bin/gpuctl
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/sbom/licenses"
)

func main() {
	out := flag.String("out", "", "folder that is made, and replaced where it exists")
	page := flag.String("page", "", "license texts of the packages in the console's page")
	flag.Parse()
	if *out == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: thirdparty [-page FILE] -out FOLDER BINARY...")
		os.Exit(2)
	}
	if err := write(*out, *page, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "thirdparty:", err)
		os.Exit(1)
	}
}

const index = "README.md"

const head = `# Licenses of what the commands are made of

otelcol-gpu and gpuctl are Apache-2.0. They were linked from the modules below; the texts are in the folder of each. "go mod download
MODULE@VERSION" fetches the source of a module; that of Go's standard library comes with Go.

| module | version | license (SPDX) |
|---|---|---|
`

// write makes the folder. It replaces only what it made itself: a folder with its
// table in it.
func write(out, page string, binaries []string) error {
	modules, err := all(binaries)
	if err != nil {
		return err
	}
	if _, err := os.Stat(out); err == nil {
		if _, err := os.Stat(filepath.Join(out, index)); err != nil {
			return fmt.Errorf("%s exists and has no %s: it is not a folder of licenses, move it away", out, index)
		}
		if err := os.RemoveAll(out); err != nil {
			return err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	table := strings.Builder{}
	table.WriteString(head)
	for _, m := range modules {
		fmt.Fprintf(&table, "| %s | %s | %s |\n", m.Path, m.Version, strings.Join(m.Licenses, ", "))
		for _, name := range m.Files {
			if err := put(filepath.Join(m.Dir, name), filepath.Join(out, filepath.FromSlash(m.Path)+"@"+m.Version, name)); err != nil {
				return err
			}
		}
	}
	if page != "" {
		table.WriteString("\nThe packages in the console's page: [console-page.md](console-page.md).\n")
		if err := put(page, filepath.Join(out, "console-page.md")); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(out, index), []byte(table.String()), 0o644)
}

// all are the modules of all binaries, each once.
func all(binaries []string) ([]licenses.Module, error) {
	var found []licenses.Module
	for _, binary := range binaries {
		modules, err := licenses.Of(binary)
		if err != nil {
			return nil, err
		}
		found = append(found, modules...)
	}
	key := func(m licenses.Module) string { return m.Path + "@" + m.Version }
	slices.SortFunc(found, func(a, b licenses.Module) int { return strings.Compare(key(a), key(b)) })
	return slices.CompactFunc(found, func(a, b licenses.Module) bool { return key(a) == key(b) }), nil
}

func put(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}
