// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/breakable"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/process"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// apiKinds are faults of the API server. A client that watches keeps what it knows.
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
	of := func(w *world, f *fault) *process.Process {
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
				return of(w, f).Start, of(w, f).Kill()
			}},
			&kind{name: prefix + "kill_soon", place: at, restarts: true, weight: weight, recovery: bound, begin: func(w *world, f *fault) (func() error, error) {
				p := of(w, f)
				if err := errors.Join(p.Kill(), p.Start()); err != nil {
					return nil, err
				}
				// Killed again while it resumes what is left.
				time.Sleep(time.Duration(f.rand.Int64N(int64(interval))))
				return p.Start, p.Kill()
			}},
			&kind{name: prefix + "term", place: at, restarts: true, weight: weight, recovery: bound, begin: func(w *world, f *fault) (func() error, error) {
				p := of(w, f)
				if err := p.Terminate(); err != nil {
					w.verdict.violate("end", "%s was asked to end, and: %v", p.Name, err)
				}
				return p.Start, nil
			}},
			&kind{name: prefix + "stop", place: at, silent: true, recovery: bound, begin: func(w *world, f *fault) (func() error, error) {
				p := of(w, f)
				return func() error {
					if p == w.gateway {
						w.resumed = append(w.resumed, time.Now())
					}
					return p.Signal(syscall.SIGCONT)
				}, p.Signal(syscall.SIGSTOP)
			}},
		)
	}
	// An event that waits for the gateway outlives its agent.
	out = append(out, &kind{name: "agent_kill_cut_off", restarts: true, weight: 2, recovery: reconnect, begin: func(w *world, f *fault) (func() error, error) {
		if err := errors.Join(f.node.link.Set(breakable.LinkRefuse), w.injectOn(f.node, f.rand.IntN(4))); err != nil {
			return nil, err
		}
		time.Sleep(4 * interval) // it is noticed, and stored
		return func() error { return f.node.link.Set(breakable.LinkWell) }, errors.Join(f.node.agent.Kill(), f.node.agent.Start())
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
			}, errors.Join(f.node.agent.Terminate(), f.node.agent.Start())
		}},
		// What the gateway reports once, while its endpoints accept nothing: a pod
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
	mode := func(name string, what breakable.LinkMode, silent bool) *kind {
		return &kind{name: "link_" + name, silent: silent, recovery: reconnect, begin: func(_ *world, f *fault) (func() error, error) {
			return func() error { return f.node.link.Set(breakable.LinkWell) }, f.node.link.Set(what)
		}}
	}
	return []*kind{
		mode("refuse", breakable.LinkRefuse, true), mode("hang", breakable.LinkHang, true),
		mode("reset", breakable.LinkReset, false), mode("slow", breakable.LinkSlow, false), mode("cut", breakable.LinkCut, false),
	}
}

// diskKinds let no file be written, and damage what was written.
func diskKinds() []*kind {
	full := func(p *process.Process) (func() error, error) {
		return func() error { return p.LimitFiles(false) }, p.LimitFiles(true)
	}
	return []*kind{
		{name: "agent_disk_full", recovery: soon, begin: func(_ *world, f *fault) (func() error, error) { return full(f.node.agent) }},
		{name: "gateway_disk_full", place: onGateway, recovery: reconnect, counts: counter{"otelcol_extension_gpu_store_samples_refused", []string{"reason", "write_failed"}}, begin: func(w *world, _ *fault) (func() error, error) { return full(w.gateway) }},
		{name: "agent_state_damaged", restarts: true, weight: 2, recovery: restart, begin: func(_ *world, f *fault) (func() error, error) {
			return f.node.agent.Start, errors.Join(f.node.agent.Kill(), damage(f, f.node.agent.State(), "*"))
		}},
		// Not the deliveries that wait: what is in a damaged file of those is lost,
		// as documented.
		{name: "gateway_state_damaged", place: onGateway, restarts: true, weight: 1, recovery: reconnect, begin: func(w *world, f *fault) (func() error, error) {
			return w.gateway.Start, errors.Join(w.gateway.Kill(), damage(f, w.gateway.State(), "connector_*"))
		}},
	}
}

// damage empties a file of a folder, or writes over the state of gpu_events, which
// then uses a second one; what is emptied is created again. No other damage: bbolt
// reads its files in goroutines of its own, where a page that makes no sense is a
// panic, and one that is missing a SIGBUS, that file_storage cannot catch. docs/chaos.md
// describes it.
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
		return os.WriteFile(path, breakable.Garbage(f.rand.Uint64(), 32<<10), 0o600)
	}
	return os.WriteFile(path, nil, 0o600)
}

// auditKinds are faults of the webhooks' audit file alone. The gateway goes on
// as though nothing were: deliveries are made, and their records wait in memory.
func auditKinds() []*kind {
	of := func(name string, block, back func(path string) error) *kind {
		failed := counter{name: "otelcol_exporter_webhook_audit_failures"}
		return &kind{name: "gateway_audit_" + name, place: onGateway, harmless: true, weight: 2, recovery: reconnect, counts: failed, begin: func(w *world, f *fault) (func() error, error) {
			if err := block(w.audit()); err != nil {
				return nil, err
			}
			// One record that still gets into the file, so that the next checkpoint
			// finds it gone; and one that has to wait.
			if err := w.sendEvent(f, 1); err != nil {
				return nil, err
			}
			time.Sleep(2 * interval)
			return func() error { return back(w.audit()) }, w.sendEvent(f, 2)
		}}
	}
	away := func(path string) string { return filepath.Dir(path) + "-away" }
	return []*kind{
		// As a rotation by another does, and a folder takes the file's place:
		// none can be made there, even by root.
		of("blocked", blockAudit, os.Remove),
		// As a volume that is mounted again.
		of("away", func(path string) error { return os.Rename(filepath.Dir(path), away(path)) },
			func(path string) error { return os.Rename(away(path), filepath.Dir(path)) }),
	}
}

// blockAudit renames an audit file as a full one is and puts a folder in its
// place. The writer may rotate or make the file again at the same moment.
func blockAudit(path string) error {
	for tries := 0; tries < 100; tries++ {
		ext := filepath.Ext(path)
		full, err := filepath.Glob(strings.TrimSuffix(path, ext) + "-*" + ext)
		if err != nil {
			return err
		}
		to := fmt.Sprintf("%s-%06d%s", strings.TrimSuffix(path, ext), len(full)+1, ext)
		// No rename, which would write over a file that was rotated just now.
		if err := os.Link(path, to); errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		if err := os.Mkdir(path, 0o700); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return fmt.Errorf("%s comes back again and again", path)
}

// sendEvent sends an event to the gateway as an agent does; webhooks get it.
func (w *world) sendEvent(f *fault, n int) error {
	ld := plog.NewLogs()
	resource := ld.ResourceLogs().AppendEmpty()
	a := resource.Resource().Attributes()
	a.PutStr(names.K8sClusterName, clusterName)
	a.PutStr(names.HwID, f.name)
	record := resource.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName(names.EventXID)
	record.SetSeverityNumber(plog.SeverityNumberError)
	record.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	record.Body().SetStr("sent by the test")
	id := fmt.Sprintf("%s-%d-%016x", f.name, n, f.rand.Uint64())
	record.Attributes().PutStr(names.GPUEventID, id)
	record.Attributes().PutStr(names.GPUEventKey, names.EventXID+"/"+id)
	record.Attributes().PutStr(names.GPUEventState, names.EventRaised)
	body, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	if err != nil {
		return err
	}
	for began := time.Now(); time.Since(began) < reconnect; time.Sleep(interval / 4) {
		if w.post(w.gateway, "logs", body) == http.StatusOK {
			return nil
		}
	}
	return errors.New("the gateway takes no events")
}
