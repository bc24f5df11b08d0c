// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/breakable"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/process"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// apiKinds are faults of the API server. A client that watches keeps what it knows.
func apiKinds() []*Kind {
	mode := func(name string, what kubeapi.Mode) *Kind {
		return &Kind{name: "api_" + name, place: onAPI, recovery: relist, begin: func(s *Scene, _ *Fault) (func() error, error) {
			return func() error { return s.Fleet.API.Set(kubeapi.Well) }, s.Fleet.API.Set(what)
		}}
	}
	return []*Kind{
		mode("away", kubeapi.Away), mode("hangs", kubeapi.Hangs), mode("fails", kubeapi.Fails), mode("garbles", kubeapi.Garbles),
		{name: "api_expired", place: onAPI, recovery: relist, begin: func(s *Scene, _ *Fault) (func() error, error) {
			s.Fleet.API.Expire()
			return func() error { s.Fleet.API.Expire(); return nil }, nil
		}},
	}
}

// processKinds end, stop and start collectors.
func processKinds() []*Kind {
	var out []*Kind
	for _, c := range []struct {
		prefix string
		at     place
		bound  time.Duration
		weight int
	}{{"agent_", onNode, restart, 2}, {"gateway_", onGateway, reconnect, 1}} {
		prefix, at, bound, weight := c.prefix, c.at, c.bound, c.weight
		out = append(out,
			&Kind{name: prefix + "kill", place: at, silent: true, restarts: true, weight: 2 * weight, recovery: bound, begin: func(s *Scene, f *Fault) (func() error, error) {
				return f.process(s.Collectors).Start, f.process(s.Collectors).Kill()
			}},
			&Kind{name: prefix + "kill_soon", place: at, restarts: true, weight: weight, recovery: bound, begin: func(s *Scene, f *Fault) (func() error, error) {
				p := f.process(s.Collectors)
				if err := errors.Join(p.Kill(), p.Start()); err != nil {
					return nil, err
				}
				// Killed again while it resumes what is left.
				time.Sleep(time.Duration(f.rand.Int64N(int64(pace.Interval))))
				return p.Start, p.Kill()
			}},
			&Kind{name: prefix + "term", place: at, restarts: true, weight: weight, recovery: bound, begin: func(s *Scene, f *Fault) (func() error, error) {
				p := f.process(s.Collectors)
				s.Collectors.Terminate(p)
				return p.Start, nil
			}},
			&Kind{name: prefix + "stop", place: at, silent: true, recovery: bound, begin: func(s *Scene, f *Fault) (func() error, error) {
				p := f.process(s.Collectors)
				return func() error { return s.Collectors.Resume(p) }, p.Signal(syscall.SIGSTOP)
			}},
		)
	}
	// An event that waits for the gateway outlives its agent.
	out = append(out, &Kind{name: "agent_kill_cut_off", restarts: true, weight: 2, recovery: reconnect, begin: func(s *Scene, f *Fault) (func() error, error) {
		if err := errors.Join(f.node.Link.Set(breakable.LinkRefuse), s.XIDs.Inject(f.node.Node, f.rand.IntN(4))); err != nil {
			return nil, err
		}
		time.Sleep(4 * pace.Interval) // it is noticed, and stored
		return func() error { return f.node.Link.Set(breakable.LinkWell) }, errors.Join(f.node.Agent.Kill(), f.node.Agent.Start())
	}})
	out = append(out,
		// An agent that starts while the exporter's pages stand still.
		&Kind{name: "agent_term_frozen", restarts: true, weight: 2, recovery: restart, begin: func(s *Scene, f *Fault) (func() error, error) {
			status, err := f.node.GPUs.StartFault(gpusim.Fault{Node: f.node.Name, Kind: gpusim.ExporterFrozen})
			if err != nil {
				return nil, err
			}
			s.Fleet.History.Freeze(f.node.Name, true, time.Now())
			time.Sleep(pace.Interval) // what was scraped before is of before
			return func() error {
				s.Fleet.History.Freeze(f.node.Name, false, time.Now())
				_, err := f.node.GPUs.EndFault(status.ID)
				return err
			}, errors.Join(f.node.Agent.Terminate(), f.node.Agent.Start())
		}},
		// What the gateway reports once, while its endpoints accept nothing: a pod
		// comes before and is settled meanwhile.
		&Kind{name: "gateway_refused", place: onGateway, changes: true, weight: 1, recovery: reconnect + pace.Warmup, begin: func(s *Scene, f *Fault) (func() error, error) {
			for _, n := range s.Fleet.Nodes {
				if n.Free(fleet.GPU) == 0 {
					continue
				}
				s.Fleet.History.Disturb(n.Name, time.Now())
				p := s.Fleet.NewPod("chat")
				if err := n.Place(p); err != nil {
					return nil, err
				}
				time.Sleep(3 * pace.Interval)
				s.Recorder.Refuse(true)
				return func() error { s.Recorder.Refuse(false); return n.Remove(p.Name) }, nil
			}
			return func() error { return nil }, nil
		}},
	)
	return out
}

// linkKinds break the network between an agent and the gateway.
func linkKinds() []*Kind {
	mode := func(name string, what breakable.LinkMode, silent bool) *Kind {
		return &Kind{name: "link_" + name, silent: silent, recovery: reconnect, begin: func(_ *Scene, f *Fault) (func() error, error) {
			return func() error { return f.node.Link.Set(breakable.LinkWell) }, f.node.Link.Set(what)
		}}
	}
	return []*Kind{
		mode("refuse", breakable.LinkRefuse, true), mode("hang", breakable.LinkHang, true),
		mode("reset", breakable.LinkReset, false), mode("slow", breakable.LinkSlow, false), mode("cut", breakable.LinkCut, false),
	}
}

// diskKinds let no file be written, and damage what was written.
func diskKinds() []*Kind {
	full := func(p *process.Process) (func() error, error) {
		return func() error { return p.LimitFiles(false) }, p.LimitFiles(true)
	}
	return []*Kind{
		{name: "agent_disk_full", recovery: soon, begin: func(_ *Scene, f *Fault) (func() error, error) { return full(f.node.Agent) }},
		{name: "gateway_disk_full", place: onGateway, recovery: reconnect, counts: counter{"otelcol_extension_gpu_store_samples_refused", []string{"reason", "write_failed"}}, begin: func(s *Scene, _ *Fault) (func() error, error) { return full(s.Collectors.Gateway) }},
		{name: "agent_state_damaged", restarts: true, weight: 2, recovery: restart, begin: func(_ *Scene, f *Fault) (func() error, error) {
			return f.node.Agent.Start, errors.Join(f.node.Agent.Kill(), damage(f, f.node.Agent.State(), "*"))
		}},
		// Not the deliveries that wait: what is in a damaged file of those is lost,
		// as documented.
		{name: "gateway_state_damaged", place: onGateway, restarts: true, weight: 1, recovery: reconnect, begin: func(s *Scene, f *Fault) (func() error, error) {
			return s.Collectors.Gateway.Start, errors.Join(s.Collectors.Gateway.Kill(), damage(f, s.Collectors.Gateway.State(), "connector_*"))
		}},
	}
}

// damage empties a file of a folder, or writes over the state of gpu_events, which
// then uses a second one; what is emptied is created again. No other damage: bbolt
// reads its files in goroutines of its own, where a page that makes no sense is a
// panic, and one that is missing a SIGBUS, that file_storage cannot catch. docs/chaos.md
// describes it.
func damage(f *Fault, folder, pattern string) error {
	files, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(files) == 0 {
		return err
	}
	path := files[f.rand.IntN(len(files))]
	states, err := filepath.Glob(filepath.Join(folder, "connector_*"))
	if err != nil {
		return err
	}
	if slices.Contains(states, path) && len(states) == 1 && f.rand.IntN(2) == 0 {
		return os.WriteFile(path, breakable.Garbage(f.rand.Uint64(), 32<<10), 0o600)
	}
	return os.WriteFile(path, nil, 0o600)
}
