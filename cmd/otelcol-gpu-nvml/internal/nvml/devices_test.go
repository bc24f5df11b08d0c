// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// slice is a compute instance behind the handle 0x2000 + its index.
type slice struct {
	gi, ci uint32
	uuid   string
	name   string
}

const migUUID = "MIG-0b2c1d3e-1111-5222-8333-00000000000"

// mig is a library of a board with instances, by their index.
func mig(most uint32, instances map[uint32]slice) map[string]function {
	const first = 0x2000
	of := func(a uintptr) slice { return instances[uint32(a-first)] }
	return map[string]function{
		"nvmlDeviceGetMigMode":           func(a ...uintptr) Return { put32(a[1], 0, 1); put32(a[2], 0, 0); return Success },
		"nvmlDeviceGetMaxMigDeviceCount": writes32(most),
		"nvmlDeviceGetMigDeviceHandleByIndex": func(a ...uintptr) Return {
			if _, ok := instances[uint32(a[1])]; !ok {
				return NotFound - Return(4*(a[1]%2)) // 6 or 2
			}
			put64(a[2], 0, first+uint64(a[1]))
			return Success
		},
		"nvmlDeviceGetGpuInstanceId":     func(a ...uintptr) Return { put32(a[1], 0, of(a[0]).gi); return Success },
		"nvmlDeviceGetComputeInstanceId": func(a ...uintptr) Return { put32(a[1], 0, of(a[0]).ci); return Success },
		"nvmlDeviceGetUUID":              func(a ...uintptr) Return { copy(at(a[1], nameLength), of(a[0]).uuid); return Success },
		"nvmlDeviceGetName":              func(a ...uintptr) Return { copy(at(a[1], nameLength), of(a[0]).name); return Success },
		"nvmlDeviceGetMemoryInfo":        returns(3),
	}
}

func TestInstances(t *testing.T) {
	instances := map[uint32]slice{
		1: {gi: 9, ci: 0, uuid: migUUID + "1", name: "NVIDIA H100 MIG 1g.10gb"},
		2: {gi: 2, ci: 0, uuid: migUUID + "2", name: "NVIDIA H100 MIG 1c.3g.40gb"},
		5: {gi: 2, ci: 1, uuid: migUUID + "3", name: "NVIDIA H100 MIG 1c.3g.40gb"},
		6: {gi: 4, ci: 0, uuid: "MIG-GPU-x/4/0", name: "NVIDIA H100 MIG 1g.10gb"},
	}
	f, caller := newFake(mig(7, instances))
	mode, r := caller.MIG(board)
	require.Equal(t, Success, r)
	assert.Equal(t, &nvmlproto.MIG{Current: 1}, mode)
	got, refused, r := caller.Instances(board)
	require.Equal(t, Success, r)
	assert.Equal(t, []Instance{
		{Device: 0x2002, Instance: nvmlproto.Instance{GI: 2, Name: "NVIDIA H100 MIG 1c.3g.40gb", Compute: []nvmlproto.Compute{{UUID: migUUID + "2"}, {CI: 1, UUID: migUUID + "3"}}}},
		{Device: 0x2006, Instance: nvmlproto.Instance{GI: 4, Name: "NVIDIA H100 MIG 1g.10gb", Compute: []nvmlproto.Compute{{}}}},
		{Device: 0x2001, Instance: nvmlproto.Instance{GI: 9, Name: "NVIDIA H100 MIG 1g.10gb", Compute: []nvmlproto.Compute{{UUID: migUUID + "1"}}}},
	}, got)
	assert.Equal(t, []nvmlproto.Refused{{Call: "nvmlDeviceGetUUID", Reason: nvmlproto.ReasonText, N: 1}}, refused)

	// What is remembered of a handle is that of the instance behind it.
	memory := func() bool {
		f.taken()
		_, _ = caller.Read(0x2001, named(t, "memory.used"))
		return len(f.taken()) > 0
	}
	assert.True(t, memory())
	_, _, _ = caller.Instances(board)
	assert.False(t, memory())
	instances[1] = slice{gi: 11, uuid: migUUID + "4", name: "NVIDIA H100 MIG 1g.10gb"}
	_, _, _ = caller.Instances(board)
	assert.True(t, memory())

	// The same UUID twice; a failure costs its own instance; a lost board ends it.
	instances[3] = instances[1]
	f.set("nvmlDeviceGetComputeInstanceId", func(a ...uintptr) Return {
		if a[0] == 0x2006 {
			return 999
		}
		put32(a[1], 0, 0)
		return Success
	})
	got, refused, r = caller.Instances(board)
	assert.Equal(t, Unknown, r)
	assert.Len(t, got, 2)
	assert.Equal(t, []nvmlproto.Refused{{Call: "nvmlDeviceGetUUID", Reason: nvmlproto.ReasonRepeated, N: 1}}, refused)
	f.set("nvmlDeviceGetGpuInstanceId", returns(15))
	got, _, r = caller.Instances(board)
	assert.True(t, r.Lost())
	assert.Empty(t, got)
}

func TestInstancesBeyondTheLimits(t *testing.T) {
	instances := map[uint32]slice{}
	for i := range uint32(100) {
		instances[i] = slice{gi: i}
	}
	_, caller := newFake(mig(100, instances))
	got, refused, r := caller.Instances(board)
	assert.Equal(t, Success, r)
	assert.Len(t, got, nvmlproto.MaxInstances)
	assert.NotEmpty(t, refused)
	for _, r := range refused {
		if r.Reason == nvmlproto.ReasonText { // an empty UUID
			continue
		}
		assert.Equal(t, nvmlproto.ReasonLimit, r.Reason)
	}
}

func TestGPM(t *testing.T) {
	var freed Sample
	_, caller := newFake(map[string]function{
		"nvmlGpmQueryDeviceSupport": func(a ...uintptr) Return {
			if get32(a[1], 0) != 1 {
				return nvmlproto.ArgumentVersionMismatch
			}
			put32(a[1], 4, 1)
			return Success
		},
		"nvmlGpmSampleAlloc":  func(a ...uintptr) Return { put64(a[0], 0, 0x77); return Success },
		"nvmlGpmSampleFree":   func(a ...uintptr) Return { freed = Sample(a[0]); return Success },
		"nvmlGpmSampleGet":    func(a ...uintptr) Return { return Return(a[1]) - 0x77 },
		"nvmlGpmMigSampleGet": func(a ...uintptr) Return { return Return(a[2]) - 0x77 },
		"nvmlGpmMetricsGet": func(a ...uintptr) Return {
			m := a[0]
			if get32(m, 0) != 1 || get64(m, 8) != 0x77 || get64(m, 16) != 0x78 || get32(m, 4) != 4 {
				return InvalidArgument
			}
			if gpmHead+gpmRoom*gpmEntry < 24+333*40 {
				return InsufficientSize
			}
			put64(m, gpmHead+332*gpmEntry, 1) // a library may touch as many as its header has
			put := func(i int, id, r uint32, v float64) {
				put32(m, gpmHead+i*gpmEntry, id)
				put32(m, gpmHead+i*gpmEntry+4, r)
				put64(m, gpmHead+i*gpmEntry+8, math.Float64bits(v))
			}
			put(0, 5, 0, 12.5)
			put(1, 3, 3, 0)
			put(2, 99, 0, 1)
			return Success
		},
	})
	supported, r := caller.GPMSupport(board)
	assert.Equal(t, Success, r)
	assert.True(t, supported)
	sample, r := caller.SampleAlloc()
	assert.Equal(t, Success, r)
	assert.Equal(t, Success, caller.SampleGet(board, sample))
	assert.Equal(t, Success, caller.MigSampleGet(board, 3, sample))
	values, refused, r := caller.Metrics(sample, sample+1, named(t, "power.usage", "gpm.sm", "gpm.sm_occupancy", "gpm.tensor", "gpm.dram"))
	assert.Equal(t, Success, r)
	assert.Equal(t, []nvmlproto.Value{{Name: "gpm.tensor", V: 12.5}, {Name: "gpm.sm_occupancy", Return: 3}, {Name: "gpm.dram", Return: 999}}, values)
	assert.Equal(t, []nvmlproto.Refused{{Call: "nvmlGpmMetricsGet", Reason: nvmlproto.ReasonField, N: 1}}, refused)
	assert.Equal(t, Success, caller.SampleFree(sample))
	assert.Equal(t, sample, freed)

	_, older := newFake(nil)
	supported, r = older.GPMSupport(board)
	assert.Equal(t, FunctionNotFound, r)
	assert.False(t, supported)
}

func TestEvents(t *testing.T) {
	event := func(bytes int) function {
		return func(a ...uintptr) Return {
			put64(a[1], 0, uint64(board))
			put64(a[1], 8, EventXID)
			put64(a[1], 16, 94)
			if bytes == 32 {
				put32(a[1], 24, 7)
				put32(a[1], 28, 0)
			}
			return Return(a[2]) // the time to wait
		}
	}
	f, caller := newFake(map[string]function{
		"nvmlEventSetCreate":               func(a ...uintptr) Return { put64(a[0], 0, 5); return Success },
		"nvmlDeviceGetSupportedEventTypes": func(a ...uintptr) Return { put64(a[1], 0, 0x11f); return Success },
		"nvmlDeviceRegisterEvents":         func(a ...uintptr) Return { return Return(a[1] - 0x108 + a[2] - 5) },
		"nvmlEventSetWait":                 event(24),
		"nvmlEventSetFree":                 returns(0),
	})
	set, r := caller.EventSet()
	assert.Equal(t, Success, r)
	types, r := caller.EventTypes(board)
	assert.Equal(t, Success, r)
	assert.Equal(t, uint64(0x11f), types)
	assert.Equal(t, Success, caller.Register(board, EventXID|EventMIG, set))
	got, r := caller.Wait(set, 0)
	assert.Equal(t, Success, r)
	assert.Equal(t, Event{Device: board, Type: EventXID, Data: 94, GI: NoInstance, CI: NoInstance}, got)
	_, r = caller.Wait(set, 10)
	assert.Equal(t, Timeout, r)
	assert.Equal(t, Success, caller.FreeSet(set))

	f.set("nvmlEventSetWait_v2", event(32))
	caller = New(f, nil).Caller(nil)
	got, r = caller.Wait(set, 0)
	assert.Equal(t, Success, r)
	assert.Equal(t, Event{Device: board, Type: EventXID, Data: 94, GI: 7}, got)
}
