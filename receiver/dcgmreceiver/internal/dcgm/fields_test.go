// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// TestConvert has one row a field: the page and the output. A field
// that is added must be added here, with a value worked out by hand.
func TestConvert(t *testing.T) {
	cases := map[string]struct{ in, out float64 }{
		"DCGM_FI_DEV_GPU_UTIL":      {29, 0.29},
		"DCGM_FI_DEV_MEM_COPY_UTIL": {7, 0.07},
		"DCGM_FI_DEV_ENC_UTIL":      {100, 1},
		"DCGM_FI_DEV_DEC_UTIL":      {57, 0.57},
		"DCGM_FI_DEV_FB_TOTAL":      {81559, 85520809984},
		"DCGM_FI_DEV_FB_FREE":       {80995, 84929413120},
		"DCGM_FI_DEV_FB_USED":       {1, 1048576},
		"DCGM_FI_DEV_FB_RESERVED":   {564, 591396864},
		"DCGM_FI_DEV_BAR1_TOTAL":    {131072, 137438953472},
		"DCGM_FI_DEV_BAR1_USED":     {2, 2097152},
		"DCGM_FI_DEV_BAR1_FREE":     {131070, 137436856320},

		"DCGM_FI_PROF_GR_ENGINE_ACTIVE":        {0.123456, 0.123456},
		"DCGM_FI_PROF_SM_ACTIVE":               {0.5, 0.5},
		"DCGM_FI_PROF_SM_OCCUPANCY":            {0.25, 0.25},
		"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE":      {0.75, 0.75},
		"DCGM_FI_PROF_DRAM_ACTIVE":             {0.3, 0.3},
		"DCGM_FI_PROF_PIPE_FP64_ACTIVE":        {0.01, 0.01},
		"DCGM_FI_PROF_PIPE_FP32_ACTIVE":        {0.02, 0.02},
		"DCGM_FI_PROF_PIPE_FP16_ACTIVE":        {0.03, 0.03},
		"DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE": {0.04, 0.04},
		"DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE": {0.05, 0.05},
		"DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE": {0.06, 0.06},
		"DCGM_FI_PROF_PIPE_INT_ACTIVE":         {0.07, 0.07},

		"DCGM_FI_DEV_POWER_USAGE":              {697.234, 697.234},
		"DCGM_FI_DEV_POWER_MGMT_LIMIT":         {700, 700},
		"DCGM_FI_DEV_ENFORCED_POWER_LIMIT":     {650, 650},
		"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": {1234567, 1234.567},
		"DCGM_FI_DEV_GPU_TEMP":                 {61, 61},
		"DCGM_FI_DEV_MEMORY_TEMP":              {72, 72},
		"DCGM_FI_DEV_FAN_SPEED":                {103, 1.03},
		"DCGM_FI_DEV_SM_CLOCK":                 {1980, 1.98e9},
		"DCGM_FI_DEV_MEM_CLOCK":                {2619, 2.619e9},
		"DCGM_FI_DEV_VIDEO_CLOCK":              {1545, 1.545e9},
		"DCGM_FI_DEV_APP_SM_CLOCK":             {1410, 1.41e9},
		"DCGM_FI_DEV_APP_MEM_CLOCK":            {1593, 1.593e9},
		"DCGM_FI_DEV_MAX_SM_CLOCK":             {1980, 1.98e9},
		"DCGM_FI_DEV_MAX_MEM_CLOCK":            {2619, 2.619e9},
		"DCGM_FI_DEV_MAX_VIDEO_CLOCK":          {1545, 1.545e9},

		"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS":      {68, 68},
		"DCGM_FI_DEV_POWER_VIOLATION":             {2_500_000_000, 2.5},
		"DCGM_FI_DEV_THERMAL_VIOLATION":           {1_000_000, 0.001},
		"DCGM_FI_DEV_SYNC_BOOST_VIOLATION":        {1, 1e-9},
		"DCGM_FI_DEV_BOARD_LIMIT_VIOLATION":       {3_000_000_000, 3},
		"DCGM_FI_DEV_LOW_UTIL_VIOLATION":          {4_000_000_000, 4},
		"DCGM_FI_DEV_RELIABILITY_VIOLATION":       {5_000_000_000, 5},
		"DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION":  {6_000_000_000, 6},
		"DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION": {7_000_000_000, 7},
		"DCGM_EXP_CLOCK_EVENTS_COUNT":             {12, 12},
		"DCGM_EXP_CLOCK_EVENTS_TOTAL":             {12, 12},

		"DCGM_FI_PROF_PCIE_TX_BYTES":                    {1.5e9, 1.5e9},
		"DCGM_FI_PROF_PCIE_RX_BYTES":                    {2.5e9, 2.5e9},
		"DCGM_FI_PROF_NVLINK_TX_BYTES":                  {3e11, 3e11},
		"DCGM_FI_PROF_NVLINK_RX_BYTES":                  {4e11, 4e11},
		"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL":            {100, 102_400_000},
		"DCGM_FI_DEV_NVLINK_BANDWIDTH_L%d":              {100, 102_400_000},
		"DCGM_FI_DEV_C2C_MAX_BANDWIDTH":                 {25_000, 25e9},
		"DCGM_FI_PROF_PCIE_TX_BYTES_TOTAL":              {9e12, 9e12},
		"DCGM_FI_PROF_PCIE_RX_BYTES_TOTAL":              {8e12, 8e12},
		"DCGM_FI_DEV_NVLINK_COUNT_TX_BYTES":             {7e15, 7e15},
		"DCGM_FI_DEV_NVLINK_COUNT_RX_BYTES":             {6e15, 6e15},
		"DCGM_FI_DEV_PCIE_REPLAY_COUNTER":               {3, 3},
		"DCGM_FI_DEV_PCIE_LINK_WIDTH":                   {8, 8},
		"DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH":               {16, 16},
		"DCGM_FI_DEV_PCIE_LINK_GEN":                     {4, 4},
		"DCGM_FI_DEV_PCIE_MAX_LINK_GEN":                 {5, 5},
		"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": {4, 4},
		"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": {5, 5},
		"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL":   {6, 6},
		"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": {7, 7},

		"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL":              {1, 1},
		"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL":              {2, 2},
		"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL":              {3, 3},
		"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL":              {4, 4},
		"DCGM_FI_DEV_RETIRED_SBE":                    {5, 5},
		"DCGM_FI_DEV_RETIRED_DBE":                    {6, 6},
		"DCGM_FI_DEV_RETIRED_PENDING":                {1, 1},
		"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS":    {7, 7},
		"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS":      {8, 8},
		"DCGM_FI_DEV_ROW_REMAP_FAILURE":              {1, 1},
		"DCGM_FI_DEV_ROW_REMAP_PENDING":              {1, 1},
		"DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_MAX":     {640, 640},
		"DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_HIGH":    {4, 4},
		"DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_PARTIAL": {3, 3},
		"DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_LOW":     {2, 2},
		"DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE":    {1, 1},
		"DCGM_FI_DEV_THRESHOLD_SRM":                  {1, 1},

		"DCGM_FI_DEV_XID_ERRORS":              {79, 79},
		"DCGM_EXP_XID_ERRORS_TOTAL":           {2, 2},
		"DCGM_EXP_GPU_HEALTH_STATUS":          {20, 20},
		"DCGM_EXP_P2P_STATUS":                 {3, 3},
		"DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION": {4, 4},
		"DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY":   {2, 2},
		"DCGM_FI_DEV_VGPU_LICENSE_STATUS":     {1, 1},
		"DCGM_FI_DEV_VGPU_MEMORY_USAGE":       {3, 3145728},
	}
	for i := range Table.Fields {
		f := &Table.Fields[i]
		want, ok := cases[f.Name]
		if assert.True(t, ok, "%s has no row here", f.Name) {
			assert.Equal(t, want.out, f.Convert(want.in), f.Name)
		}
		for _, alias := range f.Aliases {
			id, ok := Table.ByName(strings.Replace(alias, "%d", "17", 1))
			assert.True(t, ok, alias)
			assert.Equal(t, devicetable.ID(i), id, "%s is another name of %s", alias, f.Name)
		}
		assert.NotEmpty(t, f.Unit, f.Name)
	}
	assert.Len(t, Table.Fields, len(cases))
}

// TestVariants has each name of DCGM 4.6.1 and 4.7 in base units: the value of the page
// under the old name and under the new one, as an exporter prints them, of one quantity.
func TestVariants(t *testing.T) {
	cases := map[string]struct {
		number   int
		old, new string
		double   bool
	}{
		"DCGM_FI_DEV_GPU_UTIL_RATIO":    {1613, "29", "0.290000", true},
		"DCGM_FI_DEV_MEMORY_UTIL_RATIO": {1614, "7", "0.070000", true},
		"DCGM_FI_DEV_ENC_UTIL_RATIO":    {1615, "100", "1.000000", true},
		"DCGM_FI_DEV_DEC_UTIL_RATIO":    {1616, "57", "0.570000", true},
		"DCGM_FI_DEV_FAN_SPEED_RATIO":   {1612, "103", "1.030000", true},

		"DCGM_FI_DEV_FB_CAPACITY_BYTES":   {1625, "81559", "85520809984", false},
		"DCGM_FI_DEV_FB_FREE_BYTES":       {1626, "80995", "84929413120", false},
		"DCGM_FI_DEV_FB_USED_BYTES":       {1627, "1", "1048576", false},
		"DCGM_FI_DEV_FB_RESERVED_BYTES":   {1628, "564", "591396864", false},
		"DCGM_FI_DEV_VGPU_FB_USED_BYTES":  {1649, "3", "3145728", false},
		"DCGM_FI_DEV_BAR1_CAPACITY_BYTES": {1600, "131072", "137438953472", false},
		"DCGM_FI_DEV_BAR1_USED_BYTES":     {1601, "2", "2097152", false},
		"DCGM_FI_DEV_BAR1_FREE_BYTES":     {1602, "131070", "137436856320", false},

		"DCGM_FI_DEV_SM_CLOCK_HERTZ":          {1603, "1980", "1980000000", false},
		"DCGM_FI_DEV_MEMORY_CLOCK_HERTZ":      {1604, "2619", "2619000000", false},
		"DCGM_FI_DEV_VIDEO_CLOCK_HERTZ":       {1605, "1545", "1545000000", false},
		"DCGM_FI_DEV_SM_APP_CLOCK_HERTZ":      {1606, "1410", "1410000000", false},
		"DCGM_FI_DEV_MEMORY_APP_CLOCK_HERTZ":  {1607, "1593", "1593000000", false},
		"DCGM_FI_DEV_SM_MAX_CLOCK_HERTZ":      {1608, "1980", "1980000000", false},
		"DCGM_FI_DEV_MEMORY_MAX_CLOCK_HERTZ":  {1609, "2619", "2619000000", false},
		"DCGM_FI_DEV_VIDEO_MAX_CLOCK_HERTZ":   {1610, "1545", "1545000000", false},
		"DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL": {1611, "1234000", "1234", false},
		"DCGM_FI_GPU_ENERGY_JOULES_TOTAL":     {1611, "1234000", "1234", false},

		"DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL":       {1617, "2500000000", "2.500000", true},
		"DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL":     {1618, "123456000", "0.123456", true},
		"DCGM_FI_DEV_GPU_SYNC_BOOST_THROTTLE_SECONDS_TOTAL":  {1619, "1000", "0.000001", true},
		"DCGM_FI_DEV_GPU_LIMIT_THROTTLE_SECONDS_TOTAL":       {1620, "3000000000", "3.000000", true},
		"DCGM_FI_DEV_GPU_LOW_UTIL_THROTTLE_SECONDS_TOTAL":    {1621, "0", "0.000000", true},
		"DCGM_FI_DEV_GPU_RELIABILITY_THROTTLE_SECONDS_TOTAL": {1622, "5000000000", "5.000000", true},
		"DCGM_FI_DEV_GPU_APP_THROTTLE_SECONDS_TOTAL":         {1623, "6000000000", "6.000000", true},
		"DCGM_FI_DEV_GPU_BASE_THROTTLE_SECONDS_TOTAL":        {1624, "7000000000", "7.000000", true},

		"DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND":     {1648, "100", "102400000", false},
		"DCGM_FI_DEV_NVLINK_THROUGHPUT_L%d_BYTES_PER_SECOND": {1630, "100", "102400000", false},
		"DCGM_FI_DEV_C2C_MAX_BANDWIDTH_BYTES_PER_SECOND":     {1629, "25000", "25000000000", false},
	}
	seen := 0
	for _, f := range Table.Fields {
		for _, v := range f.Variants {
			want, ok := cases[v.Name]
			if !assert.True(t, ok, "%s has no row here", v.Name) {
				continue
			}
			seen++
			assert.Equal(t, want.number, v.Number, v.Name)
			assert.Equal(t, want.double, v.Type == devicetable.Double, v.Name)
			assert.Equal(t, want.double, strings.Contains(want.new, "."), v.Name)
			old, new := strings.Replace(f.Name, "%d", "17", 1), strings.Replace(v.Name, "%d", "17", 1)
			expected := points(mapOnce(t, otel, onGPU(old, want.old)), "GPU-0")
			for _, typ := range []string{"gauge", "counter", "untyped"} {
				r := mapOnce(t, otel, "# TYPE "+new+" "+typ, onGPU(new, want.new))
				assert.Equal(t, expected, points(r, "GPU-0"), "%s as %s", v.Name, typ)
				assert.Empty(t, refused(r), v.Name)
			}
			both := mapOnce(t, otel, onGPU(new, want.new), onGPU(old, want.old))
			assert.Equal(t, expected, points(both, "GPU-0"), "%s and %s", old, new)
		}
	}
	assert.Len(t, cases, seen)
}

// TestTable checks what the emitting code relies on.
func TestTable(t *testing.T) {
	used := map[devicetable.ID]bool{}
	ended := map[*names.Metric]bool{}
	seen := map[string]bool{}
	var last *names.Metric
	for _, s := range Table.Series {
		if s.Metric != last {
			assert.False(t, ended[s.Metric], "%s stands in two places", s.Metric.Name)
			ended[last] = true
			last = s.Metric
		}
		series := strings.Join([]string{s.Metric.Name, s.Key, s.Value, s.Key2, s.Value2}, "|")
		assert.False(t, seen[series], "%s twice", series)
		seen[series] = true
		assert.NotEmpty(t, s.From, series)
		for _, id := range s.From {
			used[id] = true
			assert.Equal(t, s.RowKey != "", Table.Fields[id].Label != "", "%s has rows with a label", Table.Fields[id].Name)
		}
	}
	for _, d := range Table.Derived {
		assert.NotEmpty(t, d.Rule, d.Metric.Name)
		for _, id := range d.From {
			used[id] = true
		}
	}
	for i, f := range Table.Fields {
		assert.True(t, used[devicetable.ID(i)], "%s becomes nothing", f.Name)
	}
}

func TestSentinel(t *testing.T) {
	integer, double, memory := devicetable.Field{}, devicetable.Field{Type: devicetable.Double}, devicetable.Field{Unit: "MiB", Mul: mib}
	for _, tt := range []struct {
		v                       float64
		integer, double, memory bool
	}{
		{v: 0},
		{v: -1},
		{v: 112}, // DCGM's INT8 blank is a temperature, too
		{v: 9223372036854775792, integer: true, double: true, memory: true},
		{v: 9223372036854775795, integer: true, double: true, memory: true},
		{v: 1e300, integer: true, double: true, memory: true},
		{v: 9.2e18, memory: true},
		{v: 2147483631, memory: true},
		{v: 2147483632, integer: true, double: true, memory: true},
		{v: 2147483635, integer: true, double: true, memory: true},
		{v: 2147483636, memory: true},
		{v: 2147483633.5, memory: true},
		{v: 140737488355327, memory: true},
		{v: 140737488355328, double: true, memory: true},
		{v: 140737488355331, double: true, memory: true},
		{v: 140737488355332, memory: true},
		{v: 1<<30 - 1},
		{v: 1 << 30, memory: true},
	} {
		assert.Equal(t, tt.integer, sentinel(&integer, tt.v), "integer %v", tt.v)
		assert.Equal(t, tt.double, sentinel(&double, tt.v), "double %v", tt.v)
		assert.Equal(t, tt.double, sentinel(nil, tt.v), "unknown %v", tt.v)
		assert.Equal(t, tt.memory, sentinel(&memory, tt.v), "memory %v", tt.v)
	}
	assert.Less(t, 3*1024*maxMiB*mib, float64(math.MaxInt64), "used, free and reserved of the most instances there are")
}

func TestMistypedCounter(t *testing.T) {
	for family, want := range map[string]bool{
		"DCGM_EXP_XID_ERRORS_COUNT":                  true,
		"DCGM_FI_DEV_NVLINK_BANDWIDTH_L0":            true,
		"DCGM_FI_DEV_NVLINK_TX_BANDWIDTH_TOTAL":      true,
		"DCGM_FI_DEV_NVLINK_RX_THROUGHPUT_L17":       true,
		"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0": false,
		"DCGM_FI_DEV_NVSWITCH_THROUGHPUT_TX":         false,
		"DCGM_FI_PROF_SM_CYCLES_ACTIVE_TOTAL":        false,
	} {
		assert.Equal(t, want, mistypedCounter(family), family)
	}
}

// TestCountersFiles holds a counters file in the form of those that exporters ship, and
// those themselves where they are beside the checkout, against the table: every line, commented ones included, is a known field, a label, or one
// of the families that are passed on under dcgm.* on purpose.
func TestCountersFiles(t *testing.T) {
	files, err := filepath.Glob("../../../../../shared/data/dcgm_counters/*.csv")
	require.NoError(t, err)
	files = append(files, "testdata/counters.csv")
	passedOn := []string{
		"DCGM_EXP_XID_ERRORS_COUNT", // a count in a sliding window adds nothing to DCGM_EXP_XID_ERRORS_TOTAL
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			lines := 0
			for line := range strings.Lines(string(text)) {
				columns := strings.SplitN(strings.TrimLeft(line, "# "), ",", 3)
				family := strings.TrimSpace(columns[0])
				if len(columns) < 3 || !strings.HasPrefix(strings.ToUpper(family), "DCGM_") {
					continue
				}
				lines++
				_, known := Table.ByName(family)
				label := strings.TrimSpace(columns[1]) == "label"
				assert.True(t, known != (label || slices.Contains(passedOn, family)), line)
			}
			assert.Positive(t, lines)
		})
	}
}
