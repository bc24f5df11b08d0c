// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package slurmallocationreceiver

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/internal/miglayout"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver/internal/jobmap"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver/internal/node"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver/internal/snapshot"
)

const (
	// settle is the time from a change of the folder to its reading: jobs begin and end together.
	settle = 100 * time.Millisecond
	// boardsEvery is the time between two readings of the boards, once all are known.
	boardsEvery = time.Minute
)

// poller reads the folder and replaces the snapshot. One goroutine runs it.
type poller struct {
	r       *allocationReceiver
	folder  jobmap.Folder
	builder snapshot.Builder
	causes  logonce.Causes
	failing string // why the last reading failed, and this was logged

	boards   node.Boards
	boardsAt time.Time
	counted  map[string]bool // jobs with an entry that was counted
}

func newPoller(r *allocationReceiver) *poller {
	cfg := r.cfg
	service := cfg.Service
	if service == "" {
		service = ServiceUserJob
		if cfg.Identity == IdentityAccount {
			service = ServicePartition
		}
	}
	format := jobmap.Formats[cfg.Format]
	return &poller{
		r:      r,
		folder: jobmap.Folder{Path: cfg.Directory, Format: format, MaxFiles: cfg.MaxFiles, MaxFileSize: cfg.MaxFileSize},
		builder: snapshot.Builder{
			Node: r.origin.Node, Cluster: cfg.ClusterName, IndexOrder: cfg.IndexOrder, AllDevices: cfg.AllDevices, StaleAfter: cfg.StaleAfter,
			Identity: snapshot.Identity{Users: cfg.Identity == IdentityJob, Service: service, Names: format.Names, NameWait: cfg.NameWait},
		},
	}
}

// run reads at once, then every poll interval, and a moment after each change.
func (p *poller) run(ctx context.Context) {
	var events <-chan fsnotify.Event
	var faults <-chan error
	attach := func() {}
	if p.r.cfg.Watch {
		w, err := fsnotify.NewWatcher()
		if err != nil {
			p.r.logger.Warn("the kernel does not report changes of the folder: it is read every poll interval",
				zap.Duration("poll_interval", p.r.cfg.PollInterval), zap.Error(err))
		} else {
			defer w.Close()
			events, faults = w.Events, w.Errors
			attach = func() {
				// A folder that was made again is another one. What this misses, a poll finds.
				_ = w.Add(p.r.cfg.Directory)
				if p.folder.Format.Names {
					_ = w.Add(filepath.Join(p.r.cfg.Directory, "names"))
				}
			}
		}
	}
	ticker := time.NewTicker(p.r.cfg.PollInterval)
	defer ticker.Stop()
	var soon <-chan time.Time
	for {
		attach()
		p.poll(ctx)
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				waiting = false
			case <-soon:
				soon, waiting = nil, false
			case <-events:
				if soon == nil {
					soon = time.After(settle)
				}
			case <-faults: // more changes than the kernel keeps
				if soon == nil {
					soon = time.After(settle)
				}
			}
		}
	}
}

// poll reads once. A reading that fails leaves the snapshot as it is: it ages.
func (p *poller) poll(ctx context.Context) {
	now := time.Now()
	reading, err := p.folder.Read(now)
	p.report(ctx, now, err)
	if err != nil {
		return
	}
	p.findings(ctx, now, reading.Findings)
	view := snapshot.View{Boards: p.readBoards(now), MIG: miglayout.Current(now)}
	if p.r.cfg.Verify == VerifyCgroup {
		view.Groups = node.ReadGroups(p.r.cfg.RootPath)
	}
	s, tl := p.builder.Build(&reading, &view, now)
	old := p.r.newest.Swap(s)
	p.odd(ctx, now, &tl, &view, &reading)
	if old == nil || !p.r.fresh(old, now) || !old.SameAs(s) {
		p.r.emitNow()
	}
}

// readBoards are the boards, read again every minute, and at every poll while the driver does not
// know all of them.
func (p *poller) readBoards(now time.Time) node.Boards {
	complete := p.boards.Known()
	for _, b := range p.boards.ByPCI {
		complete = complete && b.ID != "" && b.Minor >= 0
	}
	if complete && !p.boards.Parts && now.Sub(p.boardsAt) < boardsEvery && !now.Before(p.boardsAt) {
		return p.boards
	}
	p.boardsAt = now
	if p.boards = node.NVIDIA(p.r.cfg.RootPath); !p.boards.Known() {
		p.boards = node.Sysfs(p.r.sysfs.Snapshot())
	}
	return p.boards
}

// remedies are what to do where the folder cannot be read.
var remedies = map[string]string{
	"absent": "docs/examples/slurm: install the scripts and otelcol-gpu-jobs.conf, or correct directory",
	"denied": "let the collector's user read the folder: chmod go+rx",
	"unsafe": "the folder and all above it belong to root, and no other may write to them",
	"failed": "see the cause",
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, fs.ErrNotExist):
		return "absent"
	case errors.Is(err, fs.ErrPermission):
		return "denied"
	case errors.Is(err, jobmap.ErrUnsafe):
		return "unsafe"
	}
	return "failed"
}

// report counts how a reading ended, and logs each cause once.
func (p *poller) report(ctx context.Context, now time.Time, err error) {
	o := outcome(err)
	p.r.tel.read(ctx, o)
	switch {
	case err == nil:
		if p.failing != "" {
			p.failing = ""
			p.r.logger.Info("the job map can be read again", zap.String("directory", p.r.cfg.Directory))
		}
	case p.causes.Due(o, now):
		p.failing = o
		p.r.logger.Warn("the job map cannot be read: it is not known which job has which GPU",
			zap.String("directory", p.r.cfg.Directory), zap.String("outcome", o), zap.String("remedy", remedies[o]), zap.Error(err))
	}
}

// findings counts the files that are left out, and logs each reason once.
func (p *poller) findings(ctx context.Context, now time.Time, all []jobmap.Finding) {
	for _, f := range all {
		reason := jobmap.ReasonOf(f.Err)
		p.r.tel.refused(ctx, reason)
		if p.causes.Due("file "+string(reason), now) {
			p.r.logger.Warn("a file of the job map is left out",
				zap.String("reason", string(reason)), zap.String("file", safetext.Strip(f.File, 100)), zap.String("cause", safetext.Strip(f.Err.Error(), 200)))
		}
	}
}

// odd counts and logs what a snapshot could not use.
func (p *poller) odd(ctx context.Context, now time.Time, tl *snapshot.Tally, v *snapshot.View, r *jobmap.Reading) {
	warn := func(cause, message string, fields ...zap.Field) {
		if p.causes.Due(cause, now) {
			p.r.logger.Warn(message, fields...)
		}
	}
	before := p.counted
	p.counted = map[string]bool{}
	entries := func(jobs []string, reason jobmap.Reason, message string) {
		for _, job := range jobs {
			key := string(reason) + " " + job
			if !before[key] && !p.counted[key] {
				p.r.tel.refused(ctx, reason)
				warn(string(reason), message, zap.String("slurm.job.id", job))
			}
			p.counted[key] = true
		}
	}
	entries(tl.BeyondBoards, jobmap.BeyondBoards, "a job has an index that the node has no board for: that device has no gpu.allocation")
	entries(tl.DeviceTwice, jobmap.DeviceTwice, "a job has one device twice: it counts once")
	entries(tl.NoCluster, jobmap.NoCluster, "a job's file does not name the cluster: set cluster_name to ClusterName of slurm.conf")
	for _, job := range tl.Stale {
		warn("stale", "a job has a file and no control group: Epilog did not run, and the file does not count", zap.String("slurm.job.id", job), zap.Duration("stale_after", p.r.cfg.StaleAfter))
	}
	for _, job := range tl.Disagree {
		p.r.tel.builder.SlurmAllocationDisagreements.Add(ctx, 1)
		warn("disagree", "the control group of a job may open other GPUs than its file has: they are not resolved; check index_order", zap.String("slurm.job.id", job))
	}
	if tl.Ambiguous {
		warn("ambiguous", "which GPU Slurm's index is cannot be known: on this node the order of PCI addresses is not that of minors; set index_order to pci for AutoDetect in gres.conf, to minor for File=/dev/nvidia<N>")
	}
	if tl.Parts {
		warn("parts", "which device Slurm's index is cannot be known on a node with MIG instances or partitions: the exporter's label hpc_job, or Slurm 25.11 with AutoDetect=nvml, decides")
	}
	if v.Groups != nil && !v.Groups.Known {
		warn("groups", "no control group of slurmd is found, and files of jobs that are over are not noticed: mount /sys/fs/cgroup below root_path, and check that slurmd runs with ProctrackType=proctrack/cgroup", zap.String("root_path", p.r.cfg.RootPath))
	}
	if len(r.Jobs) > 0 && !v.Boards.Known() {
		warn("boards", "the node's boards are not known, and Slurm's indices are not resolved: mount /proc below root_path", zap.String("root_path", p.r.cfg.RootPath))
	}
}
