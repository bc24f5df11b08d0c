// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/pagetest"
)

const energyField = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"

func pod(name string, load Load, devices ...string) Pod {
	return Pod{Namespace: "x", Name: name, Container: "c", Devices: devices, Load: load, Warmup: Duration(10 * sec)}
}

// owners are the pods on the rows of a node's page, by device and instance.
func owners(t *testing.T, fl *Fleet, at time.Duration) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, s := range page(t, fl, "n", at).Find("DCGM_FI_DEV_GPU_TEMP") {
		key := s.Labels["gpu"]
		if gi := s.Labels["GPU_I_ID"]; gi != "" {
			key += "/" + gi
		}
		out[key] = s.Labels["namespace"] + "/" + s.Labels["pod"]
	}
	return out
}

func TestPodsChangeWhileCountersGoOn(t *testing.T) {
	fl, clock := newFleet(t, oneNode(Node{Version: "4.5", Model: "H100", Devices: 3, Fields: "all", Pods: []Pod{pod("a", Training, "0", "1")}}))
	energy := map[string]float64{}
	power := map[string]float64{}
	util := map[string][]float64{}
	for s := range 120 {
		switch s {
		case 40: // b takes device 1 from a, which keeps device 0
			require.NoError(t, fl.SetPods("n", []Pod{pod("a", Training, "0"), pod("b", Training, "1")}))
		case 80:
			require.NoError(t, fl.SetPods("n", []Pod{pod("b", Training, "1", "2")}))
		}
		p := page(t, fl, "n", clock.Now().Sub(pagetest.Epoch))
		for _, e := range p.Find(energyField) {
			gpu := e.Labels["gpu"]
			if s > 0 {
				require.InDelta(t, energy[gpu]+power[gpu]*1000, e.Value, .5, "energy is the power added up, second %d", s)
			}
			energy[gpu] = e.Value
			power[gpu] = p.One(t, "DCGM_FI_DEV_POWER_USAGE", "gpu", gpu)
			util[gpu] = append(util[gpu], p.One(t, "DCGM_FI_DEV_GPU_UTIL", "gpu", gpu))
		}
		clock.Advance(sec)
	}
	assert.Positive(t, slices.Min(util["0"][:80]), "a went on without a new start")
	assert.Zero(t, slices.Max(util["0"][80:]))
	assert.Positive(t, slices.Min(util["1"][:40]))
	assert.Zero(t, slices.Max(util["1"][40:50]), "b warms up")
	assert.Positive(t, slices.Min(util["1"][50:]), "and is not disturbed by its second device")
	assert.Zero(t, slices.Max(util["2"][:90]))
	assert.Positive(t, util["2"][95])
	assert.Equal(t, map[string]string{"0": "/", "1": "x/b", "2": "x/b"}, owners(t, fl, 119*sec))

	// A time before the last change is that of the change.
	early, err := fl.Page("n", pagetest.Epoch.Add(10*sec))
	require.NoError(t, err)
	then, err := fl.Page("n", pagetest.Epoch.Add(80*sec))
	require.NoError(t, err)
	assert.Equal(t, string(then), string(early))
	assert.Equal(t, fl.TruthAt(pagetest.Epoch.Add(80*sec)).Nodes, fl.TruthAt(pagetest.Epoch).Nodes)
}

// What is read ahead of the change, or after it, leaves no trace.
func TestChangesAreDeterministic(t *testing.T) {
	run := func(ahead bool) string {
		cfg := oneNode(Node{Version: "4.6", Model: "A100-SXM4-40GB", Devices: 2, Fields: "all", Pods: []Pod{pod("a", Training, "0")}})
		cfg.Faults = []Fault{{Node: "n", Kind: ThermalThrottle, Device: "0", After: Duration(15 * sec), For: Duration(30 * sec)}}
		fl, clock := newFleet(t, cfg)
		for i, change := range []func() error{
			func() error { return fl.SetPods("n", []Pod{pod("b", Inference, "0")}) },
			func() error { return fl.SetMIG("n", 1, []string{"3g.20gb"}) },
			func() error { return fl.SetPods("n", []Pod{pod("b", Inference, "0"), pod("c", Training, "1:0")}) },
		} {
			clock.Advance(20*sec + 300*time.Millisecond)
			if ahead {
				_ = page(t, fl, "n", time.Duration(i)*300*sec)
				_ = fl.TruthAt(clock.Now())
			}
			require.NoError(t, change())
		}
		b, err := fl.Page("n", pagetest.Epoch.Add(200*sec))
		require.NoError(t, err)
		return string(b)
	}
	assert.Equal(t, run(false), run(true))
}

func TestAPodOfTheSameNameIsAnotherByItsUID(t *testing.T) {
	fl, clock := newFleet(t, oneNode(Node{Version: "4.6", Model: "T4", Devices: 1, PodUID: true, Pods: []Pod{pod("db-0", Training, "0")}}))
	clock.Advance(30 * sec)
	again := pod("db-0", Training, "0")
	require.NoError(t, fl.SetPods("n", []Pod{again}))
	util := func() float64 {
		return page(t, fl, "n", clock.Now().Sub(pagetest.Epoch)).One(t, "DCGM_FI_DEV_GPU_UTIL")
	}
	assert.Positive(t, util())
	again.UID = "uid-2"
	require.NoError(t, fl.SetPods("n", []Pod{again}))
	assert.Zero(t, util(), "it warms up")
	assert.Len(t, page(t, fl, "n", 30*sec).Find("DCGM_FI_DEV_GPU_UTIL", "pod_uid", "uid-2"), 1)
}

func TestMIGChangesWhileTheFleetRuns(t *testing.T) {
	fl, clock := newFleet(t, oneNode(Node{Version: "4.5", Model: "A100-SXM4-40GB", Devices: 2, Pods: []Pod{pod("a", Training, "1")}}))
	xid := Fault{Node: "n", Kind: XID, Device: "0:0", Code: 13}
	step := func(layout ...string) []DeviceInfo {
		clock.Advance(10 * sec)
		before := page(t, fl, "n", clock.Now().Sub(pagetest.Epoch)).Find(energyField, "gpu", "0")[0].Value
		require.NoError(t, fl.SetMIG("n", 0, layout))
		assert.Equal(t, before, page(t, fl, "n", clock.Now().Sub(pagetest.Epoch)).Find(energyField, "gpu", "0")[0].Value, "in the same second")
		d, err := fl.Devices("n")
		require.NoError(t, err)
		return d
	}
	whole, err := fl.Devices("n")
	require.NoError(t, err)
	assert.Empty(t, whole[0].Instances)
	first := step("3g.20gb", "1g.5gb")
	_, err = fl.StartFault(xid)
	require.NoError(t, err)
	require.NoError(t, fl.SetPods("n", []Pod{pod("b", Training, "0:1")}))
	assert.Equal(t, map[string]string{"0/1": "/", "0/7": "x/b", "1": "/"}, owners(t, fl, 10*sec))
	require.ErrorContains(t, fl.SetMIG("n", 0, nil), "held by pod x/b")
	require.NoError(t, fl.SetPods("n", nil))

	second := step("1g.5gb", "1g.5gb")
	assert.Equal(t, map[string]string{"0/7": "/", "0/8": "/", "1": "/"}, owners(t, fl, 20*sec))
	assert.Empty(t, page(t, fl, "n", 20*sec).Find(xidField), "a new instance has seen no XID")
	again := step("3g.20gb", "1g.5gb")
	assert.Equal(t, first, again, "the same instances at the same places are the same to the driver")
	assert.NotEqual(t, first[0].Instances[0].UUID, second[0].Instances[0].UUID)
	assert.Equal(t, whole, step())
	assert.Equal(t, map[string]string{"0": "/", "1": "/"}, owners(t, fl, 40*sec))
}

func TestWhatTheDriverReportsAboutDevices(t *testing.T) {
	fl, _ := newFleet(t, oneNode(Node{Version: "4.6", Model: "H100", Devices: 4, MIG: map[string][]string{"3": {"3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"}}}))
	d, err := fl.Devices("n")
	require.NoError(t, err)
	require.Len(t, d, 4)
	rows := page(t, fl, "n", 0).Find("DCGM_FI_DEV_FB_FREE")
	for i := range 4 {
		assert.Equal(t, rows[i].Labels["UUID"], d[i].UUID)
		assert.Equal(t, strings.ToLower(rows[i].Labels["pci_bus_id"]), "0000"+d[i].PCIBusID)
		assert.Equal(t, []int{i, i, i / 2}, []int{d[i].Index, d[i].Minor, d[i].NUMANode})
	}
	assert.Equal(t, "0000:53:00.0", d[0].PCIBusID)
	seen := map[string]bool{}
	for i, in := range d[3].Instances {
		want := [][4]int{{1, 9, 4, 4}, {3, 14, 0, 2}, {7, 19, 2, 1}, {8, 19, 3, 1}}[i]
		assert.Equal(t, want, [4]int{in.ID, in.ProfileID, in.Start, in.Size}, in.Profile)
		assert.Regexp(t, `^MIG-[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$`, in.UUID)
		assert.False(t, seen[in.UUID])
		seen[in.UUID] = true
		assert.Len(t, page(t, fl, "n", 0).Find("DCGM_FI_DEV_FB_FREE", "gpu", "3", "GPU_I_ID", fmt.Sprint(in.ID), "GPU_I_PROFILE", in.Profile), 1)
	}
	_, err = fl.Devices("m")
	assert.ErrorContains(t, err, `unknown node "m"`)
}

func TestLayoutsHaveToFindPlaces(t *testing.T) {
	m, err := findModel("A100-SXM4-40GB")
	require.NoError(t, err)
	for _, good := range [][]string{
		{"1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb"}, {"3g.20gb", "3g.20gb"}, {"4g.20gb", "3g.20gb"},
		{"2g.10gb", "2g.10gb", "2g.10gb", "1g.5gb"}, {"1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb"}, {"1g.5gb", "2g.10gb", "4g.20gb"}, {"7g.40gb"},
	} {
		out, err := m.layout(good)
		require.NoError(t, err, good)
		slices := map[int]bool{}
		for _, in := range out {
			for s := in.start; s < in.start+in.eighths; s++ {
				assert.False(t, slices[s] || s > 7, good)
				slices[s] = true
			}
		}
	}
	_, err = m.layout([]string{"3g.20gb", "3g.20gb", "1g.5gb"})
	assert.ErrorContains(t, err, "does not fit")
}

func FuzzParseHeld(f *testing.F) {
	for _, s := range []string{"0", "3:1", "3::0", "3:1::999", "::", "-1", "1:", "1:::2", "0x1", "9999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := parseHeld(s)
		if err != nil {
			return
		}
		if h.device < 0 || h.position < -1 || h.replica < -1 || h.replica > maxReplica {
			t.Fatalf("%q is %+v", s, h)
		}
		if strings.Contains(s, "::") != (h.replica >= 0) {
			t.Fatalf("%q is %+v", s, h)
		}
	})
}

func TestChangesThatAreRefusedChangeNothing(t *testing.T) {
	cfg := oneNode(Node{Version: "4.5", Model: "A100-SXM4-40GB", Devices: 2, Pods: []Pod{pod("a", Idle, "0")}})
	late := pod("late", Idle, "1")
	late.Start = Duration(time.Hour)
	cfg.Nodes[0].Pods = append(cfg.Nodes[0].Pods, late)
	fl, _ := newFleet(t, cfg)
	for want, err := range map[string]error{
		`unknown node "m"`:          fl.SetPods("m", nil),
		"has no device 2":           fl.SetPods("n", []Pod{pod("b", Idle, "2")}),
		"is held by b already":      fl.SetPods("n", []Pod{pod("b", Idle, "0::1"), pod("c", Idle, "0")}),
		"device 1 of pod c":         fl.SetPods("n", []Pod{pod("b", Idle, "1::1"), pod("c", Idle, "1::1")}),
		"the number of a replica":   fl.SetPods("n", []Pod{pod("b", Idle, "1::x")}),
		"load \"\"":                 fl.SetPods("n", []Pod{pod("b", "", "1")}),
		"has no device -1":          fl.SetMIG("n", -1, nil),
		"no MIG profile \"9g.9gb\"": fl.SetMIG("n", 1, []string{"9g.9gb"}),
		"held by pod x/a":           fl.SetMIG("n", 0, []string{"7g.40gb"}),
		"is for pod x/late":         fl.SetMIG("n", 1, []string{"7g.40gb"}),
	} {
		assert.ErrorContains(t, err, want)
	}
	assert.Equal(t, map[string]string{"0": "x/a", "1": "/"}, owners(t, fl, sec))
}

func TestAFrozenPageStaysFrozenOverAChange(t *testing.T) {
	cfg := trainer("4.5")
	fl, clock := newFleet(t, withFault(cfg, Fault{Kind: ExporterFrozen, After: Duration(10 * sec), For: Duration(30 * sec)}))
	healthy, _ := newFleet(t, cfg)
	want, err := healthy.Page("n", pagetest.Epoch.Add(10*sec))
	require.NoError(t, err)
	clock.Advance(20 * sec)
	require.NoError(t, fl.SetPods("n", nil))
	got, err := fl.Page("n", pagetest.Epoch.Add(30*sec))
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
	assert.Equal(t, map[string]string{"0": "/", "1": "/", "2": "/"}, owners(t, fl, 40*sec))
}
