// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/storedstate"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

// One cluster, one story: the steps build on each other.
func TestGateway(t *testing.T) {
	w := newWorld(t)
	pods := w.workloads()
	from := w.out.Len()
	w.wait("all services are whole", from, whole)

	t.Run("services are called what the agents call them", func(t *testing.T) {
		agents, gateway := w.calledBy(0)
		assert.Equal(t, pods, agents)
		assert.Equal(t, pods, gateway)
	})
	t.Run("the gateway gets everything of one node, and the summary's input of the other", w.routes)

	t.Run("the stateless gateway killed", func(t *testing.T) {
		w.t = t
		summary := w.out.Len()
		w.kill(w.stateless)
		// The summary goes its own way: two evaluations after the kill all is whole.
		w.evaluations(2)
		w.wait("all services are whole without it", summary, whole)
		raw := w.raw.Len()
		w.startStateless()
		w.eventually("raw telemetry goes on", func(context.Context) error {
			for _, p := range w.raw.Since(raw) {
				if p.Metric == names.HwTemperature.Name {
					return nil
				}
			}
			return errors.New("none yet")
		})
		assert.Zero(t, w.events.all(), "nothing was partial: %v", w.events.states)
	})

	t.Run("killed while all is well", func(t *testing.T) {
		w.t = t
		w.restarted(func(first map[string]float64) { assert.Equal(t, 0., first["chat"]) }, whole)
		assert.Zero(t, w.events.all(), "nothing was ever partial: %v", w.events.states)
	})

	t.Run("an exporter goes down", func(t *testing.T) {
		w.t = t
		from := w.out.Len()
		w.nodes[1].down.Store(true)
		w.wait("chat is partial", from, func(s map[string]service) error { return s["chat"].is(1, 2, 2) })
		w.waitForStates("chat", "raised")
		// A killed collector raises again what it raised after the last write.
		w.stored(`"event":"gpu\.service\.partial"[^}]*"service":"chat"`)
		// Prometheus has it too, under the service's name.
		w.eventually("the page has it", func(ctx context.Context) error {
			families, err := w.gateway.Metrics(ctx)
			partial := map[string]float64{}
			for _, m := range families["gpu_service_partial"].GetMetric() {
				partial[collector.Label(m, "service_name")] = collector.Value(m)
			}
			if err != nil || partial["chat"] != 1 {
				return fmt.Errorf("%v, %w", partial, err)
			}
			return nil
		})
	})
	t.Run("killed while a service is partial", func(t *testing.T) {
		w.t = t
		before := w.events.all()
		w.restarted(func(first map[string]float64) { assert.Equal(t, 1., first["chat"], "never reported as whole") },
			func(s map[string]service) error { return s["chat"].is(1, 2, 2) })
		w.evaluations(3) // each of them would raise
		assert.Equal(t, before, w.events.all(), "nothing is raised again: %v", w.events.states)
	})
	t.Run("the exporter is back", func(t *testing.T) {
		w.t = t
		from := w.out.Len()
		w.nodes[1].down.Store(false)
		w.wait("all services are whole", from, whole)
		w.waitForStates("chat", "raised", "cleared")
		w.evaluations(3)
		for service := range w.events.states {
			assert.Equal(t, []string{"raised", "cleared"}, w.events.of(service), service)
		}
	})

	t.Run("an XID while the gateway is away is one event", func(t *testing.T) {
		w.t = t
		n := w.nodes[0]
		var device string // one that chat holds
		for _, d := range n.Fleet().TruthAt(time.Now()).Nodes[0].Devices {
			if strings.HasPrefix(d.Pod, "chat-") {
				device = strconv.Itoa(d.Index)
			}
		}
		require.NotEmpty(t, device)
		w.kill(w.gateway)
		_, err := n.Fleet().StartFault(gpusim.Fault{Node: n.Name(), Kind: gpusim.XID, Device: device, Code: 79})
		require.NoError(t, err)
		w.eventually("the agent noticed", func(ctx context.Context) error {
			families, err := n.agent.OwnMetrics(ctx)
			if err != nil {
				return err
			}
			for _, m := range families["otelcol_gpu_events_emitted"].GetMetric() {
				if collector.Label(m, "event") == names.EventXID {
					return nil
				}
			}
			return errors.New("not yet")
		})
		w.start()
		want := []string{n.Name() + ": XID 79, owned by chat"}
		w.eventually("the gateway's events have it", func(context.Context) error {
			if got, _ := w.events.ofXIDs(); !assert.ObjectsAreEqual(want, got) {
				return fmt.Errorf("%v", got)
			}
			return nil
		})
		// Killed before the agent has its answer, the gateway gets the event once more,
		// with the same id.
		w.kill(w.gateway)
		w.start()
		w.evaluations(3)
		got, deliveries := w.events.ofXIDs()
		assert.Equal(t, want, got, "no other event")
		assert.LessOrEqual(t, deliveries, 2, "there was one kill")
	})

	t.Run("without agents services are called the same, and a damaged state stops nothing", func(t *testing.T) {
		w.t = t
		for _, n := range w.nodes {
			require.NoError(t, n.agent.Stop())
		}
		w.kill(w.gateway)
		files, err := filepath.Glob(filepath.Join(w.state, "connector_*"))
		require.NoError(t, err)
		require.Len(t, files, 2, "of gpu_events and gpu_cost")
		for _, file := range files {
			require.NoError(t, os.WriteFile(file, bytes.Repeat([]byte("damaged "), 8192), 0o600))
		}
		from := w.out.Len()
		w.start()
		w.eventually("the gateway names all pods", func(context.Context) error {
			agents, gateway := w.calledBy(from)
			if len(agents) > 0 {
				return fmt.Errorf("agents still said %v", agents)
			}
			if !assert.ObjectsAreEqual(pods, gateway) {
				return fmt.Errorf("%v", gateway)
			}
			return nil
		})
	})
}

// restarted kills the gateway, starts it again and waits until done has no
// objection. In between nothing is known for the length of the start gate; then
// judge gets the first word about each service.
func (w *world) restarted(judge func(first map[string]float64), done func(map[string]service) error) {
	w.t.Helper()
	w.kill(w.gateway)
	from, began := w.out.Len(), time.Now()
	w.start()
	w.wait("after the restart", from, done)
	first, gate := map[string]float64{}, false
	for _, p := range w.out.Since(from) {
		gate = gate || p.Metric == names.ServicePods.Name && p.Time.Before(began.Add(staleness))
		if p.Metric != names.ServicePartial.Name || p.Ended {
			continue
		}
		assert.False(w.t, p.Time.Before(began.Add(staleness)), "partial is said %v after the kill", p.Time.Sub(began))
		if _, ok := first[p.Service]; !ok {
			first[p.Service] = p.Value
		}
	}
	assert.True(w.t, gate, "pods are counted from the first evaluation on")
	assert.Len(w.t, first, 4)
	judge(first)
}

// service is the newest evaluation of one.
type service struct {
	partial float64
	known   bool // whether partial is there
	pods    map[string]float64
}

// is an error unless a service is partial or not, with so many pods reporting
// and missing and no others.
func (s service) is(partial, reporting, missing float64) error {
	settled := s.pods["reporting"] == reporting && s.pods["missing"] == missing && s.pods["degraded"] == 0 && s.pods["warming"] == 0
	if s.known && s.partial == partial && settled {
		return nil
	}
	return fmt.Errorf("partial %v (%v), pods %v", s.partial, s.known, s.pods)
}

// whole is an error unless all pods of all services report.
func whole(s map[string]service) error {
	for name, pods := range map[string]float64{"chat": 4, "db": 1, "train": 1, "llama": 1} {
		if err := s[name].is(0, pods, 0); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// wait waits for the newest evaluation from the given point on.
func (w *world) wait(what string, from int, done func(map[string]service) error) {
	w.t.Helper()
	services := map[string]service{}
	w.eventually(what, func(context.Context) error {
		points := w.out.Since(from)
		from += len(points)
		for _, p := range points {
			s := services[p.Service]
			switch {
			case p.Metric == names.ServicePartial.Name:
				s.partial, s.known = p.Value, !p.Ended
			case p.Metric == names.ServicePods.Name:
				if s.pods == nil {
					s.pods = map[string]float64{}
				}
				s.pods[p.Attribute(names.GPUPodState)] = p.Value
			default:
				continue
			}
			services[p.Service] = s
		}
		return done(services)
	})
}

// evaluations waits until the gateway has evaluated the services so many times
// from now on.
func (w *world) evaluations(n int) {
	w.t.Helper()
	from, times := w.out.Len(), map[time.Time]bool{}
	w.eventually(fmt.Sprintf("%d evaluations", n), func(context.Context) error {
		points := w.out.Since(from)
		from += len(points)
		for _, p := range points {
			if p.Metric == names.ServicePods.Name {
				times[p.Time] = true
			}
		}
		if len(times) < n {
			return fmt.Errorf("%d so far", len(times))
		}
		return nil
	})
}

// waitForStates waits until exactly these states were reported of a service.
func (w *world) waitForStates(service string, states ...string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s is %v", service, states), func(context.Context) error {
		if got := w.events.of(service); !assert.ObjectsAreEqual(states, got) {
			return fmt.Errorf("reported: %v", got)
		}
		return nil
	})
}

// stored waits until the state of gpu_events on the gateway's disk has the text.
func (w *world) stored(pattern string) {
	w.t.Helper()
	w.eventually("the state has "+pattern, func(context.Context) error {
		has, err := storedstate.Has(w.t, filepath.Join(w.state, "connector_*"), regexp.MustCompile(pattern))
		if err == nil && !has {
			err = errors.New("not yet")
		}
		return err
	})
}

// calledBy is the service of each pod, by the agents' word on telemetry and by
// the gateway's on the states of pods.
func (w *world) calledBy(from int) (agents, gateway map[string]string) {
	agents, gateway = map[string]string{}, map[string]string{}
	for _, p := range w.out.Since(from) {
		switch {
		case p.Ended:
		case p.Metric == names.PodState.Name:
			gateway[p.Attribute(names.K8sPodName)] = p.Service
		case p.Metric == names.GPUUtilization.Name && p.Owner.Pod != "":
			agents[p.Owner.Pod] = p.Service
		}
	}
	return agents, gateway
}

// routes: what agent-raw.yaml lets through to the gateway is what the summary is
// made of; everything is sent past it; and no point arrives twice.
func (w *world) routes(t *testing.T) {
	type series struct {
		metric, device, attributes string
		owner                      ownership.Owner
		time                       time.Time
		ended                      bool
	}
	of := func(r *ownership.Recorder, node string) map[string]int {
		metrics, seen := map[string]int{}, map[series]int{}
		for _, p := range r.Since(0) {
			if p.Node != node {
				continue
			}
			metrics[p.Metric]++
			s := series{p.Metric, p.Device, p.Attributes, p.Owner, p.Time, p.Ended}
			// gpu_allocation repeats a snapshot, with its time, when one follows
			// a change closely.
			if seen[s]++; seen[s] == 2 && p.Device != "" && p.Metric != names.GPUAllocation.Name {
				assert.Fail(t, "a point arrived twice", "%+v", p)
			}
		}
		return metrics
	}
	everything, input, raw := of(w.out, "whole"), of(w.out, "past"), of(w.raw, "past")
	assert.ElementsMatch(t, keys(everything), keys(raw))
	assert.Empty(t, of(w.raw, "whole"))
	var want []string // gpu.sm.active is for exporters that have it, gpu.node.info for nodes of which something is known
	for _, metric := range []string{
		names.GPUUtilization.Name, names.GPUMemoryUsage.Name, names.GPUMemoryLimit.Name, names.HwPower.Name, names.HwEnergy.Name,
		names.GPUSMActive.Name, names.GPUDRAMActive.Name, names.GPUPipeActive.Name,
		names.GPUAllocation.Name, names.GPUNodeSchedulable.Name, names.GPUNodeMIGReconfiguring.Name, names.GPUNodeInfo.Name,
		// Of the health of boards the gateway has all.
		names.HwStatus.Name, names.GPUHealthReason.Name, names.GPUHealthCoverage.Name, names.GPUNodeStatus.Name,
	} {
		if everything[metric] > 0 {
			want = append(want, metric)
		}
	}
	assert.Contains(t, want, names.GPUPipeActive.Name)
	assert.Contains(t, want, names.HwStatus.Name)
	assert.ElementsMatch(t, want, keys(input))
}

func keys(of map[string]int) (out []string) {
	for k := range of {
		out = append(out, k)
	}
	return out
}
