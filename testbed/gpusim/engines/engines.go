// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package engines simulates inference engines: requests that a pod serves, the page
// that its engine shows about them, and what goes wrong with either. An engine is a
// function of its configuration, its faults and the time, which only moves forward.
package engines

import (
	"errors"
	"fmt"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/pages"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/random"
)

// Config is an engine of a pod.
type Config struct {
	// Engine is one of pages.Names.
	Engine string
	// Pod names it, on pages too.
	Pod string
	// Requests, Ranks (data-parallel engines of the pod, each with traffic of its own)
	// and TensorRanks (that repeat what the first reports) are for engines, not for
	// gateways. Without Requests it is a typical engine; 0 ranks is 1.
	Requests    *requests.Config
	Ranks       int
	TensorRanks int
}

// maxRanks is more than a node has devices.
const maxRanks = 64

// Check returns an error that names the key which makes no sense.
func (c *Config) Check() error {
	page, err := pages.Find(c.Engine)
	if err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	if page.Gateway && (c.Requests != nil || c.Ranks != 0 || c.TensorRanks != 0) {
		return fmt.Errorf("engine: %s is a gateway: it has no requests and ranks of its own", c.Engine)
	}
	if c.Ranks < 0 || c.TensorRanks < 0 || c.Ranks > maxRanks || c.TensorRanks > maxRanks {
		return fmt.Errorf("ranks: neither ranks nor tensor_ranks can be below 0 or above %d", maxRanks)
	}
	_, err = requests.New(c.traffic(), 0, 0, func(int64) float64 { return 0 }, nil)
	if err != nil {
		return fmt.Errorf("requests: %w", err)
	}
	return nil
}

func (c *Config) traffic() requests.Config {
	if c.Requests == nil {
		return requests.Typical()
	}
	return *c.Requests
}

// Engine is one pod's engine, or a gateway. It is not safe for use by several
// goroutines.
type Engine struct {
	cfg       Config
	page      *pages.Engine
	begin     time.Duration
	now       time.Duration // before begin: it has not been advanced
	processes []*requests.Process
	stopped   bool
	up        time.Duration // when it started last
	done      map[turnKey]bool
	behind    func() []*Engine       // of a gateway
	before    map[key]requests.State // a gateway's engines and models when it started last
}

// key is an engine and a model.
type key struct{ engine, model string }

// New builds an engine that serves from begin on, after the start of the fleet. load is
// the part of the rate of requests that arrives in a second.
func New(cfg Config, seed uint64, begin time.Duration, load func(second int64) float64) (*Engine, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, begin: begin, now: begin - 1, up: begin, done: map[turnKey]bool{}}
	var err error
	if e.page, err = pages.Find(cfg.Engine); err != nil || e.page.Gateway {
		return e, err
	}
	for rank := range max(cfg.Ranks, 1) {
		p, err := requests.New(cfg.traffic(), random.Stream(seed, fmt.Sprintf("requests/%s/%d", cfg.Pod, rank)), begin, load, pages.Bounds)
		if err != nil {
			return nil, err
		}
		e.processes = append(e.processes, p)
	}
	return e, nil
}

// Fronts makes a gateway one of these engines. They are asked for when a page is.
func (e *Engine) Fronts(behind func() []*Engine) { e.behind = behind }

// Gateway is whether it has no requests of its own.
func (e *Engine) Gateway() bool { return e.page.Gateway }

// Stopped reports whether a restart has taken it away.
func (e *Engine) Stopped() bool { return e.stopped }

// Processes are the engine's data-parallel ranks; a gateway has none.
func (e *Engine) Processes() []*requests.Process { return e.processes }

// Name of what prints the page now.
func (e *Engine) Name() string { return e.page.Name }

// Path of the page.
func (e *Engine) Path() string { return e.page.Path }

// Model that is served; a gateway has none of its own.
func (e *Engine) Model() string {
	if len(e.processes) == 0 {
		return ""
	}
	return e.processes[0].State().Model
}

// ErrDown is returned where nothing listens.
var ErrDown = errors.New("the engine does not serve now")

// Page is what is printed at the engine's time. epoch is the start of the fleet.
func (e *Engine) Page(epoch time.Time, race bool) ([]byte, error) {
	if e.stopped || e.now < e.begin {
		return nil, ErrDown
	}
	in := pages.Input{Epoch: epoch, Pod: e.cfg.Pod, Ranks: e.cfg.TensorRanks, Race: race}
	if !e.page.Gateway {
		for _, p := range e.processes {
			s := p.State()
			s.Name = e.cfg.Pod
			in.States = append(in.States, s)
		}
		return e.page.Page(in), nil
	}
	for _, s := range e.seen() {
		if before, ok := e.before[key{s.Name, s.Model}]; ok {
			s.Less(&before)
		}
		s.Process, s.Since = e.up, max(s.Since, e.up) // what is printed is the gateway's own
		in.States = append(in.States, s)
	}
	return e.page.Page(in), nil
}

// seen is what a gateway has counted of the engines behind it, rank by rank.
func (e *Engine) seen() (out []requests.State) {
	if e.behind == nil {
		return nil
	}
	for _, engine := range e.behind() {
		for rank, p := range engine.processes {
			for _, s := range p.Seen() {
				s.Name = engine.cfg.Pod
				if rank > 0 {
					s.Name = fmt.Sprintf("%s-%d", engine.cfg.Pod, rank)
				}
				out = append(out, s)
			}
		}
	}
	return out
}
