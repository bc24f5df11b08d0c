// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/pagetest"
)

const sec = time.Second

// trainer is a node of two busy H100 of one pod.
func trainer(version string) Config {
	return oneNode(Node{
		Version: version, Model: "H100", Devices: 3, Fields: "all",
		Pods: []Pod{{Namespace: "x", Name: "job-0", Container: "c", Devices: []string{"0", "1"}, Load: Training}},
	})
}

func withFault(cfg Config, f Fault) Config {
	f.Node = "n"
	cfg.Faults = append(cfg.Faults, f)
	return cfg
}

func TestXIDAppearsAndStays(t *testing.T) {
	cfg := withFault(trainer("4.6"), Fault{Kind: XID, Device: "1", Code: 31, After: Duration(20 * sec)})
	cfg = withFault(cfg, Fault{Kind: XID, Device: "1", Code: 94, After: Duration(10 * sec)})
	fl, _ := newFleet(t, cfg)
	assert.Empty(t, page(t, fl, "n", 9*sec).Find(xidField), "4.x prints nothing before the first XID")

	p := page(t, fl, "n", 10*sec)
	s := p.Find(xidField)
	require.Len(t, s, 1)
	assert.Equal(t, 94.0, s[0].Value)
	assert.Equal(t, "1", s[0].Labels["gpu"])
	assert.Equal(t, "94", s[0].Labels["err_code"])
	assert.Equal(t, "Contained ECC error", s[0].Labels["err_msg"])
	assert.Equal(t, 1.0, p.One(t, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "gpu", "1"))
	assert.Equal(t, 0.0, p.One(t, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "gpu", "0"))

	p = page(t, fl, "n", 10*time.Minute)
	assert.Equal(t, 31.0, p.One(t, xidField), "the last one, whatever the order of the script")
	assert.Equal(t, 1.0, p.One(t, "DCGM_EXP_XID_ERRORS_TOTAL", "gpu", "1", "xid", "94"))
	assert.Empty(t, p.Find("DCGM_EXP_XID_ERRORS_COUNT", "xid", "94"), "out of the window of 5m")
	assert.Equal(t, 0.0, p.One(t, "DCGM_EXP_XID_ERRORS_COUNT", "gpu", "1"))
	assert.Equal(t, 1.0, page(t, fl, "n", 60*sec).One(t, "DCGM_EXP_XID_ERRORS_COUNT", "gpu", "1", "xid", "94"))
}

func TestXIDOfAMIGInstanceIsOnItsRowOnly(t *testing.T) {
	cfg := oneNode(Node{Version: "3.0", Model: "A100-SXM4-40GB", Devices: 1, MIG: map[string][]string{"0": {"1g.5gb", "1g.5gb"}}})
	fl, _ := newFleet(t, withFault(cfg, Fault{Kind: XID, Device: "0:1", Code: 13}))
	p := page(t, fl, "n", sec)
	assert.Equal(t, 0.0, p.One(t, xidField, "GPU_I_ID", "7"))
	assert.Equal(t, 13.0, p.One(t, xidField, "GPU_I_ID", "8"))

	fl, _ = newFleet(t, withFault(cfg, Fault{Kind: XID, Device: "0", Code: 79}))
	for _, s := range page(t, fl, "n", sec).Find(xidField) {
		assert.Zero(t, s.Value, "an XID of the whole board is on no instance")
	}
	assert.Zero(t, fl.TruthAt(pagetest.Epoch.Add(sec)).Nodes[0].Devices[0].XID)
}

func TestThermalThrottle(t *testing.T) {
	fl, _ := newFleet(t, withFault(trainer("4.5"), Fault{Kind: ThermalThrottle, Device: "0", After: Duration(60 * sec), For: Duration(60 * sec)}))
	at := func(d time.Duration, field string) float64 { return page(t, fl, "n", d).One(t, field, "gpu", "0") }
	const clock, reasons, violation, temp = "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_THERMAL_VIOLATION", "DCGM_FI_DEV_GPU_TEMP"
	assert.Zero(t, at(59*sec, violation))
	assert.Zero(t, int(at(59*sec, reasons))&reasonHWThermal)
	assert.Equal(t, reasonHWThermal|reasonHWSlow|reasonSWThermal, int(at(60*sec, reasons))&(reasonHWThermal|reasonHWSlow|reasonSWThermal))
	assert.Less(t, at(60*sec, clock), .7*at(59*sec, clock))
	assert.Greater(t, at(110*sec, temp), at(59*sec, temp)+10)
	assert.Equal(t, 30*6e8, at(90*sec, violation), "30 seconds at 0.6, in ns")
	assert.Equal(t, 60*6e8, at(300*sec, violation), "stands still afterwards")
	assert.Less(t, at(300*sec, temp), at(110*sec, temp))
	assert.Zero(t, page(t, fl, "n", 300*sec).One(t, violation, "gpu", "1"), "the neighbour is cool")
}

func TestRowRemapPending(t *testing.T) {
	fl, _ := newFleet(t, withFault(trainer("4.5"), Fault{Kind: RowRemapPending, Device: "0", After: Duration(10 * sec), For: Duration(10 * sec)}))
	at := func(d time.Duration, gpu string) float64 {
		return page(t, fl, "n", d).One(t, "DCGM_FI_DEV_ROW_REMAP_PENDING", "gpu", gpu)
	}
	assert.Equal(t, []float64{0, 1, 0}, []float64{at(9*sec, "0"), at(10*sec, "0"), at(20*sec, "0")})
	assert.Zero(t, at(10*sec, "1"), "the neighbour")
}

func TestLostGPULeavesItsNeighbours(t *testing.T) {
	fl, _ := newFleet(t, withFault(trainer("3.3"), Fault{Kind: GPULost, Device: "1", After: Duration(5 * sec), For: Duration(5 * sec)}))
	devices := func(d time.Duration) (out []string) {
		for _, s := range page(t, fl, "n", d).Find("DCGM_FI_DEV_GPU_TEMP") {
			out = append(out, s.Labels["gpu"])
		}
		return out
	}
	assert.Equal(t, []string{"0", "1", "2"}, devices(4*sec))
	assert.Equal(t, []string{"0", "2"}, devices(5*sec))
	assert.Equal(t, []string{"0", "1", "2"}, devices(10*sec))
	truth := fl.TruthAt(pagetest.Epoch.Add(6 * sec))
	assert.False(t, truth.Nodes[0].Devices[1].OnPage)
	assert.Greater(t, truth.Nodes[0].Devices[1].Utilization, 0.0, "it computes all the same")
	assert.Equal(t, 1, truth.Services[0].Pods[0].DevicesOnPage)
}

func TestSentinelsOfEachType(t *testing.T) {
	fl, _ := newFleet(t, withFault(trainer("4.5"), Fault{Kind: Sentinel, Device: "0", Fields: []string{"DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_POWER_USAGE"}}))
	b, err := fl.Page("n", pagetest.Epoch)
	require.NoError(t, err)
	assert.Regexp(t, `DCGM_FI_DEV_FB_USED\{gpu="0".*\} 9223372036854775794\n`, string(b))
	assert.Regexp(t, `DCGM_FI_DEV_POWER_USAGE\{gpu="0".*\} 140737488355330\.000000\n`, string(b))
	p := pagetest.Parse(t, b)
	assert.Less(t, p.One(t, "DCGM_FI_DEV_POWER_USAGE", "gpu", "1"), 701.0)
	assert.Less(t, p.One(t, "DCGM_FI_DEV_GPU_TEMP", "gpu", "0"), 100.0)

	fl, _ = newFleet(t, withFault(trainer("4.5"), Fault{Kind: Sentinel, Device: "0"}))
	for _, s := range page(t, fl, "n", 0).Find("DCGM_FI_DEV_GPU_UTIL", "gpu", "0") {
		assert.Greater(t, s.Value, 1e18, "every field of the device is blank")
	}
	assert.False(t, fl.TruthAt(pagetest.Epoch).Nodes[0].Devices[0].OnPage)
}

func TestFrozenPageStandsStillThenCatchesUp(t *testing.T) {
	cfg := trainer("4.5")
	healthy, _ := newFleet(t, cfg)
	fl, _ := newFleet(t, withFault(cfg, Fault{Kind: ExporterFrozen, After: Duration(10 * sec), For: Duration(30 * sec)}))
	at := func(f *Fleet, d time.Duration) string {
		b, err := f.Page("n", pagetest.Epoch.Add(d))
		require.NoError(t, err)
		return string(b)
	}
	assert.Equal(t, at(healthy, 10*sec), at(fl, 39*sec))
	assert.Equal(t, at(healthy, 40*sec), at(fl, 40*sec))
	assert.Equal(t, "frozen", fl.TruthAt(pagetest.Epoch.Add(15 * sec)).Nodes[0].Exporter)
}

func TestRenamedFields(t *testing.T) {
	cfg := trainer("4.5")
	healthy, _ := newFleet(t, cfg)
	fl, _ := newFleet(t, withFault(cfg, Fault{Kind: FieldsRenamed, After: Duration(10 * sec), For: Duration(30 * sec)}))
	at := func(f *Fleet, d time.Duration) string {
		b, err := f.Page("n", pagetest.Epoch.Add(d))
		require.NoError(t, err)
		return string(b)
	}
	assert.NotContains(t, at(fl, 20*sec), "DCGM_FI_DEV_GPU_UTIL{")
	assert.Contains(t, at(fl, 20*sec), "\nDCGM_FI_DEV_GPU_UTIL_V2{")
	assert.Equal(t, at(healthy, 20*sec), strings.ReplaceAll(at(fl, 20*sec), "_V2", ""))
	assert.Equal(t, at(healthy, 40*sec), at(fl, 40*sec))
	n := fl.TruthAt(pagetest.Epoch.Add(15 * sec)).Nodes[0]
	assert.Equal(t, "renamed", n.Exporter)
	assert.False(t, n.Devices[0].OnPage)
}

func TestNewPodWarmsUp(t *testing.T) {
	pod := &Pod{Namespace: "x", Name: "new", Container: "c", Devices: []string{"2"}, Load: Inference, Warmup: Duration(20 * sec)}
	fl, _ := newFleet(t, withFault(trainer("4.5"), Fault{Kind: NewPod, Pod: pod, After: Duration(10 * sec)}))
	mem := func(d time.Duration) float64 {
		return page(t, fl, "n", d).One(t, "DCGM_FI_DEV_FB_USED", "gpu", "2")
	}
	util := func(d time.Duration) float64 {
		return page(t, fl, "n", d).One(t, "DCGM_FI_DEV_GPU_UTIL", "gpu", "2")
	}
	assert.Empty(t, page(t, fl, "n", 9*sec).Find("DCGM_FI_DEV_GPU_UTIL", "pod", "new"))
	assert.Len(t, page(t, fl, "n", 10*sec).Find("DCGM_FI_DEV_GPU_UTIL", "pod", "new"), 1)
	assert.Zero(t, mem(9*sec))
	assert.Less(t, mem(15*sec), mem(25*sec))
	assert.Zero(t, util(25*sec))
	assert.Positive(t, util(30*sec))
	assert.True(t, fl.TruthAt(pagetest.Epoch.Add(29 * sec)).Services[1].Pods[0].Warming)
	assert.False(t, fl.TruthAt(pagetest.Epoch.Add(30 * sec)).Services[1].Pods[0].Warming)
}

func TestPodGoneAndDeviceChangesHands(t *testing.T) {
	next := &Pod{Namespace: "x", Name: "next", Container: "c", Devices: []string{"0"}, Load: Idle}
	cfg := withFault(trainer("3.3"), Fault{Kind: NewPod, Pod: next, After: Duration(5 * sec)})
	cfg = withFault(cfg, Fault{Kind: PodGone, Pod: &Pod{Namespace: "x", Name: "job-0"}, After: Duration(10 * sec)})
	fl, _ := newFleet(t, cfg)
	owners := func(d time.Duration) (out []string) {
		for _, s := range page(t, fl, "n", d).Find("DCGM_FI_DEV_GPU_UTIL") {
			out = append(out, s.Labels["pod"])
		}
		return out
	}
	assert.Equal(t, []string{"job-0", "job-0", ""}, owners(4*sec))
	assert.Equal(t, []string{"next", "job-0", ""}, owners(5*sec))
	assert.Equal(t, []string{"next", "", ""}, owners(10*sec))
}

func TestFaultsStartedByHand(t *testing.T) {
	fl, clock := newFleet(t, trainer("3.3"))
	clock.Advance(30*sec + 700*time.Millisecond)
	_ = page(t, fl, "n", 30*sec)
	st, err := fl.StartFault(Fault{Node: "n", Kind: XID, Device: "0", Code: 48})
	require.NoError(t, err)
	assert.Equal(t, "active", st.State)
	assert.Equal(t, 48.0, page(t, fl, "n", 30*sec+800*time.Millisecond).One(t, xidField, "gpu", "0"), "at once, in the second it falls into")

	later, err := fl.StartFault(Fault{Node: "n", Kind: GPULost, Device: "0", After: Duration(10 * sec)})
	require.NoError(t, err)
	assert.Equal(t, "scheduled", later.State)
	later, err = fl.EndFault(later.ID)
	require.NoError(t, err)
	clock.Advance(15 * sec)
	assert.Equal(t, []string{"active", "ended"}, []string{fl.Faults()[0].State, fl.Faults()[1].State})
	assert.Len(t, page(t, fl, "n", 45*sec).Find(xidField), 3, "ended before it began")

	_, err = fl.EndFault("f99")
	assert.ErrorIs(t, err, ErrNoFault)
}

// A fault that is added for a time that has been read already changes the
// counters as if it had always been known.
func TestFaultInThePastOfTheReader(t *testing.T) {
	f := Fault{Kind: ThermalThrottle, After: Duration(10 * sec), For: Duration(10 * sec)}
	scripted, _ := newFleet(t, withFault(trainer("4.5"), f))
	byHand, _ := newFleet(t, trainer("4.5"))
	_ = page(t, byHand, "n", 60*sec)
	f.Node = "n"
	_, err := byHand.StartFault(f)
	require.NoError(t, err)
	assert.Equal(t, page(t, scripted, "n", 60*sec), page(t, byHand, "n", 60*sec))
}

func TestBadFaultsAreRefused(t *testing.T) {
	fl, _ := newFleet(t, trainer("4.5"))
	pod := &Pod{Namespace: "x", Name: "p", Devices: []string{"7"}, Load: Idle}
	for want, f := range map[string]Fault{
		`unknown node "m"`:        {Node: "m", Kind: XID},
		`unknown kind "explode"`:  {Node: "n", Kind: "explode"},
		"needs a code":            {Node: "n", Kind: XID},
		"has no device 3":         {Node: "n", Kind: GPULost, Device: "3"},
		"no MIG instance":         {Node: "n", Kind: GPULost, Device: "1:0"},
		`device "one"`:            {Node: "n", Kind: GPULost, Device: "one"},
		`no mode "half"`:          {Node: "n", Kind: PageCut, Mode: "half"},
		"needs a pod":             {Node: "n", Kind: NewPod},
		"has no device 7":         {Node: "n", Kind: NewPod, Pod: pod},
		"cannot be negative":      {Node: "n", Kind: ExporterSlow, Delay: -1},
		"needs a pod with namesp": {Node: "n", Kind: PodGone, Pod: &Pod{Name: "p"}},
	} {
		_, err := fl.StartFault(f)
		assert.ErrorContains(t, err, want)
	}
	assert.Empty(t, fl.Faults())
}

func TestTheNumberOfFaultsHasALimit(t *testing.T) {
	fl, _ := newFleet(t, oneNode(Node{Version: "4.5", Model: "T4", Devices: 1}))
	for range maxFaults {
		_, err := fl.StartFault(Fault{Node: "n", Kind: ClockSkew})
		require.NoError(t, err)
	}
	_, err := fl.StartFault(Fault{Node: "n", Kind: ClockSkew})
	assert.ErrorIs(t, err, ErrTooManyFaults)
}

func TestDemoPlaysItsScript(t *testing.T) {
	fl, _ := newFleet(t, Demo(DemoTimes()))
	service := func(d time.Duration, name string) *ServiceTruth {
		for _, s := range fl.TruthAt(pagetest.Epoch.Add(d)).Services {
			if s.Name == name {
				return &s
			}
		}
		return nil
	}
	assert.Nil(t, service(19*sec, "whisper"))
	require.NotNil(t, service(20*sec, "whisper"))
	for d, want := range map[time.Duration]int{59 * sec: 3, 60 * sec: 2, 109 * sec: 2, 110 * sec: 3} {
		llama := service(d, "llama")
		require.Len(t, llama.Pods, 3)
		assert.Equal(t, want, llama.PodsOnPage, fmt.Sprint(d))
	}
	assert.Len(t, service(0, "llama").Pods[0].Devices, 2)
	assert.Empty(t, page(t, fl, "gpu-node-b", 39*sec).Find(xidField, "err_code", "94"))
	assert.Len(t, page(t, fl, "gpu-node-b", 40*sec).Find(xidField, "err_code", "94"), 1)
	for _, s := range fl.TruthAt(pagetest.Epoch.Add(80 * sec)).Services {
		if s.Name != "llama" {
			assert.Equal(t, len(s.Pods), s.PodsOnPage, "only llama loses a pod: %s", s.Name)
		}
	}
}

// What describes a device changes, and what it does goes on.
func TestDescriptionChanges(t *testing.T) {
	cfg := oneNode(Node{Version: "4.5", Model: "A100-SXM4-40GB", Devices: 3, MIG: map[string][]string{"2": {"2g.10gb", "1g.5gb"}}})
	from, until := Duration(10*sec), Duration(10*sec)
	cfg = withFault(cfg, Fault{Kind: ExporterReplaced, After: from, For: until})
	cfg = withFault(cfg, Fault{Kind: IndexChange, Device: "0", Index: 1, After: from, For: until})
	cfg = withFault(cfg, Fault{Kind: MIGReprofile, Device: "2:1", Profile: "1g.10gb", After: from, For: until})
	fl, _ := newFleet(t, cfg)
	plain, _ := newFleet(t, oneNode(cfg.Nodes[0]))
	const power = "DCGM_FI_DEV_POWER_USAGE"
	first := plain.nodes[0].boards[0].uuid
	for _, at := range []struct {
		after           time.Duration
		index           int
		profile, device string
	}{{9 * sec, 0, "1g.5gb", "nvidia0"}, {10 * sec, 1, "1g.10gb", "nvidia1"}, {20 * sec, 0, "1g.5gb", "nvidia0"}} {
		p, want := page(t, fl, "n", at.after), page(t, plain, "n", at.after)
		truth := fl.TruthAt(pagetest.Epoch.Add(at.after)).Nodes[0]
		changed := p.Find(power, "UUID", first, "gpu", fmt.Sprint(at.index), "device", at.device, "Hostname", truth.Host)
		require.Len(t, changed, 1)
		assert.InDelta(t, want.One(t, power, "UUID", first), changed[0].Value, 0)
		assert.Equal(t, at.index == 0, truth.Host == "n")
		assert.Len(t, p.Find(power, "gpu", "0"), 1)
		assert.Equal(t, at.index, truth.Devices[0].Index)
		assert.Equal(t, 1-at.index, truth.Devices[1].Index)
		assert.Len(t, p.Find(power, "GPU_I_ID", "7", "GPU_I_PROFILE", at.profile), 1)
		assert.Equal(t, at.profile, truth.Devices[3].MIG)
		free := p.One(t, "DCGM_FI_DEV_FB_FREE", "GPU_I_ID", "7")
		assert.Equal(t, float64(truth.Devices[3].MemoryTotalMiB-truth.Devices[3].MemoryUsedMiB), free)
	}
}
