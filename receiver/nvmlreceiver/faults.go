// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlreceiver

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/nvml"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/processes"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/xids"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/xids/kmsg"
)

// faults adds to scrapes what does not come from readings: XIDs, and processes.
type faults struct {
	cfg       *Config
	log       *story
	xids      *xids.Counter // nil without the group
	processes *processes.Table

	mu      sync.Mutex
	watched map[string]bool // boards, by thread, of which the driver reports XIDs
	kernel  bool            // the kernel log is read
	// silent has since when each board of this helper is read without a word on its events;
	// the zero time: there was one, or it was reported.
	silent map[string]time.Time
}

// silentFor is after how long waiting for events counts as stuck: the call is not announced.
const silentFor = 30 * time.Second

func newFaults(cfg *Config, log *story, now time.Time) *faults {
	f := &faults{cfg: cfg, log: log, watched: map[string]bool{}, silent: map[string]time.Time{}}
	if slices.Contains(cfg.Groups, nvmlproto.GroupXID) {
		f.xids = xids.New(now, xids.Options{
			Counted: func(from xids.Source, n int) {
				log.own.NvmlReceiverXidEvents.Add(context.Background(), int64(n), one("source", from.String()))
			},
			Refused: func(from xids.Source, reason string, n int) { log.refused(from.String(), reason, n) },
		})
	}
	f.processes = processes.New(processes.Options{
		By: processes.By(cfg.Processes.By), Max: cfg.Processes.MaxPerDevice, Root: cfg.RootPath,
		Refused: func(reason string, n int) { log.refused("processes", reason, n) },
	})
	return f
}

// start follows the kernel log until ctx ends, so that it is complete whatever becomes of
// helpers.
func (f *faults) start(ctx context.Context, wg *sync.WaitGroup) {
	if f.xids == nil || f.cfg.XID.KernelLog == KernelLogOff {
		return
	}
	follower := &kmsg.Follower{
		Path: filepath.Join(f.cfg.RootPath, "dev/kmsg"),
		Line: f.xids.Line,
		Lost: func(n int) { f.log.refused(xids.KernelLog.String(), "lost", n) },
		Long: func(n int) { f.log.refused(xids.KernelLog.String(), "long", n) },
		State: func(err error) {
			f.mu.Lock()
			f.kernel = err == nil
			f.mu.Unlock()
			f.log.kernelLog(err, f.cfg.XID.KernelLog == KernelLogOn)
		},
	}
	wg.Go(func() { follower.Run(ctx) })
}

// groups are those to ask for now.
func (f *faults) groups(now time.Time) []nvmlproto.Group {
	if f.processes.Due(now) {
		return f.cfg.Groups
	}
	return slices.DeleteFunc(slices.Clone(f.cfg.Groups), func(g nvmlproto.Group) bool { return g == nvmlproto.GroupProcesses })
}

// started notes that a helper was started.
func (f *faults) started() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.silent)
}

// hear notes which boards are read, and returns for how many of them events do not begin
// for too long. f.mu is held.
func (f *faults) hear(ids map[string]string, now time.Time) (late int) {
	for thread := range ids {
		since, known := f.silent[thread]
		switch {
		case !known:
			f.silent[thread] = now
		case !since.IsZero() && now.Sub(since) >= silentFor:
			f.silent[thread] = time.Time{}
			delete(f.watched, thread)
			late++
		}
	}
	return late
}

// event takes what the driver reported of a board. It is called by the helper's reader.
func (f *faults) event(e *nvmlproto.Event) {
	if f.xids == nil {
		return
	}
	f.xids.Event(e)
	f.mu.Lock()
	f.silent[e.Thread] = time.Time{}
	if e.Ready {
		f.watched[e.Thread] = true
	}
	if e.Return != nvmlproto.Success {
		delete(f.watched, e.Thread)
	}
	f.mu.Unlock()
	switch {
	case e.Return == nvmlproto.Success, nvmlproto.Unavailable(e.Return), nvmlproto.Lost(e.Return):
	case nvmlproto.Denied(e.Return):
		f.log.noRights(waiting, 1)
	default:
		f.log.refused(waiting, nvmlproto.ReturnText(e.Return), 1)
	}
}

// waiting is the call that XIDs are events of.
const waiting = "nvmlEventSetWait"

// fill adds to a scrape what is known besides its readings.
func (f *faults) fill(s *nvml.Scrape, m *nvml.Mapping) {
	if s.Released {
		return
	}
	if f.xids != nil {
		f.fillXIDs(s, m)
	}
	if f.cfg.Processes.By != ProcessesOff {
		f.fillProcesses(s)
	}
}

func (f *faults) fillXIDs(s *nvml.Scrape, m *nvml.Mapping) {
	ids := map[string]string{} // by thread
	for i := range s.Boards {
		b := &s.Boards[i]
		if b.Return != nvmlproto.Success {
			continue
		}
		id := m.ID(b.Thread)
		if id == "" && deviceid.HasGPU(b.UUID) && deviceid.Parent(b.UUID) == "" {
			id = b.UUID
		}
		if id != "" {
			ids[b.Thread] = id
		}
	}
	f.xids.Boards(ids)
	s.XIDs = map[string]nvml.XIDs{}
	f.mu.Lock()
	late, kernel := f.hear(ids, s.Time), f.kernel
	for thread, id := range ids {
		if f.kernel || f.watched[thread] {
			s.XIDs[id] = nvml.XIDs{}
		}
	}
	f.mu.Unlock()
	if late > 0 {
		f.log.noEvents(late, kernel)
	}
	for id, d := range f.xids.Due(s.Time) {
		x := nvml.XIDs{Last: int64(d.Last), Rose: d.Rose}
		for _, c := range d.Counts {
			x.Counts = append(x.Counts, nvml.XIDCount{Code: int64(c.Code), N: c.N, Start: c.Start})
		}
		s.XIDs[id] = x
	}
}

func (f *faults) fillProcesses(s *nvml.Scrape) {
	rows := f.processes.Resolve(s.Boards)
	if f.processes.Foreign() {
		f.log.foreign()
	}
	s.Processes = func(device string, at time.Time, to pmetric.MetricSlice) {
		f.processes.Write(rows[device], device, at, to)
	}
	s.Holders = map[string][]nvml.Holder{}
	for id, of := range rows {
		for _, h := range f.processes.Holders(of) {
			held := nvml.Holder{Namespace: h.Namespace, Pod: h.Pod, Container: h.Container, PodUID: h.PodUID, Memory: -1, Utilization: -1}
			if h.HasMemory {
				held.Memory = float64(h.Memory)
			}
			if h.HasUtilization {
				held.Utilization = h.Utilization
			}
			s.Holders[id] = append(s.Holders[id], held)
		}
	}
}
