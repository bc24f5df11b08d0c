// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Each metric of its tier has a row of every engine, or the reason why it cannot be had,
// and not both: families.md has no blank cell.
func TestEveryMetricHasARowOrAReason(t *testing.T) {
	for _, e := range Engines() {
		for _, m := range Metrics(e.Gateway) {
			row := slices.ContainsFunc(e.Rows, func(r Row) bool { return r.Metric == m })
			reason, ok := e.Cannot[m]
			assert.True(t, row != ok, "%s: %s: row %t, reason %t", e.Name, m.Name, row, ok)
			assert.True(t, !ok || reason != "" && !strings.HasSuffix(reason, "."), "%s: %s: %q", e.Name, m.Name, reason)
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range Engines() {
		assert.False(t, seen[e.Name], e.Name)
		seen[e.Name] = true
		assert.NotEmpty(t, e.Title, e.Name)
	}
	NewIndex(Engines()) // panics where a row contradicts itself
}

func TestMistakesInTheTable(t *testing.T) {
	row := func(change func(*Row)) Engine {
		r := Row{Metric: &names.InferencePreemptions, From: []string{"a"}}
		change(&r)
		return Engine{Name: "acme", Rows: []Row{r}}
	}
	ranks := row(func(*Row) {})
	ranks.Lowest = make([]string, MaxRanks+1)
	for want, e := range map[string]Engine{
		"acme: a row of inference.server.preemptions without a family":            row(func(r *Row) { r.From = nil }),
		"acme: a row of inference.server.preemptions with more than 3 dimensions": row(func(r *Row) { r.Dimensions = make([]Dimension, MaxDimensions+1) }),
		"acme: more than 3 labels of ranks":                                       ranks,
		"acme: inference.server.preemptions: With and Rule do not fit":            row(func(r *Row) { r.Rule = Product }),
	} {
		assert.PanicsWithValue(t, want, func() { NewIndex([]*Engine{&e}) })
	}
}

func TestFind(t *testing.T) {
	x := NewIndex([]*Engine{{
		Name: "acme", Prefixes: []string{"acme:", "acme_"}, Dropped: []string{"acme_gpu_*", "acme_node"}, Passed: []string{"gpu_a*", "b*", "ba_*", "bb*", "c"},
		Rows: []Row{{Metric: &names.InferencePreemptions, From: []string{"preempted", "=whole"}}},
	}})
	for name, want := range map[string][]Ref{
		"acme:preempted": {{0, 0, 0}}, "acme_preempted_total": {{0, 1, 0}}, "preempted": nil, "whole": {{0, Whole, 1}}, "whole_total": nil,
		"acme_gpu_power": {{0, 0, Drop}}, "acme_gpu_a": {{0, 0, Drop}}, "acme_node": {{0, 0, Drop}}, "acme_nodes": nil, "acme_gp": nil,
		"acme:gpu_ab": {{0, 0, Pass}}, "acme:b": {{0, 0, Pass}}, "acme_bcd": {{0, 1, Pass}}, "acme:c_total": {{0, 0, Pass}}, "acme:cd": nil, "zzz": nil, "": nil,
	} {
		assert.Equal(t, want, x.Find(name), name)
	}
}

// samples are pages of real engines, which not every clone has.
const samples = "../../../../../shared/data"

// Every family on the real pages is on a row or passes on purpose.
func TestFamiliesOfRealPages(t *testing.T) {
	if _, err := os.Stat(samples); err != nil {
		t.Skip("needs the real pages beside the clone")
	}
	x := NewIndex(Engines())
	for _, folder := range []string{"vllm", "sglang", "tgi", "triton", "trtllm", "nim", "llamacpp", "dynamo", "epp"} {
		paths, err := filepath.Glob(filepath.Join(samples, folder, "*.prom"))
		require.NoError(t, err)
		for _, path := range paths {
			t.Run(folder+"/"+filepath.Base(path), func(t *testing.T) {
				for _, name := range namesOf(t, path) {
					assert.True(t, x.known(name) || x.known(family(name)), "%s is on no row, and not listed as passed", name)
				}
			})
		}
	}
}

// namesOf lists the names of a page's samples.
func namesOf(t *testing.T, path string) []string {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	var list []string
	in := bufio.NewScanner(file)
	for in.Scan() {
		line := strings.TrimSpace(in.Text())
		if line == "" || line[0] == '#' || strings.HasPrefix(line, "...") {
			continue
		}
		name := line[:strings.IndexAny(line+" ", "{ ")]
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	require.NoError(t, in.Err())
	return list
}

// family is the family that a sample may be part of.
func family(name string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// known reports whether a family is on a row of an engine, or listed.
func (x *Index) known(family string) bool {
	for _, prefix := range []string{"go_", "python_", "process_", "http_", "promhttp_"} {
		if strings.HasPrefix(family, prefix) {
			return true
		}
	}
	return len(x.Find(family)) > 0 || len(x.Find(strings.TrimSuffix(family, "_created"))) > 0
}
