// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package collectors runs what watches a fleet: a gateway and an agent on each node, as
// processes of the real binary on the shipped configuration, and what they send to.
package collectors

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/breakable"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/judge"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/process"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// Member is a node with its agent and the agent's link to the gateway.
type Member struct {
	*fleet.Node
	Agent *process.Process
	Link  *breakable.Link
}

// Collectors are a gateway and the agents of all nodes. That one of them ends by itself
// is a violation.
type Collectors struct {
	Gateway *process.Process
	Members []*Member

	verdict *judge.Verdict
	taken   atomic.Bool // a port, by another program
	ends    []time.Time // of the gateway's lives
	resumed []time.Time // when the gateway went on after a SIGSTOP
}

// Ports is how many New takes for so many nodes.
func Ports(nodes int) int { return 8 + 9*nodes }

// New configures the collectors of a fleet and starts none; port returns a free one each
// time. Close ends them, also after an error.
func New(f *fleet.Fleet, files Files, out *Outputs, port func() int, verdict *judge.Verdict) (*Collectors, error) {
	c := &Collectors{verdict: verdict}
	all := func() collector.Ports {
		return collector.Ports{Prometheus: port(), Health: port(), OTLPGRPC: port(), OTLPHTTP: port(), Own: port(), Store: port(), Console: port()}
	}
	configured := func(name, config string, overlay m, ports collector.Ports, pprof int, env ...string) (*process.Process, error) {
		text, err := json.Marshal(overlay) // which is YAML
		return &process.Process{
			Name: name, Binary: files.binary("otelcol-gpu"), Dir: files.Dir, Ports: ports, Pprof: pprof, Died: c.died, Ended: c.ended,
			Configs: []string{files.config(config), "yaml:" + string(text)},
			Env:     append([]string{"K8S_CLUSTER_NAME=" + fleet.Cluster, "K8S_AUTH_TYPE=kubeConfig", "KUBECONFIG=" + files.Kubeconfig()}, env...),
		}, err
	}
	ports, pprof := all(), port()
	var err error
	if c.Gateway, err = configured("gateway", "gateway.yaml", gatewayOverlay(files, out, ports, pprof), ports, pprof); err != nil {
		return c, err
	}
	for _, n := range f.Nodes {
		mb := &Member{Node: n}
		c.Members = append(c.Members, mb)
		if mb.Link, err = breakable.NewLink(port(), collector.Address(c.Gateway.Ports.OTLPGRPC)); err != nil {
			return c, err
		}
		ports, pprof := all(), port()
		overlay, err := agentOverlay(n, out, ports, pprof)
		if err != nil {
			return c, err
		}
		if mb.Agent, err = configured("agent-"+n.Name, "agent.yaml", overlay, ports, pprof,
			"K8S_NODE_NAME="+n.Name, "GATEWAY_ENDPOINT="+mb.Link.Addr(), "GATEWAY_INSECURE=true"); err != nil {
			return c, err
		}
	}
	return c, nil
}

// All are the processes, the gateway first.
func (c *Collectors) All() []*process.Process {
	out := []*process.Process{c.Gateway}
	for _, mb := range c.Members {
		if mb.Agent != nil {
			out = append(out, mb.Agent)
		}
	}
	return out
}

// Start starts all and does not wait until they are ready.
func (c *Collectors) Start() error {
	for _, p := range c.All() {
		if err := p.Start(); err != nil {
			return err
		}
	}
	return nil
}

// Ready reports whether all answer.
func (c *Collectors) Ready(ctx context.Context) bool {
	return !slices.ContainsFunc(c.All(), func(p *process.Process) bool { return !p.Ready(ctx) })
}

// AgentSince is when the agent of a node started; zero if it does not run.
func (c *Collectors) AgentSince(node string) (since time.Time) {
	for _, mb := range c.Members {
		if mb.Name == node && mb.Agent != nil {
			_, since = mb.Agent.Running()
		}
	}
	return since
}

// Terminate ends one in good order. That it cannot is a violation.
func (c *Collectors) Terminate(p *process.Process) {
	if err := p.Terminate(); err != nil {
		c.verdict.Violate("end", "%s was asked to end, and: %v", p.Name, err)
	}
}

// TerminateAll ends all in good order, the gateway last: it takes what agents still send.
func (c *Collectors) TerminateAll() {
	for _, p := range slices.Backward(c.All()) {
		c.Terminate(p)
	}
}

// Resume lets one go on after a SIGSTOP.
func (c *Collectors) Resume(p *process.Process) error {
	if p == c.Gateway {
		c.resumed = append(c.resumed, time.Now())
	}
	return p.Signal(syscall.SIGCONT)
}

// GatewayEnds and GatewayResumed are when it ended, on purpose, and went on after a
// SIGSTOP.
func (c *Collectors) GatewayEnds() []time.Time    { return c.ends }
func (c *Collectors) GatewayResumed() []time.Time { return c.resumed }

// PortTaken reports whether another program took a port of one between our looking and
// using it.
func (c *Collectors) PortTaken() bool { return c.taken.Load() }

// Close ends everything that runs.
func (c *Collectors) Close() {
	if c.Gateway == nil {
		return
	}
	for _, p := range c.All() {
		_ = p.Kill()
	}
	for _, mb := range c.Members {
		if mb.Link != nil {
			mb.Link.Close()
		}
	}
}

// died is called when a collector ended by itself.
func (c *Collectors) died(p *process.Process, err error) {
	if strings.Contains(err.Error(), "address already in use") {
		c.taken.Store(true) // not the collector's fault
		return
	}
	c.verdict.Violate("crash", "%s ended by itself: %v", p.Name, err)
}

// ended is called when a collector was ended.
func (c *Collectors) ended(p *process.Process) {
	if p == c.Gateway {
		c.ends = append(c.ends, time.Now())
	}
}
