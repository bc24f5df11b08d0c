// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// patterns are where slurmd has its folder, and where those of jobs are in it: of cgroup v2, v2
// beside v1, and v1.
var patterns = []struct{ slurmd, jobs string }{
	{"sys/fs/cgroup/*slurmstepd.scope", "*"}, {"sys/fs/cgroup/*.slice/*slurmstepd.scope", "*"}, {"sys/fs/cgroup/unified/*.slice/*slurmstepd.scope", "*"},
	{"sys/fs/cgroup/*/slurm", "uid_*/*"}, {"sys/fs/cgroup/*/slurm_*", "uid_*/*"},
}

// isSLUID matches a folder that is named after a job's SLUID.
var isSLUID = regexp.MustCompile(`^(job_)?s[0-9A-Z]+$`)

// Groups are the control groups of the jobs of a node.
type Groups struct {
	// Known is whether the folder of slurmd was found, in which every job has one.
	Known   bool
	sluids  bool              // jobs are named by SLUIDs
	folders map[string]bool   // job_<id>, job_<SLUID> or <SLUID>
	devices map[string]string // of cgroup v1: devices.list by folder
	root    string
	caps    int // the major of MIG's capabilities; -1
}

// ReadGroups reads them below the root of a node.
func ReadGroups(root string) *Groups {
	g := &Groups{folders: map[string]bool{}, devices: map[string]string{}, root: root, caps: -1}
	for _, p := range patterns {
		slurmd, _ := filepath.Glob(filepath.Join(escape(root), p.slurmd))
		g.Known = g.Known || len(slurmd) > 0
		found, _ := filepath.Glob(filepath.Join(escape(root), p.slurmd, p.jobs))
		for _, path := range found {
			name := filepath.Base(path)
			g.folders[name] = true
			g.sluids = g.sluids || isSLUID.MatchString(name)
			if strings.Contains(path, "/devices/") || strings.Contains(path, ",devices") {
				g.devices[name] = filepath.Join(path, "devices.list")
			}
		}
	}
	if len(g.devices) > 0 {
		g.caps = capsMajor(root)
	}
	return g
}

// names are the folders that a job may have.
func names(job, sluid string) []string {
	all := []string{"job_" + job}
	if sluid != "" {
		all = append(all, "job_"+sluid, sluid)
	}
	return all
}

// Judges reports whether a job without a control group is over. It may be under a name that is not
// known: SLUIDs name the groups, and the job's file has none.
func (g *Groups) Judges(sluid string) bool { return g.Known && (sluid != "" || !g.sluids) }

// Has reports whether a job has a control group. sluid may be "".
func (g *Groups) Has(job, sluid string) bool {
	for _, n := range names(job, sluid) {
		if g.folders[n] {
			return true
		}
	}
	return false
}

// Allowed are the devices that the control group of a job may open.
type Allowed struct {
	Minors    []int      // of boards
	Instances []Instance // of MIG
}

// Instance is a GPU instance on the board with a minor.
type Instance struct{ Minor, GI int }

// Allowed reads the devices of a job; false where that is not known: with cgroup v2, and where
// devices are not constrained.
func (g *Groups) Allowed(job, sluid string) (Allowed, bool) {
	path := ""
	for _, n := range names(job, sluid) {
		if path == "" {
			path = g.devices[n]
		}
	}
	if path == "" {
		return Allowed{}, false
	}
	text, err := readSome(path)
	if err != nil {
		return Allowed{}, false
	}
	var a Allowed
	var caps map[int]Instance
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		device, _, _ := strings.Cut(rest, " ")
		if kind == "a" || strings.Contains(device, "*") && strings.HasPrefix(device, "195:") {
			return Allowed{}, false
		}
		major, minor, ok := numbers(device)
		switch {
		case kind != "c" || !ok:
		case major == 195 && minor < 254: // 254 and 255 are nvidia-modeset and nvidiactl
			a.Minors = append(a.Minors, minor)
		case major == g.caps:
			if caps == nil {
				caps = capabilities(g.root)
			}
			if i, ok := caps[minor]; ok {
				a.Instances = append(a.Instances, i)
			}
		}
	}
	return a, len(a.Minors) > 0
}

func numbers(device string) (major, minor int, ok bool) {
	a, b, _ := strings.Cut(device, ":")
	x, errX := strconv.ParseUint(a, 10, 16)
	y, errY := strconv.ParseUint(b, 10, 32)
	return int(x), int(y), errX == nil && errY == nil
}

func capsMajor(root string) int {
	text, _ := readSome(filepath.Join(root, "proc/devices"))
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[1] == "nvidia-caps" {
			if n, err := strconv.Atoi(f[0]); err == nil {
				return n
			}
		}
	}
	return -1
}

// capabilities are the GPU instances by the minor of their capability: lines such as
// gpu0/gi1/access 12.
func capabilities(root string) map[int]Instance {
	text, _ := readSome(filepath.Join(root, "proc/driver/nvidia-caps/mig-minors"))
	out := map[int]Instance{}
	for line := range strings.Lines(text) {
		path, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		parts := strings.Split(path, "/")
		if len(parts) != 3 || parts[2] != "access" {
			continue
		}
		gpu, err1 := strconv.Atoi(strings.TrimPrefix(parts[0], "gpu"))
		gi, err2 := strconv.Atoi(strings.TrimPrefix(parts[1], "gi"))
		minor, err3 := strconv.Atoi(number)
		if err1 == nil && err2 == nil && err3 == nil && gpu >= 0 && gi >= 0 {
			out[minor] = Instance{gpu, gi}
		}
	}
	return out
}
