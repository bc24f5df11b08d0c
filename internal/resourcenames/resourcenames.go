// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package resourcenames knows which Kubernetes extended resources are
// accelerators: the one list that every component starts from.
package resourcenames

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Default returns the patterns of accelerators that are known without
// configuration. The slice is the caller's own.
func Default() []string {
	return []string{
		"nvidia.com/gpu",
		"nvidia.com/gpu.shared",
		"nvidia.com/mig-*",
		"amd.com/gpu",
		"amd.com/{spx,dpx,tpx,qpx,cpx}_nps{1,2,4,8}",
		"habana.ai/gaudi",
		"gpu.intel.com/*",
	}
}

// Expressions returns Default as regular expressions for whole names: one that matches
// accelerators, and one of names among those that are none.
func Expressions() (accelerators, others string) {
	group := strings.NewReplacer(`\{`, "(?:", `\}`, ")", ",", "|", `\*`, ".+")
	var all, none []string
	for _, p := range Default() {
		all = append(all, group.Replace(regexp.QuoteMeta(p)))
	}
	for _, name := range notDevices {
		none = append(none, regexp.QuoteMeta(name))
	}
	return strings.Join(all, "|"), strings.Join(none, "|")
}

// notDevices are names that a default pattern covers and that are no device of
// one container: Intel's plugin gives every monitoring pod all GPUs at once, and
// its other names are quantities of a GPU.
var notDevices = []string{
	"gpu.intel.com/i915_monitoring",
	"gpu.intel.com/xe_monitoring",
	"gpu.intel.com/monitoring",
	"gpu.intel.com/millicores",
	"gpu.intel.com/memory.max",
	"gpu.intel.com/tiles",
}

// Matcher decides whether a resource is an accelerator. It is immutable.
type Matcher struct {
	names    map[string]struct{}
	prefixes []string
}

// New returns the Matcher of patterns: names such as nvidia.com/gpu, or the beginning of
// names followed by "*", both with alternatives in braces, {a,b}. A name that is written out
// always counts; a pattern with "*" leaves out names that are known to be no device. The
// error names every wrong pattern by its place in patterns, with a remedy.
func New(patterns []string) (*Matcher, error) {
	m := &Matcher{names: map[string]struct{}{}}
	var errs []error
	for i, p := range patterns {
		if err := check(p); err != nil {
			errs = append(errs, fmt.Errorf("%d: %q %w", i, p, err))
			continue
		}
		for _, name := range expand(p) {
			if prefix, wild := strings.CutSuffix(name, "*"); wild {
				m.prefixes = append(m.prefixes, prefix)
			} else {
				m.names[name] = struct{}{}
			}
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return m, nil
}

// maxNames bounds the names that one pattern stands for.
const maxNames = 256

// expand gives the names that a checked pattern stands for.
func expand(pattern string) []string {
	before, rest, ok := strings.Cut(pattern, "{")
	if !ok {
		return []string{pattern}
	}
	inside, after, _ := strings.Cut(rest, "}")
	var out []string
	for _, end := range expand(after) {
		for alternative := range strings.SplitSeq(inside, ",") {
			out = append(out, before+alternative+end)
		}
	}
	return out
}

// checkBraces checks that each { has its }, with alternatives between them.
func checkBraces(pattern string) error {
	count := 1
	for rest := pattern; ; {
		before, inside, ok := strings.Cut(rest, "{")
		if strings.Contains(before, "}") {
			return errBraces
		}
		if !ok {
			return nil
		}
		if inside, rest, ok = strings.Cut(inside, "}"); !ok || strings.ContainsAny(inside, "{*") || slices.Contains(strings.Split(inside, ","), "") {
			return errBraces
		}
		if count *= strings.Count(inside, ",") + 1; count > maxNames {
			return fmt.Errorf("stands for more than %d names: write several patterns", maxNames)
		}
	}
}

var errBraces = errors.New("has braces without alternatives in them: write amd.com/{spx,cpx}_nps1")

func check(pattern string) error {
	domain, name, found := strings.Cut(pattern, "/")
	switch {
	case !found || domain == "" || name == "" || strings.Contains(name, "/"):
		return errors.New("is no resource name: write domain/name, such as nvidia.com/gpu")
	case strings.ContainsAny(pattern, " \t\r\n"):
		return errors.New("has white space in it: remove it")
	case strings.Contains(strings.TrimSuffix(pattern, "*"), "*"):
		return errors.New("has a * that is not its end: write nvidia.com/mig-*")
	case strings.ContainsAny(domain, "{}"):
		return errBraces
	}
	return checkBraces(name)
}

// Match reports whether the resource is an accelerator.
func (m *Matcher) Match(resource string) bool {
	if _, ok := m.names[resource]; ok {
		return true
	}
	for _, prefix := range m.prefixes {
		if len(resource) > len(prefix) && strings.HasPrefix(resource, prefix) {
			return !slices.Contains(notDevices, resource)
		}
	}
	return false
}
