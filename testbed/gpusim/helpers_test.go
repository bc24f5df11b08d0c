// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

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
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fakeClock is a clock that stands still until it is moved.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *fakeClock { return &fakeClock{now: epoch} }

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// sample is one series of a page.
type sample struct {
	name   string
	labels map[string]string
	raw    string // name and labels as they stand in the page
	value  float64
	stamp  *int64
}

// parsed is a page, read by the parser that Prometheus itself uses.
type parsed struct {
	samples []sample
	types   map[string]string
	help    map[string]string
}

var labelName = regexp.MustCompile(`[{,] ?([a-zA-Z_][a-zA-Z0-9_]*)="`)

func parse(t *testing.T, page []byte) parsed {
	t.Helper()
	out := parsed{types: map[string]string{}, help: map[string]string{}}
	p := textparse.NewPromParser(append([]byte{}, page...), labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if err == io.EOF {
			return out
		}
		require.NoError(t, err)
		switch entry {
		case textparse.EntryType:
			name, typ := p.Type()
			out.types[string(name)] = string(typ)
		case textparse.EntryHelp:
			name, help := p.Help()
			out.help[string(name)] = string(help)
		case textparse.EntrySeries:
			raw, stamp, v := p.Series()
			var l labels.Labels
			p.Labels(&l)
			s := sample{name: l.Get("__name__"), labels: l.Map(), value: v}
			if stamp != nil {
				ms := *stamp
				s.stamp = &ms
			}
			s.raw = string(raw)
			out.samples = append(out.samples, s)
		}
	}
}

// order lists a sample's label names as they stand in the page.
func (s sample) order() (out string) {
	for _, m := range labelName.FindAllStringSubmatch(s.raw, -1) {
		out += m[1] + " "
	}
	return out
}

// find gives the samples of a family that carry all of the labels (key, value, …).
func (p parsed) find(name string, kv ...string) []sample {
	var out []sample
next:
	for _, s := range p.samples {
		if s.name != name {
			continue
		}
		for i := 0; i < len(kv); i += 2 {
			if s.labels[kv[i]] != kv[i+1] {
				continue next
			}
		}
		out = append(out, s)
	}
	return out
}

// one gives the value of the only sample that fits.
func (p parsed) one(t *testing.T, name string, kv ...string) float64 {
	t.Helper()
	s := p.find(name, kv...)
	require.Len(t, s, 1, "%s %v", name, kv)
	return s[0].value
}

func newFleet(t *testing.T, cfg Config) (*Fleet, *fakeClock) {
	t.Helper()
	c := newClock()
	fl, err := New(cfg, c.Now)
	require.NoError(t, err)
	return fl, c
}

// page parses the page of a node at a time since the start.
func page(t *testing.T, fl *Fleet, node string, at time.Duration) parsed {
	t.Helper()
	b, err := fl.Page(node, fl.Start().Add(at))
	require.NoError(t, err)
	return parse(t, b)
}

// oneNode is a fleet of one node, called n.
func oneNode(n Node) Config {
	n.Name = "n"
	return Config{Seed: 7, Nodes: []Node{n}}
}

func realSample(t *testing.T, name string) []byte {
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
	b, err := os.ReadFile(filepath.Join(dir, "..", "shared", "data", "dcgm", name))
	if err != nil {
		t.Skip("the captured pages are not here")
	}
	return b
}
