// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// TestReadings: what each reading becomes, in the units of the metrics. A reading that is
// not here becomes nothing by itself.
func TestReadings(t *testing.T) {
	rows := map[string]struct {
		v    float64
		want string
	}{
		"utilization.gpu":              {42, "hw.gpu.utilization{hw.gpu.task=general} 0.42"},
		"utilization.memory":           {29, "gpu.memory_controller.utilization{} 0.29"},
		"utilization.encoder":          {100, "hw.gpu.utilization{hw.gpu.task=encoder} 1"},
		"utilization.decoder":          {0, "hw.gpu.utilization{hw.gpu.task=decoder} 0"},
		"memory.total":                 {1 << 30, "hw.gpu.memory.limit{} 1073741824"},
		"memory.used":                  {1 << 29, "hw.gpu.memory.usage{} 536870912"},
		"memory.free":                  {1 << 29, ""},
		"memory.reserved":              {1 << 20, "gpu.memory.reserved{} 1048576"},
		"power.usage":                  {350_250, "hw.power{} 350.25"},
		"power.limit.management":       {700_000, "gpu.power.limit{gpu.power.limit.kind=management} 700"},
		"power.limit.enforced":         {650_000, "gpu.power.limit{gpu.power.limit.kind=enforced} 650"},
		"energy":                       {12_345_678, "hw.energy{} 12345.678"},
		"temperature.gpu":              {-5, "hw.temperature{hw.sensor_location=gpu} -5"},
		"temperature.memory":           {85, "hw.temperature{hw.sensor_location=memory} 85"},
		"temperature.limit.shutdown":   {92, ""}, // of this board a margin
		"temperature.limit.slowdown":   {89, ""},
		"temperature.limit.memory_max": {95, ""},
		"temperature.limit.gpu_max":    {87, ""},
		"temperature.margin":           {31, "gpu.temperature.margin{} 31"},
		"clock.sm":                     {1980, "gpu.clock.frequency{gpu.clock.domain=sm} 1980000000"},
		"clock.memory":                 {2619, "gpu.clock.frequency{gpu.clock.domain=memory} 2619000000"},
		"clock.video":                  {1545, "gpu.clock.frequency{gpu.clock.domain=video} 1545000000"},
		"clock.reasons":                {0x204, "gpu.throttle.active{gpu.throttle.reason=power_cap} 1"},
		"violation.power":              {2.5e9, "gpu.throttle.duration{gpu.throttle.reason=power} 2.5"},
		"violation.thermal":            {1e9, "gpu.throttle.duration{gpu.throttle.reason=thermal} 1"},
		"violation.sync_boost":         {1e9, "gpu.throttle.duration{gpu.throttle.reason=sync_boost} 1"},
		"violation.board_limit":        {1e9, "gpu.throttle.duration{gpu.throttle.reason=board_limit} 1"},
		"violation.low_util":           {1e9, "gpu.throttle.duration{gpu.throttle.reason=low_util} 1"},
		"violation.reliability":        {1e9, "gpu.throttle.duration{gpu.throttle.reason=reliability} 1"},
		"gpm.graphics":                 {99.5, "gpu.engine.active{} 0.995"},
		"gpm.sm":                       {100.4, "gpu.sm.active{} 1"},
		"gpm.sm_occupancy":             {25, "gpu.sm.occupancy{} 0.25"},
		"gpm.dram":                     {50, "gpu.dram.active{} 0.5"},
		"gpm.tensor":                   {50, "gpu.pipe.active{gpu.pipe=tensor} 0.5"},
		"gpm.fp64":                     {50, "gpu.pipe.active{gpu.pipe=fp64} 0.5"},
		"gpm.fp32":                     {50, "gpu.pipe.active{gpu.pipe=fp32} 0.5"},
		"gpm.fp16":                     {50, "gpu.pipe.active{gpu.pipe=fp16} 0.5"},
		"gpm.imma":                     {50, "gpu.pipe.active{gpu.pipe=tensor_imma} 0.5"},
		"gpm.hmma":                     {50, "gpu.pipe.active{gpu.pipe=tensor_hmma} 0.5"},
		"gpm.dfma":                     {50, "gpu.pipe.active{gpu.pipe=tensor_dfma} 0.5"},
		"gpm.integer":                  {50, "gpu.pipe.active{gpu.pipe=int} 0.5"},
		"gpm.pcie.transmit":            {3, "gpu.pcie.throughput{network.io.direction=transmit} 3145728"},
		"gpm.pcie.receive":             {5, "gpu.pcie.throughput{network.io.direction=receive} 5242880"},
		"gpm.nvlink.transmit":          {3, "gpu.nvlink.throughput{network.io.direction=transmit} 3145728"},
		"gpm.nvlink.receive":           {5, "gpu.nvlink.throughput{network.io.direction=receive} 5242880"},
		"pcie.transmit":                {3, "gpu.pcie.throughput{network.io.direction=transmit} 3000"},
		"pcie.receive":                 {5, "gpu.pcie.throughput{network.io.direction=receive} 5000"},
		"nvlink.data.transmit":         {3, "hw.gpu.io{gpu.io.link=nvlink,network.io.direction=transmit} 3072"},
		"nvlink.data.receive":          {5, "hw.gpu.io{gpu.io.link=nvlink,network.io.direction=receive} 5120"},
		"nvlink.bytes.transmit":        {3, "hw.gpu.io{gpu.io.link=nvlink,network.io.direction=transmit} 3"},
		"nvlink.bytes.receive":         {5, "hw.gpu.io{gpu.io.link=nvlink,network.io.direction=receive} 5"},
		"pcie.replays":                 {7, "gpu.pcie.replays{} 7"},
		"nvlink.crc_flit":              {7, "gpu.nvlink.errors{gpu.nvlink.error.type=crc_flit} 7"},
		"nvlink.crc_data":              {7, "gpu.nvlink.errors{gpu.nvlink.error.type=crc_data} 7"},
		"nvlink.replay":                {7, "gpu.nvlink.errors{gpu.nvlink.error.type=replay} 7"},
		"nvlink.recovery":              {7, "gpu.nvlink.errors{gpu.nvlink.error.type=recovery} 7"},
		"ecc.volatile.corrected":       {7, "hw.errors{error.type=corrected} 7"},
		"ecc.volatile.uncorrected":     {7, "hw.errors{error.type=uncorrected} 7"},
		"ecc.aggregate.corrected":      {7, "gpu.ecc.lifetime_errors{error.type=corrected} 7"},
		"ecc.aggregate.uncorrected":    {7, "gpu.ecc.lifetime_errors{error.type=uncorrected} 7"},
		"retired.corrected":            {7, "gpu.memory.retired_pages{error.type=corrected} 7"},
		"retired.uncorrected":          {7, "gpu.memory.retired_pages{error.type=uncorrected} 7"},
		"retired.pending":              {1, "gpu.memory.retired_pages.pending{} 1"},
		"remapped.corrected":           {7, "gpu.memory.remapped_rows{error.type=corrected} 7"},
		"remapped.uncorrected":         {7, "gpu.memory.remapped_rows{error.type=uncorrected} 7"},
		"remapped.pending":             {1, "gpu.memory.row_remap.pending{} 1"},
		"remapped.failure":             {0, "gpu.memory.row_remap.failure{} 0"},
		"recovery.action":              {2, "gpu.recovery.action{} 2"},
		"vgpu.licensed":                {1, "gpu.vgpu.licensed{} 1"},
	}
	for _, r := range nvmlproto.Readings {
		if r.Method == nvmlproto.MethodFans {
			continue // has rows
		}
		t.Run(r.Name, func(t *testing.T) {
			row, known := rows[r.Name]
			assert.True(t, known)
			got := newHost(t).scrape(board(value(r.Name, row.v)))
			if row.want == "" {
				assert.Empty(t, got.Points(gpu0))
			} else {
				assert.Contains(t, got.Points(gpu0), row.want)
			}
			assert.Empty(t, got.of.Refusals)
		})
	}
}

// TestRefusedValues: what no board can have is no point and counted; the others go on.
func TestRefusedValues(t *testing.T) {
	const field, gpm = "nvmlDeviceGetFieldValues", "nvmlGpmMetricsGet"
	for name, c := range map[string]struct {
		v    nvmlproto.Value
		want map[Refusal]int
	}{
		"utilization over 100":         {value("utilization.gpu", 101), map[Refusal]int{{"nvmlDeviceGetUtilizationRates", "implausible"}: 1}},
		"GPM over 100.5":               {value("gpm.sm", 100.6), map[Refusal]int{{gpm, "implausible"}: 1}},
		"GPM below 0":                  {value("gpm.sm", -0.1), map[Refusal]int{{gpm, "negative"}: 1}},
		"GPM is no number":             {value("gpm.sm", math.NaN()), map[Refusal]int{{gpm, "not_a_number"}: 1}},
		"infinite":                     {value("energy", math.Inf(1)), map[Refusal]int{{"nvmlDeviceGetTotalEnergyConsumption", "not_a_number"}: 1}},
		"temperature over 200":         {value("temperature.gpu", 201), map[Refusal]int{{"nvmlDeviceGetTemperature", "implausible"}: 1}},
		"temperature below -60":        {value("temperature.gpu", -61), map[Refusal]int{{"nvmlDeviceGetTemperature", "implausible"}: 1}},
		"memory warmer than 200":       {value("temperature.memory", 32767), map[Refusal]int{{field, "implausible"}: 1}},
		"memory without a sensor":      {value("temperature.memory", 0), map[Refusal]int{}},
		"power over 10 kW":             {value("power.usage", 10_000_001), map[Refusal]int{{"nvmlDeviceGetPowerUsage", "implausible"}: 1}},
		"all ones of 32 bits":          {value("clock.sm", math.MaxUint32), map[Refusal]int{{"nvmlDeviceGetClockInfo(1)", "sentinel"}: 1}},
		"all ones of 64 bits":          {value("energy", math.MaxUint64), map[Refusal]int{{"nvmlDeviceGetTotalEnergyConsumption", "sentinel"}: 1}},
		"a count below 0":              {value("pcie.replays", -1), map[Refusal]int{{field, "negative"}: 1}},
		"not asked for":                {value("gpm.secret", 1), map[Refusal]int{{"unknown", "unknown"}: 1}},
		"a row of what has none":       {nvmlproto.Value{Name: "energy", Row: "1", V: 1}, map[Refusal]int{{"unknown", "unknown"}: 1}},
		"a fan without a number":       {nvmlproto.Value{Name: "fan.speed", Row: "left", V: 1}, map[Refusal]int{{"unknown", "unknown"}: 1}},
		"the same again":               {value("power.limit.enforced", 600_000), map[Refusal]int{{"nvmlDeviceGetEnforcedPowerLimit", "repeated"}: 1}},
		"not supported":                {returned("fan.speed", 3), map[Refusal]int{}},
		"no function":                  {returned("fan.speed", 13), map[Refusal]int{}},
		"wrong version":                {returned("fan.speed", 25), map[Refusal]int{}},
		"deprecated":                   {returned("fan.speed", 26), map[Refusal]int{}},
		"a number of no known meaning": {returned("fan.speed", 4711), map[Refusal]int{{"nvmlDeviceGetFanSpeed", "return_other"}: 1}},
		"unknown error":                {returned("fan.speed", 999), map[Refusal]int{{"nvmlDeviceGetFanSpeed", "return_999"}: 1}},
		"in use":                       {returned("energy", 19), map[Refusal]int{{"nvmlDeviceGetTotalEnergyConsumption", "return_19"}: 1}},
		"no data":                      {returned("ecc.volatile.corrected", 21), map[Refusal]int{{field, "return_21"}: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got := newHost(t).scrape(board(value("power.limit.enforced", 700_000), c.v))
			assert.Equal(t, []string{"gpu.power.limit{gpu.power.limit.kind=enforced} 700"}, got.Points(gpu0))
			assert.Equal(t, c.want, got.of.Refusals)
			assert.Empty(t, got.of.Denied)
		})
	}
}

func TestDeniedCalls(t *testing.T) {
	got := newHost(t).scrape(board(returned("gpm.sm", 4), returned("gpm.dram", 4), returned("energy", 17)), second(returned("gpm.sm", 4)))
	assert.Equal(t, map[string]int{"nvmlGpmMetricsGet": 3, "nvmlDeviceGetTotalEnergyConsumption": 1}, got.of.Denied)
	assert.Empty(t, got.of.Refusals)
}

// TestMemory: rules of the memory of a board.
func TestMemory(t *testing.T) {
	const gib = 1 << 30
	for name, c := range map[string]struct {
		values []nvmlproto.Value
		want   []string
		refuse map[Refusal]int
	}{
		"v2":              {[]nvmlproto.Value{value("memory.total", 8*gib), value("memory.reserved", gib), value("memory.free", 5*gib), value("memory.used", 2*gib)}, []string{"gpu.memory.reserved{} 1073741824", "hw.gpu.memory.limit{} 8589934592", "hw.gpu.memory.usage{} 2147483648", "hw.gpu.memory.utilization{} 0.25"}, map[Refusal]int{}},
		"plain":           {[]nvmlproto.Value{value("memory.total", 8*gib), value("memory.free", 6*gib), value("memory.used", 2*gib)}, []string{"hw.gpu.memory.limit{} 8589934592", "hw.gpu.memory.usage{} 2147483648", "hw.gpu.memory.utilization{} 0.25"}, map[Refusal]int{}},
		"used over total": {[]nvmlproto.Value{value("memory.used", 9*gib), value("memory.total", 8*gib)}, []string{"hw.gpu.memory.limit{} 8589934592"}, map[Refusal]int{{"nvmlDeviceGetMemoryInfo", "implausible"}: 1}},
		"not supported":   {[]nvmlproto.Value{returned("memory.used", 3), returned("memory.total", 3)}, []string{}, map[Refusal]int{}},
		"all ones":        {[]nvmlproto.Value{value("memory.used", math.MaxUint64), value("memory.total", 8*gib)}, []string{"hw.gpu.memory.limit{} 8589934592"}, map[Refusal]int{{"nvmlDeviceGetMemoryInfo", "implausible"}: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got := newHost(t).scrape(board(c.values...))
			assert.Equal(t, c.want, got.Points(gpu0))
			assert.Equal(t, c.refuse, got.of.Refusals)
		})
	}
}

// TestThrottle: every reason has a point; bits beyond the nine are no reason.
func TestThrottle(t *testing.T) {
	for mask, want := range map[float64][]string{
		0: {}, 1: {"gpu_idle"}, 0x48: {"hw_slowdown", "hw_thermal"}, 0x80: {"hw_power_brake"}, 1 << 40: {},
	} {
		on := []string{}
		lines := newHost(t).scrape(board(value("clock.reasons", mask))).Points(gpu0)
		for _, line := range lines {
			if reason, is := strings.CutSuffix(line, "} 1"); is {
				on = append(on, strings.TrimPrefix(reason, "gpu.throttle.active{gpu.throttle.reason="))
			}
		}
		assert.Len(t, lines, 9)
		assert.Equal(t, want, on, mask)
	}
}

func TestFans(t *testing.T) {
	got := newHost(t).scrape(board(nvmlproto.Value{Name: "fan.speed", Row: "0", V: 31}, nvmlproto.Value{Name: "fan.speed", Row: "1", V: 0}))
	assert.Equal(t, []string{"hw.fan.speed_ratio{gpu.fan=0} 0.31", "hw.fan.speed_ratio{gpu.fan=1} 0"}, got.Points(gpu0))
}

// TestTemperatureLimits: thresholds are temperatures of boards before Ada alone, and are read
// once an hour but emitted at every scrape, until the driver is another one.
func TestTemperatureLimits(t *testing.T) {
	limits := []nvmlproto.Value{
		value("temperature.limit.shutdown", 92), value("temperature.limit.slowdown", 89),
		value("temperature.limit.gpu_max", 85), value("temperature.limit.memory_max", 95),
	}
	lines := []string{
		"hw.temperature.limit{hw.limit_type=critical,hw.sensor_location=gpu} 92",
		"hw.temperature.limit{hw.limit_type=max,hw.sensor_location=gpu} 85",
		"hw.temperature.limit{hw.limit_type=max,hw.sensor_location=memory} 95",
		"hw.temperature.limit{hw.limit_type=throttled,hw.sensor_location=gpu} 89",
	}
	for arch, want := range map[int][]string{0: {}, 7: lines, 8: {}, 9: {}, 10: {}, 0xffffffff: {}} {
		h := newHost(t)
		b := board(limits...)
		b.Arch = arch
		assert.Equal(t, want, h.scrape(b).Points(gpu0), arch)
		b.Values = nil
		assert.Equal(t, want, h.scrape(b).Points(gpu0), arch)
		b.Serial = "another text"
		assert.Equal(t, want, h.scrape(b).Points(gpu0), arch)
		assert.Empty(t, h.do(&Scrape{Up: true, Driver: "575.51", Boards: []nvmlproto.Board{b}}).Points(gpu0))
	}
}

// TestResetRequired: a board of which a call returns 16 asks for a reset, unless the driver
// asks for more.
func TestResetRequired(t *testing.T) {
	for name, c := range map[string]struct {
		values []nvmlproto.Value
		want   []string
	}{
		"nothing asked": {[]nvmlproto.Value{value("recovery.action", 0), returned("energy", 16)}, []string{"gpu.recovery.action{} 1"}},
		"old driver":    {[]nvmlproto.Value{returned("recovery.action", 3), returned("energy", 16)}, []string{"gpu.recovery.action{} 1"}},
		"a reboot":      {[]nvmlproto.Value{value("recovery.action", 2), returned("energy", 16)}, []string{"gpu.recovery.action{} 2"}},
		"healthy":       {[]nvmlproto.Value{value("recovery.action", 0), value("energy", 1)}, []string{"gpu.recovery.action{} 0"}},
	} {
		got := newHost(t).scrape(board(c.values...))
		assert.Equal(t, c.want, got.points(gpu0, "gpu.recovery.action"), name)
	}
	assert.Empty(t, newHost(t, nvmlproto.GroupPower).scrape(board(returned("energy", 16))).Points(gpu0))
}
