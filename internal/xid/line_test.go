// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package xid

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
)

func TestParse(t *testing.T) {
	gone := Health{ReasonRestart, health.Failed, health.RebootNode}
	reset := Health{ReasonLink, health.Failed, health.ResetGPU}
	app := Health{Action: health.RestartApp}
	for text, want := range map[string]Line{
		// What stands before the mark does not count.
		"[  100.000200] NVRM: Xid (PCI:0000:3B:00): 79, pid='<unknown>', name=<unknown>, the GPU is off the bus.": {Kind: GPU, Code: 79, PCI: "0000:3b:00", Health: gone},
		"4,101,200000000,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, name=python3, Ch 00000008":                   {Kind: GPU, Code: 31, PCI: "0000:3b:00", PID: 4711, Process: "python3", Health: app},
		"[Sun Feb  1 10:00:00 2026] NVRM: Xid (PCI:0000:3b:00): 31, pid='4711'":                                   {Kind: GPU, Code: 31, PCI: "0000:3b:00", PID: 4711, Health: app},
		// Old drivers write the address alone, others with its function or a longer domain.
		"NVRM: Xid (0000:03:00): 14, Channel 00000001":   {Kind: GPU, Code: 14, PCI: "0000:03:00"},
		"NVRM: Xid (PCI:00000000:5E:00.0): 69":           {Kind: GPU, Code: 69, PCI: "0000:5e:00", Health: app},
		"NVRM: Xid (PCI:0001:5e:00): 69\n":               {Kind: GPU, Code: 69, PCI: "0001:5e:00", Health: app},
		"NVRM: Xid (PCI:0000:5e:00): 99999, an invented": {Kind: GPU, Code: 99999, PCI: "0000:5e:00"},
		// Of a board in MIG mode the driver names the instance, and the compute instance.
		"NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel (0x9).":         {Kind: GPU, Code: 94, PCI: "0000:01:00", PID: 7194, Instance: 5, InInstance: true, Health: app},
		"NVRM: Xid (PCI:0000:01:00 GPU-I:00 GPU-CI:02): 13, pid='<unknown>', name=<unknown>, Graphics": {Kind: GPU, Code: 13, PCI: "0000:01:00", InInstance: true, Health: app},
		"NVRM: Xid (PCI:0000:01:00 GPU-X:05): 94":                                                      {Kind: Invalid},
		"NVRM: Xid (PCI:0000:01:00): 2147483647":                                                       {Kind: GPU, Code: 1<<31 - 1, PCI: "0000:01:00"},
		"NVRM: Xid (PCI:0000:01:00): 2147483648":                                                       {Kind: Invalid},
		// An NVLink error is as bad as its unit and status, and without a rule as its code.
		"NVRM: Xid (PCI:0000:04:00): 145, RLW_REMAP Fatal XC0 i0 Link 00 (0x00000004 0x00000040 0x00000000 0x00000000)":                               {Kind: GPU, Code: 145, PCI: "0000:04:00", Health: reset},
		"NVRM: Xid (PCI:0000:04:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000100 0x00000000 0x00000000)":                            {Kind: GPU, Code: 145, PCI: "0000:04:00"},
		"NVRM: Xid (PCI:0000:04:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000001 0x00000000 0x00000000)":                            {Kind: GPU, Code: 145, PCI: "0000:04:00", Health: Health{ReasonLink, health.Degraded, health.ReadLog}},
		"NVRM: Xid (PCI:0000:04:00): 145, pid=7, name=ray::Worker, RLW_SRC_TRACK Fatal XC1 i0 Link 12 (0x040988e2 0x00000011 0x0 0x0 0x0 0x0)":        {Kind: GPU, Code: 145, PCI: "0000:04:00", PID: 7, Process: "ray::Worker", Health: reset},
		"NVRM: Xid (PCI:0000:04:00): 146, TLW_RX/TLW_RX_PIPE0 Fatal XC0 i0 Link 00 (0x0000000a 0x00000004 0x00000000 0x00000000)":                     {Kind: GPU, Code: 146, PCI: "0000:04:00", Health: reset},
		"NVRM: Xid (PCI:0000:04:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)": {Kind: GPU, Code: 149, PCI: "0000:04:00", Health: reset},
		"NVRM: Xid (PCI:0000:04:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x026025c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)": {Kind: GPU, Code: 149, PCI: "0000:04:00"},
		"NVRM: Xid (PCI:0000:04:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)":             {Kind: GPU, Code: 149, PCI: "0000:04:00", Health: reset},
		"NVRM: Xid (PCI:0000:04:00): 144, SAW_EGR Nonfatal XC0 i0 Link 00 (0x00000004 0x00000001 0x00000000 0x00000000)":                              {Kind: GPU, Code: 144, PCI: "0000:04:00", Health: Health{ReasonLink, health.Degraded, health.ReadLog}},
		"NVRM: Xid (PCI:0000:04:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406":                                                                     {Kind: GPU, Code: 149, PCI: "0000:04:00", Health: Health{ReasonLink, health.Failed, health.ReadLog}},
		"NVRM: Xid (PCI:0000:04:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)":                                       {Kind: GPU, Code: 154, PCI: "0000:04:00", Health: Health{ReasonRecovery, health.Failed, health.DrainAndReset}},
		"NVRM: Xid (PCI:0000:04:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)":                                    {Kind: GPU, Code: 154, PCI: "0000:04:00", Recovered: true},
		"NVRM: Xid (PCI:0000:04:00): 154, GPU recovery action changed from 0x0 (None) to 0xff (New)":                                                  {Kind: GPU, Code: 154, PCI: "0000:04:00", Health: Health{ReasonRecovery, health.Degraded, health.ReadLog}},
		"nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up":                                                             {Kind: Switch, Code: 20034, PCI: "0000:06:00"},
		"[7.5] nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Data {0x10000000, 0x10000000}":                                                       {Kind: Switch, Code: 20034, PCI: "0000:06:00", Detail: true},
		"[7.5] nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Severity 1 Engine instance 60 Sub-engine instance 00":                                {Kind: Switch, Code: 20034, PCI: "0000:06:00", Detail: true},
		"nvidia-nvswitch0: SXid (PCI:0000:00:00.0): xyz, Fatal error":                                                                                 {Kind: Invalid},
		"NVRM: Xid (invalid): some error":                                                      {Kind: Invalid},
		"NVRM: Xid error: xyz, invalid data":                                                   {Kind: Invalid},
		"NVRM: Xid (PCI:0000:3b:00): 9999999999, too large":                                    {Kind: Invalid},
		"NVRM: Xid (PCI:0000:3b:00): 79, " + strings.Repeat("x", MaxLine):                      {Kind: Invalid},
		"[  100.000100] NVRM: GPU at PCI:0000:3b:00: GPU-0a11ce00-0001-4000-8000-000000000001": {},
		"[6781741.548783] NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.":                 {},
		"": {},
		// Syslog writes the host and the program before it.
		"Feb  1 10:00:00 gpu-1 kernel: [  100.000200] NVRM: Xid (PCI:0000:5e:00): 69":                       {Kind: GPU, Code: 69, PCI: "0000:5e:00", Health: app},
		"2026-02-01T10:00:00.123456+00:00 gpu-1 kernel: NVRM: Xid (PCI:0000:5e:00): 69":                     {Kind: GPU, Code: 69, PCI: "0000:5e:00", Health: app},
		"<4>Feb 11 10:00:00 gpu-1 kernel: nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48": {Kind: Switch, Code: 20034, PCI: "0000:06:00"},
		"4,101,200000000,-,caller=T123;NVRM: Xid (PCI:0000:5e:00): 69":                                      {Kind: GPU, Code: 69, PCI: "0000:5e:00", Health: app},
		// A process names its program, its thread and its file: they are within a message.
		"[  7.5] python3[4711]: segfault at 0 ip 0 sp 0 error 6 in NVRM: Xid (PCI:0000:64:00): 79, pid=4711[400000+1000]":    {},
		"[  7.5] NVRM: Xid (PCI:[4711]: segfault at 0 ip 0 sp 0 error 6 in : SXid (PCI:0000:64:00): 20034, Fatal":            {Kind: Invalid},
		"4,9,7,-;trap: a[1] in nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up":              {},
		"Feb  1 10:00:00 gpu-1 python3[7]: NVRM: Xid (PCI:0000:64:00): 154, changed from 0x1 (GPU Reset Required) to 0x0 ()": {},
		"Feb  1 10:00:00 gpu-1 kernel: [  7.5] audit: NVRM: Xid (PCI:0000:64:00): 79":                                        {},
		// A record of /dev/kmsg or a line of syslog that a program wrote has another facility.
		"12,9,7,-;NVRM: Xid (PCI:0000:64:00): 79":                          {},
		"<13>Feb  1 10:00:00 gpu-1 kernel: NVRM: Xid (PCI:0000:64:00): 79": {},
	} {
		assert.Equal(t, want, Parse(text), text)
	}
}

func TestParseBoard(t *testing.T) {
	const uuid = "GPU-0a11ce00-0001-4000-8000-000000000001"
	for text, want := range map[string][2]string{
		"[  100.000100] NVRM: GPU at PCI:0000:3B:00: " + uuid:            {"0000:3b:00", uuid},
		"NVRM: GPU at 00000001:3b:00.0: " + uuid:                         {"0001:3b:00", uuid},
		"NVRM: GPU at PCI:0000:3b:00: GPU-????????-0001":                 {},
		"NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.":            {},
		"NVRM: Xid (PCI:0000:3b:00): 79, " + uuid:                        {},
		"[7.5] a[1]: segfault in NVRM: GPU at 00000001:3b:00.0: " + uuid: {},
		"12,9,7,-;NVRM: GPU at 00000001:3b:00.0: " + uuid:                {},
		"": {},
	} {
		pci, got, ok := ParseBoard(text)
		assert.Equal(t, want, [2]string{pci, got}, text)
		assert.Equal(t, want[0] != "", ok, text)
	}
}

// Every line of a kernel log is read, or has no code. 99999 is an invented code. Logs of
// real machines are read too, where they are beside the checkout.
func TestKernelLogs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(samples, "*.log"))
	require.NoError(t, err)
	codes := map[int]bool{}
	for _, file := range append(files, "testdata/kernel.log") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		lines := bufio.NewScanner(bytes.NewReader(text))
		for lines.Scan() {
			l := Parse(lines.Text())
			switch l.Kind {
			case Invalid:
				assert.Regexp(t, `xyz|\(invalid\)`, lines.Text(), "only lines that are wrong on purpose")
			case Other:
				assert.NotRegexp(t, `Xid `, lines.Text())
			case GPU:
				codes[l.Code] = true
				_, known := Lookup(l.Code)
				assert.Equal(t, l.Code != 99999, known, lines.Text())
				if l.Code == 79 {
					assert.Equal(t, Health{ReasonRestart, health.Failed, health.RebootNode}, l.Health, lines.Text())
				}
			}
		}
		require.NoError(t, lines.Err())
	}
	require.Greater(t, len(codes), 10)
}

// What a code means for the board, by its bucket; every bucket has a code.
func TestHealthOfCodes(t *testing.T) {
	for code, want := range map[int]Health{
		13:  {Action: health.RestartApp},
		45:  {},
		48:  {ReasonReset, health.Failed, health.ResetGPU},
		54:  {ReasonMechanics, health.Degraded, health.CheckMechanics},
		62:  {ReasonReset, health.Failed, health.ResetGPU},
		63:  {}, // the repair worked
		74:  {ReasonLink, health.Failed, health.ReadLog},
		78:  {ReasonSoftware, health.Degraded, health.UpdateSoftware},
		79:  {ReasonRestart, health.Failed, health.RebootNode},
		121: {},
		142: {ReasonSupport, health.Degraded, health.ContactSupport},
		144: {ReasonLink, health.Degraded, health.ReadLog},
		150: {ReasonLink, health.Failed, health.ReadLog},
		151: {ReasonRestart, health.Failed, health.RestartVM},
		154: {},
		159: {ReasonSupport, health.Degraded, health.ContactSupport},
		165: {}, // no resolution, and not fatal
		171: {ReasonReset, health.Failed, health.ResetGPU},
	} {
		e, ok := Lookup(code)
		require.True(t, ok)
		assert.Equal(t, want, e.Health(), code)
	}
	unknown, _ := Lookup(999)
	assert.Equal(t, Health{}, unknown.Health())
	for _, code := range Codes() {
		e, _ := Lookup(code)
		h := e.Health()
		assert.Equal(t, h.Reason == "", h.State == health.OK, "%d: a reason has a state", code)
	}
}

// The rules for NVLink errors are all those of the vendor, where they are beside the
// checkout, and as many for each code as testdata/asks.yaml has.
func TestNVLinkRules(t *testing.T) {
	for _, row := range readCSV(t, "xid-nvlink-144-150-rules.csv") {
		code, err := strconv.Atoi(row["Xid"])
		require.NoError(t, err)
		status, err := strconv.ParseUint(row["ErrorStatus"], 0, 32)
		require.NoError(t, err)
		for _, pattern := range []string{row["IntrinfoPatternV1"], row["IntrinfoPatternV2"]} {
			for _, dash := range []string{"0", "1"} { // what the rule leaves open
				info, err := strconv.ParseUint(strings.ReplaceAll(pattern, "-", dash), 2, 32)
				require.NoError(t, err)
				for name := range strings.SplitSeq(row["Unit"], "/") {
					got, ok := NVLink(code, name, uint32(info), uint32(status))
					assert.True(t, ok, row)
					want := Bucket(row["Resolution"])
					if want == "XID_154_EVAL" {
						want = RecoveryAction
					}
					assert.Equal(t, want, got, row)
				}
			}
		}
	}
	resets := map[int]int{}
	for i := range units {
		u := &units[i]
		n := 0
		for bit := range 32 {
			if u.reset>>bit&1 == 1 {
				n++
			}
		}
		for _, rules := range []map[uint32]Bucket{u.status, u.subcode} {
			for _, b := range rules {
				if b == ResetGPU {
					n++
				}
			}
		}
		if strings.HasSuffix(u.names[len(u.names)-1], "PIPE1") {
			n *= 2 // a rule for each pipe
		}
		resets[u.code] += n
	}
	for code, lines := range readAsks(t).NVLink {
		assert.Equal(t, lines.Reset, resets[code], code)
	}
}

// A combination of bits has the heaviest rule among them; a bit without a rule makes a
// harmless one uncertain.
func TestNVLinkBits(t *testing.T) {
	for _, tc := range []struct {
		status uint32
		want   Bucket
		ok     bool
	}{
		{0, Undecided, false},
		{0x100, Ignore, true},
		{0x101, RecoveryAction, true},
		{0x141, ResetGPU, true},
		{0x500, Undecided, false},
		{0x540, ResetGPU, true},
	} {
		got, ok := NVLink(145, "RLW_REMAP", 0, tc.status)
		assert.Equal(t, tc.want, got, "%#x", tc.status)
		assert.Equal(t, tc.ok, ok, "%#x", tc.status)
	}
	_, ok := NVLink(146, "RLW_REMAP", 0, 0x40)
	assert.False(t, ok, "a unit of another code")
}

func FuzzKernelLine(f *testing.F) {
	text, err := os.ReadFile("testdata/kernel.log")
	require.NoError(f, err)
	for line := range strings.Lines(string(text)) {
		f.Add(line)
	}
	f.Add("NVRM: Xid (PCI:0000:04:00): 145, pid=7, name=ray::Worker, RLW_SRC_TRACK Fatal XC1 i0 Link 12 (0x040988e2 0x00000011 0x0)")
	f.Add("NVRM: Xid (PCI:0000:04:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)")
	f.Fuzz(func(t *testing.T, text string) {
		if pci, uuid, ok := ParseBoard(text); ok {
			assert.Regexp(t, `^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2} GPU-[0-9a-f-]{36}$`, pci+" "+uuid)
		}
		l := Parse(text)
		if l.Kind == GPU || l.Kind == Switch {
			assert.Regexp(t, `^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}$`, l.PCI)
			assert.GreaterOrEqual(t, l.Code, 0)
			assert.GreaterOrEqual(t, l.Instance, 0)
		} else {
			assert.Equal(t, Line{Kind: l.Kind}, l)
		}
		assert.Equal(t, l.Health.Reason == "", l.Health.State == health.OK)
	})
}
