// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"io/fs"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs/sysfstest"
)

// hostFS is the sysfs of a host with boards that change.
type hostFS struct {
	now    atomic.Pointer[fs.FS]
	opened atomic.Int64
	blocks chan struct{} // nil: it does not
}

func (h *hostFS) Open(name string) (fs.File, error) {
	h.opened.Add(1)
	if h.blocks != nil {
		<-h.blocks
	}
	return (*h.now.Load()).Open(name)
}

func (h *hostFS) set(refuse syscall.Errno, boards ...sysfstest.Board) {
	files := fstest.MapFS{}
	for name, content := range sysfstest.Files(boards...) {
		files[name] = &fstest.MapFile{Data: []byte(content)}
	}
	var is fs.FS = files
	if refuse != 0 {
		is = sysfstest.Refusing{FS: files, Path: "/properties", Error: refuse}
	}
	h.now.Store(&is)
}

// hostStory is a story on a node with this sysfs.
func hostStory(t *testing.T, s *script, h *hostFS, act func(t *testing.T, r *run)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t)
		r.receiver.source = s
		r.receiver.sysfs = gpusysfs.NewFS("/sys", h)
		if h.blocks != nil {
			h.blocks = make(chan struct{})
		}
		r.start()
		synctest.Wait()
		act(t, r)
		r.stop()
		if h.blocks != nil {
			close(h.blocks)
		}
	})
}

const amdName = "amd.com/gpu"

func inMode(compute string, parts int) sysfstest.Board {
	return sysfstest.Board{PCI: "0000:19:00.0", UniqueID: 0xe3a9c1d200000001, Compute: compute, Memory: "NPS1", Parts: parts, Card: 1, Render: 128}
}

func TestSysfsIsNotReadWithoutNeed(t *testing.T) {
	h := &hostFS{}
	h.set(0)
	hostStory(t, oneOfTwo(), h, func(t *testing.T, r *run) {
		until(r, 600)
		assert.Zero(t, h.opened.Load())
	})
}

// An address means the board, and after a change of its mode the first partition. No emission
// has the meaning of the former mode.
func TestPartitionModeChanges(t *testing.T) {
	h := &hostFS{}
	h.set(0, inMode("SPX", 1))
	s := &script{node: node{Devices: map[string][]string{amdName: {"0000:19:00.0"}}, Pods: []pod{holds("ml", "a", amdName, "0000:19:00.0")}}}
	hostStory(t, s, h, func(t *testing.T, r *run) {
		got := r.taken()
		require.Len(t, got, 1)
		assert.Equal(t, []string{"ml/a/main GPU-e3a9c1d200000001 1 amd.com/gpu none true"}, lines(got[0].md), "the first emission has it")
		until(r, 63) // sysfs was just read
		r.taken()
		h.set(0, inMode("DPX", 2))
		s.set(func(s *script) {
			s.node = node{Devices: map[string][]string{amdName: {"0000:19:00.0", "amdgpu_xcp_0"}}, Pods: []pod{holds("ml", "b", amdName, "0000:19:00.0")}}
		})
		until(r, 100)
		got = r.taken()
		require.NotEmpty(t, got)
		for i, b := range got {
			want := []string{"-/-/- GPU-e3a9c1d200000001/1 0 amd.com/gpu none true", "ml/b/main GPU-e3a9c1d200000001/0 1 amd.com/gpu none true"}
			if i == 0 && b.after.Seconds() < 65 {
				want = []string{"ml/a/main GPU-e3a9c1d200000001 1 amd.com/gpu none true"}
			}
			assert.Equal(t, want, lines(b.md), "%v", b.after)
		}
		assert.Equal(t, int64(0), r.devices()["unresolved"])
	})
}

func TestPartitionsWithoutPrivilege(t *testing.T) {
	h := &hostFS{}
	h.set(syscall.EPERM, inMode("DPX", 2))
	s := &script{node: node{Devices: map[string][]string{amdName: {"0000:19:00.0", "amdgpu_xcp_0"}}, Pods: []pod{holds("ml", "a", amdName, "amdgpu_xcp_0")}}}
	hostStory(t, s, h, func(t *testing.T, r *run) {
		until(r, 200)
		for _, b := range r.taken() {
			assert.Equal(t, []string{"-/-/- GPU-e3a9c1d200000001/0 0 amd.com/gpu none true", "ml/a/main node-a/amdgpu_xcp_0 1 amd.com/gpu none false"}, lines(b.md))
		}
		assert.Equal(t, 1, r.logged("the kernel does not show this container which partition of which board a device is: owners of partitions other than a board's first are those of the exporter's labels"))
		assert.EqualValues(t, 1, r.devices()["unresolved"])
	})
}

// A shutdown does not wait for a board that hangs, and blames none.
func TestShutdownWhileSysfsBlocks(t *testing.T) {
	h := &hostFS{blocks: make(chan struct{})}
	h.set(0, inMode("SPX", 1))
	s := &script{node: node{Devices: map[string][]string{amdName: {"0000:19:00.0"}}}}
	var logs *observer.ObservedLogs
	hostStory(t, s, h, func(t *testing.T, r *run) { logs = r.logs })
	assert.Zero(t, logs.Len(), "%v", logs.All())
}

// A board that hangs costs the names of devices, once a few seconds, and nothing else.
func TestSysfsBlocks(t *testing.T) {
	h := &hostFS{blocks: make(chan struct{})}
	h.set(0, inMode("SPX", 1))
	s := &script{node: node{Devices: map[string][]string{amdName: {"0000:19:00.0"}, gpuName: {gpuA}}, Pods: []pod{holds("ml", "a", amdName, "0000:19:00.0")}}}
	hostStory(t, s, h, func(t *testing.T, r *run) {
		until(r, 200)
		got := r.taken()
		require.NotEmpty(t, got)
		assert.Equal(t, []float64{6, 15, 30}, times(got)[:3])
		assert.Equal(t, []string{"-/-/- " + gpuA + " 0 nvidia.com/gpu none true", "ml/a/main node-a/0000:19:00.0 1 amd.com/gpu none false"}, lines(got[0].md))
		assert.Equal(t, 1, r.logged("devices of AMD and Intel cannot be resolved: sysfs was not read in time"))
	})
}
