// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendorpages

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/vendors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/simkubelet"
)

// joined counts the devices of a join.
type joined struct {
	right, wrong int
	// unknown are devices whose owner cannot be known, and is not: partitions without KFD,
	// on a page without labels.
	unknown int
	texts   []string
}

// TestOwners: the owner of a device on a page is the one that the kubelet reports, by
// sysfs or by the exporter's labels, or none.
func TestOwners(t *testing.T) {
	allocations, seed := int(fromEnv(t, "PAGES", 300)), fromEnv(t, "SEED", 1)
	var sum joined
	for i := 0; sum.right+sum.wrong+sum.unknown < allocations; {
		var some []*world // as many at once as gpu_allocation keeps waiting
		for ; len(some) < 16; i++ {
			if w := ownersWorld(t, seed, i); w != nil {
				some = append(some, w)
			}
		}
		joinAll(t, some, &sum)
	}
	for _, text := range sum.texts[:min(20, len(sum.texts))] {
		t.Error(text)
	}
	total.allocations, total.unknown, total.wrong = sum.right+sum.wrong+sum.unknown, sum.unknown, sum.wrong
}

// ownersWorld is a world in which devices are held, nil for the others.
func ownersWorld(t *testing.T, seed uint64, i int) *world {
	rng := rand.New(rand.NewPCG(seed, uint64(i)|1<<40))
	vendor := []string{vendors.AMD, vendors.AMD, vendors.Gaudi, vendors.Intel}[i%4]
	w := randomWorld(t, rng, vendor, false, func(n *vendors.Node) {
		n.NoKFD, n.NoPods = rng.IntN(4) == 0, rng.IntN(4) == 0
		n.Boards = 1 + rng.IntN(8)
		if vendor == vendors.Intel {
			n.Replicas = 1 + rng.IntN(2)
		}
	})
	if len(w.node.Pods) == 0 { // a kubelet without pods has been restarted
		return nil
	}
	return w
}

// joinAll runs a page and the kubelet's report of each world through gpu_pod.
func joinAll(t *testing.T, worlds []*world, sum *joined) {
	pages, allocations, errs := make([]pmetric.Metrics, len(worlds)), make([]pmetric.Metrics, len(worlds)), make([]error, len(worlds))
	for i, w := range worlds {
		pages[i] = receive(t, w).batches[0]
	}
	var group sync.WaitGroup
	for i, w := range worlds {
		group.Go(func() { allocations[i], errs[i] = allocated(t.Context(), w) })
	}
	group.Wait()
	for i, w := range worlds {
		require.NoError(t, errs[i], "%v", w)
		stamp(pages[i], time.Now())
		sum.join(t, w, allocations[i], pages[i])
	}
}

func (j *joined) join(t *testing.T, w *world, allocations, page pmetric.Metrics) {
	sink := new(consumertest.MetricsSink)
	factory := gpupodprocessor.NewFactory()
	p, err := factory.CreateMetrics(t.Context(), processortest.NewNopSettings(factory.Type()), factory.CreateDefaultConfig(), sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, p.ConsumeMetrics(t.Context(), allocations))
	require.NoError(t, p.ConsumeMetrics(t.Context(), page))
	require.NoError(t, p.Shutdown(t.Context()))
	all := sink.AllMetrics()
	named := map[string]vendors.Owner{}
	for _, rm := range all[len(all)-1].ResourceMetrics().All() {
		if id, ok := rm.Resource().Attributes().Get("hw.id"); ok {
			named[id.Str()] = ownerOn(rm.Resource().Attributes())
		}
	}
	for _, d := range w.fleet.TruthAt(at(0)).Nodes[0].Devices {
		if len(d.Replicas) == 0 {
			j.count(w, &d, d.Owners, named[d.ID])
			continue
		}
		j.count(w, &d, nil, named[d.ID]) // a board that is shared has no owner, its replicas have
		for i, replica := range d.Replicas {
			j.count(w, &d, d.Owners[i:i+1], named[fmt.Sprintf("%s::%d", d.ID, replica)])
		}
	}
}

// knowable is whether the kubelet's id of a device can be resolved, or the page names the
// owner.
func (w *world) knowable(d *vendors.Device) bool {
	return !w.node.NoKFD || d.Part == 0 || d.Labels != nil
}

func (j *joined) count(w *world, d *vendors.Device, owners []vendors.Owner, named vendors.Owner) {
	var want vendors.Owner
	if len(owners) == 1 {
		want = owners[0]
	}
	switch {
	case named == want && named == (vendors.Owner{}): // free, or a board whose parts are held
	case named == want:
		j.right++
	case !w.knowable(d) && named == (vendors.Owner{}):
		j.unknown++
	default:
		j.wrong++
		j.texts = append(j.texts, fmt.Sprintf("%v: %s (%v) is %v, want %v", w, d.ID, d.KubeletID, named, want))
	}
}

func ownerOn(attrs pcommon.Map) (o vendors.Owner) {
	for name, into := range map[string]*string{"k8s.namespace.name": &o.Namespace, "k8s.pod.name": &o.Pod, "k8s.container.name": &o.Container} {
		if v, ok := attrs.Get(name); ok {
			*into = v.Str()
		}
	}
	return o
}

// stamp gives all points a time.
func stamp(md pmetric.Metrics, at time.Time) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for _, p := range numbers(m).All() {
					p.SetTimestamp(pcommon.NewTimestampFromTime(at))
				}
			}
		}
	}
}

// memory is a folder in memory, where there is one: a tree has hundreds of small files.
func memory() string {
	const shared = "/dev/shm"
	if info, err := os.Stat(shared); err == nil && info.IsDir() {
		return shared
	}
	return ""
}

// allocated is what gpu_allocation makes of the node's kubelet and sysfs.
func allocated(ctx context.Context, w *world) (md pmetric.Metrics, err error) {
	dir, err := os.MkdirTemp(memory(), "k") // short, for a socket
	if err != nil {
		return md, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	k, err := simkubelet.StartVendors(w.fleet, dir, func() time.Time { return begin })
	if err != nil {
		return md, err
	}
	defer k.Stop()
	if err = w.fleet.WriteSysfs(w.node.Name, filepath.Join(dir, "sys"), begin); err != nil {
		return md, err
	}
	factory := gpuallocationreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	if err = confmap.NewFromStringMap(map[string]any{
		"node_name": w.node.Name, "socket": k.Socket(w.node.Name), "sysfs_root": filepath.Join(dir, "sys"), "auth_type": "none", "optional": true,
		"dra": map[string]any{"enabled": false},
	}).Unmarshal(cfg); err != nil {
		return md, err
	}
	sink := &first{got: make(chan pmetric.Metrics, 1)}
	set := receivertest.NewNopSettings(factory.Type())
	set.ID = component.NewID(factory.Type())
	r, err := factory.CreateMetrics(ctx, set, cfg, sink)
	if err != nil {
		return md, err
	}
	if err = r.Start(ctx, componenttest.NewNopHost()); err != nil {
		return md, err
	}
	defer func() { err = errors.Join(err, r.Shutdown(context.WithoutCancel(ctx))) }()
	select {
	case md = <-sink.got:
		return md, nil
	case <-time.After(time.Minute):
		return md, errors.New("gpu_allocation has not emitted within a minute")
	}
}

// first keeps the first batch with allocations.
type first struct {
	consumertest.MetricsSink
	once sync.Once
	got  chan pmetric.Metrics
}

func (f *first) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() == "gpu.allocation" {
					f.once.Do(func() {
						copied := pmetric.NewMetrics()
						md.CopyTo(copied)
						f.got <- copied
					})
				}
			}
		}
	}
	return nil
}
