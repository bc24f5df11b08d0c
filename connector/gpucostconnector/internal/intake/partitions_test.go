// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Boards that a scheduler divides, with the telemetry that gpu_pod makes of them: the board
// without an owner, and a replica for each part. Four quarters are one GPU-hour; of parts of
// any size the rest is free.
func TestPartsOfSchedulers(t *testing.T) {
	for name, tt := range map[string]struct {
		parts []float64
		want  map[string]float64
	}{
		"four quarters":  {[]float64{.25, .25, .25, .25}, map[string]float64{"p0": 900, "p1": 900, "p2": 900, "p3": 900, "(free)": 3600}},
		"any sizes":      {[]float64{.3, .45}, map[string]float64{"p0": 1080, "p1": 1620, "(free)": 900 + 3600}},
		"more than all":  {[]float64{.75, .75}, map[string]float64{"p0": 1800, "p1": 1800, "(free)": 3600}},
		"one, and whole": {[]float64{1}, map[string]float64{"p0": 3600, "(free)": 3600}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, nil)
			for n := range 242 {
				at := min(t0+int64(n)*15*second, t0+hour+1) // the last one ends the one before it
				b := newBatch()
				b.busy(device("n", gpu(0), h100), at, .5).busy(device("n", gpu(1), h100), at, 0)
				granted := attrs{"gpu.sharing": "hami", "gpu.attribution.source": "annotation"}
				for i, of := range tt.parts {
					owner, id := pod(fmt.Sprint("p", i)), fmt.Sprint(gpu(0), "::", i)
					if of == 1 {
						id = gpu(0)
					} else {
						b.busy(device("n", id, h100, owner, attrs{"hw.parent": gpu(0)}), at, .5)
					}
					b.holds("n", at, owner, id, of, granted, attrs{"gpu.allocation.share": of})
				}
				s.read(at, b.free("n", at, gpu(1), granted))
			}
			got := s.rows()
			assert.InDeltaMapValues(t, tt.want, got, 1e-3)
			sum := 0.
			for _, seconds := range got {
				sum += seconds
			}
			assert.InDelta(t, 2*3600, sum, 1e-3)
			assert.InDelta(t, tt.want["p0"]*1000/2, s.total("p0").Used, 2, "the board's utilization")
			assert.Zero(t, s.Counts())
		})
	}
}

// Partitions of a board of AMD are equal parts of it, where it is known into how many the mode
// divides it. Whatever the mode is, and whichever partitions the kubelet names, the sum is the
// physical board; energy is the board's.
func TestPartitionsOfModes(t *testing.T) {
	const amd, mi300x = "GPU-c3ff88426fc31c9e", "AMD Instinct MI300X OAM"
	for _, tt := range []struct {
		mode, model string
		shown       int  // partitions with telemetry
		kubelet     bool // it names them by the board and the number
		want        map[string]float64
	}{
		{"cpx_nps4", mi300x, 8, true, map[string]float64{"a": 900, "b": 450, "(free)": 3600 - 1350}},
		{"cpx_nps4", mi300x, 8, false, map[string]float64{"a": 900, "b": 450, "(free)": 3600 - 1350}},
		{"cpx_nps4", mi300x, 7, true, map[string]float64{"a": 900, "b": 450, "(free)": 3600 - 1350 - 450, "(stranded)": 450}},
		{"qpx_nps1", "", 4, true, map[string]float64{"a": 1800, "b": 900, "(free)": 900}},
		{"tpx_nps1", "AMD Instinct MI300A", 3, true, map[string]float64{"a": 2400, "b": 1200}},
		{"cpx_nps1", "an unknown model", 8, true, map[string]float64{"(unknown)": 3600, "a unplaced": 7200, "b unplaced": 3600}},
	} {
		t.Run(fmt.Sprint(tt.mode, tt.shown, tt.kubelet), func(t *testing.T) {
			s := newStory(t, nil)
			for n := range 242 {
				at := min(t0+int64(n)*15*second, t0+hour+1)
				b := newBatch().busy(device("n", amd, tt.model, attrs{"hw.vendor": "AMD"}), at, .5).burnt(device("n", amd, tt.model), at, float64(at-t0)*.5)
				for i := range tt.shown {
					owner := attrs{}
					switch i {
					case 0, 1:
						owner = pod("a")
					case 2:
						owner = pod("b")
					}
					id := fmt.Sprint(amd, "/", i)
					b.busy(device("n", id, tt.model, owner, attrs{"hw.parent": amd, "gpu.partition.profile": tt.mode}), at, .5)
					more := attrs{"k8s.resource.name": "amd.com/" + tt.mode}
					if !tt.kubelet {
						id, more["gpu.allocation.resolved"] = fmt.Sprint("n/amdgpu_xcp_", i+10), false
					}
					if len(owner) > 0 {
						b.holds("n", at, owner, id, 1, more)
					} else {
						b.free("n", at, id, more)
					}
				}
				s.read(at, b)
			}
			late := 1e-3
			if !tt.kubelet || tt.want["(unknown)"] > 0 {
				late = 30 // what the kubelet could not name is placed with the next snapshot
			}
			got := s.rows()
			assert.InDeltaMapValues(t, tt.want, got, late)
			sum := 0.
			for name, seconds := range got {
				if !strings.HasSuffix(name, " unplaced") {
					sum += seconds
				}
			}
			assert.InDelta(t, 3600, sum, late)
			if tt.want["a"] > 0 {
				assert.InDelta(t, tt.want["a"]*1000/2, s.total("a").Used, 2+late*1000/2, "the partition's utilization")
			}
		})
	}
}

// The kubelet cannot name the instance; its resource names the profile in the device plugin's
// form.
func TestMIGProfilesOfResources(t *testing.T) {
	const uuid = "MIG-41f3a1a5-5d1a-5a86-b7a5-1d6b4f0b2c11"
	for profile, resource := range map[string]string{
		"1g.10gb": "mig-1g.10gb", "1g.10gb+me": "mig-1g.10gb.me", "1g.24gb-me": "mig-1g.24gb-me", "1g.20gb": "mig-renamed",
	} {
		s := newStory(t, nil)
		every(t0, t0+30*minute, 15*second, func(at int64) {
			b := newBatch().holds("n", at, pod("a"), "n/"+uuid, 1, attrs{"gpu.allocation.resolved": false, "k8s.resource.name": "nvidia.com/" + resource, "gpu.mig.uuid": uuid})
			s.read(at, b.busy(device("n", gpu(1)+"/7", h100, instanceOf(gpu(1), profile), pod("a")), at, .5))
		})
		assert.Zero(t, s.rows()["a unplaced"], profile)
		assert.InDelta(t, 1800./7, s.rows()["a"], 10, profile)
	}
}

func TestMIGProfilesWithoutMediaExtensions(t *testing.T) {
	s := newStory(t, nil)
	const model = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
	every(t0, t0+30*minute, 15*second, func(at int64) {
		b := newBatch().holds("n", at, pod("a"), gpu(1)+"/3", 1, attrs{"gpu.mig.profile": "1g.24gb-me"})
		s.read(at, b.busy(device("n", gpu(1)+"/3", model, instanceOf(gpu(1), "1g.24gb-me")), at, .5))
	})
	assert.InDelta(t, 450, s.rows()["a"], 10, "a quarter of the board for 30 minutes")
}

// Tiles have figures of their own and are never held: what is held is the GPU.
func TestTilesAreTheirGPU(t *testing.T) {
	const intel = "PCI-n@0000:4d:00.0"
	s := newStory(t, nil)
	every(t0, t0+hour+30*second, 15*second, func(at int64) {
		b := newBatch().busy(device("n", intel, "Max 1550", pod("a")), at, .5)
		for i := range 2 {
			b.busy(device("n", fmt.Sprint(intel, "/", i), "Max 1550", attrs{"hw.parent": intel}), at, 1)
		}
		s.read(at, b.holds("n", at, pod("a"), intel, 1, attrs{"k8s.resource.name": "gpu.intel.com/i915"}))
	})
	assert.InDeltaMapValues(t, map[string]float64{"a": 3600}, s.rows(), 15)
	assert.InDelta(t, 1800*1000, s.total("a").Used, 7500)
	assert.Zero(t, s.Counts())
}
