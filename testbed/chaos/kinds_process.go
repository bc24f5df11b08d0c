// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// apiKinds are faults of the API server. Whoever watches keeps what it knows.
func apiKinds() []*kind {
	mode := func(name string, what kubeapi.Mode) *kind {
		return &kind{name: "api_" + name, place: onAPI, recovery: relist, begin: func(w *world, _ *fault) (func() error, error) {
			return func() error { return w.api.Set(kubeapi.Well) }, w.api.Set(what)
		}}
	}
	return []*kind{
		mode("away", kubeapi.Away), mode("hangs", kubeapi.Hangs), mode("fails", kubeapi.Fails), mode("garbles", kubeapi.Garbles),
		{name: "api_expired", place: onAPI, recovery: relist, begin: func(w *world, _ *fault) (func() error, error) {
			w.api.Expire()
			return func() error { w.api.Expire(); return nil }, nil
		}},
	}
}

// processKinds end, stop and start collectors.
func processKinds() []*kind {
	of := func(w *world, f *fault) *process {
		if f.node != nil {
			return f.node.agent
		}
		return w.gateway
	}
	var out []*kind
	for _, who := range []struct {
		prefix string
		at     place
		bound  time.Duration
		weight int
	}{{"agent_", onNode, restart, 2}, {"gateway_", onGateway, reconnect, 1}} {
		prefix, at, bound, weight := who.prefix, who.at, who.bound, who.weight
		out = append(out,
			&kind{name: prefix + "kill", place: at, silent: true, restarts: true, weight: 2 * weight, recovery: bound, begin: func(w *world, f *fault) (func() error, error) {
				return of(w, f).start, of(w, f).kill()
			}},
			&kind{name: prefix + "kill_soon", place: at, restarts: true, weight: weight, recovery: bound, begin: func(w *world, f *fault) (func() error, error) {
				p := of(w, f)
				if err := errors.Join(p.kill(), p.start()); err != nil {
					return nil, err
				}
				// Killed again while it takes up what is left.
				time.Sleep(time.Duration(f.rand.Int64N(int64(interval))))
				return p.start, p.kill()
			}},
			&kind{name: prefix + "term", place: at, restarts: true, weight: weight, recovery: bound, begin: func(w *world, f *fault) (func() error, error) {
				p := of(w, f)
				if err := p.term(); err != nil {
					w.verdict.violate("end", "%s was asked to end, and: %v", p.name, err)
				}
				return p.start, nil
			}},
			&kind{name: prefix + "stop", place: at, silent: true, recovery: bound, begin: func(w *world, f *fault) (func() error, error) {
				p := of(w, f)
				return func() error {
					if p == w.gateway {
						w.resumed = append(w.resumed, time.Now())
					}
					return p.signal(syscall.SIGCONT)
				}, p.signal(syscall.SIGSTOP)
			}},
		)
	}
	// An event that waits for the gateway outlives its agent.
	out = append(out, &kind{name: "agent_kill_cut_off", restarts: true, weight: 2, recovery: reconnect, begin: func(w *world, f *fault) (func() error, error) {
		if err := errors.Join(f.node.link.Set(linkRefuse), w.injectOn(f.node, f.rand.IntN(4))); err != nil {
			return nil, err
		}
		time.Sleep(4 * interval) // it is noticed, and stored
		return func() error { return f.node.link.Set(linkWell) }, errors.Join(f.node.agent.kill(), f.node.agent.start())
	}})
	out = append(out,
		// An agent that starts while the exporter's pages stand still.
		&kind{name: "agent_term_frozen", restarts: true, weight: 2, recovery: restart, begin: func(w *world, f *fault) (func() error, error) {
			status, err := f.node.fleet.StartFault(gpusim.Fault{Node: f.node.name, Kind: gpusim.ExporterFrozen})
			if err != nil {
				return nil, err
			}
			w.history.freeze(f.node.name, true)
			time.Sleep(interval) // what was scraped before is of before
			return func() error {
				w.history.freeze(f.node.name, false)
				_, err := f.node.fleet.EndFault(status.ID)
				return err
			}, errors.Join(f.node.agent.term(), f.node.agent.start())
		}},
		// What the gateway says once, while what is behind it takes nothing: a pod
		// comes before and is settled meanwhile.
		&kind{name: "gateway_refused", place: onGateway, changes: true, weight: 1, recovery: reconnect + warmup, begin: func(w *world, f *fault) (func() error, error) {
			for _, n := range w.nodes {
				if n.free(gpuResource) == 0 {
					continue
				}
				w.history.disturb(n.name)
				p := w.newPod("chat")
				if err := n.place(p); err != nil {
					return nil, err
				}
				time.Sleep(3 * interval)
				w.recorder.refuse(true)
				return func() error { w.recorder.refuse(false); return n.remove(p.name) }, nil
			}
			return func() error { return nil }, nil
		}},
	)
	return out
}

// linkKinds break the network between an agent and the gateway.
func linkKinds() []*kind {
	mode := func(name string, what linkMode, silent bool) *kind {
		return &kind{name: "link_" + name, silent: silent, recovery: reconnect, begin: func(_ *world, f *fault) (func() error, error) {
			return func() error { return f.node.link.Set(linkWell) }, f.node.link.Set(what)
		}}
	}
	return []*kind{
		mode("refuse", linkRefuse, true), mode("hang", linkHang, true),
		mode("reset", linkReset, false), mode("slow", linkSlow, false), mode("cut", linkCut, false),
	}
}

// diskKinds let no file be written, and damage what was written.
func diskKinds() []*kind {
	full := func(p *process) (func() error, error) {
		return func() error { return p.limitFiles(false) }, p.limitFiles(true)
	}
	return []*kind{
		{name: "agent_disk_full", recovery: soon, begin: func(_ *world, f *fault) (func() error, error) { return full(f.node.agent) }},
		{name: "gateway_disk_full", place: onGateway, recovery: reconnect, counts: counter{"otelcol_extension_gpu_store_samples_refused", []string{"reason", "write_failed"}}, begin: func(w *world, _ *fault) (func() error, error) { return full(w.gateway) }},
		{name: "agent_state_damaged", restarts: true, weight: 2, recovery: restart, begin: func(_ *world, f *fault) (func() error, error) {
			return f.node.agent.start, errors.Join(f.node.agent.kill(), damage(f, f.node.agent.state(), "*"))
		}},
		// Not the deliveries that wait: what is in a damaged file of those is lost,
		// as the documentation says.
		{name: "gateway_state_damaged", place: onGateway, restarts: true, weight: 1, recovery: reconnect, begin: func(w *world, f *fault) (func() error, error) {
			return w.gateway.start, errors.Join(w.gateway.kill(), damage(f, w.gateway.state(), "connector_*"))
		}},
	}
}

// damage empties a file of a folder, or writes over the state of gpu_events, which
// then uses a second one; what is emptied is begun anew. No other damage: bbolt
// reads its files in goroutines of its own, where a page that makes no sense is a
// panic, and one that is missing a SIGBUS, that file_storage cannot catch. docs/chaos.md
// says so.
func damage(f *fault, folder, pattern string) error {
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
		return os.WriteFile(path, garbage(f.rand.Uint64(), 32<<10), 0o600)
	}
	return os.WriteFile(path, nil, 0o600)
}
