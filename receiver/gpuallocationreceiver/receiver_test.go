// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/kubelet"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/nodefake"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/snapshot"
)

func TestEmitsEveryInterval(t *testing.T) {
	s := oneOfTwo()
	story(t, s, func(t *testing.T, r *run) {
		assert.Equal(t, []float64{0}, times(r.taken()), "the first answer is a change")
		until(r, 44)
		assert.Equal(t, []float64{15, 30}, times(r.taken()), "nothing changed but the kubelet's order")
	})
}

func TestChangeIsEmittedWithTheNextPoll(t *testing.T) {
	s := oneOfTwo()
	story(t, s, func(t *testing.T, r *run) {
		until(r, 21)
		r.taken()
		s.set(func(s *script) { s.node.Pods = []pod{holds("ml", "b", gpuName, gpuA, gpuB)} })
		until(r, 25)
		got := r.taken()
		require.Equal(t, []float64{25}, times(got))
		assert.Equal(t, []string{
			"ml/b/main " + gpuA + " 1 nvidia.com/gpu none true",
			"ml/b/main " + gpuB + " 1 nvidia.com/gpu none true",
		}, lines(got[0].md))
		assert.Equal(t, map[string]int64{"held": 2, "free": 0, "unresolved": 0, "contested": 0, "unresolved_dra": 0}, r.devices())
		until(r, 29)
		assert.Empty(t, r.taken())
		until(r, 30)
		assert.Equal(t, []float64{30}, times(r.taken()), "the interval goes on as before")
	})
}

// A hung kubelet must not look alive.
func TestOldSnapshotsAreNotEmitted(t *testing.T) {
	const stale = "the kubelet's last answer is older than three poll intervals: gpu.allocation is not emitted until it answers"
	s := oneOfTwo()
	story(t, s, func(t *testing.T, r *run) {
		until(r, 21)
		r.taken()
		s.set(func(s *script) { s.hangs = true })
		until(r, 44)
		got := r.taken()
		require.Equal(t, []float64{22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35}, times(got), "until it is 15 s old")
		at := got[0].md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).Timestamp().AsTime()
		assert.Equal(t, 20*time.Second, at.Sub(r.receiver.created), "points carry the snapshot's time")
		assert.Nil(t, r.devices(), "nothing is known any more")
		assert.InDelta(t, 24, r.age(), 0.1)

		until(r, 600)
		assert.Empty(t, r.taken())
		assert.Equal(t, 1, r.logged(stale))
		assert.Equal(t, 1, r.logged("the kubelet does not list the owners of devices"))

		s.set(func(s *script) { s.hangs = false })
		until(r, 608)
		got = r.taken()
		require.NotEmpty(t, got, "it does not wait for the interval")
		assert.Equal(t, []string{"-/-/- " + gpuB + " 0 nvidia.com/gpu none true", "ml/a/main " + gpuA + " 1 nvidia.com/gpu none true"}, lines(got[0].md))
		assert.Equal(t, 1, r.logged("the kubelet lists the owners of devices again"))
		assert.Less(t, r.age(), 8.0)
	}, func(c *Config) { c.CollectionInterval = time.Second })
}

// A machine need not have a kubelet: that it has none is logged once, and is no error; one
// that comes is asked, and from then on has to be there.
func TestKubeletThatMayBeAbsent(t *testing.T) {
	const absent = "no kubelet here: owners of devices are those of the exporter's labels until the socket exists"
	host, err := os.Hostname()
	require.NoError(t, err)
	s := oneOfTwo()
	s.err = fs.ErrNotExist
	may := func(c *Config) { c.Optional, c.NodeName, c.AuthType = true, "", k8sclient.ServiceAccount }
	story(t, s, func(t *testing.T, r *run) {
		ages := func() bool {
			_, err := r.telemetry.GetMetric("otelcol_gpu_allocation_snapshot_age")
			return err == nil
		}
		until(r, 3600)
		assert.Empty(t, r.taken())
		assert.Equal(t, 1, r.logged(absent))
		assert.Equal(t, 1, r.logs.Len(), "nothing else is said")
		assert.False(t, ages(), "no alert")

		s.set(func(s *script) { s.err = nil })
		until(r, 3606)
		got := r.taken()
		require.NotEmpty(t, got, "it does not wait for the interval")
		node, ok := got[0].md.ResourceMetrics().At(0).Resource().Attributes().Get(names.K8sNodeName)
		assert.True(t, ok && node.Str() == strings.ToLower(host), node.AsString())
		assert.Equal(t, 1, r.logged("the kubelet's socket exists"))
		assert.Equal(t, 1, r.logs.FilterMessageSnippet("the Kubernetes API is not read").Len(), "now it matters")

		s.set(func(s *script) { s.err = fs.ErrNotExist })
		until(r, 3620)
		assert.Equal(t, 1, r.logged("the kubelet does not list the owners of devices"))
		assert.True(t, ages())
	}, may)
}

func TestOneFailedPollIsNoGap(t *testing.T) {
	s := oneOfTwo()
	story(t, s, func(t *testing.T, r *run) {
		until(r, 11)
		r.taken()
		s.set(func(s *script) { s.err = syscall.ECONNREFUSED })
		until(r, 16)
		s.set(func(s *script) { s.err = nil })
		until(r, 31)
		assert.Equal(t, []float64{15, 30}, times(r.taken()))
		assert.EqualValues(t, 1, r.calls(kubelet.NoAnswer))
		assert.EqualValues(t, 6, r.calls(kubelet.OK))
	})
}

// What the node has seldom changes: one slow answer makes no device less free. A
// kubelet that no longer lists it is another matter.
func TestFreeForThreePollsAfterTheKubeletListedIt(t *testing.T) {
	s := oneOfTwo()
	held, free := "ml/a/main "+gpuA+" 1 nvidia.com/gpu none true", "-/-/- "+gpuB+" 0 nvidia.com/gpu none true"
	story(t, s, func(t *testing.T, r *run) {
		until(r, 21)
		r.taken()
		s.set(func(s *script) { s.allocatableErr = context.DeadlineExceeded }) // last listed at 20
		until(r, 39)
		for _, b := range r.taken() {
			assert.Equal(t, []string{free, held}, lines(b.md))
		}
		until(r, 60)
		got := r.taken()
		require.Equal(t, []float64{40, 45, 60}, times(got), "a change at 40")
		for _, b := range got {
			assert.Equal(t, []string{held}, lines(b.md))
		}
		s.set(func(s *script) { s.allocatableErr = nil })
		until(r, 65)
		got = r.taken()
		require.Equal(t, []float64{65}, times(got))
		assert.Equal(t, []string{free, held}, lines(got[0].md))
	})
}

func TestCausesAreLoggedOnce(t *testing.T) {
	s := oneOfTwo()
	s.node.Pods = append(s.node.Pods, holds("ml", "b", gpuName, gpuA), pod{Namespace: "ml", Name: "c", Containers: []container{{Name: "main", Claims: []claimedDevice{{Claim: "claim", Driver: "gpu.nvidia.com", Device: "gpu-0", Share: ""}}}}})
	story(t, s, func(t *testing.T, r *run) {
		until(r, 590)
		assert.Equal(t, 2, r.logs.Len(), "contested and DRA: %v", r.logs.All())
		until(r, 610)
		assert.Equal(t, 4, r.logs.Len(), "again after ten minutes")
	})
}

func TestNothingToReport(t *testing.T) {
	story(t, &script{}, func(t *testing.T, r *run) {
		until(r, 60)
		assert.Empty(t, r.taken(), "a node without accelerators")
		assert.EqualValues(t, 13, r.calls(kubelet.OK))
		assert.Zero(t, r.logs.Len())
	})
}

func TestKubeletThatNeverAnswers(t *testing.T) {
	story(t, &script{err: syscall.ENOENT}, func(t *testing.T, r *run) {
		until(r, 60)
		assert.Empty(t, r.taken())
		assert.InDelta(t, 60, r.age(), 0.1, "since the start")
		assert.EqualValues(t, 13, r.calls(kubelet.Absent))
		assert.Equal(t, 1, r.logs.Len())
	})
}

// A pipeline that blocks or refuses does not keep the receiver from asking, and
// what it gets after that is what is true then.
func TestPipelineBlocksAndRefuses(t *testing.T) {
	s := oneOfTwo()
	story(t, s, func(t *testing.T, r *run) {
		until(r, 1)
		release := make(chan struct{})
		r.mu.Lock()
		r.block = release
		r.mu.Unlock()
		until(r, 15)
		r.taken()
		s.set(func(s *script) { s.node.Pods = nil })
		until(r, 58)
		assert.Empty(t, r.taken())
		assert.Less(t, r.age(), 5.0)
		r.mu.Lock()
		r.block, r.refuse = nil, errors.New("queue is full")
		r.mu.Unlock()
		close(release)
		synctest.Wait()
		got := r.taken()
		require.NotEmpty(t, got)
		assert.Equal(t, []string{"-/-/- " + gpuA + " 0 nvidia.com/gpu none true", "-/-/- " + gpuB + " 0 nvidia.com/gpu none true"}, lines(got[0].md))
		until(r, 120)
		assert.Equal(t, 1, r.logged("the next component refused gpu.allocation; it is sent again with the next interval"))
		assert.NotEmpty(t, r.taken())
	})
}

func TestShutdownDoesNotWait(t *testing.T) {
	for name, prepare := range map[string]func(*script, *run){
		"a kubelet that hangs":       func(s *script, _ *run) { s.hangs = true },
		"a pipeline that is blocked": func(_ *script, r *run) { r.block = make(chan struct{}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, r := oneOfTwo(), newRun(t)
				prepare(s, r)
				r.receiver.source = s
				r.start()
				synctest.Wait()
				r.stop()
				assert.Equal(t, r.receiver.created, time.Now(), "no time went by")
				assert.Zero(t, r.logs.FilterMessage("the kubelet does not list the owners of devices").Len())
			})
		})
	}
}

// The whole way: the real protocol over a real socket, from a kubelet that comes
// late, restarts with other pods, and goes.
func TestOverTheSocket(t *testing.T) {
	k := nodefake.NewKubelet(t)
	k.Node = node{
		Devices: map[string][]string{gpuName: {gpuA, gpuB, migC}, "nvidia.com/gpu.shared": replicas("GPU-dddddddd-0000-0000-0000-000000000000", 4)},
		Pods: []pod{
			holds("ml", "train-0", gpuName, gpuA, migC),
			holds("web", "llm-7d9", "nvidia.com/gpu.shared", "GPU-dddddddd-0000-0000-0000-000000000000::1"),
		},
	}
	r := newRun(t, func(c *Config) {
		c.Socket, c.ClusterName = k.Socket, "prod"
		c.PollInterval, c.CollectionInterval, c.Timeout = 20*time.Millisecond, 20*time.Millisecond, long
	})
	r.start()
	defer r.stop()
	await := func(what string, f func() bool) {
		t.Helper()
		require.Eventually(t, f, long, 5*time.Millisecond, what)
	}
	await("the absent socket", func() bool { return r.calls(kubelet.Absent) > 0 })
	k.Start()
	var first batch
	await("points", func() bool {
		if got := r.taken(); len(got) > 0 {
			first = got[0]
		}
		return first.after > 0
	})
	want, err := golden.ReadMetrics("testdata/allocation.yaml")
	require.NoError(t, err)
	require.NoError(t, pmetrictest.CompareMetrics(want, first.md, pmetrictest.IgnoreTimestamp(),
		pmetrictest.IgnoreResourceMetricsOrder(), pmetrictest.IgnoreMetricDataPointsOrder()))

	k.Stop()
	k.Set(func(k *nodefake.Kubelet) { k.Node.Pods = []pod{holds("ml", "train-1", gpuName, gpuB)} })
	await("the socket to be gone", func() bool { return r.calls(kubelet.Absent) > 1 })
	r.taken()
	k.Start()
	await("the new holder", func() bool {
		for _, b := range r.taken() {
			l := lines(b.md)
			if l[len(l)-1] == "ml/train-1/main "+gpuB+" 1 nvidia.com/gpu none true" {
				return true
			}
		}
		return false
	})
}

// Ten thousand devices in one answer are an answer like another.
func TestHugeAnswer(t *testing.T) {
	k := nodefake.NewKubelet(t)
	k.Node = node{Devices: map[string][]string{gpuName: replicas(gpuA, 10_000)}}
	order := rand.New(rand.NewPCG(3, 4))
	for i := range 100 {
		k.Node.Pods = append(k.Node.Pods, holds("ml", string(rune('a'+i%26))+string(rune('a'+i/26)), gpuName, k.Node.Devices[gpuName][i*90:(i+1)*90]...))
	}
	order.Shuffle(len(k.Node.Pods), func(i, j int) { k.Node.Pods[i], k.Node.Pods[j] = k.Node.Pods[j], k.Node.Pods[i] })
	k.Start()
	cfg := createDefaultConfig().(*Config)
	client := kubelet.New(k.Socket, long, cfg.MaxMessageSize)
	t.Cleanup(client.Close)
	a := client.Ask(t.Context())
	require.NoError(t, a.ListErr)
	require.NoError(t, a.AllocatableErr)
	resources, err := resourcenames.New(cfg.ResourceNames)
	require.NoError(t, err)
	b := cfg.builder(resources)
	s, tl := b.Build(a, snapshot.View{}, nil)
	assert.Zero(t, tl.Refused)
	assert.Equal(t, snapshot.States{Held: 9000, Free: 1000}, s.States)
	sum := 0.0
	for _, rm := range s.Metrics(&snapshot.Origin{}).ResourceMetrics().All() {
		for _, p := range rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().All() {
			sum += p.DoubleValue()
		}
	}
	assert.InDelta(t, 0.9, sum, 1e-9)
}

// The device plugin is gone with the last pod: what was reported before ends, with
// a point at the time of the empty snapshot.
func TestReportsThatNothingIsLeft(t *testing.T) {
	s := oneOfTwo()
	s.set(func(s *script) { s.node.Pods, s.node.Devices = nil, nil })
	story(t, s, func(t *testing.T, r *run) {
		until(r, 21)
		require.Empty(t, r.taken(), "there never was a device")
		s.set(func(s *script) { s.node = oneOfTwo().node })
		until(r, 31)
		require.Equal(t, []float64{24, 30}, times(r.taken()))
		s.set(func(s *script) { s.node.Pods, s.node.Devices = nil, nil })
		until(r, 46)
		got := r.taken()
		require.Equal(t, []float64{32, 45}, times(got), "at once and with every interval")
		for i, at := range []time.Duration{32, 44} {
			require.Equal(t, 1, got[i].md.DataPointCount())
			rm := got[i].md.ResourceMetrics().At(0)
			require.Equal(t, map[string]any{"k8s.node.name": r.receiver.cfg.NodeName}, rm.Resource().Attributes().AsRaw())
			m := rm.ScopeMetrics().At(0).Metrics().At(0)
			require.Equal(t, "gpu.allocation", m.Name())
			p := m.Sum().DataPoints().At(0)
			require.True(t, p.Flags().NoRecordedValue())
			require.Equal(t, map[string]any{"k8s.node.name": r.receiver.cfg.NodeName}, p.Attributes().AsRaw())
			require.Equal(t, at*time.Second, p.Timestamp().AsTime().Sub(r.receiver.created))
		}
	}, func(c *Config) { c.PollInterval, c.Timeout = 4*time.Second, time.Second })
}
