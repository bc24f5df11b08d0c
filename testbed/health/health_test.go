// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

var wrongs, played atomic.Int64

func TestMain(m *testing.M) {
	status := m.Run()
	fmt.Printf("reasons %d, scripts %d, wrong %d\n", len(raised()), played.Load(), wrongs.Load())
	os.Exit(status)
}

// raised are the reasons that scripts raise.
func raised() map[string]bool {
	all := map[string]bool{}
	for i := range scripts {
		for _, r := range scripts[i].raises {
			all[r] = true
		}
	}
	return all
}

// At every evaluation the states, reasons and actions of boards are those that they are
// expected to have, and so is the state of the node.
func TestScripts(t *testing.T) {
	for i := range scripts {
		sc := &scripts[i]
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			played.Add(1)
			out := sc.play(t)
			for j, w := range out.wrong {
				if j < 12 {
					t.Error(w)
				}
			}
			wrongs.Add(int64(len(out.wrong)))
			for _, r := range sc.raises {
				assert.Contains(t, out.raised, r)
			}
			if sc.never {
				assert.Empty(t, out.raised)
			}
			for _, state := range sc.states {
				assert.Contains(t, out.states, state)
			}
			if !sc.stays {
				assert.Equal(t, verdict("ok", nil, "none"), out.last)
			}
			if t.Failed() {
				wrongs.CompareAndSwap(0, 1)
			}
		})
	}
}

// Without its inputs nothing raises a reason: the same script does not reach what it
// reaches with them.
func TestWithoutInputs(t *testing.T) {
	for i := range scripts {
		sc := &scripts[i]
		if len(sc.inputs) == 0 || len(sc.raises) == 0 {
			continue
		}
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			out := sc.play(t, sc.inputs...)
			for _, r := range sc.raises {
				assert.NotContains(t, out.raised, r)
			}
			if t.Failed() {
				wrongs.Add(1)
			}
		})
	}
}

// No rule is dead: every reason has a script that raises it, and one that fails without
// its input.
func TestEveryReason(t *testing.T) {
	with := map[string]bool{}
	for i := range scripts {
		if len(scripts[i].inputs) > 0 {
			for _, r := range scripts[i].raises {
				with[r] = true
			}
		}
	}
	for _, r := range vendorReasons() {
		with[r] = true
	}
	var all []string
	for _, r := range names.HealthReasons() {
		all = append(all, r.Name)
		assert.Contains(t, with, r.Name)
	}
	all = append(all, "count") // of nodes
	for _, r := range slices.Sorted(maps.Keys(raised())) {
		assert.Contains(t, all, r)
	}
}
