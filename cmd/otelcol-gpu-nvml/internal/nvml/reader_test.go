// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

func TestRead(t *testing.T) {
	memoryV2 := func(a ...uintptr) Return {
		if get32(a[1], 0) != 0x2000028 {
			return nvmlproto.ArgumentVersionMismatch
		}
		put64(a[1], 8, 80e9)
		put64(a[1], 16, 1e9)
		put64(a[1], 24, 49e9)
		put64(a[1], 32, 30e9)
		return Success
	}
	memory := func(a ...uintptr) Return {
		put64(a[1], 0, 80e9)
		put64(a[1], 8, 49e9)
		put64(a[1], 16, 31e9)
		return Success
	}
	temperatureV := func(a ...uintptr) Return {
		if get32(a[1], 0) != 0x100000c || get32(a[1], 4) != 0 {
			return nvmlproto.ArgumentVersionMismatch
		}
		put32(a[1], 8, 1<<32-4)
		return Success
	}
	margin := func(a ...uintptr) Return {
		if get32(a[1], 0) != 0x1000008 {
			return nvmlproto.ArgumentVersionMismatch
		}
		put32(a[1], 4, 41)
		return Success
	}
	memoryReadings := []string{"memory.total", "memory.used", "memory.free", "memory.reserved"}
	for _, c := range []struct {
		name      string
		functions map[string]function
		read      []string
		values    []nvmlproto.Value
		refused   []nvmlproto.Refused
		calls     []string
	}{
		{
			name:      "one call for two readings",
			functions: map[string]function{"nvmlDeviceGetUtilizationRates": func(a ...uintptr) Return { put32(a[1], 0, 95); put32(a[1], 4, 40); return Success }},
			read:      []string{"utilization.gpu", "utilization.memory"},
			values:    []nvmlproto.Value{{Name: "utilization.gpu", V: 95}, {Name: "utilization.memory", V: 40}},
			calls:     []string{"nvmlDeviceGetUtilizationRates"},
		},
		{
			name: "the time over which it was sampled has its own memory",
			functions: map[string]function{"nvmlDeviceGetEncoderUtilization": func(a ...uintptr) Return {
				put32(a[1], 0, 12)
				put32(a[2], 0, 167_000)
				return Success
			}},
			read:   []string{"utilization.encoder"},
			values: []nvmlproto.Value{{Name: "utilization.encoder", V: 12}},
			calls:  []string{"nvmlDeviceGetEncoderUtilization"},
		},
		{
			name:      "newest layout of memory",
			functions: map[string]function{"nvmlDeviceGetMemoryInfo_v2": memoryV2, "nvmlDeviceGetMemoryInfo": memory},
			read:      memoryReadings,
			values:    []nvmlproto.Value{{Name: "memory.total", V: 80e9}, {Name: "memory.used", V: 30e9}, {Name: "memory.free", V: 49e9}, {Name: "memory.reserved", V: 1e9}},
			calls:     []string{"nvmlDeviceGetMemoryInfo_v2"},
		},
		{
			name:      "older layout of memory has nothing reserved",
			functions: map[string]function{"nvmlDeviceGetMemoryInfo": memory},
			read:      memoryReadings,
			values:    []nvmlproto.Value{{Name: "memory.total", V: 80e9}, {Name: "memory.used", V: 31e9}, {Name: "memory.free", V: 49e9}, {Name: "memory.reserved", Return: 13}},
			calls:     []string{"nvmlDeviceGetMemoryInfo"},
		},
		{
			name:      "another version of the structure",
			functions: map[string]function{"nvmlDeviceGetMemoryInfo_v2": returns(25), "nvmlDeviceGetMemoryInfo": memory},
			read:      []string{"memory.used"},
			values:    []nvmlproto.Value{{Name: "memory.used", V: 31e9}},
			calls:     []string{"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo"},
		},
		{
			name:      "a failure of the newest is not one of the older one",
			functions: map[string]function{"nvmlDeviceGetMemoryInfo_v2": returns(999), "nvmlDeviceGetMemoryInfo": memory},
			read:      []string{"memory.used"},
			values:    []nvmlproto.Value{{Name: "memory.used", Return: 999}},
			calls:     []string{"nvmlDeviceGetMemoryInfo_v2"},
		},
		{
			name:      "not supported says more than a missing function",
			functions: map[string]function{"nvmlDeviceGetMemoryInfo_v2": returns(3)},
			read:      []string{"memory.used"},
			values:    []nvmlproto.Value{{Name: "memory.used", Return: 3}},
			calls:     []string{"nvmlDeviceGetMemoryInfo_v2"},
		},
		{
			name:      "signed temperatures",
			functions: map[string]function{"nvmlDeviceGetTemperatureV": temperatureV, "nvmlDeviceGetMarginTemperature": margin},
			read:      []string{"temperature.gpu", "temperature.margin"},
			values:    []nvmlproto.Value{{Name: "temperature.gpu", V: -4}, {Name: "temperature.margin", V: 41}},
			calls:     []string{"nvmlDeviceGetTemperatureV", "nvmlDeviceGetMarginTemperature"},
		},
		{
			name: "arguments that are passed",
			functions: map[string]function{
				"nvmlDeviceGetTemperature": func(a ...uintptr) Return { put32(a[2], 0, 60+uint32(a[1])); return Success },
				"nvmlDeviceGetClockInfo":   func(a ...uintptr) Return { put32(a[2], 0, 1000*uint32(a[1])); return Success },
			},
			read:   []string{"temperature.gpu", "clock.sm", "clock.video"},
			values: []nvmlproto.Value{{Name: "temperature.gpu", V: 60}, {Name: "clock.sm", V: 1000}, {Name: "clock.video", V: 3000}},
			calls:  []string{"nvmlDeviceGetTemperature", "nvmlDeviceGetClockInfo(1)", "nvmlDeviceGetClockInfo(3)"},
		},
		{
			name:      "older name of the clocks' reasons",
			functions: map[string]function{"nvmlDeviceGetCurrentClocksThrottleReasons": func(a ...uintptr) Return { put64(a[1], 0, 1<<40|0x88); return Success }},
			read:      []string{"clock.reasons"},
			values:    []nvmlproto.Value{{Name: "clock.reasons", V: 1<<40 | 0x88}},
			calls:     []string{"nvmlDeviceGetCurrentClocksThrottleReasons"},
		},
		{
			name:      "all ones is no number",
			functions: map[string]function{"nvmlDeviceGetPowerUsage": writes32(1<<32 - 1)},
			read:      []string{"power.usage"},
			refused:   []nvmlproto.Refused{{Call: "nvmlDeviceGetPowerUsage", Reason: nvmlproto.ReasonAllOnes, N: 1}},
			calls:     []string{"nvmlDeviceGetPowerUsage"},
		},
		{
			name: "fans",
			functions: map[string]function{
				"nvmlDeviceGetNumFans":     writes32(2),
				"nvmlDeviceGetFanSpeed_v2": func(a ...uintptr) Return { put32(a[2], 0, 30+uint32(a[1])); return Success },
			},
			read:   []string{"fan.speed"},
			values: []nvmlproto.Value{{Name: "fan.speed", Row: "0", V: 30}, {Name: "fan.speed", Row: "1", V: 31}},
			calls:  []string{"nvmlDeviceGetNumFans", "nvmlDeviceGetFanSpeed_v2(0)", "nvmlDeviceGetFanSpeed_v2(1)"},
		},
		{
			name:      "an old library knows the first fan",
			functions: map[string]function{"nvmlDeviceGetFanSpeed": writes32(44)},
			read:      []string{"fan.speed"},
			values:    []nvmlproto.Value{{Name: "fan.speed", Row: "0", V: 44}},
			calls:     []string{"nvmlDeviceGetFanSpeed"},
		},
		{
			name:      "nothing more of a lost board",
			functions: map[string]function{"nvmlDeviceGetPowerUsage": returns(15), "nvmlDeviceGetEnforcedPowerLimit": writes32(1)},
			read:      []string{"power.usage", "power.limit.enforced"},
			values:    []nvmlproto.Value{{Name: "power.usage", Return: 15}},
			calls:     []string{"nvmlDeviceGetPowerUsage"},
		},
		{
			name:      "no licence outside of vGPU, and GPM is not read here",
			functions: map[string]function{"nvmlDeviceGetGridLicensableFeatures_v4": returns(0), "nvmlGpmMetricsGet": returns(0)},
			read:      []string{"vgpu.licensed", "gpm.sm"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, caller := newFake(c.functions)
			values, refused := caller.Read(board, named(t, c.read...))
			assert.Equal(t, c.values, values)
			assert.Equal(t, c.refused, refused)
			assert.Equal(t, c.calls, f.taken())
		})
	}
}

// What a call returned decides when it is made again.
func TestRemembering(t *testing.T) {
	for r, again := range map[Return][3]bool{ // at once, after ten minutes, after Forget
		nvmlproto.NotSupported:            {false, false, true},
		nvmlproto.FunctionNotFound:        {false, false, true},
		nvmlproto.ArgumentVersionMismatch: {false, false, true},
		nvmlproto.Deprecated:              {false, false, true},
		nvmlproto.NoPermission:            {false, true, true},
		nvmlproto.OperatingSystem:         {false, true, true},
		nvmlproto.InvalidArgument:         {true, true, true},
		nvmlproto.Timeout:                 {true, true, true},
		nvmlproto.ResetRequired:           {true, true, true},
		nvmlproto.Unknown:                 {true, true, true},
		77:                                {true, true, true},
	} {
		t.Run(r.String(), func(t *testing.T) {
			f, caller := newFake(map[string]function{"nvmlDeviceGetPowerUsage": returns(r)})
			made := func() bool {
				f.taken()
				values, _ := caller.Read(board, named(t, "power.usage"))
				require.Equal(t, []nvmlproto.Value{{Name: "power.usage", Return: int(r)}}, values, "made or not, it is reported")
				return len(f.taken()) == 1
			}
			require.True(t, made())
			assert.Equal(t, again[0], made())
			f.now = f.now.Add(10 * time.Minute)
			assert.Equal(t, again[1], made())
			caller.Forget(board)
			assert.Equal(t, again[2], made())
		})
	}
}

func TestReadLicence(t *testing.T) {
	for name, c := range map[string]struct {
		states []uint32
		want   []nvmlproto.Value
	}{
		"licensed":          {states: []uint32{0, 1}, want: []nvmlproto.Value{{Name: "vgpu.licensed", V: 1}}},
		"unlicensed":        {states: []uint32{0}, want: []nvmlproto.Value{{Name: "vgpu.licensed"}}},
		"without licensing": {want: []nvmlproto.Value{{Name: "vgpu.licensed", Return: 3}}},
	} {
		t.Run(name, func(t *testing.T) {
			functions := identityFunctions()
			functions["nvmlDeviceGetVirtualizationMode"] = writes32(2)
			functions["nvmlDeviceGetGridLicensableFeatures_v4"] = func(a ...uintptr) Return {
				if len(c.states) > 0 {
					put32(a[1], 0, 1)
				}
				put32(a[1], 4, uint32(len(c.states)))
				for i, state := range c.states {
					put32(a[1], 8+i*284+4, state)
				}
				return Success
			}
			_, caller := newFake(functions)
			require.Equal(t, Success, caller.Identify(board, &nvmlproto.Board{}))
			values, _ := caller.Read(board, named(t, "vgpu.licensed"))
			assert.Equal(t, c.want, values)
		})
	}
}

// A function is called by no layout but one of these; and each method has a way of reading.
func TestEveryMethodIsRead(t *testing.T) {
	special := []nvmlproto.Method{nvmlproto.MethodField, nvmlproto.MethodGPM, nvmlproto.MethodFans, nvmlproto.MethodLicence}
	for _, r := range nvmlproto.Readings {
		if slices.Contains(special, r.Method) {
			continue
		}
		require.Contains(t, layouts, r.Method)
		newest := layouts[r.Method][0]
		assert.True(t, newest.passed || len(newest.places) == 1 || r.Argument < len(newest.places), r.Name)
	}
	for method := range maps.Keys(layouts) {
		assert.True(t, slices.ContainsFunc(nvmlproto.Readings, func(r nvmlproto.Reading) bool { return r.Method == method }), method)
	}
}
