// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package slurm compares what slurm_allocation and gpu_pod make of simulated Slurm nodes with what
// is true there.
package slurm

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/slurmsim"
)

var (
	steps = flag.Int("steps", 2000, "how many things happen on the nodes")
	seed  = flag.Uint64("seed", 1, "of what happens")
)

const (
	poll       = 5 * time.Second
	staleAfter = 30 * time.Second
	pod        = "slurmd-0" // of the nested node
)

// kind is a kind of node: what it is like, and what the receiver on it is configured with.
type kind struct {
	slurmsim.Options
	keys map[string]any
	// unknown: the owners of devices cannot be known there, and are not.
	unknown, nested bool
}

func kinds() map[string]kind {
	verified := map[string]any{"verify": "cgroup", "stale_after": staleAfter.String()}
	with := func(more map[string]any) map[string]any {
		all := map[string]any{}
		for _, keys := range []map[string]any{verified, more} {
			for key, value := range keys {
				all[key] = value
			}
		}
		return all
	}
	return map[string]kind{
		"one-order":   {Options: slurmsim.Options{Boards: 8}},
		"uuids":       {Options: slurmsim.Options{Boards: 8, Swapped: true, ByMinor: true, UUIDs: true}},
		"by-address":  {Options: slurmsim.Options{Boards: 8, Swapped: true}, keys: map[string]any{"index_order": "pci"}},
		"by-minor":    {Options: slurmsim.Options{Boards: 8, Swapped: true, ByMinor: true}, keys: map[string]any{"index_order": "minor"}},
		"trap":        {Options: slurmsim.Options{Boards: 8, Swapped: true, ByMinor: true}, unknown: true},
		"shards":      {Options: slurmsim.Options{Boards: 4, Shards: true}, keys: map[string]any{"all_devices": true}},
		"mig":         {Options: slurmsim.Options{Boards: 2, Instances: 7, Groups: "v1"}, keys: verified},
		"lost-v1":     {Options: slurmsim.Options{Boards: 8, Groups: "v1", LostEpilogs: true}, keys: verified},
		"lost-v2":     {Options: slurmsim.Options{Boards: 8, Groups: "v2", LostEpilogs: true}, keys: with(map[string]any{"all_devices": true})},
		"lost-sluid":  {Options: slurmsim.Options{Boards: 8, Groups: "sluid", LostEpilogs: true, UUIDs: true}, keys: verified},
		"nested":      {Options: slurmsim.Options{Boards: 8}, keys: map[string]any{"inside": "kubernetes"}, nested: true},
		"all-devices": {Options: slurmsim.Options{Boards: 8}, keys: map[string]any{"all_devices": true}},
	}
}

// judged counts devices: named have the right job, none have no owner where none is right.
type judged struct{ named, none, unknown, wrong, changing int }

// world is nodes with a receiver on each, and one gpu_pod behind all of them.
type world struct {
	t     *testing.T
	kinds map[string]kind
	nodes []*slurmsim.Node
	pods  processor.Metrics
	seen  map[string]owner.Owner // of each device, in the newest telemetry
	judged
	mistakes []string
}

// TestOwners lets jobs start, end, be requeued and share devices, Epilogs get lost and nodes
// reboot, and compares every owner on telemetry with the truth.
func TestOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, kinds(), rand.New(rand.NewPCG(*seed, 23)))
		done := 0
		for done < *steps && len(w.mistakes) < 20 {
			for _, n := range w.nodes {
				for range 2 {
					require.NoError(t, n.Step(time.Now()))
					done++
				}
			}
			// The map is read once in this time, and then gpu_pod has all of a snapshot.
			time.Sleep(poll + time.Second)
			w.kubelets()
			time.Sleep(time.Second + time.Millisecond)
			w.telemetry()
			w.judge(time.Now())
		}
		t.Logf("right job %d, rightly none %d, unknown %d, of jobs that are over and may not be known to be %d", w.named, w.none, w.unknown, w.changing)
		for _, m := range w.mistakes {
			t.Error(m)
		}
		require.Greater(t, w.named, 50*w.unknown, "nearly all owners are known")
		fmt.Printf("steps %d, wrong owners %d\n", done, w.wrong)
	})
}

// The judge finds a mistake that was made on purpose: a node on which Slurm counts by minor, and
// the configuration states otherwise.
func TestJudge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, map[string]kind{
			"mistake": {Options: slurmsim.Options{Boards: 8, Swapped: true, ByMinor: true}, keys: map[string]any{"index_order": "pci"}},
		}, rand.New(rand.NewPCG(1, 1)))
		for range 10 {
			require.NoError(t, w.nodes[0].Step(time.Now()))
			time.Sleep(poll + 2*time.Second)
			w.telemetry()
			w.judge(time.Now())
		}
		require.Positive(t, w.wrong)
	})
}

func start(t *testing.T, all map[string]kind, random *rand.Rand) *world {
	w := &world{t: t, kinds: all, seen: map[string]owner.Owner{}}
	sink, err := consumer.NewMetrics(w.read)
	require.NoError(t, err)
	pods := gpupodprocessor.NewFactory()
	w.pods, err = pods.CreateMetrics(t.Context(), processortest.NewNopSettings(pods.Type()), pods.CreateDefaultConfig(), sink)
	require.NoError(t, err)
	require.NoError(t, w.pods.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, w.pods.Shutdown(context.Background())) })
	for _, name := range sortedNames(all) {
		k := all[name]
		k.Name, k.Folder = name, folder(t)
		n, err := slurmsim.New(k.Options, rand.New(rand.NewPCG(random.Uint64(), random.Uint64())))
		require.NoError(t, err)
		w.nodes = append(w.nodes, n)

		factory := slurmallocationreceiver.NewFactory()
		cfg := factory.CreateDefaultConfig()
		keys := map[string]any{
			"directory": n.Map, "root_path": n.Root, "node_name": name, "watch": false, "poll_interval": poll.String(), "collection_interval": "15s",
		}
		for key, value := range k.keys {
			keys[key] = value
		}
		require.NoError(t, confmap.NewFromStringMap(keys).Unmarshal(cfg))
		receiver, err := factory.CreateMetrics(t.Context(), receivertest.NewNopSettings(factory.Type()), cfg, w.pods)
		require.NoError(t, err)
		require.NoError(t, receiver.Start(t.Context(), componenttest.NewNopHost()))
		t.Cleanup(func() { require.NoError(t, receiver.Shutdown(context.Background())) })
	}
	return w
}

// folder is in memory where that is possible: the nodes write a lot.
func folder(t *testing.T) string {
	path, err := os.MkdirTemp("/dev/shm", "slurmsim")
	if err != nil {
		path = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	path, err = filepath.EvalSymlinks(path)
	require.NoError(t, err)
	return path
}

func sortedNames(all map[string]kind) []string {
	var list []string
	for name := range all {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func resource(md pmetric.Metrics, node string) pcommon.Map {
	rm := md.ResourceMetrics().AppendEmpty()
	rm.ScopeMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr(names.K8sNodeName, node)
	return rm.Resource().Attributes()
}

// kubelets report, where slurmd runs in a pod, that it has all boards.
func (w *world) kubelets() {
	for _, n := range w.nodes {
		if !w.kinds[n.Name].nested {
			continue
		}
		md := pmetric.NewMetrics()
		attrs := resource(md, n.Name)
		owner.Owner{Namespace: "slurm", Pod: pod, Container: "slurmd"}.Put(attrs)
		points := names.GPUAllocation.Init(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty())
		for _, d := range n.Devices {
			p := points.AppendEmpty()
			p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
			p.SetDoubleValue(1)
			p.Attributes().PutStr(names.HwID, d.ID)
			p.Attributes().PutStr(names.GPUAttributionSource, names.SourcePodResources)
			p.Attributes().PutBool(names.GPUAllocationResolved, true)
		}
		require.NoError(w.t, w.pods.ConsumeMetrics(w.t.Context(), md))
	}
}

// telemetry is a scrape of every node.
func (w *world) telemetry() {
	for _, n := range w.nodes {
		md := pmetric.NewMetrics()
		for _, d := range n.Devices {
			attrs := resource(md, n.Name)
			attrs.PutStr(names.HwID, d.ID)
			attrs.PutStr(names.HwType, names.HwTypeGPU)
			if d.Parent != "" {
				attrs.PutStr(names.HwParent, d.Parent)
			}
			ms := md.ResourceMetrics().At(md.ResourceMetrics().Len() - 1).ScopeMetrics().At(0).Metrics()
			p := names.GPUUtilization.Init(ms.AppendEmpty()).AppendEmpty()
			p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
			p.SetDoubleValue(0.5)
		}
		require.NoError(w.t, w.pods.ConsumeMetrics(w.t.Context(), md))
	}
}

// read notes the owners on telemetry.
func (w *world) read(_ context.Context, md pmetric.Metrics) error {
	for _, rm := range md.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		id, ok := attrs.Get(names.HwID)
		if ok && live(rm) {
			w.seen[id.Str()] = owner.Of(attrs)
		}
	}
	return nil
}

func live(rm pmetric.ResourceMetrics) bool {
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			if m.Name() == names.GPUUtilization.Name && m.Gauge().DataPoints().Len() > 0 && !m.Gauge().DataPoints().At(0).Flags().NoRecordedValue() {
				return true
			}
		}
	}
	return false
}

func (w *world) judge(now time.Time) {
	for _, n := range w.nodes {
		for i := range n.Devices {
			w.device(n, &n.Devices[i], w.seen[n.Devices[i].ID], now)
		}
	}
}

// device compares the owner of one device with the truth.
func (w *world) device(n *slurmsim.Node, d *slurmsim.Device, is owner.Owner, now time.Time) {
	k := w.kinds[n.Name]
	job := is.TheJob()
	id, _ := strconv.Atoi(job.ID)
	wrong := func(format string, args ...any) {
		w.wrong++
		w.mistakes = append(w.mistakes, fmt.Sprintf("%s %s: ", n.Name, d.ID)+fmt.Sprintf(format, args...))
	}
	switch {
	case k.nested && is.Pod != pod:
		wrong("owned by pod %q, want %s", is.Pod, pod)
	case !is.IsJob() && k.unknown:
	case !is.IsJob() && len(d.Jobs) == 1 && !over(n, d, now):
		w.unknown++
	case !is.IsJob():
		w.none++ // free, shared, or of two jobs of which one is over
	case k.unknown:
		wrong("owned by job %d, which cannot be known", id)
	case job.Cluster != "hpc" || job.User != "ada" || job.Account != "physics" || job.Partition != "gpu":
		wrong("job %+v", job)
	case !k.nested && job.Service != "" && job.Service != fmt.Sprintf("ada/train-%d", id%3):
		wrong("job %d is of service %s", id, job.Service)
	case len(d.Jobs) == 1 && d.Jobs[0] == id:
		w.named++
	case slices.Contains(d.Left, id) && recent(n, id, now):
		w.changing++
	default:
		wrong("owned by job %d, jobs %v, over %v", id, d.Jobs, d.Left)
	}
}

// recent reports whether a job of which the Epilog was lost may not be known to be over yet: its
// group is missed with one reading, and the job with the first one after stale_after.
func recent(n *slurmsim.Node, id int, now time.Time) bool {
	for _, j := range n.Jobs {
		if j.ID == id && !j.Over.IsZero() {
			return now.Sub(j.Over) <= staleAfter+3*poll
		}
	}
	return false
}

// over reports whether a job that is over may still be believed to have the device too.
func over(n *slurmsim.Node, d *slurmsim.Device, now time.Time) bool {
	return slices.ContainsFunc(d.Left, func(id int) bool { return recent(n, id, now) })
}
