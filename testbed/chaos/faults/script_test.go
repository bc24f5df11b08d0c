// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/collectors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
)

func nodesNamed(names ...string) (out []*collectors.Member) {
	for _, name := range names {
		out = append(out, &collectors.Member{Node: &fleet.Node{Name: name}})
	}
	return out
}

func rounds(seed uint64, n int) (out []string) {
	s := NewScript(seed, nodesNamed("whole", "shared", "mig"), kinds())
	for range n {
		text := ""
		for _, f := range s.Next() {
			text += fmt.Sprintf("%s at %v for %v; ", f, f.At, f.Last)
		}
		out = append(out, text)
	}
	return out
}

// The same seed plays the same rounds.
func TestScriptIsOfItsSeed(t *testing.T) {
	assert.Equal(t, rounds(1, 50), rounds(1, 50))
	assert.NotEqual(t, rounds(1, 50), rounds(2, 50))
}

// Every kind comes within some rounds, what is drawn goes together, and each
// fault has a time to be over.
func TestScript(t *testing.T) {
	for seed := range uint64(20) {
		s := NewScript(seed, nodesNamed("whole", "shared", "mig"), kinds())
		seen := map[string]int{}
		alone := 0
		for range 60 {
			round := s.Next()
			require.NotEmpty(t, round)
			if len(round) == 1 {
				alone++
			}
			places := map[string]bool{}
			api, moves := false, false
			for _, f := range round {
				seen[f.name]++
				if f.where() != "" {
					assert.False(t, places[f.where()], "two faults of %s", f.where())
				}
				places[f.where()] = true
				api = api || f.place == onAPI
				moves = moves || f.changes || f.restarts
				assert.Positive(t, f.recovery, f.name)
				assert.Positive(t, f.Last)
				if f.silent || f.deaf {
					assert.Greater(t, f.Last, pace.Staleness+pace.Late, "long enough to be noticed")
				}
				assert.True(t, f.Kind.node == "" || f.node.Name == f.Kind.node, "%s", f)
			}
			assert.False(t, api && moves, "no pod moves while the API server is away")
		}
		assert.Positive(t, alone)
		for _, k := range kinds() {
			assert.NotZero(t, seen[k.name], "seed %d never drew %s", seed, k.name)
		}
	}
}

// The names of the opening are kinds, and nothing of it is left out.
func TestOpening(t *testing.T) {
	for seed := range uint64(20) {
		s := NewScript(seed, nodesNamed("whole", "shared", "mig"), kinds())
		for _, want := range opening {
			var got []string
			for _, f := range s.Next() {
				got = append(got, f.name)
			}
			if !assert.ElementsMatch(t, want, got) {
				return
			}
		}
	}
}

func TestPick(t *testing.T) {
	all, err := Pick(nil)
	require.NoError(t, err)
	names := map[string]bool{}
	for _, k := range all {
		assert.False(t, names[k.name], "%s is duplicated", k.name)
		names[k.name] = true
	}
	some, err := Pick([]string{"gateway_kill", "exporter_down"})
	require.NoError(t, err)
	assert.Len(t, some, 2)
	_, err = Pick([]string{"gateway_kil"})
	assert.EqualError(t, err, `there is no kind of fault "gateway_kil"`)
}

func TestDamage(t *testing.T) {
	seen := map[int]bool{}
	for seed := range uint64(20) {
		dir := t.TempDir()
		path := filepath.Join(dir, "connector_x")
		before := make([]byte, 20_000)
		require.NoError(t, os.WriteFile(path, before, 0o600))
		f := &Fault{rand: rand.New(rand.NewPCG(seed, 1))}
		require.NoError(t, damage(f, dir, "connector_*"))
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.NotEqual(t, before, after)
		seen[len(after)] = true

		queue := filepath.Join(dir, "exporter_x")
		require.NoError(t, os.WriteFile(queue, before, 0o600))
		require.NoError(t, damage(f, dir, "exporter_*"))
		after, err = os.ReadFile(queue)
		require.NoError(t, err)
		assert.Empty(t, after)
	}
	assert.Len(t, seen, 2, "empty, or written over")
	assert.NoError(t, damage(nil, t.TempDir(), "*"), "nothing to damage")
}
