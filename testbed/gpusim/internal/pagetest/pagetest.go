// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package pagetest reads exporters' pages in tests, with the parser that Prometheus
// uses, and has a clock that stands still.
package pagetest

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/stretchr/testify/require"
)

// Epoch is when a Clock begins.
var Epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Clock stands still until it is moved.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock is a clock at Epoch.
func NewClock() *Clock { return &Clock{now: Epoch} }

// Now is its time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves it.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Sample is one series of a page.
type Sample struct {
	Name   string
	Labels map[string]string
	Raw    string // name and labels as they stand in the page
	Value  float64
	Stamp  *int64 // milliseconds since 1970, if it has a timestamp
}

// Page is a page of the text format.
type Page struct {
	Samples []Sample
	Types   map[string]string // by family
	Help    map[string]string
}

// Parse reads a page.
func Parse(t *testing.T, page []byte) Page {
	t.Helper()
	out := Page{Types: map[string]string{}, Help: map[string]string{}}
	p := textparse.NewPromParser(append([]byte{}, page...), labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if err == io.EOF {
			return out
		}
		require.NoError(t, err)
		switch entry {
		case textparse.EntryType:
			name, kind := p.Type()
			out.Types[string(name)] = string(kind)
		case textparse.EntryHelp:
			name, help := p.Help()
			out.Help[string(name)] = string(help)
		case textparse.EntrySeries:
			raw, stamp, v := p.Series()
			var l labels.Labels
			p.Labels(&l)
			s := Sample{Name: l.Get("__name__"), Labels: l.Map(), Value: v, Raw: string(raw)}
			if stamp != nil {
				ms := *stamp
				s.Stamp = &ms
			}
			out.Samples = append(out.Samples, s)
		}
	}
}

var labelName = regexp.MustCompile(`[{,] ?([a-zA-Z_][a-zA-Z0-9_]*)="`)

// Order lists a sample's label names as they stand in the page.
func (s Sample) Order() (out string) {
	for _, m := range labelName.FindAllStringSubmatch(s.Raw, -1) {
		out += m[1] + " "
	}
	return out
}

// Find returns the samples of a family that have all of the labels (key, value, …).
func (p Page) Find(name string, kv ...string) []Sample {
	var out []Sample
next:
	for _, s := range p.Samples {
		if s.Name != name {
			continue
		}
		for i := 0; i < len(kv); i += 2 {
			if s.Labels[kv[i]] != kv[i+1] {
				continue next
			}
		}
		out = append(out, s)
	}
	return out
}

// One returns the value of the only sample that fits.
func (p Page) One(t *testing.T, name string, kv ...string) float64 {
	t.Helper()
	s := p.Find(name, kv...)
	require.Len(t, s, 1, "%s %v", name, kv)
	return s[0].Value
}

// Captured is a page of a real exporter, from beside the repository; the test is
// skipped without it.
func Captured(t *testing.T, name string) []byte {
	t.Helper()
	return CapturedOf(t, "dcgm", name)
}

// CapturedOf is the same for another kind of exporter.
func CapturedOf(t *testing.T, kind, name string) []byte {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "builder-config.yaml")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Skip("not inside the repository")
		}
		dir = filepath.Dir(dir)
	}
	b, err := os.ReadFile(filepath.Join(dir, "..", "shared", "data", kind, name))
	if err != nil {
		t.Skip("the captured pages are not here")
	}
	return b
}
