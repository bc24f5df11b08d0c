// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ncclsim

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type line struct {
	Header *struct {
		ID   string
		Rank int
	}
	Stats *struct {
		Coll uint64 `json:"coll_records"`
		P2P  uint64 `json:"p2p_records"`
		Lost uint64 `json:"coll_dropped_since_last_dump"`
	} `json:"dump_stats"`
	Coll *struct {
		Coll string
		SN   uint64 `json:"coll_sn"`
		Time uint64 `json:"coll_exec_time_us"`
	} `json:"coll_perf"`
	P2P *struct{ P2P string } `json:"p2p_perf"`
}

// scan reads the complete lines of all files of a folder by a simple reader, which forgets the marker
// of v4.3 after its records.
func scan(t *testing.T, dir string) (records map[string]uint64, dropped uint64, times map[string]map[uint64]map[int]uint64) {
	t.Helper()
	records, times = map[string]uint64{}, map[string]map[uint64]map[int]uint64{}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.log"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var context line
		left := uint64(0)
		for text := range bytes.Lines(text) {
			var l line
			if !bytes.HasSuffix(text, []byte("\n")) || json.Unmarshal(text, &l) != nil {
				left = max(left, 1) - 1
				continue
			}
			if l.Header == nil {
				if left == 0 {
					continue
				}
				left--
				l.Header = context.Header
			}
			switch {
			case l.Stats != nil:
				context, left = l, l.Stats.Coll+l.Stats.P2P
				dropped += l.Stats.Lost
			case l.Coll != nil:
				records[l.Coll.Coll]++
				key := l.Header.ID + l.Coll.Coll
				if times[key] == nil {
					times[key] = map[uint64]map[int]uint64{}
				}
				if times[key][l.Coll.SN] == nil {
					times[key][l.Coll.SN] = map[int]uint64{}
				}
				times[key][l.Coll.SN][l.Header.Rank] = l.Coll.Time
			case l.P2P != nil:
				records[l.P2P.P2P]++
			}
		}
	}
	return records, dropped, times
}

// The files hold what the run states: intact lines, dropped records, and the late rank has the
// shortest time.
func TestFilesAreTheTruth(t *testing.T) {
	start := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	seen := map[Version]int{}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 0))
		fault := Faults[seed%uint64(len(Faults))]
		dir := t.TempDir()
		r, end, err := Random(rng, fault, dir, start)
		require.NoError(t, err)
		if len(r.Processes) > 48 {
			require.NoError(t, r.Close())
			continue
		}
		for now := start; now.Before(end); now = now.Add(5 * time.Second) {
			require.NoError(t, r.Advance(now))
		}
		require.NoError(t, r.Flush())
		require.NoError(t, r.Close())
		seen[r.Version]++

		records, dropped, times := scan(t, dir)
		if !r.SamePIDs {
			assert.Equal(t, r.Written, records, "%d %s", seed, fault)
			assert.Equal(t, r.Dropped, dropped, "%d %s", seed, fault)
		}
		for _, s := range r.Stragglers() {
			if !s.Sure || s.Rank < 0 || s.Communicator.Ranks() == 2 {
				continue
			}
			shortest, all := 0, 0
			for key, sequences := range times {
				if !strings.HasPrefix(key, s.Communicator.ID) || strings.HasSuffix(key, "AllToAll") {
					continue
				}
				for _, ranks := range sequences {
					if len(ranks) < s.Communicator.Ranks() {
						continue
					}
					all++
					least := ranks[s.Rank]
					if !slices.ContainsFunc(values(ranks), func(v uint64) bool { return v < least }) {
						shortest++
					}
				}
			}
			if r.Late.From.Equal(start) && fault == LateRank && r.Outliers == 0 {
				assert.Greater(t, float64(shortest), 0.7*float64(all), "%d: %d of %d", seed, shortest, all)
			}
		}
	}
	assert.Len(t, seen, 3)
}

func values(m map[int]uint64) (v []uint64) {
	for _, x := range m {
		v = append(v, x)
	}
	return v
}
