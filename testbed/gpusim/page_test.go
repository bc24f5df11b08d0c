// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/pagetest"
)

func TestSameSeedSamePage(t *testing.T) {
	a, _ := newFleet(t, Demo(DemoTimes()))
	// Another fleet, started at another time and asked in another order.
	clock := pagetest.NewClock()
	clock.Advance(99 * time.Hour)
	b, err := New(Demo(DemoTimes()), clock.Now)
	require.NoError(t, err)
	other := Demo(DemoTimes())
	other.Seed = 2
	c, _ := newFleet(t, other)

	times := []time.Duration{0, 7 * time.Second, 45 * time.Second, 10 * time.Minute}
	for _, node := range a.Nodes() {
		for i := range times {
			late := times[len(times)-1-i]
			want, err := b.Page(node, b.Start().Add(late))
			require.NoError(t, err)
			got, err := a.Page(node, a.Start().Add(late))
			require.NoError(t, err)
			assert.Equal(t, string(want), string(got), "%s at %s", node, late)
			differs, err := c.Page(node, c.Start().Add(late))
			require.NoError(t, err)
			assert.NotEqual(t, string(want), string(differs), "another seed, %s at %s", node, late)
		}
	}
}

func TestPageStandsStillWithinASecond(t *testing.T) {
	fl, _ := newFleet(t, Demo(DemoTimes()))
	for _, node := range fl.Nodes() {
		a, _ := fl.Page(node, fl.Start().Add(5*time.Second))
		b, _ := fl.Page(node, fl.Start().Add(5*time.Second+999*time.Millisecond))
		c, _ := fl.Page(node, fl.Start().Add(6*time.Second))
		assert.Equal(t, string(a), string(b))
		assert.NotEqual(t, string(a), string(c))
	}
}

// An exporter that refreshes every 30 seconds shows the page of the last refresh, whatever is
// asked of the fleet in between.
func TestPageStandsStillUntilTheNextRefresh(t *testing.T) {
	cfg := Demo(DemoTimes())
	always, _ := newFleet(t, cfg)
	for i := range cfg.Nodes {
		cfg.Nodes[i].Refresh = Duration(30 * time.Second)
	}
	fl, _ := newFleet(t, cfg)
	for at := time.Duration(0); at <= 4*time.Minute; at += 7 * time.Second {
		for _, node := range fl.Nodes() {
			want, err := always.Page(node, always.Start().Add(at.Truncate(30*time.Second)))
			require.NoError(t, err)
			got, err := fl.Page(node, fl.Start().Add(at))
			require.NoError(t, err)
			assert.Equal(t, string(want), string(got), "%s at %s", node, at)
		}
		assert.Equal(t, always.TruthAt(always.Start().Add(at)), fl.TruthAt(fl.Start().Add(at)), "the truth does not wait")
	}
	cfg.Nodes[0].Refresh = Duration(time.Second / 2)
	_, err := New(cfg, time.Now)
	assert.ErrorContains(t, err, "nodes[0] (gpu-node-a): refresh: 500ms has to be whole seconds")
}

func TestCountersNeverFallAndEnergyIsThePowerAddedUp(t *testing.T) {
	cfg := Demo(DemoTimes())
	for i := range cfg.Nodes {
		cfg.Nodes[i].Fields = "all"
	}
	cfg.Faults = append(cfg.Faults, Fault{Node: "gpu-node-b", Kind: ThermalThrottle, Device: "1", After: Duration(20 * time.Second), For: Duration(40 * time.Second)})
	fl, _ := newFleet(t, cfg)
	// Typed counter by the exporter, in truth rates or window counts.
	falls := map[string]bool{nvlinkTotal: true, "DCGM_FI_DEV_NVLINK_BANDWIDTH_L0": true, "DCGM_EXP_XID_ERRORS_COUNT": true}
	key := func(s pagetest.Sample) string { return s.Name + "/" + s.Labels["UUID"] + "/" + s.Labels["GPU_I_ID"] }
	for _, node := range fl.Nodes() {
		last := map[string]float64{}
		power := map[string]float64{} // mJ since the first page
		first := map[string]float64{}
		for sec := range 70 {
			p := page(t, fl, node, time.Duration(sec)*time.Second)
			for _, s := range p.Samples {
				if p.Types[s.Name] == "counter" && !falls[s.Name] {
					k := key(s)
					if s.Value < last[k] {
						t.Fatalf("%s fell from %f to %f at second %d", k, last[k], s.Value, sec)
					}
					last[k] = s.Value
				}
				switch s.Name {
				case "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION":
					k := s.Labels["UUID"]
					if sec == 0 {
						first[k] = s.Value
					}
					require.InDelta(t, first[k]+power[k], s.Value, .5, "energy at second %d", sec)
				}
			}
			seen := map[string]bool{} // MIG rows repeat the board's power
			for _, s := range p.Find("DCGM_FI_DEV_POWER_USAGE") {
				if k := s.Labels["UUID"]; !seen[k] {
					power[k] += s.Value * 1000
					seen[k] = true
				}
			}
		}
	}
}

func TestValuesFitTogether(t *testing.T) {
	for _, m := range Models() {
		for _, load := range []Load{Inference, Training, Idle} {
			cfg := oneNode(Node{Version: "4.5", Model: m.Key, Devices: 1, Fields: "all", Pods: []Pod{{Namespace: "x", Name: "p", Devices: []string{"0"}, Load: load}}})
			fl, _ := newFleet(t, cfg)
			low, high := 1.0, 0.0
			for sec := 0; sec < 490; sec += 7 {
				p := page(t, fl, "n", time.Duration(sec)*time.Second)
				util := p.One(t, "DCGM_FI_DEV_GPU_UTIL") / 100
				low, high = min(low, util), max(high, util)
				require.LessOrEqual(t, p.One(t, "DCGM_FI_DEV_POWER_USAGE"), m.TDPWatts)
				require.Greater(t, p.One(t, "DCGM_FI_DEV_POWER_USAGE"), .95*m.IdleWatts)
				require.LessOrEqual(t, p.One(t, "DCGM_FI_DEV_SM_CLOCK"), float64(m.SMClock))
				if m.Integrated {
					for _, field := range []string{"DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_POWER_MGMT_LIMIT", "DCGM_FI_PROF_SM_ACTIVE"} {
						require.Empty(t, p.Find(field), field)
					}
					continue
				}
				require.InDelta(t, util, p.One(t, "DCGM_FI_PROF_GR_ENGINE_ACTIVE"), 1e-9)
				sm := p.One(t, "DCGM_FI_PROF_SM_ACTIVE")
				require.LessOrEqual(t, sm, util)
				for _, pipe := range []string{"TENSOR", "FP64", "FP32", "FP16"} {
					require.LessOrEqual(t, p.One(t, "DCGM_FI_PROF_PIPE_"+pipe+"_ACTIVE"), sm)
				}
				used, free, reserved := p.One(t, "DCGM_FI_DEV_FB_USED"), p.One(t, "DCGM_FI_DEV_FB_FREE"), p.One(t, "DCGM_FI_DEV_FB_RESERVED")
				require.EqualValues(t, m.MemoryMiB, used+free+reserved)
				require.Greater(t, used, .1*float64(m.MemoryMiB), "a pod holds memory even when it does nothing")
			}
			switch load {
			case Inference:
				assert.Greater(t, high-low, .3, "bursts of requests")
				assert.Less(t, low, .5)
			case Training:
				assert.Greater(t, high, .93)
				assert.Less(t, low, .15, "checkpoint dips")
			case Idle:
				assert.Zero(t, high)
			}
		}
	}
}

func TestTemperatureFollowsPowerWithALag(t *testing.T) {
	pod := &Pod{Namespace: "x", Name: "p", Devices: []string{"0"}, Load: Training, Warmup: Duration(time.Second)}
	cfg := oneNode(Node{Version: "4.5", Model: "H100", Devices: 1})
	cfg.Faults = []Fault{{Node: "n", Kind: NewPod, Pod: pod, After: Duration(10 * time.Second)}}
	fl, _ := newFleet(t, cfg)
	temp := func(s int) float64 {
		return page(t, fl, "n", time.Duration(s)*time.Second).One(t, "DCGM_FI_DEV_GPU_TEMP")
	}
	cold, soon, later := temp(9), temp(14), temp(70)
	assert.Less(t, cold, 36.0)
	assert.Less(t, soon, cold+12, "not at once")
	assert.Greater(t, later, soon+10)
}

// Every version's page parses as Prometheus parses it, in whole families.
func TestEveryVersionParses(t *testing.T) {
	for _, x := range exporters {
		t.Run(x.version, func(t *testing.T) {
			cfg := oneNode(Node{
				Version: x.version, Models: []string{"T4", "A100-SXM4-40GB", "B200"}, Fields: "all", PodLabels: true, PodUID: true,
				MIG: map[string][]string{"1": {"3g.20gb", "1g.5gb"}},
				Pods: []Pod{{
					Namespace: "x", Name: "p", Container: "c", Labels: map[string]string{"app": `quote " backslash \ ü`, "a.b/c-d": "v"},
					Devices: []string{"0", "1:1"}, Load: Inference,
				}},
			})
			if x.first { // knows no MIG
				cfg.Nodes[0].MIG, cfg.Nodes[0].Pods[0].Devices = nil, []string{"0", "1"}
			}
			cfg.Faults = []Fault{{Node: "n", Kind: XID, Code: 79, Device: "0"}}
			fl, _ := newFleet(t, cfg)
			p := page(t, fl, "n", time.Minute)
			series := map[string]bool{}
			for _, s := range p.Samples {
				assert.Contains(t, p.Types, s.Name)
				assert.NotEmpty(t, p.Help[s.Name])
				k := s.Name
				for _, n := range strings.Fields(s.Order()) {
					k += "," + n + "=" + s.Labels[n]
				}
				assert.False(t, series[k], "twice: %s", k)
				series[k] = true
			}
			if x.podLabels {
				used := "DCGM_FI_DEV_FB_USED"
				if x.newest {
					used = "DCGM_FI_DEV_FB_USED_BYTES"
				}
				s := p.Find(used, "gpu", "0")[0]
				assert.Equal(t, `quote " backslash \ ü`, s.Labels[x.podPrefix+"app"])
				assert.Equal(t, "v", s.Labels[x.podPrefix+"a_b_c_d"])
			}
		})
	}
}

// The simulated pages have the labels of the captured ones in the same order,
// and the same HELP and TYPE for the families that both have.
func TestLooksLikeCapturedPages(t *testing.T) {
	held := []Pod{{Namespace: "x", Name: "p", Container: "c", Devices: []string{"0"}, Load: Training}}
	for _, tc := range []struct {
		file string
		node Node
	}{
		{"kops-l4-drv580.prom", Node{Version: "4.5", Model: "L4", Devices: 1}},
		{"aicr-h100x8-nopods-b.prom", Node{Version: "4.5", Model: "H100", Devices: 8}},
		{"aicr-h100x8-partial-podlabels.prom", Node{Version: "4.5", Model: "H100", Devices: 8, PodUID: true, Pods: held}},
		{"runai-gpuop-idle.prom", Node{Version: "3.3", Model: "T4", Devices: 1}},
		{"runai-gpuop-active-frac-pod.prom", Node{Version: "3.3", Model: "T4", Devices: 1, Pods: held}},
		{"runai-a100-empty-migdisabled.prom", Node{Version: "3.0", Model: "A100-SXM4-40GB", Devices: 1}},
		{"runai-a100-mig-idle-1g5gb.prom", Node{Version: "3.0", Model: "A100-SXM4-40GB", Devices: 1, MIG: map[string][]string{"0": {"1g.5gb"}}}},
		{"runai-a100x-mig-4active.prom", Node{Version: "3.0", Model: "A100-SXM4-40GB", Devices: 1, MIG: map[string][]string{"0": {"1g.5gb", "1g.5gb", "1g.5gb", "2g.10gb"}}}},
		{"runai-fraction-shared-1workload.prom", Node{Version: "3.0", Model: "T4", Devices: 2, Pods: held}},
	} {
		t.Run(tc.file, func(t *testing.T) {
			real := pagetest.Parse(t, pagetest.Captured(t, tc.file))
			fl, _ := newFleet(t, oneNode(tc.node))
			ours := page(t, fl, "n", time.Minute)
			orders := func(p pagetest.Page) map[string]map[string]bool {
				out := map[string]map[string]bool{}
				for _, s := range p.Samples {
					if out[s.Name] == nil {
						out[s.Name] = map[string]bool{}
					}
					out[s.Name][s.Order()] = true
				}
				return out
			}
			have, want := orders(ours), orders(real)
			shared := 0
			for name := range maps.Keys(want) {
				if have[name] == nil {
					t.Errorf("the real page has %s, ours has not", name)
					continue
				}
				shared++
				assert.Equal(t, want[name], have[name], name)
				if typ, ok := real.Types[name]; ok {
					assert.Equal(t, typ, ours.Types[name], name)
					assert.Equal(t, real.Help[name], ours.Help[name], name)
				}
			}
			assert.GreaterOrEqual(t, shared, 3)
			// Families stand in the order of the real page.
			var theirs, mine []string
			for _, s := range real.Samples {
				if len(theirs) == 0 || theirs[len(theirs)-1] != s.Name {
					theirs = append(theirs, s.Name)
				}
			}
			for _, s := range ours.Samples {
				if want[s.Name] != nil && (len(mine) == 0 || mine[len(mine)-1] != s.Name) {
					mine = append(mine, s.Name)
				}
			}
			assert.Equal(t, theirs, mine)
		})
	}
}

func TestVersionsDiffer(t *testing.T) {
	text := func(version, model string) string {
		fl, _ := newFleet(t, oneNode(Node{Version: version, Model: model, Devices: 1}))
		b, err := fl.Page("n", fl.Start())
		require.NoError(t, err)
		return string(b)
	}
	assert.Contains(t, text("2.1", "T4"), `{gpu="0", UUID="GPU-`)
	assert.Regexp(t, `DCGM_FI_DEV_MEMORY_TEMP\{.*container="",namespace="",pod=""\} 9223372036854775794\n`, text("2.1", "T4"))
	assert.NotContains(t, text("2.4", "T4"), "MEMORY_TEMP")
	assert.Regexp(t, `DCGM_FI_DEV_MEMORY_TEMP\{.*\} 0\n`, text("3.3", "T4"))
	assert.Regexp(t, `DCGM_FI_DEV_XID_ERRORS\{[^}]*,Hostname="n",container="",namespace="",pod=""\} 0\n`, text("2.4", "A100-SXM4-40GB"))
	assert.Regexp(t, `DCGM_FI_DEV_XID_ERRORS\{.*,err_code="0",err_msg="No Error"\} 0\n`, text("3.3", "A100-SXM4-40GB"))
	assert.NotContains(t, text("4.5", "A100-SXM4-40GB"), "XID")
	assert.Contains(t, text("4.5", "H100"), `,Hostname="n",`)
	assert.Contains(t, text("4.6", "H100"), `,hostname="n",`)
	assert.Regexp(t, `POWER_USAGE\{.*\} \d+\.\d{6}\n`, text("4.6", "H100"))
	assert.NotContains(t, text("4.5", "L4"), "NVLINK")
	assert.Regexp(t, `(?m)^dcgm_fb_used\{gpu="0",uuid="GPU-[^"]*"\} \d+$`, text("1.7", "H100"))
	assert.NotContains(t, text("1.7", "H100"), "DCGM_")
	assert.Regexp(t, `(?m)^DCGM_FI_DEV_GPU_UTIL_RATIO\{.*,hostname="n",DCGM_FI_SYSTEM_DRIVER_VERSION="590.48.01"\} 0\.000000$`, text("4.9", "H100"))
	assert.Regexp(t, `(?m)^DCGM_FI_DEV_FB_CAPACITY_BYTES\{.*\} 85520809984$`, text("4.9", "H100"))
	assert.NotRegexp(t, `(?m)^DCGM_FI_DEV_(GPU_UTIL|FB_USED|SM_CLOCK|TOTAL_ENERGY_CONSUMPTION)\{`, text("4.9", "H100"))
}

// The demo's fleet with another exporter is the same fleet: the old nodes keep theirs.
func TestSetExporter(t *testing.T) {
	cfg := Demo(DemoTimes())
	require.ErrorContains(t, cfg.SetExporter("9.9"), "use one of")
	require.NoError(t, cfg.SetExporter("4.9"))
	a, _ := newFleet(t, Demo(DemoTimes()))
	b, _ := newFleet(t, cfg)
	was, is := a.TruthAt(a.Start().Add(50*time.Second)), b.TruthAt(b.Start().Add(50*time.Second))
	for i := range is.Nodes {
		version := map[bool]string{true: "4.9", false: was.Nodes[i].Version}[was.Nodes[i].Version >= "4"]
		assert.Equal(t, version, is.Nodes[i].Version)
		is.Nodes[i].Version = was.Nodes[i].Version
		old, err := a.Devices(was.Nodes[i].Name)
		require.NoError(t, err)
		devices, err := b.Devices(was.Nodes[i].Name)
		require.NoError(t, err)
		assert.Equal(t, old, devices, "drivers too")
	}
	assert.Equal(t, was, is)
}

func TestAFullPageHasSixtyFieldsADevice(t *testing.T) {
	for _, version := range []string{"4.5", "4.6"} {
		for _, model := range []string{"H100", "H200", "A100-SXM4-80GB", "B200", "L40S"} {
			fl, _ := newFleet(t, oneNode(Node{Version: version, Model: model, Devices: 8, Fields: "all"}))
			p := page(t, fl, "n", 0)
			n := map[string]int{}
			for _, s := range p.Samples {
				n[s.Labels["gpu"]]++
			}
			require.Len(t, n, 8)
			assert.GreaterOrEqual(t, n["0"], 60, "%s on %s", model, version)
		}
	}
	off := false
	fl, _ := newFleet(t, oneNode(Node{Version: "4.5", Model: "H100", Devices: 1, Profiling: &off}))
	for _, s := range page(t, fl, "n", 0).Samples {
		assert.NotContains(t, s.Name, "_PROF_")
	}
}

func TestMIGRowsRepeatTheBoardAndKeepTheirOwnMemory(t *testing.T) {
	fl, _ := newFleet(t, oneNode(Node{
		Version: "4.5", Model: "A100-SXM4-40GB", Devices: 2, MIG: map[string][]string{"1": {"3g.20gb", "1g.5gb"}},
		Pods: []Pod{{Namespace: "x", Name: "busy", Devices: []string{"1:0"}, Load: Training}},
	}))
	p := page(t, fl, "n", time.Minute)
	power := p.Find("DCGM_FI_DEV_POWER_USAGE", "gpu", "1")
	require.Len(t, power, 2, "no row of the board itself")
	assert.Equal(t, power[0].Value, power[1].Value)
	assert.Greater(t, power[0].Value, 60.0)
	assert.Empty(t, p.Find("DCGM_FI_DEV_GPU_UTIL", "gpu", "1"))
	assert.Len(t, p.Find("DCGM_FI_DEV_GPU_UTIL", "gpu", "0"), 1)
	busy := p.Find("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gpu", "1", "GPU_I_ID", "1", "GPU_I_PROFILE", "3g.20gb", "pod", "busy")
	require.Len(t, busy, 1)
	assert.Greater(t, busy[0].Value, .05)
	assert.Zero(t, p.One(t, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gpu", "1", "GPU_I_ID", "7"))
	assert.Greater(t, p.One(t, "DCGM_FI_DEV_FB_USED", "gpu", "1", "GPU_I_ID", "1"), 10000.0)
	assert.Zero(t, p.One(t, "DCGM_FI_DEV_FB_USED", "gpu", "1", "GPU_I_ID", "7"))
}

// One page of a node of eight H100 with every field on.
func BenchmarkPage(b *testing.B) {
	fl, err := New(oneNode(Node{
		Version: "4.6", Model: "H100", Devices: 8, Fields: "all", PodLabels: true,
		Pods: []Pod{{Namespace: "x", Name: "p", Devices: []string{"0", "1", "2", "3", "4", "5", "6", "7"}, Load: Training}},
	}), pagetest.NewClock().Now)
	require.NoError(b, err)
	at := pagetest.Epoch
	b.ReportAllocs()
	for b.Loop() {
		at = at.Add(15 * time.Second)
		page, err := fl.Page("n", at)
		require.NoError(b, err)
		b.SetBytes(int64(len(page)))
	}
}
