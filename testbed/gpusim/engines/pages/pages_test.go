// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/pagetest"
)

var update = flag.Bool("update", false, "write the golden pages")

func process(t *testing.T, cfg requests.Config, seed uint64, load func(int64) float64) *requests.Process {
	t.Helper()
	p, err := requests.New(cfg, seed, 2*time.Second, load, Bounds)
	require.NoError(t, err)
	return p
}

func full(int64) float64 { return 1 }

// busy has some of everything that happens to requests.
func busy() requests.Config {
	return requests.Config{
		Rate: 16, Prompt: 120, Output: 60, Context: 1024, Slots: 16, Queue: 8, Blocks: 70, Aborts: .3, Errors: .1, PrefixHits: .5, Drafts: 2, Accepted: .6,
		Adapters: []string{"sql", "legal"},
	}
}

func input(all ...*requests.Process) Input {
	in := Input{Epoch: pagetest.Epoch, Pod: "llama-0"}
	for i, p := range all {
		s := p.State()
		s.Name = "llama-" + string(rune('0'+i))
		in.States = append(in.States, s)
	}
	return in
}

// The pages as they are, one for each engine.
func TestGoldenPages(t *testing.T) {
	for i := range engines {
		e := &engines[i]
		t.Run(e.Name, func(t *testing.T) {
			p := process(t, busy(), 11, full)
			p.Advance(40 * time.Second)
			page := e.Page(input(p))
			file := filepath.Join("testdata", e.Name+".prom")
			if *update {
				require.NoError(t, os.WriteFile(file, page, 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), string(page), "written again with -update")
			again := process(t, busy(), 11, full)
			for at := time.Duration(0); at < 40*time.Second; at += 333 * time.Millisecond {
				again.Advance(at)
			}
			again.Advance(40 * time.Second)
			assert.Equal(t, string(page), string(e.Page(input(again))))
		})
	}
}

// Every page is one that a scraper can read, with each series once, buckets that
// rise to the count, and a type and a text for each family.
func TestPagesAreSound(t *testing.T) {
	for i := range engines {
		e := &engines[i]
		t.Run(e.Name, func(t *testing.T) {
			a, b := process(t, busy(), 1, full), process(t, busy(), 2, full)
			in := input(a, b)
			for _, at := range []time.Duration{time.Second, 2 * time.Second, time.Minute} {
				a.Advance(at)
				b.Advance(at)
				in = input(a, b)
				in.Ranks = 2
				page := pagetest.Parse(t, e.Page(in))
				seen := map[string]bool{}
				for _, s := range page.Samples {
					assert.False(t, seen[s.Raw], s.Raw)
					seen[s.Raw] = true
					assert.Contains(t, page.Types, family(page, s.Name), s.Raw)
				}
				assert.Len(t, page.Help, len(page.Types))
				checkBuckets(t, page)
			}
		})
	}
}

// family is the name under which TYPE stands.
func family(page pagetest.Page, name string) string {
	for _, suffix := range []string{"", "_bucket", "_count", "_sum"} {
		if base, ok := strings.CutSuffix(name, suffix); ok {
			if _, known := page.Types[base]; known {
				return base
			}
		}
	}
	return name
}

// checkBuckets: cumulative, in the order of the bounds, +Inf last and the count.
func checkBuckets(t *testing.T, page pagetest.Page) {
	t.Helper()
	var last pagetest.Sample
	for _, s := range page.Samples {
		base, ok := strings.CutSuffix(s.Name, "_bucket")
		if !ok {
			continue
		}
		if last.Name == s.Name && last.Labels["le"] != "+Inf" {
			assert.GreaterOrEqual(t, s.Value, last.Value, s.Raw)
		}
		if s.Labels["le"] == "+Inf" {
			var with []string
			for k, v := range s.Labels {
				if k != "le" && k != "__name__" {
					with = append(with, k, v)
				}
			}
			count := page.Find(base+"_count", with...)
			require.NotEmpty(t, count, s.Raw)
			assert.True(t, slices.ContainsFunc(count, func(c pagetest.Sample) bool { return c.Value == s.Value }), s.Raw)
		}
		last = s
	}
}

func TestUnknownEngine(t *testing.T) {
	_, err := Find("vllm-9")
	assert.ErrorContains(t, err, `unknown engine "vllm-9": use one of vllm-0.5, vllm-0.8,`)
	for _, name := range Names() {
		e, err := Find(name)
		require.NoError(t, err)
		assert.NotEmpty(t, e.Path)
		assert.NotZero(t, e.Port)
	}
}

func TestNumbers(t *testing.T) {
	assert.Equal(t, []string{"0.0", "1.0", "0.001", "999999.0", "1e+06", "1.048576e+06", "1.15891634176e+011", "1.7740113846e+09", "-1.0", "1e-05", "123456.75"},
		each(python, 0, 1, .001, 999999, 1e6, 1048576, 115891634176, 1774011384.6, -1, 1e-5, 123456.75))
	assert.Equal(t, []string{"0", "115891634176", "0.000225"}, each(plain, 0, 115891634176, .000225))
	assert.Equal(t, []string{"0", "1.048576e+06", "0.3"}, each(golang, 0, 1048576, .3))
	assert.Equal(t, []string{"31428", "0.491063", "1.23457e+06"}, each(sixDigits, 31428, .4910629, 1234567))
}

func each(format func(float64) string, values ...float64) (out []string) {
	for _, v := range values {
		out = append(out, format(v))
	}
	return out
}
