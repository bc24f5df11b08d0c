// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendorpages

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/vendors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/strictjson"
)

// scrapes is how many pages a world has, and interval the time between them.
const (
	scrapes  = 5
	interval = 15 * time.Second
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is a node and what happens to it.
type world struct {
	node  vendors.Node
	fleet *vendors.Fleet
	kinds []vendors.Kind
}

func (w *world) String() string {
	return fmt.Sprintf("%s %s ×%d %s_%s faults %v", w.node.Model, w.node.Version, w.node.Boards, w.node.Compute, w.node.Memory, w.kinds)
}

// at is the time of a page.
func at(page int) time.Time { return begin.Add(time.Duration(page) * interval) }

// common are the faults that a page of any vendor can have, and others those of one.
var (
	common = []vendors.Kind{vendors.EmptyPage, vendors.RateLimit, vendors.EnergyGlitch, vendors.StuckEnergy, vendors.PowerSpike, vendors.DuplicateSeries, vendors.ECC, vendors.Throttle, vendors.DeviceFails, vendors.BadPage}
	others = map[string][]vendors.Kind{
		vendors.AMD: {
			vendors.ZeroUUID, vendors.BadUUID, vendors.NoUUID, vendors.NoSerial, vendors.SharedSerial, vendors.PartitionMissing, vendors.PartitionRepeated,
			vendors.ModeChange, vendors.MixedNames, vendors.RAS, vendors.Unhealthy,
		},
		vendors.Gaudi: {vendors.ReadingsFail, vendors.LinkDown, vendors.RowsPending},
		vendors.Intel: {vendors.Unhealthy, vendors.DeviceReset, vendors.LinkDown},
	}
)

// randomWorld is any model, mode and version of a vendor, with pods and up to two faults.
func randomWorld(t *testing.T, rng *rand.Rand, vendor string, faults bool, changes ...func(*vendors.Node)) *world {
	models := vendors.Models(vendor)
	m := models[rng.IntN(len(models))]
	versions := map[string][]string{vendors.AMD: {"1.3", "1.4", "1.5", "1.5"}, vendors.Gaudi: {"1.24"}, vendors.Intel: {"1", "2"}}[vendor]
	n := vendors.Node{Name: fmt.Sprint("node-", rng.IntN(1000)), Model: m.Key, Boards: 1 + rng.IntN(3), Version: versions[rng.IntN(len(versions))]}
	parts := 1
	if vendor == vendors.AMD {
		n.Compute = m.Compute[rng.IntN(len(m.Compute))]
		memories := m.Memories(n.Compute)
		n.Memory = memories[rng.IntN(len(memories))]
		parts = m.Partitions(n.Compute)
		n.SharedMemory = n.Memory == "nps1" && parts > 1 && rng.IntN(2) == 0
		n.Guest = n.Compute == "spx" && rng.IntN(6) == 0
		n.Profiler = rng.IntN(4) == 0
		n.Sysfs = rng.IntN(3) == 0
		n.Mixed = rng.IntN(2) == 0
		if rng.IntN(3) == 0 {
			n.Prefix = "amd_"
		}
	}
	for _, change := range changes {
		change(&n)
	}
	for b := range n.Boards {
		for p := range parts {
			if rng.IntN(3) == 0 {
				continue
			}
			busy := rng.Float64()
			if n.Replicas > 1 {
				n.Pods = append(n.Pods, vendors.Pod{Namespace: "inference", Name: fmt.Sprintf("pod-%d-shared", b), Container: "main", Devices: []string{fmt.Sprintf("%d::1", b)}, Busy: &busy})
			}
			n.Pods = append(n.Pods, vendors.Pod{
				Namespace: "inference", Name: fmt.Sprintf("pod-%d-%d", b, p), Container: "main",
				Devices: []string{fmt.Sprintf("%d:%d", b, p)}, Busy: &busy,
			})
		}
	}
	w := &world{node: n}
	cfg := vendors.Config{Seed: rng.Uint64(), Nodes: []vendors.Node{n}}
	if faults {
		possible := append(append([]vendors.Kind{}, common...), others[vendor]...)
		for range rng.IntN(3) {
			w.add(rng, &cfg, m, possible[rng.IntN(len(possible))])
		}
	}
	fleet, err := vendors.New(cfg, func() time.Time { return begin })
	require.NoError(t, err, "%+v", n)
	w.fleet = fleet
	return w
}

// contradict are faults of which no page can show the truth: a partition with the number
// of another that is not there, and a counter that falls twice, which is a reset.
func (w *world) contradict(kind vendors.Kind) bool {
	return slices.Contains(w.kinds, kind) ||
		kind == vendors.PartitionMissing && slices.Contains(w.kinds, vendors.PartitionRepeated) ||
		kind == vendors.PartitionRepeated && slices.Contains(w.kinds, vendors.PartitionMissing)
}

// add starts a fault at the second page or later, for one page or to the end.
func (w *world) add(rng *rand.Rand, cfg *vendors.Config, m vendors.Model, kind vendors.Kind) {
	if w.contradict(kind) {
		return
	}
	f := vendors.Fault{Node: w.node.Name, Kind: kind, After: strictjson.Duration(time.Duration(1+rng.IntN(scrapes-1)) * interval), Partition: rng.IntN(8)}
	board := rng.IntN(w.node.Boards)
	switch kind {
	case vendors.BadPage:
		f.For = strictjson.Duration(interval)
	case vendors.RateLimit: // the retry of the last page would come too late
		f.After, f.For = strictjson.Duration(time.Duration(1+rng.IntN(scrapes-2))*interval), strictjson.Duration(interval)
	case vendors.EnergyGlitch, vendors.PowerSpike:
		f.For = strictjson.Duration(interval) // one page
		f.Board = &board
	case vendors.StuckEnergy:
		f.After = 0
		f.Board = &board
	case vendors.ModeChange:
		if w.node.SharedMemory || w.node.Guest || w.node.Sysfs { // a tree that is written once
			return
		}
		f.Compute = m.Compute[rng.IntN(len(m.Compute))]
		memories := m.Memories(f.Compute)
		f.Memory = memories[rng.IntN(len(memories))]
		f.Board = &board
	case vendors.ZeroUUID, vendors.BadUUID, vendors.NoUUID, vendors.NoSerial, vendors.SharedSerial:
		f.After = 0 // a configuration, not an accident
	case vendors.RAS:
		f.Code, f.Board = 1+rng.IntN(60), &board
	case vendors.EmptyPage:
	default:
		f.Board = &board
	}
	cfg.Faults = append(cfg.Faults, f)
	w.kinds = append(w.kinds, kind)
}
