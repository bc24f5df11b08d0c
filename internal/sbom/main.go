// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command sbom writes a CycloneDX bill of materials of a Go binary to standard
// output: what `go version -m` lists, which is what the linker put in, and
// not what go.mod might have meant. With -web the packages of the console's page
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

// The parts of CycloneDX 1.6 that are used here.
type (
	bom struct {
		Format      string      `json:"bomFormat"`
		SpecVersion string      `json:"specVersion"`
		Version     int         `json:"version"`
		Metadata    metadata    `json:"metadata"`
		Components  []component `json:"components"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version,omitempty"`
		PURL       string     `json:"purl,omitempty"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Licenses   []licensed `json:"licenses,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	licensed struct {
		License license `json:"license"`
	}
	license struct {
		ID string `json:"id"` // of SPDX
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
)

// write writes the bill of the binary at path. It has no serial number and no
// time: the same binary gives the same bill.
func write(w io.Writer, path, version, web string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%s is no Go binary: %w", path, err)
	}
	digest, err := sha256Of(path)
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	if version == "" {
		version = info.Main.Version
	}
	out := bom{Format: "CycloneDX", SpecVersion: "1.6", Version: 1}
	out.Metadata.Component = component{
		Type: "application", Ref: name, Name: name, Version: version,
		Hashes: []hash{{"SHA-256", digest}},
	}
	for _, s := range info.Settings {
		if slices.Contains([]string{"GOOS", "GOARCH", "CGO_ENABLED", "-tags", "-trimpath"}, s.Key) {
			out.Metadata.Component.Properties = append(out.Metadata.Component.Properties, property{"go:" + strings.TrimPrefix(s.Key, "-"), s.Value})
		}
	}
	modules, err := licenses.Of(path)
	if err != nil {
		return err
	}
	for _, m := range modules {
		out.Components = append(out.Components, golang(m))
	}
	if web != "" {
		packages, err := page(web)
		if err != nil {
			return err
		}
		out.Components = append(out.Components, packages...)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(out)
}

// golang is a Go module. Its sum is Go's own kind of hash, of all of its files,
// and so a property.
func golang(m licenses.Module) component {
	purl := "pkg:golang/" + escape(m.Path) + "@" + escape(m.Version)
	c := component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl, Licenses: licensedBy(m.Licenses...)}
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}

func licensedBy(ids ...string) []licensed {
	var list []licensed
	for _, id := range ids {
		list = append(list, licensed{license{id}})
	}
	return list
}

// page are the packages that the console's page is built from: the dependencies
// of package.json and theirs, at the versions of package-lock.json.
func page(folder string) ([]component, error) {
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
	var found []component
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
			purl := "pkg:npm/" + strings.ReplaceAll(escape(name), "@", "%40") + "@" + escape(p.Version)
			found = append(found, component{
				Type: "library", Ref: purl, Name: name, Version: p.Version, PURL: purl, Licenses: licensedBy(p.License),
				Properties: []property{{"npm:integrity", p.Integrity}},
			})
			if err := add(p.Dependencies); err != nil {
				return err
			}
		}
		return nil
	}
	if err := add(manifest.Dependencies); err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b component) int { return strings.Compare(a.PURL, b.PURL) })
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
