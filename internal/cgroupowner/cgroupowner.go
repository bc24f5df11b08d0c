// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package cgroupowner reads from the path of a process' control group who runs it: a
// container, a pod of Kubernetes, a job of Slurm or a unit of systemd.
package cgroupowner

import "strings"

// MaxFile is the longest /proc/<pid>/cgroup that is read, in bytes.
const MaxFile = 64 << 10

// Owner is who runs a process, as far as its control group names it. Owners are equal if
// they are the same owner.
type Owner struct {
	ContainerID string // 64 hexadecimal digits
	PodUID      string // as the API has it; of a static pod, 32 hexadecimal digits
	SlurmJob    string // the job's number
	// Unit is the unit of systemd, below system.slice, where none of the others is known.
	Unit string
}

// Parse reads a /proc/<pid>/cgroup of cgroups v1, v2, or both. Of several hierarchies each
// part of the owner is taken from the first that has it.
func Parse(file string) Owner {
	var o Owner
	for line := range strings.Lines(file[:min(len(file), MaxFile)]) {
		_, rest, _ := strings.Cut(line, ":")
		_, path, found := strings.Cut(rest, ":")
		if !found {
			continue
		}
		of := OfPath(strings.TrimRight(path, "\n"))
		keep(&o.ContainerID, of.ContainerID)
		keep(&o.PodUID, of.PodUID)
		keep(&o.SlurmJob, of.SlurmJob)
		keep(&o.Unit, of.Unit)
	}
	if o.ContainerID != "" || o.PodUID != "" || o.SlurmJob != "" {
		o.Unit = "" // the service that started it
	}
	return o
}

func keep(to *string, text string) {
	if *to == "" {
		*to = text
	}
}

// OfPath reads one path, as it is in a line of /proc/<pid>/cgroup or below /sys/fs/cgroup.
// Of nested pods the innermost counts, and in it the outermost container.
func OfPath(path string) Owner {
	var o Owner
	slurm, system := false, false
	for segment := range strings.SplitSeq(path, "/") {
		segment = strings.TrimSuffix(segment, " (deleted)")
		// containerd with paths of systemd where it should not: <slice>:cri-containerd:<id>.
		for part := range strings.SplitSeq(segment, ":") {
			if uid := podUID(part); uid != "" {
				o.PodUID, o.ContainerID = uid, ""
			} else if id := containerID(part); id != "" && (o.PodUID == "" || o.ContainerID == "") {
				o.ContainerID = id
			}
		}
		switch {
		case isSlurm(segment):
			slurm = true
		case slurm && o.SlurmJob == "":
			o.SlurmJob = job(segment)
		}
		switch {
		case segment == "system.slice":
			system, o.Unit = true, ""
		case system && o.Unit == "" && isUnit(segment):
			o.Unit = segment
		}
	}
	if slurm || o.ContainerID != "" || o.PodUID != "" {
		o.Unit = ""
	}
	return o
}

// podUID is the uid in pod<uid> of cgroupfs, or in kubepods-burstable-pod<uid>.slice of
// systemd, where the uid's dashes are underscores. In front may be what the kubelet's
// --cgroup-root is: kubelet-kubepods-pod<uid>.slice.
func podUID(segment string) string {
	if name, systemd := strings.CutSuffix(segment, ".slice"); systemd {
		i := strings.LastIndex(name, "-pod")
		if i < 0 || !strings.Contains(name[:i+1], "kubepods-") {
			return ""
		}
		return uid(strings.ReplaceAll(name[i+len("-pod"):], "_", "-"))
	}
	if name, found := strings.CutPrefix(segment, "pod"); found {
		return uid(name)
	}
	return ""
}

// uid is "" for what is neither a UUID nor the hash that static pods have.
func uid(text string) string {
	switch len(text) {
	case 32:
		if isHex(text) {
			return text
		}
	case 36:
		for i, part := range strings.Split(text, "-") {
			if i > 4 || len(part) != [...]int{8, 4, 4, 4, 12}[i] || !isHex(part) {
				return ""
			}
		}
		return text
	}
	return ""
}

// containerID is the id in <id>, <id>.scope, docker-<id>.scope, cri-containerd-<id>.scope,
// crio-<id>, libpod-<id>.scope and the like, and "" for the process that watches a container.
func containerID(segment string) string {
	name := strings.TrimSuffix(segment, ".scope")
	id := name[strings.LastIndexByte(name, '-')+1:]
	if len(id) != 64 || !isHex(id) || strings.HasSuffix(name[:len(name)-len(id)], "conmon-") {
		return ""
	}
	return id
}

// isSlurm reports whether what follows are the folders of jobs: of cgroup v1 slurm or
// slurm_<node>, of v2 slurmstepd.scope or <node>_slurmstepd.scope.
func isSlurm(segment string) bool {
	return segment == "slurm" || strings.HasPrefix(segment, "slurm_") ||
		segment == "slurmstepd.scope" || strings.HasSuffix(segment, "_slurmstepd.scope")
}

// job is the number in job_<number>. From Slurm 26.05 on the folder can have the job's SLUID
// instead, from which the number is not known.
func job(segment string) string {
	number, found := strings.CutPrefix(segment, "job_")
	if !found || number == "" || len(number) > 10 || strings.Trim(number, "0123456789") != "" {
		return ""
	}
	return number
}

// isUnit reports whether a folder is that of a service or a scope. Slices group units.
func isUnit(segment string) bool {
	if len(segment) > 255 || !strings.HasSuffix(segment, ".service") && !strings.HasSuffix(segment, ".scope") {
		return false
	}
	for i := range len(segment) {
		if c := segment[i]; c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

func isHex(text string) bool { return strings.Trim(text, "0123456789abcdef") == "" }
