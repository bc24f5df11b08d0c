// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package xid

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
)

// MaxLine is the longest line of the kernel log that is read, in bytes.
const MaxLine = 8192

// Kind is what a line of the kernel log is about.
type Kind uint8

const (
	// Other lines have no code.
	Other Kind = iota
	// GPU lines have an XID, of a GPU.
	GPU
	// Switch lines have an SXid, of an NVSwitch.
	Switch
	// Invalid lines begin like one with a code, and have none that can be read.
	Invalid
)

// Line is what a line of the kernel log has about a code.
type Line struct {
	Kind Kind
	Code int
	// PCI is the address domain:bus:device of the GPU or the switch, in lower case
	// and without its function, such as 0000:3b:00.
	PCI string
	// PID and Process are those of the process that the driver names; 0 and empty: none.
	PID     int
	Process string
	// Instance is the GPU instance that the driver names, if InInstance: only of a board in
	// MIG mode, and of XIDs that concern it alone.
	Instance   int
	InInstance bool
	// Detail is whether the line only adds data to the one before it.
	Detail bool
	// Health is what the line means for the GPU: more exact than Entry.Health for the
	// NVLink codes and for 154. A switch has none.
	Health Health
	// Recovered is whether the driver asks for no recovery any more: code 154 with none.
	Recovered bool
}

// marks precede a code: the driver's, and its driver of switches'.
const (
	gpuMark    = "NVRM: Xid"
	switchMark = ": SXid"
	boardMark  = "NVRM: GPU at "
)

var (
	// before is what programs write before a message of the kernel: the prefix of a record of
	// /dev/kmsg, the priority and the header of a line of syslog, and the time since the boot.
	before = regexp.MustCompile(`^(?:([0-9]{1,5}),[0-9]+,[0-9]+,[^;]{0,64};)?(?:<([0-9]{1,3})>)?` +
		`(?:(?:[A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|[+-][0-9]{2}:?[0-9]{2})) [^ ]{1,255} kernel: )?` +
		`(?:\[[^\]]{1,40}\] ?)?`)
	// switches begin the messages of the driver of NVSwitches.
	switches = regexp.MustCompile(`^nvidia-nvswitch[0-9]{1,4}$`)
	// An address has four or eight digits of domain, which old drivers leave out of
	// the text before it.
	head = regexp.MustCompile(`^ \((?:PCI:)?([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.[0-9a-fA-F])?` +
		`(?: GPU-I:([0-9]{1,5})(?: GPU-CI:[0-9]{1,5})?)?\): ([0-9]{1,10})(?:, ?(.*))?$`)
	// board is the line that the driver writes before the first XID of a board.
	board = regexp.MustCompile(`^NVRM: GPU at (?:PCI:)?([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.[0-9a-fA-F])?: ` +
		`(GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b`)
	// The process stands before the text: pid=4711, name=python3, …
	process = regexp.MustCompile(`^pid='?([0-9]+|<unknown>)'?(?:, name=([^,]*))?(?:, |$)`)
	// An NVLink error has its unit, whether it is fatal, where, and six words.
	link = regexp.MustCompile(`^([A-Z0-9_]+)(?:/[A-Z0-9_]+)? +(?:Fatal|Nonfatal) .*\((0x[0-9a-fA-F]{1,8}) (0x[0-9a-fA-F]{1,8})`)
	// A recovery action stands as a number with its name behind it.
	recovery = regexp.MustCompile(`changed from 0x[0-9a-fA-F]+ \([^)]*\) to 0x([0-9a-fA-F]{1,8})`)
)

// KindOf returns the Kind of a line as far as it is known without reading its code: never
// Invalid. It looks at MaxLine bytes at most.
func KindOf(text string) Kind {
	kind, _ := cut(text)
	return kind
}

// messageOf returns the message of a line of the kernel log. It is empty where others than the
// kernel wrote the line. What a process may choose, such as the name of its program, stands
// within messages of the kernel, and never at their beginning.
func messageOf(text string) string {
	match := before.FindStringSubmatchIndex(text)
	for group := 1; group <= 2; group++ {
		if from, to := match[2*group], match[2*group+1]; from >= 0 {
			// A priority below 8 is of facility 0, the kernel's.
			if priority, err := strconv.Atoi(text[from:to]); err != nil || priority >= 8 {
				return ""
			}
		}
	}
	return text[match[1]:]
}

func cut(text string) (kind Kind, rest string) {
	text = text[:min(len(text), MaxLine)]
	if !strings.Contains(text, gpuMark) && !strings.Contains(text, switchMark) {
		return Other, ""
	}
	message := messageOf(text)
	if after, found := strings.CutPrefix(message, gpuMark); found {
		return GPU, after
	}
	if driver, after, found := strings.Cut(message, switchMark); found && switches.MatchString(driver) {
		return Switch, after
	}
	return Other, ""
}

// Parse reads a line of the kernel log, with or without a time before it, as dmesg, syslog,
// journald and /dev/kmsg write it. Lines longer than MaxLine are Invalid, or Other.
func Parse(text string) Line {
	kind, rest := cut(text)
	switch {
	case kind == Other:
		return Line{}
	case len(text) > MaxLine:
		return Line{Kind: Invalid}
	}
	match := head.FindStringSubmatch(strings.TrimRight(rest, "\r\n"))
	if match == nil {
		return Line{Kind: Invalid}
	}
	code, err := strconv.ParseInt(match[5], 10, 32)
	if err != nil {
		return Line{Kind: Invalid}
	}
	l := Line{Kind: kind, Code: int(code), PCI: Address(match[1], match[2], match[3])}
	if match[4] != "" {
		l.Instance, _ = strconv.Atoi(match[4]) // digits
		l.InInstance = true
	}
	message := match[6]
	if kind == Switch {
		l.Detail = strings.HasPrefix(message, "Data {") || strings.HasPrefix(message, "Severity ")
		return l
	}
	if p := process.FindStringSubmatch(message); p != nil {
		message = message[len(p[0]):]
		l.PID, _ = strconv.Atoi(p[1]) // 0 for <unknown>
		if p[2] != "<unknown>" {
			l.Process = p[2]
		}
	}
	entry, _ := Lookup(l.Code)
	l.Health = entry.Health()
	switch {
	case entry.Bucket == WorkflowNVLink5:
		l.Health = lineOfLink(l.Code, message, l.Health)
	case entry.Bucket == RecoveryAction:
		if to := recovery.FindStringSubmatch(message); to != nil {
			l.Health, l.Recovered = lineOfRecovery(to[1])
		}
	}
	return l
}

// ParseBoard reads the line by which the driver names the board that the XIDs at an address
// are about: it writes it before the first of them. pci is as in Line.
func ParseBoard(text string) (pci, uuid string, ok bool) {
	if len(text) > MaxLine || !strings.Contains(text, boardMark) {
		return "", "", false
	}
	match := board.FindStringSubmatch(messageOf(text))
	if match == nil {
		return "", "", false
	}
	return Address(match[1], match[2], match[3]), match[4], true
}

// Address returns a PCI address as in Line, from its hexadecimal parts. Some programs
// write eight digits of a domain, of which real machines use four.
func Address(domain, bus, device string) string {
	domain = strings.TrimLeft(domain, "0")
	return strings.ToLower(strings.Repeat("0", max(0, 4-len(domain))) + domain + ":" + bus + ":" + device)
}

// lineOfLink returns what an NVLink error means; alone, what its code means, where no
// rule fits the line.
func lineOfLink(code int, message string, alone Health) Health {
	match := link.FindStringSubmatch(message)
	if match == nil {
		return alone
	}
	info, err := strconv.ParseUint(match[2], 0, 32)
	if err != nil {
		return alone
	}
	status, err := strconv.ParseUint(match[3], 0, 32)
	if err != nil {
		return alone
	}
	if b, ok := NVLink(code, match[1], uint32(info), uint32(status)); ok {
		return linkHealth(b)
	}
	return alone
}

// ReasonRecovery is the value of gpu.health.reason for the driver's recovery action.
const ReasonRecovery = "recovery_action"

func lineOfRecovery(hex string) (h Health, recovered bool) {
	value, err := strconv.ParseInt(hex, 16, 64)
	if err != nil {
		return Health{}, false
	}
	state, action, _ := health.Recovery(value)
	if state == health.OK {
		return Health{}, true
	}
	return Health{ReasonRecovery, state, action}, false
}
