// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command sbom writes a CycloneDX bill of materials of a Go binary to standard
// output: what `go version -m` lists, which is what the linker put in, and
// not what go.mod lists. With -web the packages of the console's page
// too, which are embedded as files and so not known to Go.
//
//	sbom [-version 0.1.0] [-web extension/gpuconsoleextension/web] bin/otelcol-gpu
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/otelcol-gpu/otelcol-gpu/internal/sbom/licenses"
)

func main() {
	web := flag.String("web", "", "folder of the page's package.json and package-lock.json")
	version := flag.String("version", "", "version of the binary, where it knows none")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: sbom [-version VERSION] [-web DIR] BINARY")
		os.Exit(2)
	}
	if err := write(os.Stdout, flag.Arg(0), *version, *web); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// write writes the bill of the binary at path. It has no serial number and no
// time: the same binary gives the same bill.
func write(w io.Writer, path, version, web string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%s is not a Go binary: %w", path, err)
	}
	digest, err := sha256Of(path)
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	if version == "" {
		version = info.Main.Version
	}
	var settings []cdx.Property
	for _, s := range info.Settings {
		if slices.Contains([]string{"GOOS", "GOARCH", "CGO_ENABLED", "-tags", "-trimpath"}, s.Key) {
			settings = append(settings, cdx.Property{Name: "go:" + strings.TrimPrefix(s.Key, "-"), Value: s.Value})
		}
	}
	modules, err := licenses.Of(path)
	if err != nil {
		return err
	}
	var components []cdx.Component
	for _, m := range modules {
		components = append(components, golang(m))
	}
	if web != "" {
		packages, err := page(web)
		if err != nil {
			return err
		}
		components = append(components, packages...)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{
		Type: cdx.ComponentTypeApplication, BOMRef: name, Name: name, Version: version,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: digest}}, Properties: &settings,
	}}
	bom.Components = &components
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cdx.SpecVersion1_6)
}

// golang is a Go module. Its sum is Go's own kind of hash, of all of its files,
// and so a property.
func golang(m licenses.Module) cdx.Component {
	c := library("pkg:golang/"+escape(m.Path), m.Path, m.Version, m.Licenses...)
	if m.Sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}

// library is a component; its package URL is without the version, its licenses are
// SPDX identifiers.
func library(purl, name, version string, ids ...string) cdx.Component {
	purl += "@" + escape(version)
	var all cdx.Licenses
	for _, id := range ids {
		all = append(all, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: purl, Name: name, Version: version, PackageURL: purl, Licenses: &all}
}

// page are the packages that the console's page is built from: the dependencies
// of package.json and theirs, at the versions of package-lock.json.
func page(folder string) ([]cdx.Component, error) {
	var manifest struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	var lock struct {
		Packages map[string]struct {
			Version      string            `json:"version"`
			Integrity    string            `json:"integrity"`
			License      string            `json:"license"` // of SPDX
			Dependencies map[string]string `json:"dependencies"`
		} `json:"packages"`
	}
	for file, into := range map[string]any{"package.json": &manifest, "package-lock.json": &lock} {
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, into); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	var found []cdx.Component
	seen := map[string]bool{}
	var add func(names map[string]string) error
	add = func(names map[string]string) error {
		for name := range names {
			if seen[name] {
				continue
			}
			seen[name] = true
			p, ok := lock.Packages["node_modules/"+name]
			if !ok {
				return fmt.Errorf("package-lock.json does not have %s: run npm install in %s", name, folder)
			}
			if p.License == "" {
				return fmt.Errorf("package-lock.json has no license of %s: read it before it is distributed", name)
			}
			c := library("pkg:npm/"+strings.ReplaceAll(escape(name), "@", "%40"), name, p.Version, p.License)
			c.Properties = &[]cdx.Property{{Name: "npm:integrity", Value: p.Integrity}}
			found = append(found, c)
			if err := add(p.Dependencies); err != nil {
				return err
			}
		}
		return nil
	}
	if err := add(manifest.Dependencies); err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b cdx.Component) int { return strings.Compare(a.PackageURL, b.PackageURL) })
	return found, nil
}

// escape is the percent encoding of a package URL, element by element.
func escape(path string) string {
	elements := strings.Split(path, "/")
	for i, e := range elements {
		elements[i] = strings.ReplaceAll(url.PathEscape(e), "+", "%2B")
	}
	return strings.Join(elements, "/")
}

func sha256Of(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
