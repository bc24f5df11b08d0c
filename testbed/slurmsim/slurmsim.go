// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package slurmsim simulates a node of a Slurm cluster as the files that are on it: the map of
// jobs that Prolog and Epilog keep, what NVIDIA's driver has in /proc, and control groups. It
// knows which job has which device, and shares no code with the product.
package slurmsim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// Options is what a node is like.
type Options struct {
	Name   string
	Folder string // that exists, and is the node's own
	Boards int
	// Swapped: the minors are not in the order of the addresses. ByMinor: Slurm counts by
	// them, as with hand-written File= lines.
	Swapped, ByMinor bool
	// UUIDs: Prolog has them, as from 25.11 with AutoDetect=nvml.
	UUIDs bool
	// Shards: several jobs may share a board.
	Shards bool
	// Instances is into how many MIG instances each board is divided; 0: none.
	Instances int
	// Groups is how control groups are laid out: v1, v2, sluid or "".
	Groups string
	// LostEpilogs: some jobs end without theirs.
	LostEpilogs bool
}

// Device is a board or an instance, and which jobs have it.
type Device struct {
	ID, Parent string
	Index      int   // as Slurm has it
	Jobs       []int // live ones
	Left       []int // that are over, and have a file
}

// Job is a job of the node.
type Job struct {
	ID      int
	Started time.Time
	Over    time.Time // it ended without Epilog; zero: it runs
	devices []int     // in Node.Devices
}

// Node is a simulated node. It is not safe for concurrent use.
type Node struct {
	Options
	Root, Map string // folders
	Devices   []Device
	Jobs      []*Job
	Started   int // jobs, so far
	random    *rand.Rand
	minors    []int // of boards, in the order of their addresses
	next      int
}

// New makes a node without jobs and writes its files.
func New(o Options, random *rand.Rand) (*Node, error) {
	n := &Node{Options: o, random: random, Root: filepath.Join(o.Folder, "root"), Map: filepath.Join(o.Folder, "jobs"), next: 1000}
	for i := range o.Boards {
		n.minors = append(n.minors, i)
	}
	if o.Swapped { // and no board is where it would be
		n.minors = append(n.minors[o.Boards/2:], n.minors[:o.Boards/2]...)
	}
	if err := n.driver(); err != nil {
		return nil, err
	}
	return n, n.boot()
}

func (n *Node) uuid(board int) string {
	return fmt.Sprintf("GPU-%08x-0000-4000-8000-%012x", hash(n.Name), board+1)
}

func hash(s string) (h uint32) {
	for _, c := range s {
		h = h*31 + uint32(c)
	}
	return h
}

// driver writes what the driver has, and lists the devices in the order in which Slurm counts.
func (n *Node) driver() error {
	files := map[string]string{"proc/devices": "Character devices:\n195 nvidia\n237 nvidia-caps\n"}
	caps := ""
	for board, minor := range n.minors {
		files[fmt.Sprintf("proc/driver/nvidia/gpus/0000:%02x:00.0/information", 16+board)] =
			fmt.Sprintf("Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 1\nGPU UUID: \t %s\nDevice Minor: \t %d\n", n.uuid(board), minor)
		for gi := 1; gi <= n.Instances; gi++ {
			files[fmt.Sprintf("proc/driver/nvidia/capabilities/gpu%d/mig/gi%d/access", minor, gi)] = fmt.Sprintf("DeviceFileMinor: %d\n", capability(minor, gi))
			caps += fmt.Sprintf("gpu%d/gi%d/access %d\n", minor, gi, capability(minor, gi))
		}
	}
	files["proc/driver/nvidia-caps/mig-minors"] = caps
	order := make([]int, n.Boards)
	for board, minor := range n.minors {
		at := board
		if n.ByMinor {
			at = minor
		}
		order[at] = board
	}
	for _, board := range order {
		if n.Instances == 0 {
			n.Devices = append(n.Devices, Device{ID: n.uuid(board), Index: len(n.Devices)})
		}
		for gi := 1; gi <= n.Instances; gi++ {
			n.Devices = append(n.Devices, Device{ID: fmt.Sprintf("%s/%d", n.uuid(board), gi), Parent: n.uuid(board), Index: len(n.Devices)})
		}
	}
	for path, text := range files {
		if err := write(filepath.Join(n.Root, path), text); err != nil {
			return err
		}
	}
	return nil
}

func capability(minor, gi int) int { return 100*minor + gi }

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// boot empties what is on tmpfs: no job outlives it.
func (n *Node) boot() error {
	n.Jobs = nil
	for i := range n.Devices {
		n.Devices[i].Jobs, n.Devices[i].Left = nil, nil
	}
	for _, folder := range []string{n.Map, filepath.Join(n.Root, "sys/fs/cgroup")} {
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	if n.Groups != "" {
		if err := os.MkdirAll(filepath.Join(n.Root, "sys/fs/cgroup/system.slice"), 0o755); err != nil {
			return err
		}
	}
	return os.MkdirAll(filepath.Join(n.Map, "names"), 0o755)
}

// Step lets one thing happen at a time.
func (n *Node) Step(now time.Time) error {
	switch at := n.random.IntN(1000); {
	case at == 0:
		return n.boot()
	case at < 480:
		return n.start(now)
	case at < 520 && n.LostEpilogs:
		return n.end(now, true)
	case at < 560:
		return n.requeue(now)
	default:
		return n.end(now, false)
	}
}

// free are the devices that a job can get: that no job has or, with shards, that few have.
func (n *Node) free() []int {
	var all []int
	for i, d := range n.Devices {
		if len(d.Jobs) == 0 || n.Shards && len(d.Jobs) < 3 {
			all = append(all, i)
		}
	}
	return all
}

func (n *Node) start(now time.Time) error {
	free := n.free()
	if len(free) == 0 {
		return nil
	}
	n.random.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	most := min(len(free), 4)
	if n.Shards {
		most = 1
	}
	n.next += 1 + n.random.IntN(3)
	n.Started++
	return n.run(&Job{ID: n.next, Started: now, devices: slices.Sorted(slices.Values(free[:1+n.random.IntN(most)]))})
}

// run starts a job as Prolog and Slurm do: its group, its file, and the file with its name.
func (n *Node) run(j *Job) error {
	n.Jobs = append(n.Jobs, j)
	gpus, visible := "", ""
	for i, at := range j.devices {
		d := &n.Devices[at]
		d.Jobs = append(d.Jobs, j.ID)
		separator := ""
		if i > 0 {
			separator = ","
		}
		gpus += separator + strconv.Itoa(d.Index)
		if n.UUIDs {
			visible += separator + d.ID
		} else {
			visible += separator + strconv.Itoa(i)
		}
	}
	if err := n.group(j); err != nil {
		return err
	}
	path := filepath.Join(n.Map, strconv.Itoa(j.ID)+".json")
	text := fmt.Sprintf(`{"v":1,"job":%d,"sluid":"%s","uid":%d,"user":"ada","account":"physics","partition":"gpu","qos":"normal","cluster":"hpc","restarts":0,"comment":"","gpus":"%s","visible":"%s"}`+"\n",
		j.ID, sluid(j.ID), os.Getuid(), gpus, visible)
	if err := write(path+".new", text); err != nil {
		return err
	}
	if err := os.Chtimes(path+".new", j.Started, j.Started); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	name := filepath.Join(n.Map, "names", strconv.Itoa(j.ID))
	if err := write(name, fmt.Sprintf("train-%d\n\n\n", j.ID%3)); err != nil {
		return err
	}
	return os.Chtimes(name, j.Started, j.Started)
}

func sluid(job int) string { return fmt.Sprintf("sEKN%08d", job) }

// groupOf is the folder of a job's control group.
func (n *Node) groupOf(j *Job) string {
	switch n.Groups {
	case "v1":
		return filepath.Join(n.Root, "sys/fs/cgroup/devices/slurm/uid_1000", fmt.Sprintf("job_%d", j.ID))
	case "v2":
		return filepath.Join(n.Root, "sys/fs/cgroup/system.slice/slurmstepd.scope", fmt.Sprintf("job_%d", j.ID))
	case "sluid":
		return filepath.Join(n.Root, "sys/fs/cgroup/system.slice", n.Name+"_slurmstepd.scope", sluid(j.ID))
	}
	return ""
}

func (n *Node) group(j *Job) error {
	folder := n.groupOf(j)
	if folder == "" {
		return nil
	}
	if n.Groups != "v1" {
		return os.MkdirAll(filepath.Join(folder, "step_0"), 0o755)
	}
	list := "c 1:* rwm\nc 195:255 rwm\n"
	for _, at := range j.devices {
		for board := range n.Boards {
			minor := n.minors[board]
			for gi := 1; gi <= n.Instances; gi++ {
				if n.Devices[at].ID == fmt.Sprintf("%s/%d", n.uuid(board), gi) {
					list += fmt.Sprintf("c 195:%d rwm\nc 237:%d rwm\n", minor, capability(minor, gi))
				}
			}
			if n.Devices[at].ID == n.uuid(board) {
				list += fmt.Sprintf("c 195:%d rwm\n", minor)
			}
		}
	}
	return write(filepath.Join(folder, "devices.list"), list)
}

// live is a job that runs; nil where none does.
func (n *Node) live() *Job {
	var all []*Job
	for _, j := range n.Jobs {
		if j.Over.IsZero() {
			all = append(all, j)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[n.random.IntN(len(all))]
}

// end ends a job. Where its Epilog is lost its file stays, and its group is gone.
func (n *Node) end(now time.Time, lost bool) error {
	j := n.live()
	if j == nil {
		return nil
	}
	for _, at := range j.devices {
		d := &n.Devices[at]
		d.Jobs = slices.DeleteFunc(d.Jobs, func(id int) bool { return id == j.ID })
		if lost {
			d.Left = append(d.Left, j.ID)
		}
	}
	if folder := n.groupOf(j); folder != "" {
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	if lost {
		j.Over = now
		return nil
	}
	n.Jobs = slices.DeleteFunc(n.Jobs, func(is *Job) bool { return is == j })
	return n.forget(j)
}

func (n *Node) forget(j *Job) error {
	if err := os.Remove(filepath.Join(n.Map, strconv.Itoa(j.ID)+".json")); err != nil {
		return err
	}
	return os.Remove(filepath.Join(n.Map, "names", strconv.Itoa(j.ID)))
}

// requeue ends a job and runs it again under its id, on other devices where there are some.
func (n *Node) requeue(now time.Time) error {
	j := n.live()
	if j == nil {
		return nil
	}
	count := len(j.devices)
	for _, at := range j.devices {
		d := &n.Devices[at]
		d.Jobs = slices.DeleteFunc(d.Jobs, func(id int) bool { return id == j.ID })
	}
	if folder := n.groupOf(j); folder != "" {
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	n.Jobs = slices.DeleteFunc(n.Jobs, func(is *Job) bool { return is == j })
	if err := n.forget(j); err != nil {
		return err
	}
	free := n.free()
	n.random.Shuffle(len(free), func(i, k int) { free[i], free[k] = free[k], free[i] })
	return n.run(&Job{ID: j.ID, Started: now, devices: slices.Sorted(slices.Values(free[:min(count, len(free))]))})
}
