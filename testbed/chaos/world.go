// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package chaos lets a simulated fleet live for hours while everything around it
// breaks, and judges all the time whether the collectors that watch it keep their
// promises.
//
// Run starts a gateway and an agent on each node, as processes of the real
// binary, on simulated GPUs, kubelets, an API server and webhooks. It plays
// rounds: some faults that overlap, then the time that the fleet may take to be
// whole again, then a while in which nothing happens. Judges that know the truth
// compare with it what the collectors report. All is drawn from a seed.
package chaos

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/breakable"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/claims"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/process"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

// Options of a run.
type Options struct {
	Bin      string // folder of otelcol-gpu and gpuctl
	Config   string // folder of agent.yaml and gateway.yaml
	Dir      string // empty folder for what the collectors write
	Duration time.Duration
	Seed     uint64 // of the fleet, the faults and their moments
	Only     string // kinds of faults that are drawn, comma-separated; empty: all
	Out      io.Writer
}

// member is a node with its agent and the agent's link to the gateway.
type member struct {
	*node
	agent *process.Process
	link  *breakable.Link
}

// world is a fleet, the collectors that watch it, what these report, and what is
// true.
type world struct {
	Options
	started   time.Time
	rand      *rand.Rand
	api       *kubeapi.Server
	ledger    *ownership.Ledger
	looking   sync.Mutex // of the ledger
	recorder  *recorder
	receivers []*delivery.Receiver
	expected  int // events, about
	nodes     []*member
	gateway   *process.Process
	sockets   string
	chronicle chronicle
	history   history
	verdict   verdict
	factor    float64 // how much slower than usual this machine is
	pods      int     // names given
	measures  []*measured
	read      map[string]int       // the life of each collector up to which its log was read
	ends      []time.Time          // of the gateway's lives
	resumed   []time.Time          // when the gateway went on after a SIGSTOP
	watches   int                  // of the API server, when the fleet was whole at first
	probes    []*probe             // XIDs of this round
	taken     atomic.Bool          // a port, by another program
	xids      map[string]int       // injected, by GPU
	evaluated map[string]time.Time // last, by service; the judge's own
	states    claims.States        // likewise
	seen      int                  // events, likewise
	mu        sync.Mutex           // guards reported
	reported  []claims.XID         // injected, of all rounds
	clogged   net.Listener         // a backend that takes nothing
}

// base are the pods that are always there: name of the service, node, resource,
// devices, load. chat has one of three pods on each node, so that a silent node
// makes it partial; wide has one of four on two of them, which does not.
var base = []struct {
	service string
	node    int
	profile string
	count   int
	load    gpusim.Load
}{
	{"chat", 0, "", 1, gpusim.Inference}, {"chat", 1, "", 1, gpusim.Inference}, {"chat", 2, "", 1, gpusim.Inference},
	{"wide", 0, "", 1, gpusim.Inference}, {"wide", 1, "", 1, gpusim.Training}, {"wide", 2, "", 1, gpusim.Inference}, {"wide", 2, "", 1, gpusim.Training},
	{"train", 0, "", 2, gpusim.Training}, {"train", 1, "", 2, gpusim.Training},
	{"solo", 2, "mig-3g.40gb", 1, gpusim.Training}, {"notebook", 2, "mig-1g.10gb", 1, gpusim.Idle},
}

// layouts are the MIG layouts of the board that has them; base fits into each.
var layouts = [][]string{{"3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"}, {"3g.40gb", "1g.10gb", "1g.10gb"}, {"1g.10gb", "2g.20gb", "3g.40gb"}}

// fleet are the nodes: whole GPUs, shared ones, and MIG. The exporter of the
// second asks no kubelet: on a shared GPU the pod that it names last would stand
// for all until the kubelet has answered the agent. The exporter of the first has
// more on its page than the others'.
func fleet(seed uint64) []gpusim.Node {
	no := false
	return []gpusim.Node{
		{Name: fullPages, Version: "4.6", Model: "H100", Devices: 6, PodLabels: true, Fields: "all"},
		{Name: "shared", Version: "4.6", Model: "H100", Devices: 6, Kubernetes: &no},
		{Name: "mig", Version: "4.5", Model: "A100-SXM4-80GB", Devices: 5, MIG: map[string][]string{"4": layouts[0]}},
	}
}

// newWorld starts everything. close ends it, also after an error.
func newWorld(ctx context.Context, o Options) (w *world, err error) {
	w = &world{
		Options: o, started: time.Now(), rand: rand.New(rand.NewPCG(o.Seed, 1)), ledger: ownership.NewLedger(), factor: 1,
		expected: 200 + int(o.Duration/(2*time.Second)), read: map[string]int{}, xids: map[string]int{}, evaluated: map[string]time.Time{},
	}
	w.verdict = verdict{w: w, by: map[string]int{}, kinds: map[string]*tally{}, partials: map[string][]time.Time{}, averages: map[string]int{}}
	if err := os.MkdirAll(filepath.Dir(w.audit()), 0o700); err != nil {
		return w, err
	}
	if _, err := os.Stat(w.checkpointKey()); err == nil {
		// It is the second try.
	} else if out, err := w.gpuctl(ctx, "audit", "keygen", "--name", "test/chaos", "--checkpoint", w.checkpointKey(), "--fingerprint", w.fingerprintKey()); err != nil {
		return w, fmt.Errorf("gpuctl audit keygen: %w: %s", err, out)
	}
	if w.recorder, err = record(); err != nil {
		return w, err
	}
	if w.receivers, err = receiversOf(o.Seed, 7, max(30, int(o.Duration/(4*time.Second)))); err != nil {
		return w, err
	}
	nodes := fleet(o.Seed)
	ports, err := delivery.FreePorts(1 + 3*len(nodes) + 8*(len(nodes)+1))
	if err != nil {
		return w, err
	}
	take := func() int { port := ports[0]; ports = ports[1:]; return port }
	all := func() collector.Ports {
		return collector.Ports{Prometheus: take(), Health: take(), OTLPGRPC: take(), OTLPHTTP: take(), Own: take(), Store: take(), Console: take()}
	}
	if w.api, err = kubeapi.Serve(kubeapi.New(""), address(take())); err != nil {
		return w, err
	}
	if err := kubeapi.Kubeconfig(filepath.Join(o.Dir, "kubeconfig"), w.api.URL()); err != nil {
		return w, err
	}
	// Connections wait for someone to accept them.
	if w.clogged, err = net.Listen("tcp", address(0)); err != nil {
		return w, err
	}
	gatewayPorts := all()
	if w.gateway, err = w.gatewayOf(gatewayPorts, take()); err != nil {
		return w, err
	}
	// Short: the path of a unix socket has 107 bytes at most.
	if w.sockets, err = os.MkdirTemp("", "c"); err != nil {
		return w, err
	}
	for i, config := range nodes {
		mb := &member{node: &node{name: config.Name, api: w.api, ledger: w.ledger, looking: &w.looking, replicas: 1, history: &w.history}}
		w.nodes = append(w.nodes, mb)
		if config.Name == "shared" {
			mb.replicas = 2
		}
		if mb.fleet, err = gpusim.New(gpusim.Config{Seed: o.Seed + uint64(i), Nodes: []gpusim.Node{config}}, time.Now); err != nil {
			return w, err
		}
		if mb.exporter, err = breakable.NewExporter(mb.fleet, mb.name, take(), interval, o.Seed); err != nil {
			return w, err
		}
		mb.kubelet = kubelet.New(kubelet.Options{Seed: o.Seed})
		mb.socket = filepath.Join(w.sockets, mb.name, "kubelet.sock")
		if err := os.Mkdir(filepath.Dir(mb.socket), 0o700); err != nil {
			return w, err
		}
		if err := mb.kubelet.Serve(mb.socket); err != nil {
			return w, err
		}
		if err := mb.change(mb.announce); err != nil {
			return w, err
		}
		mb.labels("success")
		mb.exporterPod()
		if mb.link, err = breakable.NewLink(take(), address(gatewayPorts.OTLPGRPC)); err != nil {
			return w, err
		}
		agentPorts := all()
		if mb.agent, err = w.agentOf(mb.node, mb.link.Addr(), agentPorts, take()); err != nil {
			return w, err
		}
	}
	for _, b := range base {
		p := w.newPod(b.service)
		p.count, p.load, p.started = b.count, b.load, time.Now().Add(-time.Hour)
		if b.profile != "" {
			p.resource = "nvidia.com/" + b.profile
		}
		if err := w.nodes[b.node].place(p); err != nil {
			return w, err
		}
	}
	for _, n := range w.nodes {
		w.history.disturb(n.name)
	}
	w.history.disturb(gatewayPlace)
	for _, p := range w.processes() {
		if err := p.Start(); err != nil {
			return w, err
		}
	}
	return w, nil
}

// newPod is a pod of a service that holds one whole GPU or share of one.
func (w *world) newPod(service string) *pod {
	w.pods++
	return &pod{name: fmt.Sprintf("%s-%d", service, w.pods), uid: newUID(), service: service, resource: gpuResource, count: 1, load: gpusim.Inference}
}

// processes are all collectors, the gateway first.
func (w *world) processes() []*process.Process {
	out := []*process.Process{w.gateway}
	for _, n := range w.nodes {
		if n.agent != nil {
			out = append(out, n.agent)
		}
	}
	return out
}

// close ends everything that runs.
func (w *world) close() {
	if w.gateway != nil {
		for _, p := range w.processes() {
			_ = p.Kill()
		}
	}
	for _, n := range w.nodes {
		if n.link != nil {
			n.link.Close()
		}
		if n.exporter != nil {
			n.exporter.Close()
		}
		if n.kubelet != nil {
			n.kubelet.Stop()
		}
	}
	if w.api != nil {
		w.api.Close()
	}
	for _, r := range w.receivers {
		r.Close()
	}
	if w.recorder != nil {
		w.recorder.Close()
	}
	if w.clogged != nil {
		_ = w.clogged.Close()
	}
	if w.sockets != "" {
		_ = os.RemoveAll(w.sockets)
	}
}

// died is called when a collector ended by itself.
func (w *world) died(p *process.Process, err error) {
	if strings.Contains(err.Error(), "address already in use") {
		w.taken.Store(true) // not the collector's fault
		return
	}
	w.verdict.violate("crash", "%s ended by itself: %v", p.Name, err)
}

// ended is called when a collector was ended.
func (w *world) ended(p *process.Process) {
	if p == w.gateway {
		w.ends = append(w.ends, time.Now())
	}
}

// logf writes a line with the time since the start.
func (w *world) logf(format string, a ...any) {
	fmt.Fprintf(w.Out, "%7.1f s  %s\n", time.Since(w.started).Seconds(), fmt.Sprintf(format, a...))
}

// gpuctl runs gpuctl.
func (w *world) gpuctl(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, w.binary("gpuctl"), args...).CombinedOutput()
	return string(out), err
}

// pause returns false if ctx ends meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
