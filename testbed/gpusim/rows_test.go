// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/pagetest"
)

// crowd is a node with one device that three pods share and one that is free.
func crowd(version string) Node {
	return Node{
		Version: version, Model: "H100", Devices: 2, Fields: "all", PodLabels: true,
		Pods: []Pod{pod("a", Training, "0::0"), pod("b", Inference, "0::1"), pod("c", Idle, "0::3")},
	}
}

func TestSharersAddUpToTheirDevice(t *testing.T) {
	node := crowd("4.5")
	node.Pods = append(node.Pods, pod("twice", Training, "1::0", "1::1"))
	node.Pods[3].Labels = map[string]string{"app": "twice"}
	fl, _ := newFleet(t, oneNode(node))
	for s := range 200 {
		truth := fl.TruthAt(pagetest.Epoch.Add(time.Duration(s) * sec))
		for _, d := range truth.Nodes[0].Devices {
			var util, watts float64
			var used int
			for _, h := range d.Sharers {
				util, watts, used = util+h.Utilization, watts+h.PowerWatts, used+h.MemoryUsedMiB
			}
			require.InDelta(t, d.Utilization, util, 1e-5)
			require.InDelta(t, d.PowerWatts, watts, 1e-6)
			require.Equal(t, d.MemoryUsedMiB, used)
			require.LessOrEqual(t, d.Utilization, 1.00001, "no more than one device can do")
			require.LessOrEqual(t, used, d.MemoryTotalMiB)
		}
		d := truth.Nodes[0].Devices
		require.Len(t, d[0].Sharers, 3)
		require.Empty(t, d[0].Pod, "no pod has it alone")
		require.Equal(t, []int{0, 1, 3}, []int{d[0].Sharers[0].Replica, d[0].Sharers[1].Replica, d[0].Sharers[2].Replica})
		var service, device float64
		var memory, total int
		for _, v := range truth.Services {
			service, memory = service+v.PowerWatts, memory+v.MemoryUsedMiB
			if v.Name == "twice" {
				require.Equal(t, []string{d[1].ID}, v.Pods[0].Devices, "one device, whatever the replicas")
				require.InDelta(t, d[1].Utilization, v.Utilization, 1e-5)
			}
		}
		for _, v := range d {
			device, total = device+v.PowerWatts, total+v.MemoryUsedMiB
		}
		require.InDelta(t, device, service, 1e-6, "services add up to the devices")
		require.Equal(t, total, memory)
	}
}

func TestASharedDeviceHasOneRowWithThePodThatIsLastInTheList(t *testing.T) {
	fl, _ := newFleet(t, oneNode(crowd("4.6")))
	seen := map[string]bool{}
	for i := range 40 {
		p := page(t, fl, "n", time.Duration(i)*listEvery*sec)
		rows := p.Find("DCGM_FI_DEV_GPU_UTIL", "gpu", "0")
		require.Len(t, rows, 1)
		seen[rows[0].Labels["pod"]] = true
		assert.NotContains(t, rows[0].Labels, "vgpu")
		for _, s := range p.Find("DCGM_FI_DEV_POWER_USAGE", "gpu", "0") {
			assert.Equal(t, rows[0].Labels["pod"], s.Labels["pod"], "one list for the whole page")
		}
	}
	assert.Equal(t, map[string]bool{"a": true, "b": true, "c": true}, seen, "the list has another order each time")
}

func TestVirtualGPUsHaveARowForEachPod(t *testing.T) {
	for _, version := range []string{"4.5", "4.6"} {
		t.Run(version, func(t *testing.T) {
			node := crowd(version)
			node.VirtualGPUs = true
			fl, _ := newFleet(t, oneNode(node))
			p := page(t, fl, "n", 30*sec)
			d := fl.TruthAt(pagetest.Epoch.Add(30 * sec)).Nodes[0].Devices[0]
			power := p.Find("DCGM_FI_DEV_POWER_USAGE", "gpu", "0")
			require.Len(t, power, 3)
			for i, s := range power {
				assert.Equal(t, d.PowerWatts, s.Value, "the whole device's on each")
				assert.Equal(t, []string{"a", "b", "c"}[i], s.Labels["pod"])
				assert.Equal(t, []string{"0", "1", "3"}[i], s.Labels["vgpu"])
				assert.Regexp(t, `container namespace pod vgpu $`, s.Order())
			}
			assert.Len(t, p.Find("DCGM_EXP_XID_ERRORS_COUNT", "gpu", "0"), 3)
			assert.NotContains(t, p.Find("DCGM_FI_DEV_POWER_USAGE", "gpu", "1")[0].Labels, "vgpu")
			used := p.Find("DCGM_FI_DEV_FB_USED", "gpu", "0")
			util := p.Find("DCGM_FI_DEV_GPU_UTIL", "gpu", "0")
			if version == "4.5" {
				require.Len(t, used, 3)
				for i := range used {
					assert.EqualValues(t, d.MemoryUsedMiB, used[i].Value)
					assert.Equal(t, percent(d.Utilization), util[i].Value)
				}
				return
			}
			require.Len(t, used, 4, "the device, and each pod by its processes")
			assert.NotContains(t, used[0].Labels, "pod")
			assert.EqualValues(t, d.MemoryUsedMiB, used[0].Value)
			sum := 0.0
			for i, s := range used[1:] {
				assert.EqualValues(t, d.Sharers[i].MemoryUsedMiB, s.Value)
				assert.Equal(t, percent(d.Sharers[i].Utilization), util[i+1].Value)
				sum += s.Value
			}
			assert.Equal(t, used[0].Value, sum)
		})
	}
	node := crowd("3.3")
	node.VirtualGPUs = true
	_, err := New(oneNode(node), pagetest.NewClock().Now)
	assert.ErrorContains(t, err, "virtual_gpus: an exporter of version 3.3 cannot")
}

func TestVirtualMIGInstances(t *testing.T) {
	fl, _ := newFleet(t, oneNode(Node{
		Version: "4.6", Model: "A100-SXM4-40GB", Devices: 1, MIG: map[string][]string{"0": {"3g.20gb"}}, VirtualGPUs: true,
		Pods: []Pod{pod("a", Training, "0:0::0"), pod("b", Training, "0:0::1")},
	}))
	p := page(t, fl, "n", 30*sec)
	assert.Len(t, p.Find("DCGM_FI_DEV_FB_USED"), 3)
	assert.Empty(t, p.Find("DCGM_FI_DEV_GPU_UTIL"), "memory alone, under MIG")
	assert.Len(t, p.Find("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "GPU_I_ID", "1"), 2)
}

func TestAnExporterThatKnowsNoPods(t *testing.T) {
	off := false
	for _, version := range []string{"2.4", "4.6"} {
		node := Node{Version: version, Model: "T4", Devices: 2, Kubernetes: &off, PodLabels: true, PodUID: true, Pods: []Pod{pod("a", Training, "0")}}
		node.Pods[0].Labels = map[string]string{"app": "a"}
		fl, _ := newFleet(t, oneNode(node))
		p := page(t, fl, "n", 30*sec)
		for _, s := range p.Samples {
			for _, label := range []string{"pod", "namespace", "container", "pod_uid", "pod_label_app"} {
				assert.NotContains(t, s.Labels, label)
			}
		}
		assert.Positive(t, p.One(t, "DCGM_FI_DEV_GPU_UTIL", "gpu", "0"), "the load is there all the same")
		assert.Equal(t, "a", fl.TruthAt(pagetest.Epoch).Nodes[0].Devices[0].Pod)
	}
}

func TestStaleLabelsOfAFormerPod(t *testing.T) {
	cfg := oneNode(Node{Version: "4.5", Model: "T4", Devices: 3, StaleLabels: Duration(20 * sec), Pods: []Pod{pod("a", Training, "0"), pod("b", Training, "1")}})
	cfg.Faults = []Fault{{Node: "n", Kind: PodGone, Pod: &Pod{Namespace: "x", Name: "a"}, After: Duration(10 * sec)}}
	fl, clock := newFleet(t, cfg)
	assert.Equal(t, map[string]string{"0": "x/a", "1": "x/b", "2": "/"}, owners(t, fl, 29*sec), "a is long gone")
	assert.Equal(t, map[string]string{"0": "/", "1": "x/b", "2": "/"}, owners(t, fl, 30*sec))

	clock.Advance(15 * sec)
	require.NoError(t, fl.SetPods("n", nil))
	assert.Equal(t, map[string]string{"0": "x/a", "1": "x/b", "2": "/"}, owners(t, fl, 29*sec), "over a change too")
	assert.Equal(t, map[string]string{"0": "/", "1": "x/b", "2": "/"}, owners(t, fl, 34*sec))
	assert.Equal(t, map[string]string{"0": "/", "1": "/", "2": "/"}, owners(t, fl, 35*sec))
	truth := fl.TruthAt(pagetest.Epoch.Add(20 * sec))
	assert.Empty(t, truth.Services, "the truth is not fooled")
	assert.Zero(t, truth.Nodes[0].Devices[1].Utilization)

	clock.Advance(sec)
	require.NoError(t, fl.SetPods("n", []Pod{pod("c", Idle, "1")}))
	assert.Equal(t, map[string]string{"0": "x/a", "1": "x/c", "2": "/"}, owners(t, fl, 20*sec), "a new holder is seen at once")
	cfg.Nodes[0].StaleLabels = -1
	_, err := New(cfg, clock.Now)
	assert.ErrorContains(t, err, "stale_labels")
}
