// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

func instance(gi int, uuid string, values ...nvmlproto.Value) nvmlproto.Instance {
	return nvmlproto.Instance{GI: gi, Name: "NVIDIA H100 80GB HBM3 MIG 1g.10gb", Compute: []nvmlproto.Compute{{UUID: uuid}}, Values: values}
}

const mig0 = "MIG-8b1e8a4c-0000-4000-8000-00000000000a"

// TestInstances: an instance has its own memory and profiling; all else is the board's.
func TestInstances(t *testing.T) {
	b := board(value("power.usage", 200_000), returned("utilization.gpu", 3), returned("memory.used", 4))
	b.MIG = &nvmlproto.MIG{Current: 1, Pending: 1}
	b.Instances = []nvmlproto.Instance{
		instance(7, mig0, value("memory.total", 10<<30), value("memory.used", 2<<30), value("gpm.graphics", 40), value("power.usage", 1)),
		instance(11, "", value("memory.total", 20<<30), value("memory.used", 1<<30)),
	}
	b.Instances[1].Name = "NVIDIA H100 80GB HBM3 MIG 1c.2g.20gb+me"
	b.Instances[1].Compute = []nvmlproto.Compute{{CI: 0, UUID: mig0}, {CI: 1, UUID: mig0}}
	got := newHost(t).scrape(b)
	assert.Equal(t, []string{gpu0, gpu0 + "/11", gpu0 + "/7"}, got.IDs(t))
	assert.Equal(t, []string{
		"hw.gpu.memory.limit{} 3.221225472e+10", "hw.gpu.memory.usage{} 3221225472", "hw.gpu.memory.utilization{} 0.1", "hw.power{} 200",
	}, got.Points(gpu0), "the sum over its instances")
	assert.Equal(t, []string{
		"gpu.engine.active{} 0.4", "hw.gpu.memory.limit{} 1.073741824e+10", "hw.gpu.memory.usage{} 2147483648",
		"hw.gpu.memory.utilization{} 0.2", "hw.gpu.utilization{hw.gpu.task=general} 0.4",
	}, got.Points(gpu0+"/7"))
	of := got.Resource(gpu0 + "/7")
	assert.Equal(t, []any{gpu0, int64(7), "1g.10gb", mig0, int64(3)},
		[]any{of[names.HwParent], of[names.GPUMIGInstanceID], of[names.GPUMIGProfile], of[names.GPUMIGUUID], of[names.GPUMinor]})
	of = got.Resource(gpu0 + "/11")
	assert.Equal(t, "2g.20gb+me", of[names.GPUMIGProfile])
	assert.NotContains(t, of, names.GPUMIGUUID, "of two compute instances neither is the device")
	assert.NotContains(t, got.Resource(gpu0), names.GPUMIGProfile)
	assert.Equal(t, map[Refusal]int{{"unknown", reasonUnknown}: 1}, got.of.Refusals, "power of an instance")
	assert.Equal(t, map[string]int{"nvmlDeviceGetMemoryInfo": 1}, got.of.Denied)
}

// TestMemoryOfABoardInMIGMode: its own reading, else the sum of all its instances.
func TestMemoryOfABoardInMIGMode(t *testing.T) {
	half := instance(1, mig0, value("memory.total", 10<<30), value("memory.used", 2<<30))
	usage := func(b nvmlproto.Board) []string { return newHost(t).scrape(b).points(gpu0, "hw.gpu.memory.usage") }
	b := board(value("memory.total", 80<<30), value("memory.used", 5<<30))
	b.Instances = []nvmlproto.Instance{half}
	assert.Equal(t, []string{"hw.gpu.memory.usage{} 5368709120"}, usage(b))
	b.Values = nil
	assert.Equal(t, []string{"hw.gpu.memory.usage{} 2147483648"}, usage(b))
	b.Instances = append(b.Instances, instance(2, "", returned("memory.used", 21)))
	assert.Empty(t, usage(b), "one has no reading")
	b.Instances = b.Instances[:1]
	b.Refused = []nvmlproto.Refused{{Call: callInstances, Reason: "return_4", N: 1}}
	assert.Empty(t, usage(b), "the list is not whole")
}

// TestIdentities: what is not in its form is left out and counted.
func TestIdentities(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*nvmlproto.Board)
		lacks  string // attribute
		want   Refusal
	}{
		"control characters": {func(b *nvmlproto.Board) { b.Name = "H100\x1b[31m" }, names.HwModel, Refusal{"nvmlDeviceGetName", "text"}},
		"not UTF-8":          {func(b *nvmlproto.Board) { b.Serial = "12\ufffd" }, names.HwSerialNumber, Refusal{"nvmlDeviceGetSerial", "text"}},
		"without end":        {func(b *nvmlproto.Board) { b.VBIOS = strings.Repeat("9", 97) }, names.HwFirmware, Refusal{"nvmlDeviceGetVbiosVersion", "text"}},
		"no address":         {func(b *nvmlproto.Board) { b.PCI = "bus 3" }, names.GPUPCIAddress, Refusal{"nvmlDeviceGetPciInfo", "text"}},
		"no minor":           {func(b *nvmlproto.Board) { b.Minor = at(-1) }, names.GPUMinor, Refusal{}},
		"no serial":          {func(b *nvmlproto.Board) { b.Serial = "" }, names.HwSerialNumber, Refusal{}},
	} {
		t.Run(name, func(t *testing.T) {
			b := board(value("power.usage", 1000))
			c.change(&b)
			got := newHost(t).scrape(b)
			assert.Equal(t, []string{"hw.power{} 1"}, got.Points(gpu0))
			assert.NotContains(t, got.Resource(gpu0), c.lacks)
			if c.want == (Refusal{}) {
				assert.Empty(t, got.of.Refusals)
			} else {
				assert.Equal(t, map[Refusal]int{c.want: 1}, got.of.Refusals)
			}
		})
	}
	b := board()
	b.Instances = []nvmlproto.Instance{instance(1, "MIG-GPU-"+gpu0+"/1/0", value("memory.total", 1)), instance(1, mig0), instance(-1, mig0)}
	got := newHost(t).scrape(b)
	assert.NotContains(t, got.Resource(gpu0+"/1"), names.GPUMIGUUID)
	assert.Equal(t, map[Refusal]int{{"nvmlDeviceGetUUID", "text"}: 1, {"nvmlDeviceGetGpuInstanceId", "repeated"}: 2}, got.of.Refusals)
}

// TestBoardsThatAreLeftOut: the others go on.
func TestBoardsThatAreLeftOut(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*nvmlproto.Board)
		want   map[Refusal]int
	}{
		"no UUID":           {func(b *nvmlproto.Board) { b.UUID = "" }, map[Refusal]int{{"nvmlDeviceGetUUID", "uuid"}: 1}},
		"another UUID":      {func(b *nvmlproto.Board) { b.UUID = "GPU-3" }, map[Refusal]int{{"nvmlDeviceGetUUID", "uuid"}: 1}},
		"UUID of a MIG":     {func(b *nvmlproto.Board) { b.UUID = mig0 }, map[Refusal]int{{"nvmlDeviceGetUUID", "uuid"}: 1}},
		"a path in it":      {func(b *nvmlproto.Board) { b.UUID = gpu1 + "/../1" }, map[Refusal]int{{"nvmlDeviceGetUUID", "uuid"}: 1}},
		"the same UUID":     {func(b *nvmlproto.Board) { b.UUID = gpu0 }, map[Refusal]int{{"nvmlDeviceGetUUID", "repeated"}: 1}},
		"the same address":  {func(b *nvmlproto.Board) { b.PCI = "0000:3b:00.0" }, map[Refusal]int{{"nvmlDeviceGetPciInfo", "repeated"}: 1}},
		"no handle":         {func(b *nvmlproto.Board) { b.Return = 999 }, map[Refusal]int{{"nvmlDeviceGetHandle", "return_999"}: 1}},
		"lost in the calls": {func(b *nvmlproto.Board) { b.Lost = true }, map[Refusal]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			other := second(value("power.usage", 2000))
			c.change(&other)
			got := newHost(t).scrape(board(value("power.usage", 1000)), other)
			assert.Equal(t, []string{gpu0}, got.IDs(t))
			assert.Equal(t, []string{"hw.power{} 1"}, got.Points(gpu0))
			assert.Equal(t, c.want, got.of.Refusals)
			assert.Equal(t, map[string]string{pci0: gpu0}, got.of.IDs)
		})
	}
}

func TestLimits(t *testing.T) {
	var boards []nvmlproto.Board
	for i := range 70 {
		b := board(value("power.usage", 1000))
		b.Thread = fmt.Sprintf("#%d", i)
		b.UUID, b.PCI = fmt.Sprintf("GPU-5b1e8a4c-0000-4000-8000-%012d", i), fmt.Sprintf("0000:%02x:00.0", i)
		boards = append(boards, b)
	}
	for gi := range 20 {
		boards[0].Instances = append(boards[0].Instances, instance(gi, "", value("memory.total", 1<<30), value("memory.used", 0)))
	}
	got := newHost(t).scrape(boards...)
	assert.Len(t, got.IDs(t), 64+16)
	assert.Equal(t, map[Refusal]int{{"nvmlDeviceGetCount", "limit"}: 6, {callInstances, "limit"}: 4}, got.of.Refusals)
	assert.Equal(t, []string{"hw.power{} 1"}, got.Points(boards[0].UUID), "no sum of a part of the instances")
}

// TestGroups: a group alone gives its metrics and no others.
func TestGroups(t *testing.T) {
	b := board(value("utilization.gpu", 40), value("gpm.graphics", 50), value("memory.total", 1<<30), value("recovery.action", 0))
	for group, want := range map[nvmlproto.Group][]string{
		nvmlproto.GroupUtilization: {"hw.gpu.utilization{hw.gpu.task=general} 0.4"},
		nvmlproto.GroupProfiling:   {"gpu.engine.active{} 0.5"},
		nvmlproto.GroupInventory:   {"gpu.recovery.action{} 0", "hw.gpu.memory.limit{} 1073741824"},
		nvmlproto.GroupXID:         {},
	} {
		of := b
		of.Values = nil
		for _, v := range b.Values { // as the helper reads them
			if readings[v.Name].In([]nvmlproto.Group{group}) {
				of.Values = append(of.Values, v)
			}
		}
		assert.Equal(t, want, newHost(t, group).scrape(of).Points(gpu0), group)
	}
}

// TestNVLink: bytes are those of all links, else of each; where there is no rate their rise
// is one.
func TestNVLink(t *testing.T) {
	const io, rate = "hw.gpu.io{gpu.io.link=nvlink,network.io.direction=transmit} ", "gpu.nvlink.throughput{network.io.direction=transmit} "
	h := newHost(t)
	assert.Equal(t, []string{io + "1024"}, h.scrape(board(value("nvlink.data.transmit", 1))).Points(gpu0))
	assert.Equal(t, []string{rate + "1024", io + "16384"}, h.scrape(board(value("nvlink.data.transmit", 16))).Points(gpu0))
	assert.Equal(t, []string{rate + "2097152", io + "17408"}, h.scrape(board(value("nvlink.data.transmit", 17), value("gpm.nvlink.transmit", 2))).Points(gpu0))
	assert.Equal(t, []string{io + "1024"}, h.scrape(board(value("nvlink.data.transmit", 1))).Points(gpu0), "a reset has no rate")
	assert.Empty(t, h.scrape(board(value("nvlink.bytes.transmit", 9))).Points(gpu0), "another count would be a reset")
	assert.Equal(t, []string{io + "9"}, h.do(&Scrape{Up: true, Driver: "575.51", Boards: []nvmlproto.Board{board(value("nvlink.bytes.transmit", 9))}}).Points(gpu0))
	got := h.do(&Scrape{Up: true, Driver: "575.51", Boards: []nvmlproto.Board{board(value("nvlink.bytes.transmit", 24), value("nvlink.data.transmit", 5))}})
	assert.Equal(t, []string{rate + "1", io + "24"}, got.Points(gpu0))
}
