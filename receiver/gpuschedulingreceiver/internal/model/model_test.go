// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/internal/places"
	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
	"github.com/otelcol-gpu/otelcol-gpu/internal/schedulingmodel"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/capacity"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/cluster"
)

var (
	steps     = flag.Int("steps", 2_000, "random steps after which all figures are compared")
	firstSeed = flag.Uint64("seed", 1, "seed of the first world")
)

const (
	window     = 24 * time.Hour
	worldSteps = 200 // of one world
)

var tolerated = []string{"nvidia.com/gpu", "amd.com/gpu"}

// TestModel does random things to clusters and compares every figure with the model after
// each. -seed=N -steps=200 repeats the first world of a failure.
func TestModel(t *testing.T) {
	var done, differences atomic.Int64
	var next atomic.Uint64
	next.Store(*firstSeed)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for done.Load() < int64(*steps) && differences.Load() < 3 {
				seed := next.Add(1) - 1
				n, err := story(seed)
				done.Add(int64(n))
				if err != nil {
					differences.Add(1)
					t.Errorf("seed %d, step %d: %v", seed, n, err)
				}
			}
		})
	}
	workers.Wait()
	fmt.Printf("steps %d, differences %d\n", done.Load(), differences.Load())
}

// TestModelSees is that worlds have figures of every kind, and that one that is wrong, missing
// or too much is found.
func TestModelSees(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(3) {
		w := newWorld(seed)
		both, err := newBoth()
		require.NoError(t, err)
		for range worldSteps {
			w.step()
			want, got, err := both.figures(w)
			require.NoError(t, err)
			for key := range want {
				name, _, _ := strings.Cut(key, "{")
				if seen[name] {
					continue
				}
				seen[name] = true
				wrong, less := maps.Clone(got), maps.Clone(got)
				wrong[key]++
				delete(less, key)
				require.NotEmpty(t, differences(want, wrong))
				require.NotEmpty(t, differences(want, less))
				require.NotEmpty(t, differences(less, got))
			}
		}
	}
	require.Equal(t, []string{
		"gpu.node.devices", "gpu.scheduling.fit", "gpu.scheduling.fragmentation", "gpu.scheduling.pending.age.max",
		"gpu.scheduling.pending.devices", "gpu.scheduling.pending.pods", "gpu.scheduling.stranded",
	}, slices.Sorted(maps.Keys(seen)))
}

// story is the life of one world. It returns after how many steps it ended, with the first
// difference.
func story(seed uint64) (int, error) {
	w := newWorld(seed)
	both, err := newBoth()
	if err != nil {
		return 0, err
	}
	for i := range worldSteps {
		did := w.step()
		want, got, err := both.figures(w)
		if err != nil {
			return i + 1, err
		}
		if d := differences(want, got); d != "" {
			return i + 1, fmt.Errorf("after %q:\n%s", did, d)
		}
	}
	return worldSteps, nil
}

// both are the receiver's core and the model.
type both struct {
	core    *capacity.Evaluator
	nodes   cluster.NodeKeeper
	slices  cluster.SliceKeeper
	classes cluster.ClassKeeper
	keys    gpupods.Keys
	model   schedulingmodel.Model
}

func newBoth() (*both, error) {
	devices, err := resourcenames.New(resourcenames.Default())
	if err != nil {
		return nil, err
	}
	return &both{
		core:    capacity.New(capacity.Config{Window: window, MaxPods: 1_000_000, IsDevice: devices.Match, Places: places.New(1000)}),
		nodes:   cluster.NodeKeeper{Resources: devices, GPUTaints: tolerated},
		slices:  cluster.SliceKeeper{Drivers: map[string]bool{driver: true}},
		classes: cluster.ClassKeeper{Drivers: map[string]bool{driver: true}},
		keys:    gpupods.DefaultKeys(),
		model: schedulingmodel.Model{
			Window: window, Tolerated: tolerated,
			Device: func(name string) bool { return strings.HasPrefix(name, "nvidia.com/") || name == "amd.com/gpu" },
			Driver: func(name string) bool { return name == driver },
			Serves: serves,
		},
	}, nil
}

// figures are those of the model, and those of the core in the same form.
func (b *both) figures(w *world) (want, got schedulingmodel.Figures, err error) {
	pods, err := gpupods.SnapshotOf(&b.keys, &gpupods.Need{Scheduling: true, Others: true}, w.Pods, w.Claims)
	if err != nil {
		return nil, nil, err
	}
	var nodes []*capacity.Node
	for _, n := range w.Nodes {
		if is, ok := b.nodes.Keep(n); ok {
			nodes = append(nodes, is)
		}
	}
	var slices []cluster.Slice
	for _, s := range w.Slices {
		if is, ok := b.slices.Keep(s); ok {
			slices = append(slices, is)
		}
	}
	var classes []cluster.Class
	for _, c := range w.Classes {
		if is, ok := b.classes.Keep(c); ok {
			classes = append(classes, is)
		}
	}
	pods = cluster.ServedBy(classes).Requests(pods, nodes)
	f := b.core.Evaluate(w.now, cluster.WithSlices(nodes, slices), pods)
	return b.model.Of(w.Objects, w.now), inOne(f), nil
}

// inOne has the figures under the model's names.
func inOne(f *capacity.Figures) schedulingmodel.Figures {
	out := schedulingmodel.Figures{}
	put := func(value float64, name string, attributes ...any) {
		if !math.IsNaN(value) {
			out[fmt.Sprintf(name, attributes...)] = value
		}
	}
	for _, n := range f.Nodes {
		for state, devices := range map[string]int{"allocatable": n.Allocatable, "requested": n.Requested, "free": n.Free, "stranded": n.Stranded} {
			put(float64(devices), "gpu.node.devices{node=%s,resource=%s,model=%s,state=%s}", n.Node, n.Resource, n.Model, state)
		}
	}
	for _, k := range f.Kinds {
		for reason, devices := range k.Stranded {
			put(float64(devices), "gpu.scheduling.stranded{resource=%s,model=%s,reason=%s}", k.Resource, k.Model, capacity.Stranded(reason))
		}
		for i, size := range capacity.Sizes {
			put(float64(k.Fit[i]), "gpu.scheduling.fit{resource=%s,model=%s,size=%d}", k.Resource, k.Model, size)
			put(k.Fragmentation[i], "gpu.scheduling.fragmentation{resource=%s,model=%s,size=%d}", k.Resource, k.Model, size)
		}
		put(k.Expected, "gpu.scheduling.fragmentation{resource=%s,model=%s,size=expected}", k.Resource, k.Model)
	}
	for _, is := range f.Waiting {
		of := fmt.Sprintf("{namespace=%s,queue=%s,reason=%s,resource=%s}", is.Namespace, is.Queue, is.Reason, is.Resource)
		put(float64(is.Pods), "gpu.scheduling.pending.pods%s", of)
		put(float64(is.Devices), "gpu.scheduling.pending.devices%s", of)
	}
	for _, is := range f.Oldest {
		put(is.Age.Seconds(), "gpu.scheduling.pending.age.max{namespace=%s,queue=%s,reason=%s}", is.Namespace, is.Queue, is.Reason)
	}
	return out
}

// differences are the figures that are not the same, "" if all are.
func differences(want, got schedulingmodel.Figures) string {
	var out strings.Builder
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		w, isWanted := want[key]
		g, is := got[key]
		if is != isWanted || math.Abs(w-g) > 1e-9 {
			fmt.Fprintf(&out, "%s: %v (%t), model %v (%t)\n", key, g, is, w, isWanted)
		}
	}
	return out.String()
}
