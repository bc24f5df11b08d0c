// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package licenses finds the license texts and notices of what a Go binary was
// linked from: the files in the module cache, which the build has filled.
package licenses

import (
	"debug/buildinfo"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/google/licensecheck"
	"golang.org/x/mod/module"
)

// Module is a module that a binary was linked from.
type Module struct {
	Path, Version string
	Sum           string   // Go's hash of all files, "" for the standard library
	Dir           string   // where its files are
	Files         []string // license texts and notices, relative to Dir, sorted
	Licenses      []string // SPDX identifiers of the texts in Dir itself, sorted
}

// Stdlib is the name of Go's standard library among modules.
const Stdlib = "stdlib"

// Of lists the modules of a binary, the standard library first and without the
// modules of this repository. A module with an unrecognized license is an
// error: it may not be distributed before a person has read it.
func Of(binary string) ([]Module, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("%s is not a Go binary: %w", binary, err)
	}
	cache, root, err := environment()
	if err != nil {
		return nil, err
	}
	found := []Module{{Path: Stdlib, Version: strings.TrimPrefix(info.GoVersion, "go"), Dir: root, Files: []string{"LICENSE", "PATENTS"}}}
	for _, m := range info.Deps {
		m = replaced(m)
		if m.Version == "" || strings.HasPrefix(m.Path, ".") {
			continue // of this checkout
		}
		dir, err := dirOf(cache, m.Path, m.Version)
		if err != nil {
			return nil, err
		}
		files, err := texts(dir)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", m.Path, m.Version, err)
		}
		found = append(found, Module{Path: m.Path, Version: m.Version, Sum: m.Sum, Dir: dir, Files: files})
	}
	for i := range found {
		if err := found[i].identify(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func replaced(m *debug.Module) *debug.Module {
	for m.Replace != nil {
		m = m.Replace
	}
	return m
}

// environment is Go's module cache and the folder of its standard library.
func environment() (cache, root string, err error) {
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		return "", "", fmt.Errorf("go env: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 2 {
		return "", "", fmt.Errorf("go env has %d lines instead of 2", len(lines))
	}
	return lines[0], lines[1], nil
}

func dirOf(cache, path, version string) (string, error) {
	escapedPath, err := module.EscapePath(path)
	if err != nil {
		return "", err
	}
	escapedVersion, err := module.EscapeVersion(version)
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, escapedPath+"@"+escapedVersion), nil
}

var (
	// What files with a license, a notice or a copyright are called.
	textName = regexp.MustCompile(`(?i)^(un)?(licen[cs]es?|copying|copyright|notices?|patents|third[-_.]?party[-_.]?(licen[cs]es?|notices?)|attributions?)([-_.].*)?$`)
	noText   = regexp.MustCompile(`(?i)\.(go|py|js|ts|sh|json|ya?ml|tmpl|header|hdr|pb|png|svg)$`)
	// What is not linked in.
	skipped = map[string]bool{"testdata": true, "node_modules": true, "examples": true, "hack": true, "docs": true}
)

// texts are the license files in a module: those of code that it has copied
// into a folder too.
func texts(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != dir && (skipped[e.Name()] || strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_")):
			return fs.SkipDir
		case e.Type().IsRegular() && textName.MatchString(e.Name()) && !noText.MatchString(e.Name()):
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			found = append(found, filepath.ToSlash(name))
		}
		return nil
	})
	slices.Sort(found)
	return found, err
}

// noLicense are texts that licensecheck knows and that are not a license in SPDX:
// they are distributed with the rest.
var noLicense = map[string]bool{"GooglePatentsFile": true}

// identify sets the licenses by the texts at the top of the module.
func (m *Module) identify() error {
	for _, name := range m.Files {
		if strings.Contains(name, "/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		// A part of a file counts as well: NOTICE files quote what they are about.
		for _, match := range licensecheck.Scan(text).Match {
			if !match.IsURL && !noLicense[match.ID] && !slices.Contains(m.Licenses, match.ID) {
				m.Licenses = append(m.Licenses, match.ID)
			}
		}
	}
	slices.Sort(m.Licenses)
	if len(m.Licenses) == 0 {
		return fmt.Errorf("%s %s: no license is recognized in %s (%s): read it before it is distributed", m.Path, m.Version, m.Dir, strings.Join(m.Files, ", "))
	}
	return nil
}
