// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/pages"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/random"
)

// EngineTruth is an engine or a gateway.
type EngineTruth struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Node      string `json:"node"`
	Service   string `json:"service"`
	Engine    string `json:"engine"`
	Gateway   bool   `json:"gateway"`
	Model     string `json:"model,omitempty"` // a gateway has none of its own
	State     string `json:"state"`           // up, starting or stopped
	Path      string `json:"path"`            // of the page
	Port      int    `json:"-"`               // as configured
	URL       string `json:"url,omitempty"`
}

// RequestsTruth is the truth about the requests of a service in a window, and since the
// start of the fleet.
type RequestsTruth struct {
	Namespace string `json:"namespace"`
	Service   string `json:"service"`
	requests.Window
	Total requests.Totals `json:"total"`
	Pods  []PodRequests   `json:"pods"`
}

// PodRequests is the part of one pod.
type PodRequests struct {
	Pod string `json:"pod"`
	requests.Window
	Total requests.Totals `json:"total"`
}

// ErrNoRequests is returned for a service without an engine.
var ErrNoRequests = errors.New("no engine of such a service")

// served are the engines that the fleet has or had. Their time only moves forward.
type served struct {
	fleet *Fleet
	at    time.Duration
	all   []*serving
}

type serving struct {
	node   *node
	pod    Pod
	begin  time.Duration
	engine *engines.Engine
	gone   time.Duration // when its pod was taken off the node; negative while it is there
}

// checkEngine checks what a pod has to do with engines.
func checkEngine(p *Pod) error {
	if p.Engine == "" {
		if p.Port != 0 || p.Requests != nil || p.Ranks != 0 || p.TensorRanks != 0 || p.Fronts != "" {
			return errors.New("port, requests, ranks, tensor_ranks and fronts are for pods with an engine")
		}
		return nil
	}
	if p.Port < 0 || p.Port > 65535 {
		return fmt.Errorf("port: %d is not between 0 and 65535", p.Port)
	}
	cfg := p.engine()
	if err := cfg.Check(); err != nil {
		return err
	}
	page, err := pages.Find(p.Engine)
	switch {
	case err != nil:
		return err
	case !page.Gateway && p.Fronts != "":
		return fmt.Errorf("fronts: %s is not a gateway", p.Engine)
	case page.Gateway && p.Load == "":
		p.Load = Idle
	}
	return nil
}

// advance brings every engine to a time since the start, or leaves it where it is if that
// is later. Gateways follow the engines from one of their faults to the next.
func (s *served) advance(t time.Duration) {
	t = max(t, s.at)
	present := map[*serving]bool{}
	for _, n := range s.fleet.nodes {
		for i := range n.pods {
			present[s.of(n, &n.pods[i].pod, t)] = true
		}
		for _, f := range n.faults {
			if f.Kind == NewPod {
				present[s.of(n, f.Pod, t)] = true
			}
		}
	}
	var stops []time.Duration
	faults := map[*serving][]engines.Fault{}
	for _, e := range s.all {
		if e.gone < 0 && !present[e] {
			e.gone = t
		}
		faults[e] = e.faults()
		for _, f := range faults[e] {
			if e.engine.Gateway() {
				stops = append(stops, f.From, f.Until)
			}
		}
	}
	slices.Sort(stops)
	for _, stop := range append(slices.Compact(stops), t) {
		if stop < s.at || stop > t {
			continue
		}
		for _, gateways := range []bool{false, true} {
			for _, e := range s.all {
				if e.engine.Gateway() == gateways {
					e.engine.Advance(stop, faults[e])
				}
			}
		}
	}
	s.at = t
}

// of is the engine of a pod, made when it is first asked for; nil for a pod that
// has none or has not come.
func (s *served) of(n *node, p *Pod, t time.Duration) *serving {
	if p.Engine == "" || time.Duration(p.Start) > t {
		return nil
	}
	for _, e := range s.all {
		if e.node == n && e.gone < 0 && e.pod.same(p) {
			return e
		}
	}
	seed := s.fleet.cfg.Seed
	service, name := random.Stream(seed, "service/"+p.Namespace+"/"+p.Service()), random.Stream(seed, "pod/"+p.Namespace+"/"+p.Name)
	load := func(k int64) float64 { return loadOf(p.Load, service, name, name, k) }
	begin := p.settled()
	made, err := engines.New(p.engine(), random.Stream(seed, "engine/"+p.Namespace+"/"+p.Name), begin, load)
	if err != nil {
		return nil // every configuration was checked when it came
	}
	e := &serving{node: n, pod: *p, begin: begin, engine: made, gone: -1}
	made.Fronts(func() []*engines.Engine { return s.behind(e) })
	s.all = append(s.all, e)
	return e
}

// behind are the engines that a gateway stands before, those that are gone too: it has
// counted their requests.
func (s *served) behind(gateway *serving) (out []*engines.Engine) {
	for _, e := range s.all {
		if !e.engine.Gateway() && e.pod.Namespace == gateway.pod.Namespace && e.pod.Service() == gateway.pod.fronts() {
			out = append(out, e.engine)
		}
	}
	return out
}

// engines reports whether a fault is one of engines.
func (f *fault) engines() bool { return slices.Contains(engines.Kinds, engines.Kind(f.Kind)) }

// about reports whether a fault of engines is one of this pod's.
func (f *fault) about(p *Pod) bool {
	return f.Pod == nil || f.Pod.Namespace == p.Namespace && f.Pod.Name == p.Name
}

// restartTakes is how long an engine is gone if the fault does not state it.
const restartTakes = 10 * time.Second

// prepareEngines checks a fault of engines and fills in what it leaves out.
func (f *fault) prepareEngines() error {
	var with []string // the engines that it is about
	for _, h := range f.node.pods {
		if h.pod.Engine != "" && f.about(&h.pod) {
			with = append(with, h.pod.Engine)
		}
	}
	for _, o := range f.node.faults {
		if o.Kind == NewPod && o.Pod.Engine != "" && f.about(o.Pod) {
			with = append(with, o.Pod.Engine)
		}
	}
	if f.Pod != nil {
		if len(with) == 0 {
			return fmt.Errorf("%s: node %s has no pod %s/%s with an engine", f.Kind, f.node.cfg.Name, f.Pod.Namespace, f.Pod.Name)
		}
		f.Pod = &Pod{Namespace: f.Pod.Namespace, Name: f.Pod.Name}
	}
	switch f.Kind {
	case ModelSwap:
		if f.Model == "" {
			return errors.New("model_swap needs a model")
		}
	case EngineUpgrade:
		to, err := pages.Find(f.Engine)
		if err != nil {
			return fmt.Errorf("engine_upgrade: %w", err)
		}
		for _, name := range with {
			if from, err := pages.Find(name); err != nil || from.Gateway != to.Gateway {
				return fmt.Errorf("engine_upgrade: %s cannot become %s: one of them is a gateway", name, f.Engine)
			}
		}
	}
	if (f.Kind == EngineRestart || f.Kind == EngineUpgrade) && f.end < 0 {
		f.end = f.start + restartTakes
	}
	return nil
}

// faults are those of one engine: its own, and that its pod is away.
func (e *serving) faults() (out []engines.Fault) {
	for _, f := range e.node.faults {
		switch {
		case f.engines() && f.about(&e.pod):
			out = append(out, engines.Fault{ID: f.id, Kind: engines.Kind(f.Kind), From: f.start, Until: f.end, Engine: f.Engine, Model: f.Model})
		case f.Kind == PodGone && f.about(&e.pod):
			out = append(out, engines.Fault{ID: f.id, Kind: engines.Restart, From: f.start, Until: f.end})
		case f.Kind == NewPod && f.about(&e.pod) && f.end >= 0:
			out = append(out, engines.Fault{ID: f.id, Kind: engines.Restart, From: f.end, Until: -1})
		}
	}
	if e.gone >= 0 {
		out = append(out, engines.Fault{ID: "gone", Kind: engines.Restart, From: e.gone, Until: -1})
	}
	return out
}

// truth lists the engines that have a pod at a time, in the order of nodes and pods.
func (s *served) truth(t time.Duration) (out []EngineTruth) {
	s.advance(t)
	for _, e := range s.all {
		if e.gone >= 0 {
			continue
		}
		truth := EngineTruth{
			Namespace: e.pod.Namespace, Pod: e.pod.Name, Node: e.node.cfg.Name, Service: e.pod.Service(), Engine: e.engine.Name(), Gateway: e.engine.Gateway(),
			Model: e.engine.Model(), State: "up", Path: e.engine.Path(), Port: e.pod.Port,
		}
		switch {
		case s.at < e.begin:
			truth.State = "starting"
		case e.engine.Stopped():
			truth.State = "stopped"
		}
		out = append(out, truth)
	}
	return out
}

// find returns the engine of a pod, nil if there is none.
func (s *served) find(namespace, pod string) *serving {
	for _, e := range s.all {
		if e.gone < 0 && e.pod.Namespace == namespace && e.pod.Name == pod {
			return e
		}
	}
	return nil
}

// page is what the engine of a pod prints now.
func (s *served) page(namespace, pod string) ([]byte, error) {
	e := s.find(namespace, pod)
	if e == nil {
		return nil, fmt.Errorf("no pod %s/%s with an engine", namespace, pod)
	}
	race := slices.ContainsFunc(e.faults(), func(f engines.Fault) bool { return f.Kind == engines.PageRace && f.Holds(s.at) })
	return e.engine.Page(s.fleet.start, race)
}

// transport is how the page of a pod's engine comes now.
func (s *served) transport(namespace, pod string, request bool) Transport {
	e := s.find(namespace, pod)
	if e == nil {
		return Transport{Down: true}
	}
	out := Transport{Down: s.at < e.begin || e.engine.Stopped()}
	for _, f := range e.node.faults {
		if !f.about(&e.pod) || !f.holds(s.at) {
			continue
		}
		switch f.Kind {
		case SlowPage:
			out.Delay = max(out.Delay, f.delay(request))
		case PageFails:
			out.Fails = true
		}
	}
	return out
}

// requests is the truth about the requests of a service.
func (s *served) requests(namespace, service string, from, to time.Duration) (RequestsTruth, error) {
	out := RequestsTruth{Namespace: namespace, Service: service, Pods: []PodRequests{}}
	var all []*requests.Process
	for _, e := range s.all {
		if e.engine.Gateway() || e.pod.Namespace != namespace || e.pod.Service() != service {
			continue
		}
		own := e.engine.Processes()
		all = append(all, own...)
		out.Pods = append(out.Pods, PodRequests{e.pod.Name, requests.Truth(own, from, to), requests.Total(own)})
	}
	if len(all) == 0 {
		return out, fmt.Errorf("%w: %q in namespace %q", ErrNoRequests, service, namespace)
	}
	out.Window, out.Total = requests.Truth(all, from, to), requests.Total(all)
	return out, nil
}
