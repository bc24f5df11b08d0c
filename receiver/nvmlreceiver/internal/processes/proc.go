// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/cgroupowner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// proc reads /proc, each process once.
type proc struct {
	root  string
	known map[int]*process
	round uint64 // number of the lists
}

// process is one, as long as its start time is the same.
type process struct {
	start string // in ticks since boot
	name  string
	owner Owner
	round uint64 // that it was in last
}

// maxName is the longest name of an executable, in characters.
const maxName = 64

func newProc(root string) proc {
	return proc{root: filepath.Join("/", root, "proc"), known: map[int]*process{}}
}

func (p *proc) start() { p.round++ }

// forget drops what was not in the newest lists.
func (p *proc) forget() {
	for pid, known := range p.known {
		if known.round != p.round {
			delete(p.known, pid)
		}
	}
}

// read returns a process; nil: there is none with this number.
func (p *proc) read(pid int) *process {
	folder := filepath.Join(p.root, strconv.Itoa(pid))
	start := startOf(readFile(filepath.Join(folder, "stat")))
	if start == "" {
		return nil
	}
	known := p.known[pid]
	if known != nil && known.start == start {
		known.round = p.round
		return known
	}
	cgroup := readFile(filepath.Join(folder, "cgroup"))
	found := &process{start: start, name: nameOf(folder), owner: Owner{Owner: cgroupowner.Parse(string(cgroup))}, round: p.round}
	if startOf(readFile(filepath.Join(folder, "stat"))) != start {
		return nil // another one began meanwhile
	}
	if found.owner == (Owner{}) {
		found.owner.Other = OwnerOther
	}
	p.known[pid] = found
	return found
}

// hosts reports whether the processes of the whole host are seen, where that is known: this
// one is in the first PID namespace, whose number the kernel fixes.
func (p *proc) hosts() (hosts, known bool) {
	namespace, err := os.Readlink(filepath.Join(p.root, "self/ns/pid"))
	return namespace == "pid:[4026531836]", err == nil
}

// readFile returns the beginning of a file, nil where it cannot be read.
func readFile(path string) []byte {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, cgroupowner.MaxFile))
	if err != nil {
		return nil
	}
	return text
}

// startOf is the start time in a /proc/<pid>/stat: field 22. The name in front may have
// spaces and brackets.
func startOf(stat []byte) string {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const place = 22 - 3 // the first of these is field 3
	if len(fields) <= place {
		return ""
	}
	return string(fields[place])
}

// nameOf is the name of a process's executable: of its file, where that may be read, else
// as the kernel has it, in 15 characters.
func nameOf(folder string) string {
	name := ""
	if path, err := os.Readlink(filepath.Join(folder, "exe")); err == nil {
		name = filepath.Base(strings.TrimSuffix(path, " (deleted)"))
	} else {
		name = string(bytes.TrimSpace(readFile(filepath.Join(folder, "comm"))))
	}
	return safetext.Strip(name, maxName)
}
