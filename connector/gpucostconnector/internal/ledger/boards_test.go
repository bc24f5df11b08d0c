// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/csv"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
	"github.com/otelcol-gpu/otelcol-gpu/internal/migprofile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// profile is a MIG profile with the slices of its board that it has.
type profile struct {
	name            string
	compute, memory int64
}

func seven(names ...string) []profile {
	return []profile{{names[0], 1, 1}, {names[1], 1, 2}, {names[2], 2, 2}, {names[3], 3, 4}, {names[4], 4, 4}, {names[5], 7, 8}}
}

func even(names ...string) (all []profile) {
	for i, name := range names {
		all = append(all, profile{name, 1 << i, 1 << i})
	}
	return all
}

// migBoards are boards with the profiles of NVIDIA's guide to MIG.
var migBoards = []struct {
	model    string
	memory   int64 // MiB
	slices   share.Slices
	profiles []profile
}{
	{"NVIDIA A100-SXM4-40GB", 40_960, share.Slices{Compute: 7, Memory: 8}, seven("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb")},
	{"NVIDIA A100-SXM4-80GB", 81_920, share.Slices{Compute: 7, Memory: 8}, seven("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")},
	{"NVIDIA H100 80GB HBM3", 81_559, share.Slices{Compute: 7, Memory: 8}, seven("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")},
	{"NVIDIA H100 NVL", 95_830, share.Slices{Compute: 7, Memory: 8}, seven("1g.12gb", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb")},
	{"NVIDIA GH200 480GB", 97_871, share.Slices{Compute: 7, Memory: 8}, seven("1g.12gb", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb")},
	{"NVIDIA H20", 97_871, share.Slices{Compute: 7, Memory: 8}, seven("1g.12gb", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb")},
	{"NVIDIA H200", 143_771, share.Slices{Compute: 7, Memory: 8}, seven("1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb")},
	{"NVIDIA B200", 183_359, share.Slices{Compute: 7, Memory: 8}, seven("1g.23gb", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb")},
	{"NVIDIA GB200", 189_471, share.Slices{Compute: 7, Memory: 8}, seven("1g.23gb", "1g.47gb", "2g.47gb", "3g.93gb", "4g.93gb", "7g.186gb")},
	{"NVIDIA A30", 24_576, share.Slices{Compute: 4, Memory: 4}, even("1g.6gb", "2g.12gb", "4g.24gb")},
	{"NVIDIA RTX PRO 6000 Blackwell Server Edition", 97_887, share.Slices{Compute: 4, Memory: 4}, even("1g.24gb", "2g.48gb", "4g.96gb")},
	{"NVIDIA RTX PRO 5000 Blackwell", 48_935, share.Slices{Compute: 2, Memory: 2}, even("1g.24gb", "2g.48gb")},
	{"NVIDIA RTX PRO 4500 Blackwell", 32_623, share.Slices{Compute: 2, Memory: 2}, even("1g.16gb", "2g.32gb")},
}

// layouts calls f with every set of profiles that a board has the slices for, the empty one
// too.
func layouts(of share.Slices, profiles []profile, f func([]profile)) {
	var extend func(from int, layout []profile, left share.Slices)
	extend = func(from int, layout []profile, left share.Slices) {
		f(layout)
		for i := from; i < len(profiles); i++ {
			if p := profiles[i]; p.compute <= left.Compute && p.memory <= left.Memory {
				extend(i, append(layout[:len(layout):len(layout)], p), share.Slices{Compute: left.Compute - p.compute, Memory: left.Memory - p.memory})
			}
		}
	}
	extend(0, nil, of)
}

func TestEveryBoardAndLayout(t *testing.T) {
	n := 0
	for _, b := range migBoards {
		of, known := share.SlicesOf(b.model, nil)
		require.True(t, known, b.model)
		require.Equal(t, b.slices, of, b.model)
		layouts(b.slices, b.profiles, func(layout []profile) {
			for _, by := range []share.MIGBy{share.ByCompute, share.ByMemory, share.ByMean} {
				accountFor(t, b.model, b.memory, b.slices, layout, by)
				n++
			}
		})
	}
	assert.Greater(t, n, 1000)
}

// accountFor has a layout for an hour, every second instance of it free, and compares time,
// money and energy with what is computed from the slices.
func accountFor(t *testing.T, model string, memory int64, of share.Slices, layout []profile, by share.MIGBy) {
	t.Helper()
	cfg := config()
	cfg.AllocationTTL = 2 * hour
	cfg.Price = func(*Priced, int64) Price {
		return Price{prices.Rate{Nano: 23_600_000_000, Per: 8}, prices.KindList, math.MaxInt64}
	}
	cfg.Carbon = func(*Class, int64) (int64, bool) { return 456_000, true }
	l := New(cfg, t0)
	class := &Class{Cluster: "c", Model: model}
	var points []Point
	want, rest := map[string]float64{}, 1.
	for i, p := range layout {
		parsed, ok := migprofile.Parse(p.name)
		require.True(t, ok)
		slices, _ := share.SlicesOf(model, nil)
		fraction, estimated, ok := share.Instance(parsed, slices, by, memory)
		require.True(t, ok && !estimated)
		part := float64(p.compute) / float64(of.Compute)
		if m := float64(p.memory) / float64(of.Memory); by == share.ByMemory {
			part = m
		} else if by == share.ByMean {
			part = (part + m) / 2
		}
		id, service := fmt.Sprint("g/", i), fmt.Sprint("s", i)
		if i%2 == 0 {
			points = append(points, instance(owned("g", id, service, fraction), p.name))
			want[service] += part
		} else {
			points = append(points, instance(free("g", id, fraction), p.name))
			want["(free)"] += part
		}
		rest -= part
	}
	switch {
	case len(layout) == 0:
		points, rest = append(points, owned("g", "g", "whole", share.Whole)), 0
		want["whole"] = 1
	case rest > 1e-9:
		want["(stranded)"] = rest
	}
	for i := range points {
		points[i].Class = class
	}
	add(l, t0, points...)
	l.Energy("g", t0, 0, 700)
	add(l, t0+hour, points...)
	l.Energy("g", t0+hour, 1_800_000, 700)
	add(l, t0+hour+1, points...)

	name := fmt.Sprintf("%s by %s: %v", model, by, layout)
	got, money := rows(l), map[string]float64{}
	for _, total := range l.Totals() {
		service := total.Key.Service
		if total.Key.State != Held {
			service = "(" + total.Key.State.String() + ")"
		}
		money[service] += total.Cost.Float()
	}
	require.Len(t, got, len(want), name)
	time, energy, carbon, cost := int64(0), int64(0), int64(0), 0.
	for row, part := range want {
		a := got[row]
		mj := a.Energy[OfBoard] + a.Energy[OfShare]
		require.InDelta(t, part*3_600_000, a.Time, float64(len(layout)), name)
		require.InDelta(t, part*2.95, money[row], 0.00005, name)
		require.InDelta(t, part*1.8e9, mj, 1.8e9/3.6e6*float64(len(layout)+1), name)
		time, energy, carbon, cost = time+a.Time, energy+mj, carbon+a.Carbon, cost+money[row]
	}
	require.Equal(t, hour, time, name)
	require.Equal(t, int64(1_800_000_000), energy, name)
	require.InDelta(t, 228_000_000, carbon, float64(len(layout)+1), name)
	require.InDelta(t, 2.95, cost, 0.0000001, name)
}

// The boards of published lists, where they are there: those of a model that can be divided
// with every layout of it, the others whole.
func TestPublishedBoards(t *testing.T) {
	const lists = "../../../../../shared/data/gpu_specs"
	n := 0
	for file, columns := range map[string][2]string{"mlco2-gpus.csv": {"name", "memory"}, "stas-dense-tflops.csv": {"accelerator", "memory_gb"}} {
		f, err := os.Open(filepath.Join(lists, file))
		if err != nil {
			require.ErrorIs(t, err, fs.ErrNotExist)
			t.Skip("the lists are not there")
		}
		r := csv.NewReader(f)
		r.FieldsPerRecord = -1
		rows, err := r.ReadAll()
		require.NoError(t, f.Close())
		require.NoError(t, err)
		column := map[string]int{}
		for i, name := range rows[0] {
			column[name] = i
		}
		for _, row := range rows[1:] {
			if len(row) <= column[columns[1]] {
				continue
			}
			model := row[column[columns[0]]]
			gb, err := strconv.ParseFloat(row[column[columns[1]]], 64)
			of, divisible := share.SlicesOf(model, nil)
			if err != nil || !divisible {
				accountFor(t, model, 0, share.Slices{}, nil, share.ByCompute)
				continue
			}
			n++
			sized := func(memory, all int64) string { return fmt.Sprintf("%.0fgb", gb*float64(memory)/float64(all)) }
			profiles := []profile{{"1g." + sized(1, of.Memory), 1, 1}, {"2g." + sized(2, of.Memory), 2, 2}}
			if of.Compute == 7 {
				profiles = seven("1g."+sized(1, 8), "1g."+sized(2, 8), "2g."+sized(2, 8), "3g."+sized(4, 8), "4g."+sized(4, 8), "7g."+sized(8, 8))
			}
			layouts(of, profiles, func(layout []profile) {
				for _, by := range []share.MIGBy{share.ByCompute, share.ByMemory, share.ByMean} {
					accountFor(t, model, int64(gb*1024), of, layout, by)
				}
			})
		}
	}
	assert.Greater(t, n, 4)
}
