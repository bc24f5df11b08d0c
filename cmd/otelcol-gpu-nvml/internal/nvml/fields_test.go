// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// The ids of fields, by the names that all headers give them. Those from 251 on were moved in
// driver 580.82.07, and 199 and 200 swapped in 555 to 565.
func TestFieldIDs(t *testing.T) {
	text, err := os.ReadFile("testdata/field_ids.tsv")
	require.NoError(t, err)
	header := map[int]string{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimSpace(line), "\t")
		require.Len(t, cells, 3)
		id, err := strconv.Atoi(cells[0])
		require.NoError(t, err)
		header[id] = cells[1]
	}
	meant := map[string]string{
		"temperature.memory":        "NVML_FI_DEV_MEMORY_TEMP",
		"violation.power":           "NVML_FI_DEV_PERF_POLICY_POWER",
		"violation.thermal":         "NVML_FI_DEV_PERF_POLICY_THERMAL",
		"violation.sync_boost":      "NVML_FI_DEV_PERF_POLICY_SYNC_BOOST",
		"violation.board_limit":     "NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT",
		"violation.low_util":        "NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION",
		"violation.reliability":     "NVML_FI_DEV_PERF_POLICY_RELIABILITY",
		"nvlink.data.transmit":      "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX",
		"nvlink.data.receive":       "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX",
		"nvlink.bytes.transmit":     "NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES",
		"nvlink.bytes.receive":      "NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES",
		"pcie.replays":              "NVML_FI_DEV_PCIE_REPLAY_COUNTER",
		"nvlink.crc_flit":           "NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
		"nvlink.crc_data":           "NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
		"nvlink.replay":             "NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
		"nvlink.recovery":           "NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
		"ecc.volatile.corrected":    "NVML_FI_DEV_ECC_SBE_VOL_TOTAL",
		"ecc.volatile.uncorrected":  "NVML_FI_DEV_ECC_DBE_VOL_TOTAL",
		"ecc.aggregate.corrected":   "NVML_FI_DEV_ECC_SBE_AGG_TOTAL",
		"ecc.aggregate.uncorrected": "NVML_FI_DEV_ECC_DBE_AGG_TOTAL",
		"retired.corrected":         "NVML_FI_DEV_RETIRED_SBE",
		"retired.uncorrected":       "NVML_FI_DEV_RETIRED_DBE",
		"retired.pending":           "NVML_FI_DEV_RETIRED_PENDING",
		"remapped.corrected":        "NVML_FI_DEV_REMAPPED_COR",
		"remapped.uncorrected":      "NVML_FI_DEV_REMAPPED_UNC",
		"remapped.pending":          "NVML_FI_DEV_REMAPPED_PENDING",
		"remapped.failure":          "NVML_FI_DEV_REMAPPED_FAILURE",
		"recovery.action":           "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION",
	}
	for _, r := range nvmlproto.Readings {
		if r.Method != nvmlproto.MethodField {
			continue
		}
		assert.Less(t, r.Argument, 251, r.Name)
		assert.NotContains(t, []int{199, 200}, r.Argument, r.Name)
		if assert.Contains(t, meant, r.Name) {
			assert.Equal(t, meant[r.Name], header[r.Argument], r.Name)
		}
	}
}

// answering is a library's field values: they are written in reverse order.
func answering(values map[field]func(entry uintptr)) function {
	return func(a ...uintptr) Return {
		n := int(a[1])
		asked := make([]field, n)
		for i := range asked {
			entry := a[2] + uintptr(i*fieldSize)
			asked[i] = field{get32(entry, 0), get32(entry, 4)}
		}
		for i := range asked {
			entry, f := a[2]+uintptr((n-1-i)*fieldSize), asked[i]
			put32(entry, 0, f.id)
			put32(entry, 4, f.scope)
			if write := values[f]; write != nil {
				write(entry)
			} else {
				put32(entry, 28, 3)
			}
		}
		return Success
	}
}

// written is a value of a type, read at some time.
func writes(kind uint32, bits uint64) func(uintptr) {
	return func(entry uintptr) {
		put64(entry, 8, 1_700_000_000_000_000)
		put32(entry, 24, kind)
		put32(entry, 28, 0)
		put64(entry, 32, bits)
	}
}

func TestReadFields(t *testing.T) {
	timeless := func(entry uintptr) { put32(entry, 24, typeUnsigned64); put32(entry, 28, 0); put64(entry, 32, 0) }
	refusedAs := func(call, reason string) []nvmlproto.Refused {
		return []nvmlproto.Refused{{Call: call, Reason: reason, N: 1}}
	}
	const correctable = "nvmlDeviceGetFieldValues(3)"
	for _, c := range []struct {
		name    string
		read    []string
		values  map[field]func(uintptr)
		want    []nvmlproto.Value
		refused []nvmlproto.Refused
	}{
		{
			name: "by id, wherever they are",
			read: []string{"temperature.memory", "pcie.replays", "ecc.volatile.corrected"},
			values: map[field]func(uintptr){
				{82, 0}: writes(typeUnsigned32, 61), {94, 0}: writes(typeUnsigned64, 1<<40), {3, 0}: writes(typeUnsignedLong, 7),
			},
			want: []nvmlproto.Value{{Name: "temperature.memory", V: 61}, {Name: "pcie.replays", V: 1 << 40}, {Name: "ecc.volatile.corrected", V: 7}},
		},
		{name: "an integer marked as floating-point", read: []string{"temperature.memory"}, values: map[field]func(uintptr){{82, 0}: writes(typeDouble, 45)}, want: []nvmlproto.Value{{Name: "temperature.memory", V: 45}}},
		{name: "a floating-point number", read: []string{"temperature.memory"}, values: map[field]func(uintptr){{82, 0}: writes(typeDouble, math.Float64bits(45))}, want: []nvmlproto.Value{{Name: "temperature.memory", V: 45}}},
		{name: "signed 64 bits", read: []string{"temperature.memory"}, values: map[field]func(uintptr){{82, 0}: writes(typeSigned64, 1<<64-2)}, want: []nvmlproto.Value{{Name: "temperature.memory", V: -2}}},
		{name: "signed 32 bits", read: []string{"temperature.memory"}, values: map[field]func(uintptr){{82, 0}: writes(typeSigned32, 1<<32-2)}, want: []nvmlproto.Value{{Name: "temperature.memory", V: -2}}},
		{name: "16 bits", read: []string{"temperature.memory"}, values: map[field]func(uintptr){{82, 0}: writes(typeUnsigned16, 0xabc0040)}, want: []nvmlproto.Value{{Name: "temperature.memory", V: 64}}},
		{name: "the upper half of 32 bits is not read", read: []string{"temperature.memory"}, values: map[field]func(uintptr){{82, 0}: writes(typeUnsigned32, 5<<32|40)}, want: []nvmlproto.Value{{Name: "temperature.memory", V: 40}}},
		{name: "ECC is off", read: []string{"ecc.volatile.corrected", "pcie.replays"}, values: map[field]func(uintptr){{3, 0}: timeless, {94, 0}: timeless}, want: []nvmlproto.Value{{Name: "ecc.volatile.corrected", Return: 3}, {Name: "pcie.replays"}}},
		{name: "unknown type", read: []string{"ecc.volatile.corrected"}, values: map[field]func(uintptr){{3, 0}: writes(9, 1)}, refused: refusedAs(correctable, nvmlproto.ReasonType)},
		{name: "all ones", read: []string{"ecc.volatile.corrected"}, values: map[field]func(uintptr){{3, 0}: writes(typeUnsigned64, 1<<64-1)}, refused: refusedAs(correctable, nvmlproto.ReasonAllOnes)},
		{
			name: "an answer that was not asked for", read: []string{"ecc.volatile.corrected"},
			values:  map[field]func(uintptr){{3, 0}: func(entry uintptr) { put32(entry, 0, 4); writes(typeUnsigned32, 1)(entry) }},
			want:    []nvmlproto.Value{{Name: "ecc.volatile.corrected", Return: 999}},
			refused: refusedAs("nvmlDeviceGetFieldValues", nvmlproto.ReasonField),
		},
		{name: "an answer that was not written", read: []string{"ecc.volatile.corrected"}, values: map[field]func(uintptr){{3, 0}: func(uintptr) {}}, want: []nvmlproto.Value{{Name: "ecc.volatile.corrected", Return: 999}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, caller := newFake(map[string]function{"nvmlDeviceGetFieldValues": answering(c.values)})
			values, refused := caller.Read(board, named(t, c.read...))
			assert.ElementsMatch(t, c.want, values)
			assert.Equal(t, c.refused, refused)
			assert.Len(t, f.taken(), 1, "one call for all")
		})
	}
}

// A field that the board lacks is left out of the next call, and the others stay matched.
func TestFieldsThatAreMissing(t *testing.T) {
	asked := 0
	values := answering(map[field]func(uintptr){{82, 0}: writes(typeUnsigned32, 61)})
	_, caller := newFake(map[string]function{"nvmlDeviceGetFieldValues": func(a ...uintptr) Return {
		asked = int(a[1])
		return values(a...)
	}})
	want := []nvmlproto.Value{{Name: "retired.pending", Return: 3}, {Name: "temperature.memory", V: 61}}
	for _, n := range []int{2, 1, 1} {
		got, _ := caller.Read(board, named(t, "retired.pending", "temperature.memory"))
		assert.Equal(t, want, got)
		assert.Equal(t, n, asked)
	}
}

func TestNVLink(t *testing.T) {
	const all = 1<<32 - 1
	answers := map[field]func(uintptr){}
	f, caller := newFake(map[string]function{"nvmlDeviceGetFieldValues": answering(answers)})
	read := func() []nvmlproto.Value {
		values, _ := caller.Read(board, named(t, "nvlink.data.transmit", "nvlink.bytes.transmit"))
		return values
	}
	t.Run("without links", func(t *testing.T) {
		assert.Equal(t, []nvmlproto.Value{{Name: "nvlink.data.transmit", Return: 3}, {Name: "nvlink.bytes.transmit", Return: 3}}, read())
		f.taken()
		read()
		assert.Empty(t, f.taken())
	})
	caller.Forget(board)
	t.Run("sum over the links", func(t *testing.T) {
		answers[field{202, 0}], answers[field{202, 5}] = writes(typeUnsigned64, 100), writes(typeUnsigned64, 11)
		assert.Equal(t, []nvmlproto.Value{{Name: "nvlink.bytes.transmit", V: 111}}, read())
	})
	t.Run("no sum without a link that it had", func(t *testing.T) {
		answers[field{202, 5}] = func(entry uintptr) { put32(entry, 28, 999) }
		assert.Equal(t, []nvmlproto.Value{{Name: "nvlink.bytes.transmit", Return: 999}}, read())
		answers[field{202, 5}] = writes(typeUnsigned64, 12)
		assert.Equal(t, []nvmlproto.Value{{Name: "nvlink.bytes.transmit", V: 112}}, read())
	})
	t.Run("the first that answers stays", func(t *testing.T) {
		answers[field{138, all}] = writes(typeUnsigned64, 4)
		caller.Forget(board)
		assert.Equal(t, []nvmlproto.Value{{Name: "nvlink.bytes.transmit", V: 112}}, read())
		_, caller = newFake(map[string]function{"nvmlDeviceGetFieldValues": answering(answers)})
		assert.Equal(t, []nvmlproto.Value{{Name: "nvlink.data.transmit", V: 4}}, read())
		answers[field{138, all}] = func(entry uintptr) { put32(entry, 28, 999) }
		assert.Equal(t, []nvmlproto.Value{{Name: "nvlink.data.transmit", Return: 999}}, read())
	})
}
